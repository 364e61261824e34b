package main

import (
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/accounting"
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

// privacy says what a run has spent, in both views.
func (s *screen) privacy(delta float64, views ...accounting.Spent) {
	s.printf("\n%-28s %9s %9s %12s\n", fmt.Sprintf("Privacy, delta %v", delta), "epsilon", "at least", "proved by")
	for _, spent := range views {
		s.printf("%-28s %9s %9s %12s\n", "  against the "+spent.View.String(), epsilon(spent.Upper), lowerBound(spent), spent.Accountant)
	}
	if why := views[0].Reason; why != "" {
		s.sentence("There is no finite epsilon: %s.", why)
	}
}

// stopped says that a budget ended a run after so many rounds.
func (s *screen) stopped(rounds int, stop *accounting.OverBudget) {
	const advice = "Use more noise, fewer rounds, or leave out --noise-multiplier to have it calibrated."
	if rounds == 0 {
		s.sentence("No round was begun: the first would take each party to epsilon %s, over its budget of %v. %s", epsilon(stop.Would), stop.Budget.Epsilon, advice)
		return
	}
	s.sentence("The run ended after %s: one more would take each party to epsilon %s, over its budget of %v. %s", plural(rounds, "round"), epsilon(stop.Would), stop.Budget.Epsilon, advice)
}
