package simulate

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/simulation"
)

func costSection(
	r *simulation.Result, total, bytes, work float64, drawn template.HTML,
) section {
	s := section{Title: "What it costs", Figure: drawn}
	if !inTime(r.Job) {
		return section{Title: s.Title, Text: []string{fmt.Sprintf("A party worked %.3g seconds a round "+
			"on this machine, training included, and sent and received %s, as means. The job has no "+
			"links, so that messages take no time.", work, bytesText(bytes))}}
	}
	if r.Job.World.Fidelity == simulation.Ring {
		return section{Title: s.Title, Text: []string{"The cost of messages and work was left out: " +
			"sums in a ring take no time. Messages and crowds show it."}}
	}
	s.Text = append(s.Text, fmt.Sprintf("%s took %.4g seconds in all, key exchange included; a "+
		"party worked %.3g seconds a round and sent and received "+
		"%s.", show.Plural(len(r.Rounds), "round"), total, work, bytesText(bytes)))
	s.Text = append(s.Text, committeeText(r)...)
	if len(r.Rounds) > 0 && len(r.Rounds[0].Members) > 0 {
		s.Header, s.Rows = []string{"round", "seconds", "steps", "waited for"}, stepRows(r)
	}
	for _, up := range r.SetUps {
		s.Text = append(s.Text, fmt.Sprintf("Before round %d, %s exchanged keys: %.3g seconds, "+
			"%s in all.",
			up.Round, show.Plural(up.Parties, "party"), up.Took.Seconds(), bytesText(float64(up.Bytes))))
	}
	s.Text = append(s.Text, pairLines(r)...)
	return s
}

// committeeText describes what a committee's members did.
func committeeText(r *simulation.Result) []string {
	var most simulation.MemberRound
	members := 0
	for _, round := range r.Rounds {
		members = max(members, len(round.Members))
		for _, m := range round.Members {
			most.Work, most.Got = max(most.Work, m.Work), max(most.Got, m.Got)
			most.Sent = max(most.Sent, m.Sent)
		}
	}
	if members == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Of the committee's %s the busiest worked %.3g seconds in a round, "+
		"received %s and sent %s.", show.Plural(members, "member"), most.Work.Seconds(),
		bytesText(float64(most.Got)), bytesText(float64(most.Sent)))}
}

// stepRows returns how long the steps of each round took, and which parties it waited for.
func stepRows(r *simulation.Result) (rows [][]string) {
	for _, round := range r.Rounds[:min(len(r.Rounds), mostRows)] {
		waited := "nobody"
		if len(round.Waited) > 0 {
			waited = listed(round.Waited)
		}
		rows = append(rows, []string{strconv.Itoa(round.Round),
			fmt.Sprintf("%.3g", round.Took.Seconds()), stepsText(round.Steps), waited})
	}
	return rows
}

func gainSection(last *simulation.RoundResult, alone, plain float64, drawn template.HTML) section {
	s := section{Title: "What it gains", Figure: drawn}
	least := fmt.Sprintf("Always giving the commonest answer is right about %s.",
		percentText(plain))
	if math.IsNaN(alone) {
		s.Text = []string{fmt.Sprintf("The common model is right about %s of rows that nobody has; its "+
			"Matthews correlation is %.3f.", percentText(last.Accuracy()), last.Test.MCC()), least}
		return s
	}
	word := "more"
	if last.Accuracy() < alone {
		word = "fewer"
	}
	s.Text = []string{fmt.Sprintf("The common model is right about %s of rows that nobody has. That "+
		"is %.1f points %s than a party that trains alone, on its own rows for as many rounds: %s, as "+
		"a mean.", percentText(last.Accuracy()),
		100*math.Abs(last.Accuracy()-alone), word, percentText(alone)), least}
	return s
}

func whoSection(last *simulation.RoundResult) section {
	s := section{
		Title:  "Who gains",
		Header: []string{"party", "place", "alone", "together", "gain, points"},
	}
	if len(last.Each) == 0 || last.Each[0].Alone == 0 {
		return section{Title: s.Title, Text: []string{fmt.Sprintf("All have the same model. What each "+
			"would have alone is computed for up to %d parties that are not a crowd.",
			simulation.MostCompared)}}
	}
	worse := 0
	for k, p := range last.Each {
		if p.Accuracy < p.Alone {
			worse++
		}
		if k < mostRows {
			s.Rows = append(s.Rows, []string{p.Party, p.Place, percentText(p.Alone), percentText(p.Accuracy),
				fmt.Sprintf("%+.1f", 100*(p.Accuracy-p.Alone))})
		}
	}
	s.Text = []string{fmt.Sprintf("In the last round %d of %s would do better alone.", worse,
		show.Plural(len(last.Each), "party"))}
	if len(last.Each) > mostRows {
		s.Text = append(s.Text, fmt.Sprintf("Here are the first %d; the table next to this page lists "+
			"all.",
			mostRows))
	}
	return s
}

// mostRows is how many parties get a row each on the page.
const mostRows = 40

func spentSection(r *simulation.Result) section {
	s := section{Title: "How much privacy is spent"}
	if !anyNoise(r.Job) {
		s.Text = []string{"Nothing protects what the sums themselves reveal: they contain no noise. " +
			"Masks hide each party's own vector; anyone who knows all the others can subtract them."}
		return s
	}
	if len(r.Privacy) == 0 {
		s.Text = []string{"The run ended before this was computed."}
		return s
	}
	asked := "asked for"
	if r.Job.World.Reference.Law != "" {
		asked = "claimed, of one round"
	}
	s.Text = []string{"Epsilon bounds what all rounds together reveal; smaller is better, and above " +
		"10 it is little protection."}
	if all, err := r.Certified(); err == nil && all.Bounded() {
		s.Text = append(s.Text, fmt.Sprintf("The noise in the sums certifies at most %v.", all))
	} else if err == nil {
		s.Text = append(s.Text, all.Explain()...)
	}
	s.Header = []string{"party", "epsilon " + asked, "certified", "parties whose noise protects it"}
	for _, p := range r.Privacy {
		s.Rows = append(s.Rows, []string{p.Party, budget(p.Asked), most(&p.Certified),
			strconv.Itoa(p.Honest)})
	}
	return s
}

// missing counts the submissions that are missing from the sums, in rounds that were not lost.
func missing(r *simulation.Result) (missed, of int) {
	for k := range r.Rounds {
		if r.Rounds[k].Lost != nil {
			continue
		}
		for _, p := range r.Seen(k) {
			of++
			if !p.Included {
				missed++
			}
		}
	}
	return missed, of
}

func riskSection(r *simulation.Result) section {
	s := section{Title: "What could go wrong"}
	tell := func(format string, a ...any) { s.Text = append(s.Text, fmt.Sprintf(format, a...)) }
	if lost := r.Lost(); lost > 0 {
		tell("%s of %d were lost here, and training continued with the old model.",
			show.Plural(lost, "round"), len(r.Rounds))
	}
	if missed, of := missing(r); missed > 0 {
		tell("%s of %s did not reach a sum, because a party dropped out or was late.",
			show.Grouped(missed), show.Plural(of, "submission"))
	}
	if !r.Job.Recovers() && r.Job.World.Fidelity == "messages" && !r.Job.Oneshot() {
		tell("Without recovery a party that does not answer costs every round that it misses.")
	}
	if r.Job.World.Tolerance > 0 {
		tell("A party that leaves on convergence shows that its model is close to the common one, " +
			"which no noise hides: whatever the noise in the sums, epsilon is infinite.")
	}
	if r.Job.World.SubtractOwn {
		tell("Parties subtract their own noise: a party must trust anyone to whom it gives such a copy.")
	}
	for _, note := range r.Notes {
		tell("%s.", strings.ToUpper(note[:1])+note[1:])
	}
	if !inTime(r.Job) {
		tell("Rows and drop-outs come from the job, and this is one run of it: --seeds shows how much " +
			"chance matters.")
		tell("This is a simulation, with the rows and keys of all parties in one process.")
		return s
	}
	tell("Latencies, rows and drop-outs come from the scenario, and this is one run of it: change " +
		"its seed to see how much chance matters.")
	tell("This is a simulation. Its noise follows from its seed; nothing that it produced may be " +
		"released.")
	return s
}

// writeSweepPage writes the page about a trade-off.
func writeSweepPage(
	path string, figures []string, j *job.Job, axes []sweepAxis, runs []*sweepRun,
) error {
	p := &page{Title: j.Name + ": what if", About: j.About}
	if w := warnings(j); len(w) > 0 {
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

// combinations returns the table of a sweep, for people.
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
			s.Text = append(s.Text, combination(axes, r)+" gave no result: "+o.Error)
			s.Rows = append(s.Rows, append(row, "-", "-", "-", "-", "-"))
			continue
		}
		alone := "-"
		if o.Alone.Mean > 0 {
			alone = o.Alone.percent()
		}
		s.Rows = append(s.Rows, append(row, o.Accuracy.percent(), alone, fmt.Sprintf("%.3f", o.MCC.Mean),
			o.time("%.3g s"), most(o.Certified)))
	}
	return s
}
