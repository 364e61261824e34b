package ask

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/answers"
)

// head says what is asked of whom.
func (w *world) head(s *show.Screen) error {
	j := w.job
	s.Field("job", "%s: %s in one sum of %s", j.Name, queries(len(j.Query)),
		show.Plural(w.plan.Length(), "number"))
	s.Field("parties", "%s, of each %s at most; protocol %s", show.Grouped(len(w.parties)),
		show.Plural(j.Parties.Rows, "row"), j.Sum.Protocol)
	spent, err := w.plan.Spent()
	if err != nil {
		return err
	}
	if math.IsInf(spent.Upper, 1) {
		s.Field("epsilon", "none: answers are exact, and protect nobody whose row shows in them")
		return nil
	}
	s.Field("epsilon", "%s of %s for all together, at delta %v, against %s",
		show.Epsilon(spent.Upper), j.Protects(), j.Privacy.Delta, j.Against())
	return nil
}

func queries(n int) string {
	if n == 1 {
		return "1 query"
	}
	return fmt.Sprintf("%d queries", n)
}

// showPlan says what it would cost and give.
func (v *asked) showPlan(w *world, std cli.Streams) error {
	expected := w.plan.Expected()
	if v.json {
		show.JSON(std, answers.Plan(expected))
		return nil
	}
	s := &show.Screen{Std: std}
	if err := w.head(s); err != nil {
		return err
	}
	s.Printf("\n")
	answers.WritePlan(std.Out, expected)
	s.Sentence("%s", answers.Assumes(w.plan.Rows()))
	return nil
}

// show prints the answers.
func (v *asked) show(w *world, std cli.Streams) error {
	if v.json {
		show.JSON(std, w.answers)
		return nil
	}
	s := &show.Screen{Std: std}
	if err := w.head(s); err != nil {
		return err
	}
	if missing := len(w.parties) - w.present; missing > 0 {
		s.Field("missing", "%s of the parties: intervals hold whatever their rows may be",
			show.Grouped(missing))
	}
	s.Printf("\n")
	answers.Write(std.Out, w.answers)
	return nil
}
