package simulate

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/results"
	"github.com/hushsum/hushsum/internal/chart"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

//go:embed page.html
var pageText string

// pageTemplate is the template of the page about a scenario, and of the one about a sweep.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page holds the contents of a page.
type page struct {
	Title, About string
	Never        string // why nothing in it may be released
	Headline     []headline
	Sections     []section
}

// headline is a number that stands out.
type headline struct{ Value, Label string }

// section is a heading, followed by sentences and a table or a figure.
type section struct {
	Title  string
	Text   []string
	Header []string
	Rows   [][]string
	Figure template.HTML
}

// command is the command without its flags, for the list of files.
func (v *jobFlags) command() string {
	if v.file == "" {
		return "simulate"
	}
	return "simulate " + filepath.Base(v.file)
}

// report writes tables, figures and the page of a run.
func (v *jobFlags) report(
	run *run, r *simulation.Result, complete bool, std cli.Streams,
) error {
	name := v.name()
	m := results.Manifest{Command: v.command(), Complete: complete}
	paths, err := results.Publish(v.out, name, m, func(stage string) error {
		if err := results.WriteCSV(filepath.Join(stage, name+".csv"), partyRecords(r)); err != nil {
			return err
		}
		accuracy := filepath.Join(stage, name+"-accuracy.svg")
		if err := drawAccuracy(accuracy, r); err != nil {
			return err
		}
		seconds := filepath.Join(stage, name+"-seconds.svg")
		if inTime(r.Job) {
			if err := drawSeconds(seconds, r); err != nil {
				return err
			}
		}
		p, err := newPage(r, commonest(run.world.Test), accuracy, seconds)
		if err != nil {
			return err
		}
		return writePage(filepath.Join(stage, name+".html"), p)
	})
	if err != nil {
		return results.FolderProblem(err)
	}
	if !v.json {
		fmt.Fprintf(std.Out, "%d files in %s\n", len(paths), filepath.Dir(paths[0]))
	}
	return nil
}

func partyRecords(r *simulation.Result) [][]string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	records := [][]string{{"round", "party", "place", "seconds", "included", "left", "accuracy", "mcc",
		"alone", "work_seconds", "bytes_sent", "bytes_received"}}
	for k := range r.Rounds {
		for _, l := range partyLines(&r.Rounds[k], r.Seen(k)) {
			seconds := ""
			if l.Seconds != nil && inTime(r.Job) {
				seconds = number(*l.Seconds)
			}
			records = append(records, []string{strconv.Itoa(l.Round), l.Party, l.Place, seconds,
				strconv.FormatBool(l.Included), strconv.FormatBool(l.Left), number(l.Accuracy),
				number(l.MCC), number(l.Alone), number(l.Work), strconv.Itoa(l.Sent), strconv.Itoa(l.Got)})
		}
	}
	return records
}

// aloneMean returns the mean accuracy of models trained on own rows only; NaN without them.
func aloneMean(r *simulation.RoundResult) float64 {
	sum, n := 0., 0
	for _, p := range r.Each {
		if p.Alone > 0 {
			sum, n = sum+p.Alone, n+1
		}
	}
	return sum / float64(n)
}

// drawAccuracy draws the gain of the federated model over the parties' own.
func drawAccuracy(path string, r *simulation.Result) error {
	var together, alone []chart.Point
	for k := range r.Rounds {
		round := &r.Rounds[k]
		if round.Test == nil {
			continue // see world.evaluate_every
		}
		together = append(together, chart.Point{X: float64(round.Round), Y: 100 * round.Accuracy()})
		if a := aloneMean(round); !math.IsNaN(a) {
			alone = append(alone, chart.Point{X: float64(round.Round), Y: 100 * a})
		}
	}
	c := chart.Figure{Title: "Accuracy on rows that nobody has", X: "round", Y: "accuracy, %",
		Grid: true, Series: []chart.Series{chart.Trace("together", together)}}
	if len(alone) > 0 {
		c.Series = append(c.Series, chart.Trace("alone, mean", alone))
	}
	return c.Save(path)
}

// drawSeconds draws how long parties wait for the new model, by place.
func drawSeconds(path string, r *simulation.Result) error {
	slowest := map[string]map[int]float64{}
	var places []string
	for _, round := range r.Rounds {
		for _, p := range round.Each {
			if !p.Received {
				continue
			}
			if slowest[p.Place] == nil {
				slowest[p.Place] = map[int]float64{}
				places = append(places, p.Place)
			}
			at := slowest[p.Place]
			at[round.Round] = max(at[round.Round], p.Took.Seconds())
		}
	}
	places = places[:min(len(places), 8)]
	c := chart.Figure{Title: "Time until a party has the new model", X: "round", Y: "seconds",
		Grid: true}
	for _, place := range places {
		var points []chart.Point
		for _, round := range r.Rounds {
			if s, ok := slowest[place][round.Round]; ok {
				points = append(points, chart.Point{X: float64(round.Round), Y: s})
			}
		}
		c.Series = append(c.Series, chart.Trace(place, points))
	}
	return c.Save(path)
}

// inline reads a figure into a page.
func inline(path string) (template.HTML, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	at := bytes.Index(text, []byte("<svg"))
	if at < 0 {
		return "", fmt.Errorf("%s is not a figure", filepath.Base(path))
	}
	return template.HTML(text[at:]), nil // drawn here, from numbers and escaped names
}

func writePage(path string, p *page) error {
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, p); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o666)
}

// commonest returns the share of rows with the commonest label: the accuracy without a model.
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

// newPage answers a manager's questions: what it costs, what it gains, who gains, what is spent,
// and what could go wrong.
func newPage(r *simulation.Result, plain float64, accuracy, seconds string) (*page, error) {
	last, total := r.Final(), r.Elapsed().Seconds()
	sent, work, count := 0., 0., 0.
	for k := range r.Rounds {
		for _, p := range r.Seen(k) {
			sent, work, count = sent+float64(p.Sent+p.Got), work+p.Work.Seconds(), count+1
		}
	}
	alone := aloneMean(last)
	p := &page{Title: r.Job.Name, About: r.Job.About}
	if w := warnings(r.Job); len(w) > 0 {
		p.Never = strings.Join(w, " ")
	}
	p.Headline = []headline{{percentText(last.Accuracy()), "of rows that nobody has are classified " +
		"correctly, together"}}
	if !math.IsNaN(alone) {
		p.Headline = append(p.Headline, headline{percentText(alone), "by a party that trains alone, " +
			"mean"})
	}
	if inTime(r.Job) && r.Job.World.Fidelity != simulation.Ring {
		p.Headline = append(p.Headline, headline{fmt.Sprintf("%.3g s", total),
			"for all rounds, key exchange included"})
	}
	certified, err := r.Certified()
	if err != nil {
		return nil, err
	}
	if certified != nil {
		p.Headline = append(p.Headline, headline{certified.Most(), "certified epsilon, the largest"})
	}
	accuracyFigure, err := inline(accuracy)
	if err != nil {
		return nil, err
	}
	var secondsFigure template.HTML
	if inTime(r.Job) {
		if secondsFigure, err = inline(seconds); err != nil {
			return nil, err
		}
	}
	p.Sections = []section{
		costSection(r, total, sent/count, work/count, secondsFigure),
		gainSection(last, alone, plain, accuracyFigure),
		whoSection(last),
		spentSection(r),
		riskSection(r),
	}
	return p, nil
}
