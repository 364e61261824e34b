package page

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file holds what pages show, and keeps them up to date.

// templates holds the templates of all pages.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"percent":   percent,
	"parts":     parts,
	"figures":   figures,
	"class":     func(state string) string { return strings.ReplaceAll(state, " ", "-") },
	"shape":     shape,
	"path":      url.PathEscape,
	"clock":     func(t *time.Time) string { return t.UTC().Format("15:04:05") },
	"ago":       func(t *time.Time) time.Duration { return time.Since(*t).Round(time.Second) },
	"left":      left,
	"bytes":     bytesOf,
	"states":    states,
	"stands":    stands,
	"awaited":   awaited,
	"spends":    answers.Spends,
	"margin":    answers.Margin,
	"epsilon":   epsilon,
	"living":    func(all []*runner.Status) []*runner.Status { return inState(all, "") },
	"ended":     func(all []*runner.Status) []*runner.Status { return inState(all, "ended") },
	"forgotten": func(all []*runner.Status) []*runner.Status { return inState(all, runner.Forgotten) },
	"took":      took,
	"reversed":  reversed,
}).ParseFS(assets, "assets/*.html"))

// inState returns the federations that are in a state, "" for all that have not ended.
func inState(all []*runner.Status, state string) (out []*runner.Status) {
	for _, s := range all {
		over := s.State == "ended" || s.State == runner.Forgotten
		if s.State == state || state == "" && !over {
			out = append(out, s)
		}
	}
	return out
}

// epsilon writes the upper bound of a claim with three digits, rounded up.
func epsilon(c *accounting.Claim) string {
	x, err := strconv.ParseFloat(c.Most(), 64)
	if err != nil {
		return c.Most()
	}
	text := strconv.FormatFloat(x, 'g', 3, 64)
	if y, _ := strconv.ParseFloat(text, 64); y < x {
		step := math.Pow10(int(math.Floor(math.Log10(x))) - 2)
		text = strconv.FormatFloat(y+step, 'g', 3, 64)
	}
	return text
}

// took writes a time with two or three digits and its unit.
func took(seconds float64) string {
	switch {
	case seconds < 0.9995:
		return fmt.Sprintf("%.0f ms", 1000*seconds)
	case seconds < 99.95:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds < 99.5*60:
		return fmt.Sprintf("%.3g min", seconds/60)
	}
	return fmt.Sprintf("%.3g h", seconds/3600)
}

// mostRounds is how many rounds a page lists.
const mostRounds = 50

// listed holds the last rounds, the latest first, and which columns have anything to say.
type listed struct {
	Rounds             []listedRound
	Judged, Paid, Lost bool
}

// listedRound is a line of the table of rounds, and which columns it has.
type listedRound struct {
	runner.Past
	Judged, Paid, Lossy bool
}

// Accurate writes the round's accuracy, if it was measured, with the deviation of its noise.
func (p listedRound) Accurate() string {
	switch {
	case p.Accuracy != 0:
		return fmt.Sprintf("%.3f", p.Accuracy)
	case p.Metric != nil:
		return fmt.Sprintf("%.3f ± %.2g", p.Metric.Accuracy, p.Metric.AccuracyDev)
	}
	return ""
}

// reversed lists rounds from the last one on; nil: there are none.
func reversed(history []runner.Past) *listed {
	if len(history) == 0 {
		return nil
	}
	out := &listed{}
	for _, p := range history[max(0, len(history)-mostRounds):] {
		out.Judged = out.Judged || p.Accuracy != 0 || p.Metric != nil
		out.Paid = out.Paid || p.Share > 0
		out.Lost = out.Lost || p.Lost != ""
	}
	for i := len(history) - 1; i >= 0 && len(out.Rounds) < mostRounds; i-- {
		out.Rounds = append(out.Rounds, listedRound{history[i], out.Judged, out.Paid, out.Lost})
	}
	return out
}

// percent returns which part of a budget is spent, in percent; 0 if that is not known.
func percent(spent *accounting.Claim, of accounting.Budget) float64 {
	if spent == nil {
		return 0
	}
	share, err := spent.Share(of)
	if err != nil {
		return 0
	}
	return parts(min(1, share))
}

// parts returns a share in percent, with a decimal.
func parts(share float64) float64 { return math.Round(1000*share) / 10 }

// Shapes precede words, so that a state is recognized from a distance and without colours. They are
// drawn, since fonts differ in such characters.
const (
	full     = `<circle cx="6" cy="6" r="5"/>`
	ring     = `<circle cx="6" cy="6" r="4.3" fill="none" stroke-width="1.4"/>`
	half     = ring + `<path d="M6 1.7 A4.3 4.3 0 0 1 6 10.3 Z"/>`
	point    = `<circle cx="6" cy="6" r="1.8"/>`
	bars     = `<path d="M2.5 1 H4.5 V11 H2.5 Z M7.5 1 H9.5 V11 H7.5 Z"/>`
	square   = `<path d="M1.5 1.5 H10.5 V10.5 H1.5 Z"/>`
	triangle = `<path d="M6 1 L11.5 11 H0.5 Z"/>`
	cross    = `<path d="M2 2 L10 10 M10 2 L2 10" fill="none" stroke-width="1.8"/>`
)

var shapes = map[string]string{
	"running": full, "waiting": ring, "paused": bars, "ended": square,
	runner.Silent: triangle, runner.Leaderless: triangle,
	"here": full, "late": half, "gone": ring, "never": point, "left out": cross,
	"well": full, "behind": half, "not ready": half, "failing": triangle,
	"warning": triangle, "no sum": cross,
}

// shape draws the shape of a state; screen readers get its word alone.
func shape(state string) template.HTML {
	return template.HTML(`<svg class="shape" viewBox="0 0 12 12" aria-hidden="true">` +
		shapes[state] + `</svg>`)
}

// left returns how long it is until then, nothing if it is over.
func left(t *time.Time) string {
	if d := time.Until(*t).Round(time.Second); d > 0 {
		return d.String()
	}
	return ""
}

func bytesOf(n uint64) string {
	const units = "kMGT"
	if n < 1000 {
		return fmt.Sprintf("%d bytes", n)
	}
	x, k := float64(n)/1000, 0
	for ; x >= 999.5 && k < len(units)-1; k++ {
		x /= 1000
	}
	return fmt.Sprintf("%.3g %cB", x, units[k])
}

// mostNamed is how many of those that are waited for are named.
const mostNamed = 12

// waited describes those whose answers are due.
type waited struct {
	Count int
	Names string
}

// awaited names those whose answers are due, those who are present first; nil: no answer is due.
func awaited(peers []runner.PartyStatus) *waited {
	out := &waited{}
	var names []string
	for _, here := range []bool{true, false} {
		for _, p := range peers {
			if !p.Awaited || here != (p.State == "here" || p.State == "late") {
				continue
			}
			out.Count++
			if p.State != "here" {
				p.Name += " (" + p.State + ")"
			}
			if len(names) < mostNamed {
				names = append(names, p.Name)
			}
		}
	}
	if out.Count == 0 {
		return nil
	}
	out.Names = strings.Join(names, ", ")
	if more := out.Count - len(names); more > 0 {
		out.Names += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// states counts parties by state.
func states(parties []runner.PartyStatus) map[string]int {
	out := map[string]int{"here": 0, "late": 0, "gone": 0, "never": 0}
	for _, p := range parties {
		out[p.State]++
	}
	return out
}

func (s *site) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := templates.ExecuteTemplate(w, name, data); err != nil {
		s.Log.Warn("a page broke off", "error", err.Error())
	}
}

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	s.render(w, "home.html", s.Federations.Listing(r.Context()))
}

func (s *site) liveHome(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, "list.html", 3*refresh, func() (any, error) {
		return s.Federations.Listing(r.Context()), nil
	})
}

// view holds what the page of a federation shows.
type view struct {
	*runner.Status
	Meaning []string
	Audit   []record.Line
	Operate bool
	Asked   *asked // nil: nothing is asked, or the answers are unavailable
}

// Received returns how many bytes have come in since its node began to lead.
func (v *view) Received() uint64 { return uint64(v.BytesIn) }

func (s *site) view(r *http.Request) (*view, error) {
	id := r.PathValue("id")
	status, err := s.Federations.Status(r.Context(), id)
	if err != nil {
		return nil, err
	}
	v := &view{Status: status, Operate: who(r).Role == Operate && status.Recorded == nil}
	if status.Asks == 0 {
		return v, nil
	}
	a, err := s.Federations.Answers(r.Context(), id)
	if err != nil { // the rest is shown nevertheless
		s.Log.Warn("answers are not shown", "error", err.Error())
		return v, nil
	}
	v.Asked = &asked{Asked: a}
	if known, found := s.Federations.Known(id); found && a.Parties == 0 {
		v.Asked.Expected = known.Federation.Expected()
		if plan := known.Federation.Questions(); plan != nil {
			v.Asked.Assumes = answers.Assumes(plan.Rows())
		}
	}
	return v, nil
}

func (s *site) federation(w http.ResponseWriter, r *http.Request) {
	v, err := s.view(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	if known, found := s.Federations.Known(v.ID); found {
		v.Meaning = known.Federation.Meaning()
	}
	if lines, err := s.Federations.LastLines(r.Context(), v.ID, 30); err == nil {
		slices.Reverse(lines)
		v.Audit = lines
	}
	if v.State == runner.Forgotten {
		s.render(w, "forgotten.html", v)
		return
	}
	s.render(w, "federation.html", v)
}

func (s *site) live(w http.ResponseWriter, r *http.Request) {
	s.stream(w, r, "live.html", refresh, func() (any, error) { return s.view(r) })
}

// stream sends the changing part of a page whenever it changes, as server-sent events. If it is
// unavailable at the moment stream tries again.
func (s *site) stream(w http.ResponseWriter, r *http.Request, name string, every time.Duration,
	data func() (any, error),
) {
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	last := ""
	for {
		v, err := data()
		var b strings.Builder
		if err == nil {
			err = templates.ExecuteTemplate(&b, name, v)
		}
		if text := b.String(); err == nil && text != last {
			last = text
			encoded, _ := json.Marshal(text)
			if _, err := fmt.Fprintf(w, "data: %s\n\n", encoded); err != nil {
				return
			}
			if controller.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(every):
		}
	}
}
