package virtual

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation/scenario"
)

// lines prints one line of JSON for each party and round.
type lines struct{ std cli.Streams }

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

// stepLine is a line for a round of one-message sums: how long its steps took, and which parties it
// waited for.
type stepLine struct {
	Round   int         `json:"round"`
	Seconds float64     `json:"seconds"`
	Lost    string      `json:"lost,omitempty"`
	Server  int         `json:"server_bytes_received"`
	Steps   []stepTaken `json:"steps"`
	Waited  []string    `json:"waited_for"`
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

// committeeLines returns the lines of a round of one-message sums; other rounds have none.
func committeeLines(r *scenario.RoundResult) (lines []any) {
	if len(r.Members) == 0 {
		return nil
	}
	steps := stepLine{Round: r.Number, Seconds: r.Took.Seconds(), Lost: r.Lost, Server: r.Server,
		Waited: append([]string{}, r.Waited...)}
	for _, s := range r.Steps {
		steps.Steps = append(steps.Steps, stepTaken{s.Name, s.Took.Seconds()})
	}
	lines = append(lines, steps)
	for _, m := range r.Members {
		lines = append(lines,
			memberLine{r.Number, m.Member, m.Place, m.Work.Seconds(), m.Sent, m.Got})
	}
	return lines
}

func (s *lines) begin(*job.Job, scenario.Rows) {}

func (s *lines) round(r scenario.RoundResult) {
	encoder := json.NewEncoder(s.std.Out)
	for _, l := range partyLines(&r) {
		if err := encoder.Encode(l); err != nil {
			return // the stream keeps its error
		}
	}
	for _, l := range committeeLines(&r) {
		if err := encoder.Encode(l); err != nil {
			return
		}
	}
}

func (s *lines) end(*scenario.Result) {}

// table prints tables for people.
type table struct {
	std cli.Streams
	of  *job.Job
}

// mostShown is how many parties get a line each.
const mostShown = 12

func (t *table) begin(j *job.Job, rows scenario.Rows) {
	t.of = j.WithDefaults()
	fmt.Fprintln(t.std.Out, j.Name)
	if j.About != "" {
		fmt.Fprintln(t.std.Out, strings.Join(cli.Wrap(j.About, cli.Width), "\n"))
	}
	fmt.Fprintf(t.std.Out, "%s, %s; %s: %s, tested on %s\n", show.Plural(j.Size(), "party"),
		show.Plural(j.Rounds, "round"), t.of.World.Data.Set, show.Plural(rows.Train.Len(), "row"),
		show.Plural(rows.Test.Len(), "other"))
	for _, line := range warnings(j) {
		fmt.Fprintln(t.std.Out, strings.Join(cli.Wrap(line, cli.Width), "\n"))
	}
	fmt.Fprintln(t.std.Out)
	t.row("round", "seconds", "in sum", "accuracy", "MCC", "alone", "left for good, or party")
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

func (t *table) round(r scenario.RoundResult) {
	defer t.steps(&r)
	if r.Lost != "" {
		lead := fmt.Sprintf("%5d %11s ", r.Number, virtual(r.Took))
		for _, line := range cli.Wrap("lost: "+r.Lost, cli.Width-len(lead)) {
			fmt.Fprintln(t.std.Out, lead+line)
			lead = strings.Repeat(" ", len(lead))
		}
		return
	}
	score := func(x float64) string { return fmt.Sprintf("%.4f", x) }
	t.row(fmt.Sprint(r.Number), virtual(r.Took), show.Grouped(r.Included), score(r.Accuracy),
		score(r.MCC), "", strings.Join(r.Left, ", "))
	if len(r.Parties) > mostShown {
		return
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
		t.row("", when, in, score(p.Accuracy), score(p.MCC), alone, name)
	}
}

// steps prints how long the steps of a round of one-message sums took, and which parties it waited
// for.
func (t *table) steps(r *scenario.RoundResult) {
	text := stepsText(r.Steps)
	if text == "" {
		return
	}
	if len(r.Waited) > 0 {
		text += "; waited for " + listed(r.Waited)
	}
	lead := strings.Repeat(" ", 6)
	for _, line := range fold(text, cli.Width-len(lead)) {
		fmt.Fprintln(t.std.Out, lead+line)
	}
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

// row prints the available values of a round or a party; a long text continues below itself.
func (t *table) row(round, seconds, in, accuracy, mcc, alone, text string) {
	lead := fmt.Sprintf("%5s %11s %8s %8s %7s %7s  ", round, seconds, in, accuracy, mcc, alone)
	for _, line := range fold(text, cli.Width-len(lead)) {
		fmt.Fprintln(t.std.Out, strings.TrimRight(lead+line, " "))
		lead = strings.Repeat(" ", len(lead))
	}
}

func (t *table) end(r *scenario.Result) {
	out := t.std.Out
	fmt.Fprintln(out)
	for _, s := range r.SetUps {
		fmt.Fprintf(out, "keys of %s before round %d: %s s, %s bytes, during the rounds\n",
			show.Plural(s.Parties, "party"), s.Round, virtual(s.Took), show.Grouped(s.Bytes))
	}
	for _, line := range privacyLines(r) {
		fmt.Fprintln(out, line)
	}
	for _, line := range pairLines(r) {
		fmt.Fprintln(out, strings.Join(cli.Wrap(line, cli.Width), "\n"))
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, strings.Join(cli.Wrap("note: "+note, cli.Width), "\n"))
	}
	fmt.Fprintf(out, "simulated in %v\n", r.Took.Round(time.Millisecond))
}

// fold is wrap that breaks words, such as long names, which then continue on the next line.
func fold(text string, width int) (lines []string) {
	for _, line := range cli.Wrap(text, width) {
		runes := []rune(line)
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		lines = append(lines, string(runes))
	}
	return lines
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
		lines = append(lines, fmt.Sprintf("%-20s %16v %10s  %s", name[len(name)-1], p.Asked,
			most(&p.Certified), show.Plural(p.Honest, "party")))
	}
	if all, err := worst(r); err == nil {
		about := fmt.Sprintf("certified over %s %s", charged(r.Job), all.About())
		lines = append(lines, cli.Wrap(about, cli.Width)...)
	}
	return lines
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
