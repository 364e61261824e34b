package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

const noise = "privacy = { noise = \"discrete-gaussian\", epsilon = 8.0, clip = 1.0%s }\n"

// With noise, all that a party sends is under noise that the accountant counts: numbers of rows,
// votes on a clip, signs for a mask, loss and accuracy. What is sent is as long whatever the rows
// are. Without noise no epsilon is said to hold.
func TestEventsOfLanes(t *testing.T) {
	const d = 15 // weights of the model
	for name, one := range map[string]struct {
		more, privacy string
		numbers       int  // in the first lane, before it is brought to a power of two
		second        bool // there is another lane
		differs       func(m *job.Update[float64])
	}{
		"updates": {numbers: d, differs: func(m *job.Update[float64]) { clear(m.Vector) }},
		"rows": {more: "sum.max_weight = 1000\n", numbers: d + 1,
			differs: func(m *job.Update[float64]) { m.Samples = 1000 }},
		"no rows": {more: "sum.max_weight = 1000\n", numbers: d + 1,
			differs: func(m *job.Update[float64]) { m.Samples = 0 }},
		"votes": {privacy: ", clip_quantile = 0.5", numbers: d, second: true,
			differs: func(m *job.Update[float64]) { m.Voted[0] = -1 }},
		"mask": {more: "training.mask = \"soft\"\n", numbers: d, second: true,
			differs: func(m *job.Update[float64]) { clear(m.Signed) }},
	} {
		_, s := settle(t, one.more+fmt.Sprintf(noise, one.privacy))
		round, mechanism := s.Round(), s.Mechanism()
		if got := mechanism.Encoder.Dimension; got != one.numbers {
			t.Errorf("%s: noise is on %d numbers, want %d", name, got, one.numbers)
		}
		layout, drawn := s.Layout(), 0
		for _, lane := range layout {
			drawn += 10 * lane.Length // of ten parties
		}
		if (round.Signs != nil) != one.second || len(layout) == 2 != one.second ||
			round.Samples != float64(drawn) {
			t.Errorf("%s: %d lanes, %v numbers with noise of %d, %+v", name, len(layout), round.Samples,
				drawn, round)
		}
		for _, differs := range []bool{false, true} {
			m := job.Update[float64]{Vector: make([]float64, d), Samples: 1, Signed: make([]float64, d),
				Voted: []float64{1}, Trained: s.Trains()}
			for i := range m.Vector {
				m.Vector[i], m.Signed[i] = 0.1, 1
			}
			if differs {
				one.differs(&m)
			}
			values, err := s.Encode([32]byte{1}, m, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for k, lane := range layout {
				if len(values) != len(layout) || len(values[k]) != lane.Length {
					t.Fatalf("%s: lane %d has %d numbers, want %d", name, k, len(values[k]), lane.Length)
				}
			}
		}
		j, _ := settle(t, one.more)
		if says := strings.Join(j.Explain(), " "); !strings.Contains(says, "no epsilon holds") {
			t.Errorf("%s, without noise: %s", name, says)
		}
	}
	_, s := settleVector(t, fmt.Sprintf(noise, "")+"metrics.share = 0.2\n")
	if got := s.Mechanism().Encoder.Dimension; got != 7 {
		t.Errorf("with metrics noise is on %d numbers, want 7", got)
	}
}

// settleVector works a job of bare vectors out, of five numbers.
func settleVector(t *testing.T, more string) (*job.Job, *job.Settled) {
	t.Helper()
	j, err := job.Parse("job.toml", []byte("name = \"vector\"\nrounds = 6\nmodel.length = 5\n"+
		"parties.count = 10\n"+more))
	if err != nil {
		t.Fatal(err)
	}
	_, like := settle(t, "")
	s, err := j.Settle(job.Files{Roster: like.Roster()})
	if err != nil {
		t.Fatal(err)
	}
	return j, s
}

// What would have to be found out from rows is declared before a job with noise begins, and what
// would be summed without noise, or show who has which rows, is refused.
func TestEventsDeclared(t *testing.T) {
	_, like := settle(t, "")
	for text, want := range map[string]string{
		`model = { name = "softmax", features = 4, classes = 3 }
privacy = { noise = "skellam", epsilon = 1.0 }`: "privacy.clip",
		`model.name = "softmax"` + "\n" + fmt.Sprintf(noise, ""): "model",
		`model = { name = "softmax", features = 4, classes = 3 }
world.tolerance = 0.1
` + fmt.Sprintf(noise, ""): "world.tolerance",
		`model = { name = "softmax", features = 4, classes = 3 }
training.rule = "scaffold"
` + fmt.Sprintf(noise, ""): "training.rule",
		`model = { name = "softmax", features = 4, classes = 3 }
training.rule = "fedga"
` + fmt.Sprintf(noise, ""): "training.rule",
	} {
		j, err := job.Parse("job.toml", []byte("name = \"declared\"\nrounds = 6\n"+
			"parties.count = 10\n"+text))
		if err == nil {
			_, err = j.Settle(job.Files{Roster: like.Roster()})
		}
		var wrong *job.ConfigError
		if !errors.As(err, &wrong) || wrong.Path != want {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
}
