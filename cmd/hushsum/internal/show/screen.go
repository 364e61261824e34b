package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/protocol"
)

// Screen prints for people: lines of at most width characters, and on a terminal one line that is
// overwritten while work goes on.
type Screen struct {
	Std   cli.Streams
	drawn int // characters of the line that is now on the terminal
}

func (s *Screen) Printf(format string, a ...any) { fmt.Fprintf(s.Std.Out, format, a...) }

// Field prints a line of a header, on several lines if necessary.
func (s *Screen) Field(label, format string, a ...any) {
	for _, line := range cli.Wrap(fmt.Sprintf(format, a...), cli.Width-10) {
		s.Printf("%-10s%s\n", label, line)
		label = ""
	}
}

// Sentence prints text of its own, on several lines if necessary.
func (s *Screen) Sentence(format string, a ...any) {
	s.Printf("\n%s\n", strings.Join(cli.Wrap(fmt.Sprintf(format, a...), cli.Width), "\n"))
}

// Progress shows how many of a round's parties have done their part. A hundred updates per round
// suffice, however many parties there are.
func (s *Screen) Progress(round, done, of int, note string) {
	if !s.Std.Live || done*100/of == (done-1)*100/of && done != 0 {
		return
	}
	name := fmt.Sprint(round)
	if round == 0 {
		name = "setup"
	}
	s.Over(fmt.Sprintf("%5s %9s%s", name, fmt.Sprintf("%d/%d", done, of), note))
}

// Over overwrites the line that is on the terminal.
func (s *Screen) Over(line string) {
	s.Printf("\r%-*s", s.drawn, line)
	s.drawn = max(s.drawn, len(line))
}

// Wipe removes that line.
func (s *Screen) Wipe() {
	if s.drawn > 0 {
		s.Printf("\r%s\r", strings.Repeat(" ", s.drawn))
		s.drawn = 0
	}
}

// Recovery prints in a header which drop-outs a round of a given number of parties survives, and
// how many parties there are in all.
func (s *Screen) Recovery(r *protocol.Recovery, colluders, parties, drops, all int) {
	if r == nil {
		s.Field("recovery", "off: every party must submit")
	} else {
		s.Field("recovery", "%v, %s; %d of %s rebuild a secret;",
			r.Adversary, Plural(colluders, "colluder"), r.Threshold, Plural(r.Degree, "share"))
		s.Field("", "at least %d of %s in a sum", r.MinSurvivors, Plural(parties, "party"))
	}
	if drops > 0 {
		s.Field("drop-outs", "%d of %s in each round, at random moments", drops,
			Plural(all, "party"))
	}
}

// Lost prints what became of rounds without a sum.
func (s *Screen) Lost(lost, rounds int) {
	if lost == 0 {
		return
	}
	were := "were"
	if lost == 1 {
		were = "was"
	}
	s.Sentence("%d of %s %s lost: too few parties were left to unmask the sum, and training "+
		"continued with the old model. Lower --drop to lose fewer.",
		lost, Plural(rounds, "round"), were)
}

// Took prints how long a run took.
func (s *Screen) Took(d time.Duration) {
	if d < time.Second {
		s.Printf("\nThe run took %s ms in all.\n", Short(d))
		return
	}
	s.Printf("\nThe run took %.1f s in all.\n", d.Seconds())
}

// Budget prints in a header what limits the spending; nil: nothing does, and epsilon is stated at
// delta.
func (s *Screen) Budget(b *accounting.Budget, delta float64) {
	if b == nil {
		s.Field("privacy", "epsilon is stated at delta %v; there is no budget", delta)
		return
	}
	s.Field("privacy", "at most %v", b)
}

// Score judges a model.
type Score interface {
	Accuracy() float64
	MCC() float64
}

// Outcome prints how good the model of private sums is after a given number of rounds; sum names
// these sums.
func (s *Screen) Outcome(rounds int, sum string, private Score) {
	s.Printf("\n%-28s %9s %9s\n", fmt.Sprintf("After %s", Plural(rounds, "round")), "accuracy",
		"MCC")
	s.Printf("%-28s %9.4f %9.4f\n", "  over "+sum, private.Accuracy(), private.MCC())
}

// Alone prints the mean of models that parties have without the others.
func (s *Screen) Alone(alone []Score) {
	accuracy, mcc := Means(alone)
	s.Printf("%-28s %9.4f %9.4f\n", fmt.Sprintf("  each alone, mean of %d", len(alone)), accuracy, mcc)
}

// Gain prints how many of the parties the common model helps.
func (s *Screen) Gain(private Score, alone []Score) {
	least, most, gain := 1.0, 0.0, 0
	for _, a := range alone {
		least, most = min(least, a.Accuracy()), max(most, a.Accuracy())
		if private.Accuracy() > a.Accuracy() {
			gain++
		}
	}
	s.Sentence("Alone, on its own rows and without noise, a party has an accuracy of %.4f to %.4f; "+
		"the private model is better for %d of %s.", least, most, gain, Plural(len(alone), "party"))
}

// Means returns the mean accuracy and correlation of models; NaN without any.
func Means(scores []Score) (accuracy, mcc float64) {
	n := float64(len(scores))
	for _, a := range scores {
		accuracy, mcc = accuracy+a.Accuracy(), mcc+a.MCC()
	}
	return accuracy / n, mcc / n
}

// Compare prints the model in the clear next to it; apart is the largest difference between two of
// their weights.
func (s *Screen) Compare(private, plain Score, apart float64) {
	s.Printf("%-28s %9.4f %9.4f\n", "  in the clear, same seeds", plain.Accuracy(), plain.MCC())
	s.Printf("%-28s %+9.4f %+9.4f\n", "  difference", private.Accuracy()-plain.Accuracy(),
		private.MCC()-plain.MCC())
	s.Printf("\nThe largest difference between two weights of the models is %.2g.\n", apart)
}

// Stopped prints that the budget ended a run after a given number of rounds.
func (s *Screen) Stopped(rounds int, stop *accounting.OverBudget) {
	said := fmt.Sprintf("The run ended after %s: with one more, %s", Plural(rounds, "round"),
		stop.Words())
	if rounds == 0 {
		said = fmt.Sprintf("No round was begun: with the first, %s", stop.Words())
	}
	s.Sentence("%s. Use more noise, fewer rounds, or leave out --noise-multiplier to have it "+
		"calibrated.", said)
}
