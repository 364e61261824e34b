package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation/scenario"
)

//go:embed scenario.html
var scenarioPage string

// pageTemplate is the page about a scenario, and about a sweep.
var pageTemplate = template.Must(template.New("page").Parse(scenarioPage))

// page is what the page says.
type page struct {
	Title, About string
	Never        string // why nothing of it may be released
	Headline     []headline
	Sections     []section
}

// headline is a number that stands out.
type headline struct{ Value, Label string }

// section is a heading, sentences, and a table or a figure.
type section struct {
	Title  string
	Text   []string
	Header []string
	Rows   [][]string
	Figure template.HTML
}

// report writes tables, figures and the page of a run.
func (v *jobFlags) report(
	rows scenario.Rows, r *scenario.Result, complete bool, std streams,
) error {
	name := v.base()
	m := manifest{Command: "simulate " + filepath.Base(v.file), Complete: complete}
	paths, err := publish(v.out, name, m, func(stage string) error {
		if err := writeCSV(filepath.Join(stage, name+".csv"), partyRecords(r)); err != nil {
			return err
		}
		accuracy := filepath.Join(stage, name+"-accuracy.svg")
		if err := drawAccuracy(accuracy, r); err != nil {
			return err
		}
		seconds := filepath.Join(stage, name+"-seconds.svg")
		if err := drawSeconds(seconds, r); err != nil {
			return err
		}
		p, err := newPage(r, commonest(rows.Test), accuracy, seconds)
		if err != nil {
			return err
		}
		return writePage(filepath.Join(stage, name+".html"), p)
	})
	if err != nil {
		return outProblem(err)
	}
	if !v.json {
		fmt.Fprintf(std.out, "%d files in %s\n", len(paths), v.out)
	}
	return nil
}

func partyRecords(r *scenario.Result) [][]string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	records := [][]string{{"round", "party", "place", "seconds", "included", "left", "accuracy", "mcc",
		"alone", "work_seconds", "bytes_sent", "bytes_received"}}
	for k := range r.Rounds {
		for _, l := range partyLines(&r.Rounds[k]) {
			seconds := ""
			if l.Seconds != nil {
				seconds = number(*l.Seconds)
			}
			records = append(records, []string{strconv.Itoa(l.Round), l.Party, l.Place, seconds,
				strconv.FormatBool(l.Included), strconv.FormatBool(l.Left), number(l.Accuracy),
				number(l.MCC), number(l.Alone), number(l.Work), strconv.Itoa(l.Sent), strconv.Itoa(l.Got)})
		}
	}
	return records
}

// aloneMean is the mean accuracy of models of own rows only; NaN without.
func aloneMean(r *scenario.Round) float64 {
	sum, n := 0., 0
	for _, p := range r.Parties {
		if p.Alone > 0 {
			sum, n = sum+p.Alone, n+1
		}
	}
	return sum / float64(n)
}

// drawAccuracy draws what the federated model gains over the parties' own.
func drawAccuracy(path string, r *scenario.Result) error {
	c := newChart("Accuracy on rows that nobody has", "round", "accuracy, %", 2)
	c.Add(plotter.NewGrid())
	var together, alone plotter.XYs
	for k := range r.Rounds {
		round := &r.Rounds[k]
		together = append(together, plotter.XY{X: float64(round.Number), Y: 100 * round.Accuracy})
		if a := aloneMean(round); !math.IsNaN(a) {
			alone = append(alone, plotter.XY{X: float64(round.Number), Y: 100 * a})
		}
	}
	if err := c.addTrace("together", together); err != nil {
		return err
	}
	if len(alone) > 0 {
		if err := c.addTrace("alone, mean", alone); err != nil {
			return err
		}
	}
	return c.save(path)
}

// drawSeconds draws how long parties wait for the new model, by place.
func drawSeconds(path string, r *scenario.Result) error {
	slowest := map[string]map[int]float64{}
	var places []string
	for _, round := range r.Rounds {
		for _, p := range round.Parties {
			if !p.Received {
				continue
			}
			if slowest[p.Place] == nil {
				slowest[p.Place] = map[int]float64{}
				places = append(places, p.Place)
			}
			at := slowest[p.Place]
			at[round.Number] = max(at[round.Number], p.Took.Seconds())
		}
	}
	places = places[:min(len(places), 8)]
	c := newChart("Until a party has the new model", "round", "seconds", len(places))
	c.Add(plotter.NewGrid())
	for _, place := range places {
		var points plotter.XYs
		for _, round := range r.Rounds {
			if s, ok := slowest[place][round.Number]; ok {
				points = append(points, plotter.XY{X: float64(round.Number), Y: s})
			}
		}
		if err := c.addTrace(place, points); err != nil {
			return err
		}
	}
	return c.save(path)
}

// inline reads a figure for a page.
func inline(path string) (template.HTML, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := bytes.Index(text, []byte("<svg"))
	if at < 0 {
		return "", fmt.Errorf("%s is no figure", filepath.Base(path))
	}
	return template.HTML(text[at:]), nil // drawn here, of numbers and escaped names
}

func writePage(path string, p *page) error {
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, p); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o666)
}

// commonest is the share of rows of the commonest label: what is right without a model.
func commonest(rows *learning.Dataset) float64 {
	counts, most := map[int]int{}, 0
	for _, label := range rows.Labels {
		counts[label]++
		most = max(most, counts[label])
	}
	return float64(most) / float64(max(1, len(rows.Labels)))
}

func percentText(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// bytesText writes a number of bytes.
func bytesText(b float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if b < 1000 {
			return fmt.Sprintf("%.3g %s", b, unit)
		}
		b /= 1000
	}
	return fmt.Sprintf("%.3g TB", b)
}

// newPage says what a manager asks: what it costs, what it gains, who gains, what is
// spent, and what could go wrong.
func newPage(r *scenario.Result, plain float64, accuracy, seconds string) (*page, error) {
	last, total := r.Final(), r.Elapsed().Seconds()
	sent, work, count := 0., 0., 0.
	for _, round := range r.Rounds {
		for _, p := range round.Parties {
			sent, work, count = sent+float64(p.Sent+p.Got), work+p.Work.Seconds(), count+1
		}
	}
	alone := aloneMean(&last)
	p := &page{Title: r.Job.Name, About: r.Job.About}
	if w := scenarioWarnings(r.Job); len(w) > 0 {
		p.Never = strings.Join(w, " ")
	}
	p.Headline = []headline{{percentText(last.Accuracy), "of rows that nobody has are told " +
		"right, together"}}
	if !math.IsNaN(alone) {
		p.Headline = append(p.Headline, headline{percentText(alone), "by a party that stays " +
			"alone, mean"})
	}
	if r.Job.World.Fidelity != ringSums {
		p.Headline = append(p.Headline, headline{fmt.Sprintf("%.3g s", total),
			"for all rounds, with the exchange of keys"})
	}
	if e := worst(r); e > 0 {
		p.Headline = append(p.Headline, headline{epsilonText(e), "certified epsilon, the largest"})
	}
	accuracyFigure, err := inline(accuracy)
	if err != nil {
		return nil, err
	}
	secondsFigure, err := inline(seconds)
	if err != nil {
		return nil, err
	}
	p.Sections = []section{
		costSection(r, total, sent/count, work/count, secondsFigure),
		gainSection(&last, alone, plain, accuracyFigure),
		whoSection(&last),
		spentSection(r),
		riskSection(r),
	}
	return p, nil
}

// ringSums is the fidelity of sums that take no time.
const ringSums = "ring"

func worst(r *scenario.Result) (e float64) {
	for _, p := range r.Privacy {
		e = max(e, p.Certified)
	}
	return e
}

func costSection(
	r *scenario.Result, total, bytes, work float64, drawn template.HTML,
) section {
	s := section{Title: "What it costs", Figure: drawn}
	if r.Job.World.Fidelity == ringSums {
		return section{Title: s.Title, Text: []string{"What messages and work would cost was left out: " +
			"sums in a ring take no time. Messages and crowds have it."}}
	}
	s.Text = append(s.Text, fmt.Sprintf("%s took %.4g seconds in all, with the exchange of "+
		"keys; a party worked %.3g "+
		"seconds a round and "+
		"sent and received %s.", plural(len(r.Rounds), "round"), total, work, bytesText(bytes)))
	for _, up := range r.SetUps {
		s.Text = append(s.Text, fmt.Sprintf("Before round %d, %s exchanged keys: %.3g seconds, "+
			"%s in all.",
			up.Round, plural(up.Parties, "party"), up.Took.Seconds(), bytesText(float64(up.Bytes))))
	}
	s.Text = append(s.Text, pairLines(r)...)
	return s
}

func gainSection(last *scenario.Round, alone, plain float64, drawn template.HTML) section {
	s := section{Title: "What it gains", Figure: drawn}
	least := fmt.Sprintf("Whoever always gives the commonest answer is right about %s.",
		percentText(plain))
	if math.IsNaN(alone) {
		s.Text = []string{fmt.Sprintf("The model that all have made is right about %s of rows "+
			"that nobody has; "+
			"its Matthews correlation is %.3f.", percentText(last.Accuracy), last.MCC), least}
		return s
	}
	word := "more"
	if last.Accuracy < alone {
		word = "fewer"
	}
	s.Text = []string{fmt.Sprintf("The model that all have made is right about %s of rows that "+
		"nobody has. That is %.1f points %s than what a party has that trains alone, on its own rows "+
		"for as many rounds: %s, as a mean.", percentText(last.Accuracy),
		100*math.Abs(last.Accuracy-alone), word, percentText(alone)), least}
	return s
}

func whoSection(last *scenario.Round) section {
	s := section{
		Title:  "Who gains",
		Header: []string{"party", "place", "alone", "together", "gain, points"},
	}
	if len(last.Parties) > 0 && last.Parties[0].Alone == 0 {
		return section{Title: s.Title, Text: []string{fmt.Sprintf("All have the same model. What "+
			"each would have alone is worked out for up to %d parties that are no crowd.",
			scenario.MostCompared)}}
	}
	worse := 0
	for k, p := range last.Parties {
		if p.Accuracy < p.Alone {
			worse++
		}
		if k < mostRows {
			s.Rows = append(s.Rows, []string{p.Party, p.Place, percentText(p.Alone), percentText(p.Accuracy),
				fmt.Sprintf("%+.1f", 100*(p.Accuracy-p.Alone))})
		}
	}
	s.Text = []string{fmt.Sprintf("In the last round %d of %s would do better alone.", worse,
		plural(len(last.Parties), "party"))}
	if len(last.Parties) > mostRows {
		s.Text = append(s.Text, fmt.Sprintf("Here are the first %d; the table beside this page has all.",
			mostRows))
	}
	return s
}

// mostRows is how many parties have a row each on the page.
const mostRows = 40

func spentSection(r *scenario.Result) section {
	s := section{Title: "What is spent of privacy"}
	if !anyNoise(r.Job) {
		s.Text = []string{"Nothing protects what the sums themselves say: there is no noise in " +
			"them. Masks hide each party's own vector; whoever knows all others can subtract " +
			"them."}
		return s
	}
	if len(r.Privacy) == 0 {
		s.Text = []string{"The run ended before this was worked out."}
		return s
	}
	asked := "asked for"
	if r.Job.World.Reference.Law != "" {
		asked = "claimed, of one round"
	}
	s.Text = []string{fmt.Sprintf("Epsilon bounds what all rounds together tell of one party, "+
		"at delta %s; "+
		"smaller is better, and above 10 it is little protection. Certified is what the noise "+
		"in the sums "+
		"gives against the server and %s.", short4(r.Privacy[0].Delta),
		plural(r.Job.Parties.Colluders, "colluder"))}
	s.Header = []string{"party", "epsilon " + asked, "certified", "its shares of the noise",
		"shares that protect it"}
	for _, p := range r.Privacy {
		s.Rows = append(s.Rows, []string{p.Party, epsilonText(p.Asked), epsilonText(p.Certified),
			strconv.Itoa(p.Shares), strconv.Itoa(p.Honest)})
	}
	return s
}

// missing counts the submissions that are in no sum, of rounds that were not lost.
func missing(r *scenario.Result) (missed, of int) {
	for _, round := range r.Rounds {
		if round.Lost != "" {
			continue
		}
		for _, p := range round.Parties {
			of++
			if !p.Included {
				missed++
			}
		}
	}
	return missed, of
}

func riskSection(r *scenario.Result) section {
	s := section{Title: "What could go wrong"}
	tell := func(format string, a ...any) { s.Text = append(s.Text, fmt.Sprintf(format, a...)) }
	if lost := r.Lost(); lost > 0 {
		tell("%s of %d were lost here, and training went on with the old model.", plural(lost, "round"),
			len(r.Rounds))
	}
	if missed, of := missing(r); missed > 0 {
		tell("%s of %s did not reach a sum, because a party dropped out or was late.",
			grouped(missed), plural(of, "submission"))
	}
	if !r.Job.Recovers() && r.Job.World.Fidelity == "messages" {
		tell("Without recovery one party that does not answer costs every round that it is " +
			"missing from.")
	}
	if r.Job.World.Tolerance > 0 {
		tell("Whoever leaves by convergence shows that its model is near to the common one, which no " +
			"noise hides: whatever the noise in the sums, epsilon is infinite.")
	}
	if r.Job.World.SubtractOwn {
		tell("Parties subtract their own noise: whoever gets such a copy from one must be " +
			"trusted by it.")
	}
	for _, note := range r.Notes {
		tell("%s.", strings.ToUpper(note[:1])+note[1:])
	}
	tell("Latencies, rows and who drops out are what the scenario says, and this is one run of " +
		"it: change its seed to see how far chance goes.")
	tell("This is a simulation. Its noise follows from its seed; nothing that it made may be " +
		"released.")
	return s
}

// writeSweepPage writes the page about a trade-off.
func writeSweepPage(
	path string, figures []string, j *job.Job, axes []sweepAxis, runs []*sweepRun,
) error {
	p := &page{Title: j.Name + ": what if", About: j.About}
	if w := scenarioWarnings(j); len(w) > 0 {
		p.Never = strings.Join(w, " ")
	}
	for k, figure := range figures {
		drawn, err := inline(figure)
		if err != nil {
			return err
		}
		title := [...]string{"The trade-off", "What the simulation took"}[k]
		p.Sections = append(p.Sections, section{Title: title, Figure: drawn})
	}
	p.Sections = append(p.Sections, combinations(axes, runs))
	return writePage(path, p)
}

// combinations is the table of a sweep, as people read it.
func combinations(axes []sweepAxis, runs []*sweepRun) section {
	s := section{Title: "All combinations"}
	for _, a := range axes {
		s.Header = append(s.Header, a.name)
	}
	s.Header = append(s.Header, "together", "alone, mean", "correlation", "all rounds",
		"certified epsilon")
	for _, r := range runs {
		row := slices.Clone(r.texts)
		o := r.outcome
		if o.Error != "" {
			s.Text = append(s.Text, combination(axes, r)+" came to nothing: "+o.Error)
			s.Rows = append(s.Rows, append(row, "-", "-", "-", "-", "-"))
			continue
		}
		alone := "-"
		if o.Alone > 0 {
			alone = percentText(o.Alone)
		}
		s.Rows = append(s.Rows, append(row, percentText(o.Accuracy), alone, fmt.Sprintf("%.3f", o.MCC),
			fmt.Sprintf("%.3g s", o.Seconds), epsilonText(o.Certified)))
	}
	return s
}
