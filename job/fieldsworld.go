package job

import (
	"regexp"
	"time"
)

func init() { theJob.entries = append(theJob.entries, theWorld.entries...) }

// theWorld is the part of the table that is for simulations.
var theWorld = inWorld(tableOf(
	seed("world.seed", func(j *Job) *uint64 { return &j.World.Seed },
		"Seeds rows, losses, delays and drop-outs.").means("seed"),
	whole("world.evaluate_every", func(j *Job) *int { return &j.World.EvaluateEvery },
		between(1, MaxRounds), "Evaluates the model once in this many rounds.").unit("rounds").or(1),
	truth("world.skip_clear", func(j *Job) *bool { return &j.World.SkipClear },
		"Skips what is compared: the same training in the clear, and those of each party alone.").
		flag("skip-clear", ""),

	text("world.data.set", func(j *Job) *string { return &j.World.Data.Set },
		"Names the data: a set, or the folder of one.").
		form("synthetic, adult, digits, mnist, fashion-mnist, kddcup99 or a folder", someText).
		or("synthetic").flag("data", "SET"),
	whole("world.data.rows", func(j *Job) *int { return &j.World.Data.Rows }, between(1, maxRows),
		"Counts the rows of a party; with draw, those of each round.").unit("rows").
		means("200; for images all").flag("rows-per-client", "N"),
	truth("world.data.all", func(j *Job) *bool { return &j.World.Data.All },
		"Deals all rows of the set, as is always done with images."),
	word("world.data.split", func(j *Job) *string { return &j.World.Data.Split },
		splits, "Says how the rows are dealt to the parties, once.").means("iid").flag("split", "NAME"),
	number("world.data.concentration", func(j *Job) *float64 { return &j.World.Data.Concentration },
		positive, "Sets the concentration of the Dirichlet splits.").or(0.5).flag("concentration", "X"),
	word("world.data.draw", func(j *Job) *string { return &j.World.Data.Draw },
		"fixed new growing anew", "Says how rows are dealt in each round, instead of a split.").
		means("by the split").
		lacks(Sums, "rows by round are simulated in virtual time"),
	number("world.data.test", func(j *Job) *float64 { return &j.World.Data.Test }, inside,
		"Keeps this share of the rows to evaluate models on, if a set has no test rows.").
		unit("share of the rows").or(0.25),
	truth("world.data.final", func(j *Job) *bool { return &j.World.Data.Final },
		"Judges models on the set's own test rows, once all else is chosen: otherwise the last of the "+
			"training rows, up to 10,000, judge, and train nothing.").flag("final", "").
		lacks(Timed, "virtual time judges on test rows").
		lacks(Crowd, "a crowd judges nothing"),
	whole("world.data.most", func(j *Job) *int { return &j.World.Data.Most }, from(0),
		"Uses this many rows of a set, drawn by seed.").unit("rows").means("0: all").
		lacks(Sums, "parts of a set are simulated in virtual time"),

	word("world.fidelity", func(j *Job) *string { return &j.World.Fidelity },
		"messages crowd ring clear", "Says how much of a sum is simulated.").or("messages").
		lacksOnly(Sums, "crowd", "crowds are simulated in virtual time").
		lacksOnly(Timed, "clear", "in virtual time sums are of whole numbers"),
	word("world.topology", func(j *Job) *string { return &j.World.Topology }, "server serverless",
		"Says where sums are added up.").or("server").
		lacks(Sums, "sums without a server are simulated in virtual time"),
	texts("world.servers", func(j *Job) *[]string { return &j.World.Servers },
		"Lists the places of the servers; if there are several, each sums its own parties.").
		means("one, at server").
		lacks(Sums, "places are simulated in virtual time"),
	number("world.drop", func(j *Job) *float64 { return &j.World.Drop }, share,
		"Has this share of the parties drop out of each round.").unit("share of the parties").or(0.0).
		flag("drop", "F"),
	number("world.malicious", func(j *Job) *float64 { return &j.World.Malicious }, share,
		"Has this share of the parties cheat: each moves the sum against what it learnt, as far as the "+
			"sum's range allows for all of them; with sum.bounded their proofs do not hold.").
		unit("share of the parties").or(0.0).flag("malicious", "F").
		lacks(Timed, "all parties are honest in virtual time"),
	whole("world.lost_rounds", func(j *Job) *int { return &j.World.LostRounds }, between(0, MaxRounds),
		"Loses this many rounds, drawn by seed: what parties submit in them is never summed.").
		unit("rounds").or(0),
	number("world.tolerance", func(j *Job) *float64 { return &j.World.Tolerance }, from(0),
		"Lets a party leave once no weight differs from its own by more than this.").
		means("0: nobody leaves").
		lacks(Sums, "who leaves is simulated in virtual time").
		lacks(Crowd, "nobody leaves a crowd"),
	word("world.reference.law", func(j *Job) *string { return &j.World.Reference.Law },
		"staircase continuous-laplace continuous-gaussian",
		"Adds noise as a paper defines it, for comparison and never for release.").means("none").
		lacks(Sums, "reference laws are simulated in virtual time").
		lacks(Crowd, "a crowd has no reference laws"),
	number("world.reference.epsilon", func(j *Job) *float64 { return &j.World.Reference.Epsilon },
		positive, "Sets the epsilon of that noise.").means("required with a law"),
	number("world.reference.alpha", func(j *Job) *float64 { return &j.World.Reference.Alpha },
		positive, "Sets the regularisation in its sensitivity.").means("training.lambda"),
	truth("world.subtract_own", func(j *Job) *bool { return &j.World.SubtractOwn },
		"Has a party subtract its own noise from its copy of the model.").
		lacks(Sums, "models of each party's own are simulated in virtual time").
		lacks(Crowd, "nobody in a crowd subtracts noise"),
	many("world.link", func(j *Job) *[]Link { return &j.World.Link }, tableOf(
		texts("between", func(l *Link) *[]string { return &l.Between }, "Names the two places.").
			required(),
		span("latency", func(l *Link) *time.Duration { return &l.Latency }, between(0, maxTime),
			"Delays each message.").or(time.Duration(0)),
		span("jitter", func(l *Link) *time.Duration { return &l.Jitter }, between(0, maxTime),
			"Delays each message further, by up to this.").or(time.Duration(0)),
		number("loss", func(l *Link) *float64 { return &l.Loss }, between(0, 0.99),
			"Loses this share of the messages, which are sent again.").unit("share").or(0.0),
		number("bandwidth", func(l *Link) *float64 { return &l.Bandwidth }, from(0),
			"Carries this many bytes a second.").unit("bytes/s").means("0: no limit"),
	)).lacks(Sums, "messages take virtual time"),
	many("world.party", func(j *Job) *[]WorldParty { return &j.World.Party }, tableOf(
		text("name", func(p *WorldParty) *string { return &p.Name }, "Names a party, or a group.").
			form("a group or a party", namePattern.MatchString).required(),
		text("place", func(p *WorldParty) *string { return &p.Place }, "Says where it is.").
			form("1 to 200 characters", someText).means("its name"),
		text("server", func(p *WorldParty) *string { return &p.Server }, "Says where its server is.").
			form("one of world.servers", someText).means("the nearest"),
		whole("rows", func(p *WorldParty) *int { return &p.Rows }, between(1, maxRows),
			"Counts its rows.").unit("rows").means("world.data.rows"),
		spans("compute", func(p *WorldParty) *[]time.Duration { return &p.Compute },
			"Lists the time of its work in each round; the last counts for all later ones.").
			within(between(0, maxTime)).means("by the cost model"),
		number("slow", func(p *WorldParty) *float64 { return &p.Slow }, limits{hi: 1e6, above: true},
			"Multiplies the time of its work.").or(1.0),
		number("straggle", func(p *WorldParty) *float64 { return &p.Straggle }, between(0, 1),
			"Slows it in this share of the rounds only.").unit("share of the rounds").means("0: in all"),
		whole("joins", func(p *WorldParty) *int { return &p.Joins }, between(1, MaxRounds),
			"Has it join in this round.").unit("round").or(1),
		whole("leaves", func(p *WorldParty) *int { return &p.Leaves }, from(0),
			"Has it leave after this round.").unit("round").means("0: it stays"),
		number("reference_epsilon", func(p *WorldParty) *float64 { return &p.ReferenceEpsilon }, positive,
			"Sets its own epsilon of a reference law.").means("world.reference.epsilon"),
		many("crash", func(p *WorldParty) *[]Crash { return &p.Crash }, theCrash),
	)).lacks(Sums, "places and mishaps of single parties are simulated in virtual time"),
	many("world.member", func(j *Job) *[]WorldMember { return &j.World.Member }, tableOf(
		text("name", func(m *WorldMember) *string { return &m.Name },
			"Names a member, or all of them: member-1, or member.").
			form("member, or one such as member-1", memberPattern.MatchString).required(),
		text("place", func(m *WorldMember) *string { return &m.Place }, "Says where it is.").
			form("1 to 200 characters", someText).means("with the server"),
		number("slow", func(m *WorldMember) *float64 { return &m.Slow }, limits{hi: 1e6, above: true},
			"Multiplies the time of its work.").or(1.0),
		truth("silent", func(m *WorldMember) *bool { return &m.Silent },
			"Has it be present but never answer."),
		word("lies", func(m *WorldMember) *string { return &m.Lies }, "disputes part",
			"Has it lie: it disputes every submission, or reveals a wrong part of the key.").
			means("it is honest"),
		many("crash", func(m *WorldMember) *[]Crash { return &m.Crash }, theCrash),
	)).lacks(Sums, "places and mishaps of single members are simulated in virtual time"),
))

var memberPattern = regexp.MustCompile(`^member(-[1-9][0-9]{0,2})?$`)

// theCrash is the table of drop-outs.
var theCrash = tableOf(
	whole("round", func(c *Crash) *int { return &c.Round }, between(1, MaxRounds),
		"Has it drop out of this round.").required(),
	word("at", func(c *Crash) *string { return &c.At }, "begin submit sign reveal",
		"Says before which of its messages it drops out.").or("submit"),
	whole("back", func(c *Crash) *int { return &c.Back }, between(2, MaxRounds+1),
		"Brings it back before this round.").unit("round").means("the next"),
)

// splits are the ways to deal rows: those of package learning, and that of a census of old.
const splits = "shuffled iid label-skew one-class dirichlet-labels dirichlet-quantity colour " +
	"rotation label-colour label-colour-skew label-rotation label-rotation-skew writers"

// inWorld marks all rows of a table as those of a simulation.
func inWorld(t table) table {
	for _, e := range t.entries {
		if e.list != nil {
			inWorld(e.list.rows)
			continue
		}
		e.row.Part = Simulated
	}
	return t
}
