package ask

import (
	"fmt"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/query/answers"
	"github.com/hushsum/hushsum/query/asking"
)

// head prints which queries are asked of which parties.
func head(w *asking.World, s *show.Screen) error {
	j := w.Job
	sums := "one sum"
	if n := w.Plan.Rounds(); n > 1 {
		sums = fmt.Sprintf("%d rounds, each a sum", n)
	}
	s.Field("job", "%s: %s in %s of %s", j.Name, queries(len(j.Query)), sums,
		show.Plural(w.Plan.Length(), "number"))
	s.Field("parties", "%s, of each %s at most; protocol %s", show.Grouped(w.Parties),
		show.Plural(j.Parties.Rows, "row"), j.Sum.Protocol)
	spent, err := w.Plan.Spent()
	if err != nil {
		return err
	}
	if !spent.Bounded() {
		s.Field("privacy", "none: answers are exact, and do not protect anyone whose row shows in them")
		return nil
	}
	s.Field("privacy", "all together spend %v", spent)
	return nil
}

func queries(n int) string {
	if n == 1 {
		return "1 query"
	}
	return fmt.Sprintf("%d queries", n)
}

// showPlan prints what the queries would cost and give.
func (v *asked) showPlan(w *asking.World, std cli.Streams) error {
	expected := w.Plan.Expected()
	if v.json {
		show.JSON(std, answers.Plan(expected))
		return nil
	}
	s := &show.Screen{Std: std}
	if err := head(w, s); err != nil {
		return err
	}
	s.Printf("\n")
	answers.WritePlan(std.Out, expected)
	for _, sentence := range answers.Notes(expected) {
		s.Sentence("%s", sentence)
	}
	s.Sentence("%s", answers.Assumes(w.Plan.Rows()))
	return nil
}

// show prints the answers.
func (v *asked) show(w *asking.World, std cli.Streams) error {
	if v.json {
		show.JSON(std, w.Answers)
		return nil
	}
	s := &show.Screen{Std: std}
	if err := head(w, s); err != nil {
		return err
	}
	if missing := w.Parties - w.Present; missing > 0 {
		s.Field("missing", "%s of the parties: intervals hold whatever their rows may be",
			show.Grouped(missing))
	}
	s.Printf("\n")
	answers.Write(std.Out, w.Answers)
	return nil
}
