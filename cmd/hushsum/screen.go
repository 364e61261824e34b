package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// screen prints for people: lines of at most width characters, and on a terminal one
// line that is written over while work goes on.
type screen struct {
	std   streams
	drawn int // characters of the line that is on the terminal
}

func (s *screen) printf(format string, a ...any) { fmt.Fprintf(s.std.out, format, a...) }

// field prints a line of a header, on more lines if it must be.
func (s *screen) field(label, format string, a ...any) {
	for _, line := range wrap(fmt.Sprintf(format, a...), width-10) {
		s.printf("%-10s%s\n", label, line)
		label = ""
	}
}

// sentence prints text of its own, on more lines if it must be.
func (s *screen) sentence(format string, a ...any) {
	s.printf("\n%s\n", strings.Join(wrap(fmt.Sprintf(format, a...), width), "\n"))
}

// progress shows how many of a round's parties have done their part. A hundred
// updates a round are enough, whatever their number.
func (s *screen) progress(round, done, of int, note string) {
	if !s.std.live || done*100/of == (done-1)*100/of && done != 0 {
		return
	}
	name := fmt.Sprint(round)
	if round == 0 {
		name = "setup"
	}
	s.over(fmt.Sprintf("%5s %9s%s", name, fmt.Sprintf("%d/%d", done, of), note))
}

// over writes over the line that is on the terminal.
func (s *screen) over(line string) {
	s.printf("\r%-*s", s.drawn, line)
	s.drawn = max(s.drawn, len(line))
}

// wipe takes that line away.
func (s *screen) wipe() {
	if s.drawn > 0 {
		s.printf("\r%s\r", strings.Repeat(" ", s.drawn))
		s.drawn = 0
	}
}

// recovery says in a header what drop-outs a round of so many parties survives, and
// how many of all there are.
func (s *screen) recovery(r *protocol.Recovery, colluders, parties, drops, all int) {
	if r == nil {
		s.field("recovery", "off: every party must submit")
	} else {
		s.field("recovery", "%v, %s; %d of %s rebuild a secret;",
			r.Adversary, plural(colluders, "colluder"), r.Threshold, plural(r.Degree, "share"))
		s.field("", "at least %d of %s in a sum", r.MinSurvivors, plural(parties, "party"))
	}
	if drops > 0 {
		s.field("drop-outs", "%d of %s in each round, at random moments", drops,
			plural(all, "party"))
	}
}

// lost says what became of rounds without a sum.
func (s *screen) lost(lost, rounds int) {
	if lost == 0 {
		return
	}
	were := "were"
	if lost == 1 {
		were = "was"
	}
	s.sentence("%d of %s %s lost: too few parties were left to unmask the sum, and training went "+
		"on with the old model. Lower --drop to lose fewer.",
		lost, plural(rounds, "round"), were)
}

// took says how long a run was.
func (s *screen) took(d time.Duration) {
	if d < time.Second {
		s.printf("\nThe run took %s ms in all.\n", short(d))
		return
	}
	s.printf("\nThe run took %.1f s in all.\n", d.Seconds())
}

// budget says in a header what limits a party's spending.
func (s *screen) budget(b privacy.Budget) {
	if b.Epsilon == 0 {
		s.field("privacy", "epsilon is stated at delta %v; there is no budget", b.Delta)
		return
	}
	s.field("privacy", "budget of each party: epsilon %v at delta %v against the server", b.Epsilon,
		b.Delta)
}

// score judges a model.
type score interface {
	Accuracy() float64
	MCC() float64
}

// outcome says how good the model of private sums is, which are named by sum, after
// so many rounds.
func (s *screen) outcome(rounds int, sum string, private score) {
	s.printf("\n%-28s %9s %9s\n", fmt.Sprintf("After %s", plural(rounds, "round")), "accuracy",
		"MCC")
	s.printf("%-28s %9.4f %9.4f\n", "  over "+sum, private.Accuracy(), private.MCC())
}

// compare sets the model in the clear beside it; apart is the largest difference
// between two of their weights.
func (s *screen) compare(private, plain score, apart float64) {
	s.printf("%-28s %9.4f %9.4f\n", "  in the clear, same seeds", plain.Accuracy(), plain.MCC())
	s.printf("%-28s %+9.4f %+9.4f\n", "  difference", private.Accuracy()-plain.Accuracy(),
		private.MCC()-plain.MCC())
	s.printf("\nThe largest difference between two weights of the models is %.2g.\n", apart)
}

// privacy says what a run has spent, in both views.
func (s *screen) privacy(delta float64, views ...accounting.Spent) {
	s.printf("\n%-28s %9s %9s %12s\n", fmt.Sprintf("Privacy, delta %v", delta), "epsilon",
		"at least", "proved by")
	for _, spent := range views {
		s.printf("%-28s %9s %9s %12s\n", "  against the "+spent.View.String(), epsilon(spent.Upper),
			lowerBound(spent), spent.Accountant)
	}
	said := ""
	for _, spent := range views {
		if who := attainedBy(spent); who != said {
			s.sentence("Against the %s %s", spent.View, who)
			said = who
		}
	}
	if why := views[0].Reason; why != "" {
		s.sentence("%s: %s.", unbounded(views[0]), why)
	}
}

// stopped says that a budget ended a run after so many rounds.
func (s *screen) stopped(rounds int, stop *accounting.OverBudget) {
	const advice = "Use more noise, fewer rounds, or leave out --noise-multiplier to have it " +
		"calibrated."
	if rounds == 0 {
		s.sentence(
			"No round was begun: the first would take each party to epsilon %s, over its budget "+
				"of %v. %s",
			epsilon(stop.Would), stop.Budget.Epsilon, advice)
		return
	}
	s.sentence(
		"The run ended after %s: one more would take each party to epsilon %s, over its budget "+
			"of %v. %s",
		plural(rounds, "round"), epsilon(stop.Would), stop.Budget.Epsilon, advice)
}
