package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

// mostShown is how many parties get a line each.
const mostShown = 12

// headTimed prints what is run in virtual time.
func (s *run) headTimed(g *grid) {
	j := s.job
	g.Printf("%s\n", j.Name)
	if j.About != "" {
		g.paragraph(j.About)
	}
	train := 0
	if s.world.Train != nil {
		train = s.world.Train.Len()
	}
	g.Printf("%s, %s; %s: %s, tested on %s\n", show.Plural(j.Size(), "party"),
		show.Plural(j.Rounds, "round"), s.data, show.Plural(train, "row"),
		show.Plural(s.world.Test.Len(), "other"))
	for _, line := range warnings(j) {
		g.paragraph(line)
	}
	g.Printf("\n")
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

// timedColumns are those of a table in virtual time; the last one sets the text off.
func (s *run) timedColumns() []column {
	held := func(of func(r *simulation.RoundResult) string) func(r *simulation.RoundResult) string {
		return func(r *simulation.RoundResult) string {
			if r.Lost != nil {
				return ""
			}
			return of(r)
		}
	}
	none := func(*simulation.RoundResult) string { return "" }
	accuracy, mcc := s.judgedColumns()
	return []column{
		{"round", 5, func(r *simulation.RoundResult) string { return fmt.Sprint(r.Round) }},
		{"seconds", 11, func(r *simulation.RoundResult) string { return virtual(r.Took) }},
		{"in sum", 8, held(func(r *simulation.RoundResult) string { return show.Grouped(r.Parties) })},
		{"accuracy", 8, held(accuracy)}, {"MCC", 7, held(mcc)}, {"alone", 7, none}, {"", 0, none},
	}
}

// partyRows are the rows of the parties of a round in virtual time, where there are few.
func partyRows(r *simulation.RoundResult) (rows []line) {
	if len(r.Each) > mostShown || r.Lost != nil {
		return nil
	}
	score := func(x float64) string {
		if r.Test == nil {
			return ""
		}
		return fmt.Sprintf("%.4f", x)
	}
	for _, p := range r.Each {
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
		cells := []string{"", when, in, score(p.Accuracy), score(p.MCC), alone, ""}
		rows = append(rows, line{cells, name})
	}
	return rows
}

// stepLines say how long the steps of a round of one-message sums took, and which parties it waited
// for.
func stepLines(r *simulation.RoundResult) (lines []string) {
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
func stepsText(steps []simulation.Step) string {
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

// footTimed prints what stands below the rounds in virtual time.
func (s *run) footTimed(g *grid) {
	r := s.result
	g.Printf("\n")
	for _, up := range r.SetUps {
		g.Printf("keys of %s before round %d: %s s, %s bytes, during the rounds\n",
			show.Plural(up.Parties, "party"), up.Round, virtual(up.Took), show.Grouped(up.Bytes))
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
func privacyLines(r *simulation.Result) (lines []string) {
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
	if all, err := r.Certified(); err == nil {
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
func pairLines(r *simulation.Result) []string {
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
