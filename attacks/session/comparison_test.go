package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
)

// inTurn gives protocol, textbook and textbook without a defence a value each.
func inTurn(genuine, whole, weak float64) func(target) (outcome, error) {
	return func(t target) (outcome, error) {
		value := whole
		if t.real {
			value = genuine
		} else if t.without != 0 {
			value = weak
		}
		return outcome{values: []float64{value}, samples: 1}, nil
	}
}

// A row has the undefended target's value and the worse one of the defended targets'.
func TestVariantRows(t *testing.T) {
	wanted := []metric{{"inputs", exactly(1), exactly(0)}}
	for _, c := range []struct {
		variant  variant
		defended float64
		verdict  attacks.Verdict
	}{
		{variant{run: inTurn(0, 0, 1), metrics: wanted}, 0, attacks.Held},
		{variant{run: inTurn(5, 0, 1), metrics: wanted}, 5, attacks.Broken},
		{variant{run: inTurn(0, 6, 1), metrics: wanted}, 6, attacks.Broken},
		{variant{run: inTurn(0, 0, 0), metrics: wanted}, 0, attacks.Toothless},
		{variant{run: inTurn(0, 0, 1), metrics: wanted, limit: "so far"}, 0, attacks.Documented},
		{variant{run: inTurn(0, 6, 1), metrics: wanted, defended: []target{{real: true}}},
			0, attacks.Held},
	} {
		c.variant.lacks = textbook.Quorum
		rows, err := c.variant.rows()
		if err != nil || len(rows) != 1 {
			t.Fatalf("%+v: %v", rows, err)
		}
		row := rows[0]
		if row.Defended.Value != c.defended || row.Verdict() != c.verdict ||
			row.Note != c.variant.limit {
			t.Errorf("%+v: %v, want %v and %v", row, row.Verdict(), c.defended, c.verdict)
		}
	}
	unseen := variant{run: inTurn(0, 0, 1), metrics: []metric{{"inputs", unmeasured, exactly(0)}}}
	if rows, err := unseen.rows(); err != nil || !rows[0].Undefended.Missing() {
		t.Errorf("%+v, %v", rows, err)
	}
}

// Errors name attack, variant and target; a run that is cancelled ends.
func TestCompared(t *testing.T) {
	broken := errors.New("broken")
	run := compared(attacks.Attack{Name: "X"}, func(uint64) []variant {
		return []variant{{
			name: "first",
			run: func(t target) (outcome, error) {
				if t.real {
					return outcome{}, broken
				}
				return counts(1, 1, 2), nil // one value too many
			},
			metrics: []metric{{"inputs", exactly(1), exactly(0)}},
		}}
	}).Run
	_, err := run(context.Background(), attacks.Options{})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "session: X: first, against") ||
		!strings.Contains(err.Error(), "2 values, want 1") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := run(ctx, attacks.Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
