package party

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// The trainer of a party that is asked brings what its rows add, the same in each try.
func TestNewAsked(t *testing.T) {
	f := fewOf(t, `name = "asks"
parties = { roster = "r", rows = 2, drop_out = 0.25 }
sum.adversary = "curious"
column = [{ name = "age", type = "whole", range = [0, 99] }, { name = "sex", type = "category", `+
		`categories = ["F", "M"] }]
query = [{ name = "men", kind = "count", where = "sex = M" }, { name = "age", kind = "mean", `+
		`column = "age" }]
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
`)
	rows, _, err := query.NewSchema(f.Job).Read("rows.csv", strings.NewReader("age,sex\n50,M\n20,F\n"),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := NewAsked(f, rows)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		u, err := trainer.Train(context.Background(), &Work{})
		if err != nil || len(u.Vector) != 3 || u.Vector[0] <= 0 {
			t.Fatalf("%+v: %v", u, err)
		}
		clear(u.Vector)
	}
	if _, err := NewAsked(few(t), rows); !errors.Is(err, job.ErrConfig) {
		t.Errorf("it asks nothing: %v", err)
	}
}
