package simulate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/datasets"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/scenario"
	"github.com/hushsum/hushsum/training/rows"
)

// kddRows is the data set that only virtual time supports.
const kddRows = datasets.KDD

// timed is a job that runs in virtual time.
type timed struct {
	job    *job.Job
	rows   scenario.Rows
	result *scenario.Result
}

// readyTimed makes a runner in virtual time.
func (v *jobFlags) readyTimed(j *job.Job) (runner, error) {
	if v.byRows {
		return nil, &cli.Problem{Cause: "--by-rows: in virtual time rows are dealt as the job runs",
			Advice: "Write --max-weight, the most rows that count."}
	}
	if err := v.fillSums(j, j.Size()); err != nil {
		return nil, err
	}
	if err := scenario.Validate(j); err != nil || v.print {
		return &timed{job: j}, err
	}
	found, err := v.loaded(j)
	if err == nil && j.World.Data.Split != "" {
		d := &datasets.Dealing{World: rows.Of(j), Named: v.namedSet()}
		found.Parties, found.Test, err = d.DealOut(found.Train, found.Test)
	}
	return &timed{job: j, rows: found}, err
}

// loaded returns the rows of a job in virtual time. All combinations of a sweep that name the same
// data divide it alike, whatever their seeds.
func (v *jobFlags) loaded(j *job.Job) (scenario.Rows, error) {
	key := fmt.Sprint(j.World.Data.Set, j.World.Data.Most, j.World.Data.Test)
	if found, ok := v.rows[key]; ok {
		return found, nil
	}
	like := j.Clone()
	like.Seed, like.World.Seed = v.base.Seed, v.base.World.Seed
	found, err := datasets.LoadRows(like)
	if err == nil {
		v.rows[key] = found
	}
	return found, err
}

func (t *timed) declared() *job.Job                      { return t.job }
func (t *timed) testRows() *learning.Dataset             { return t.rows.Test }
func (t *timed) warn(context.Context, cli.Streams) error { return nil }

// busy reports whether the job is simulated on all cores: crowds and one-message sums are.
func (t *timed) busy() bool { return t.job.World.Fidelity == "crowd" || t.job.Oneshot() }

// play simulates the job.
func (t *timed) play(ctx context.Context, w watch) (*scenario.Result, error) {
	hooks := scenario.Hooks{Now: w.now, Progress: w.progress}
	if w.round != nil {
		hooks.Round = func(r scenario.RoundResult) { w.round(t.held(&r)) }
	}
	var err error
	t.result, err = scenario.Run(ctx, t.job, t.rows, hooks)
	return t.result, err
}

// held returns a round as it is shown.
func (t *timed) held(r *scenario.RoundResult) held {
	h := held{rows: roundRows(r), below: stepLines(r)}
	for _, l := range partyLines(r) {
		h.objects = append(h.objects, l)
	}
	h.objects = append(h.objects, newTimedRound(r))
	for _, m := range r.Members {
		h.objects = append(h.objects,
			memberLine{r.Number, m.Member, m.Place, m.Work.Seconds(), m.Sent, m.Got})
	}
	return h
}

// partyLine is a line for one party and round.
type partyLine struct {
	Round    int      `json:"round"`
	Party    string   `json:"party"`
	Place    string   `json:"place"`
	Seconds  *float64 `json:"seconds"` // until it had the new model; null: it has not
	Included bool     `json:"included"`
	Left     bool     `json:"left"`
	Lost     string   `json:"lost,omitempty"`
	Accuracy float64  `json:"accuracy"` // of the model that it holds
	MCC      float64  `json:"mcc"`
	Alone    float64  `json:"alone,omitempty"` // accuracy of a model of its own rows only
	Work     float64  `json:"work_seconds"`
	Sent     int      `json:"bytes_sent"`
	Got      int      `json:"bytes_received"`
}

func partyLines(r *scenario.RoundResult) []partyLine {
	lines := make([]partyLine, len(r.Parties))
	for k, p := range r.Parties {
		l := partyLine{
			Round:    r.Number,
			Party:    p.Party,
			Place:    p.Place,
			Included: p.Included,
			Left:     p.Left,
			Lost:     r.Lost,
			Accuracy: p.Accuracy,
			MCC:      p.MCC,
			Alone:    p.Alone,
			Work:     p.Work.Seconds(),
			Sent:     p.Sent,
			Got:      p.Got,
		}
		if p.Received {
			seconds := p.Took.Seconds()
			l.Seconds = &seconds
		}
		lines[k] = l
	}
	return lines
}

// timedRound is the object of a round in virtual time. In one-message sums it says how long the
// steps took, and which parties the round waited for.
type timedRound struct {
	jsonHeld
	Why     string      `json:"why,omitempty"` // it is lost
	Seconds float64     `json:"seconds"`
	Server  int         `json:"server_bytes_received"`
	Steps   []stepTaken `json:"steps,omitempty"`
	Waited  []string    `json:"waited_for,omitempty"`
}

// timedSummary is the last object of a run in virtual time.
type timedSummary struct {
	Summary bool `json:"summary"`
	timedRound
	jsonWhole
	// Certified is the largest claim of any party; null: nothing is certified.
	Certified *accounting.Claim `json:"certified"`
}

// newTimedRound returns the object of a round.
func newTimedRound(r *scenario.RoundResult) timedRound {
	o := timedRound{Why: r.Lost, Seconds: r.Took.Seconds(), Server: r.Server, Waited: r.Waited,
		jsonHeld: jsonHeld{Round: r.Number, Clients: r.Included, Lost: r.Lost != "",
			Accuracy: show.Finite(r.Accuracy), MCC: show.Finite(r.MCC)}}
	for _, s := range r.Steps {
		o.Steps = append(o.Steps, stepTaken{s.Name, s.Took.Seconds()})
	}
	return o
}

// last returns the object about the whole run.
func (t *timed) last() []any {
	r := t.result.Final()
	o := timedSummary{Summary: true, timedRound: newTimedRound(&r), jsonWhole: newWhole(t.result)}
	o.Steps, o.Waited, o.Seconds, o.Server = nil, nil, 0, 0
	for _, round := range t.result.Rounds {
		o.Seconds += round.Took.Seconds()
		o.Server += round.Server
	}
	if c, err := worst(t.result); err == nil {
		o.Certified = c
	}
	return []any{o}
}

type stepTaken struct {
	Step    string  `json:"step"`
	Seconds float64 `json:"seconds"`
}

// memberLine is a line for a member of the committee and a round.
type memberLine struct {
	Round  int     `json:"round"`
	Member string  `json:"member"`
	Place  string  `json:"place"`
	Work   float64 `json:"work_seconds"`
	Sent   int     `json:"bytes_sent"`
	Got    int     `json:"bytes_received"`
}

// mostShown is how many parties get a line each.
const mostShown = 12

// timedWidths are those of the columns of a table in virtual time; the last one sets the text off.
var timedWidths = []int{5, 11, 8, 8, 7, 7, 0}

func (t *timed) head(g *grid) {
	j := t.job
	g.widths = timedWidths
	g.Printf("%s\n", j.Name)
	if j.About != "" {
		g.paragraph(j.About)
	}
	g.Printf("%s, %s; %s: %s, tested on %s\n", show.Plural(j.Size(), "party"),
		show.Plural(j.Rounds, "round"), j.WithDefaults().World.Data.Set,
		show.Plural(t.rows.Train.Len(), "row"), show.Plural(t.rows.Test.Len(), "other"))
	for _, line := range warnings(j) {
		g.paragraph(line)
	}
	g.Printf("\n")
	g.row(line{[]string{"round", "seconds", "in sum", "accuracy", "MCC", "alone", ""},
		"left for good, or party"})
}

// warnings lists what must not be believed of a job's world.
func warnings(j *job.Job) (lines []string) {
	if law := j.World.Reference.Law; law != "" {
		lines = append(lines, "NEVER FOR RELEASE: "+law+" noise in floating point is a "+
			"reference of the papers; see the certified epsilon below.")
	}
	return lines
}

func virtual(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// roundRows are the rows of a round: its own, and one of each party where there are few.
func roundRows(r *scenario.RoundResult) (rows []line) {
	if r.Lost != "" {
		return []line{{[]string{fmt.Sprint(r.Number), virtual(r.Took)}, "lost: " + r.Lost}}
	}
	add := func(text string, cells ...string) {
		rows = append(rows, line{append(cells, ""), text})
	}
	score := func(x float64) string { return fmt.Sprintf("%.4f", x) }
	add(strings.Join(r.Left, ", "), fmt.Sprint(r.Number), virtual(r.Took), show.Grouped(r.Included),
		score(r.Accuracy), score(r.MCC), "")
	if len(r.Parties) > mostShown {
		return rows
	}
	for _, p := range r.Parties {
		when := "-"
		if p.Received {
			when = virtual(p.Took)
		}
		name := p.Party
		if p.Place != p.Party && !strings.HasPrefix(p.Party, p.Place+"-") {
			name += ", " + p.Place
		}
		in := "yes"
		if !p.Included {
			in = "no"
		}
		alone := ""
		if p.Alone > 0 {
			alone = score(p.Alone)
		}
		add(name, "", when, in, score(p.Accuracy), score(p.MCC), alone)
	}
	return rows
}

// stepLines say how long the steps of a round of one-message sums took, and which parties it waited
// for.
func stepLines(r *scenario.RoundResult) (lines []string) {
	text := stepsText(r.Steps)
	if text == "" {
		return nil
	}
	if len(r.Waited) > 0 {
		text += "; waited for " + listed(r.Waited)
	}
	const lead = "      "
	for _, line := range fold(text, cli.Width-len(lead)) {
		lines = append(lines, lead+line)
	}
	return lines
}

// stepsText lists the steps of a round with their seconds.
func stepsText(steps []scenario.Step) string {
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%s %.3g s", s.Name, s.Took.Seconds()))
	}
	return strings.Join(parts, ", ")
}

// listed lists some names, and states how many others there are.
func listed(names []string) string {
	if more := len(names) - mostShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostShown], ", "), more)
	}
	return strings.Join(names, ", ")
}

func (t *timed) foot(g *grid) {
	r := t.result
	g.Printf("\n")
	for _, s := range r.SetUps {
		g.Printf("keys of %s before round %d: %s s, %s bytes, during the rounds\n",
			show.Plural(s.Parties, "party"), s.Round, virtual(s.Took), show.Grouped(s.Bytes))
	}
	for _, line := range privacyLines(r) {
		g.Printf("%s\n", line)
	}
	for _, line := range pairLines(r) {
		g.paragraph(line)
	}
	for _, note := range r.Notes {
		g.paragraph("note: " + note)
	}
	g.Printf("simulated in %v\n", r.Took.Round(time.Millisecond))
}

// most writes a bound of what is spent, which without noise is not a number.
func most(c *accounting.Claim) string {
	switch {
	case c == nil:
		return "none"
	case !c.Bounded():
		return "∞"
	}
	return c.Most()
}

// anyNoise reports whether sums have noise, for release or as in a publication.
func anyNoise(j *job.Job) bool { return j.Noisy() || j.World.Reference.Law != "" }

// privacyLines says what protects the parties.
func privacyLines(r *scenario.Result) (lines []string) {
	switch {
	case !anyNoise(r.Job):
		return []string{"no epsilon: nothing protects what the sums reveal, since they contain no noise"}
	case len(r.Privacy) == 0:
		return nil
	}
	asked := "asked for"
	if r.Job.World.Reference.Law != "" {
		asked = "claimed, a round"
	}
	lines = append(lines, fmt.Sprintf("%-20s %16s %10s  %s", "epsilon", asked, "certified",
		"noise of"))
	for _, p := range r.Privacy {
		name := fold(p.Party, 20)
		lines = append(lines, name[:len(name)-1]...)
		lines = append(lines, fmt.Sprintf("%-20s %16s %10s  %s", name[len(name)-1], budget(p.Asked),
			most(&p.Certified), show.Plural(p.Honest, "party")))
	}
	if all, err := worst(r); err == nil {
		about := fmt.Sprintf("certified over %s %s", charged(r.Job), all.About())
		lines = append(lines, cli.Wrap(about, cli.Width)...)
	}
	return lines
}

// budget writes an epsilon that was asked for, of a job that may have named the noise instead.
func budget(epsilon float64) string {
	if epsilon == 0 {
		return "none"
	}
	return fmt.Sprint(epsilon)
}

// charged says how many rounds an epsilon covers.
func charged(j *job.Job) string {
	rounds := show.Plural(j.Rounds, "round")
	if k := j.Parties.Participations; k > 0 && k < j.Rounds {
		return fmt.Sprintf("%s of %s", show.Grouped(k), rounds)
	}
	return rounds
}

// pairLines reports the work that a crowd has done once.
func pairLines(r *scenario.Result) []string {
	c := r.Pairs
	if c == nil {
		return nil
	}
	n := show.Grouped
	return []string{fmt.Sprintf("%s pairs: both ends of each are in this process, so that X25519 "+
		"(%s in place of %s), ML-KEM (%s, %s), chains (%s, %s), masks (%s, %s) and checks of signatures "+
		"(%s, %s) were done once. The seconds are those of parties that do all of it.", n(c.Pairs),
		n(c.Agreements), n(c.AgreementsApart), n(c.Encapsulations), n(c.EncapsulationsApart),
		n(c.Chains), n(c.ChainsApart), n(c.Masks), n(c.MasksApart), n(c.Checks), n(c.ChecksApart))}
}
