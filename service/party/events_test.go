package party

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
)

// federations that differ in one party's rows: what its training comes to.
var unfit = map[string]func(w *Work) (*Update, error){
	"too few rows": func(*Work) (*Update, error) { return nil, errors.New("a class has no rows") },
	"no update":    func(*Work) (*Update, error) { return nil, nil },
	"not a number": func(w *Work) (*Update, error) {
		return &Update{Vector: slices.Repeat([]float64{math.NaN()}, len(w.Model))}, nil
	},
	"overflow": func(w *Work) (*Update, error) {
		return &Update{Vector: slices.Repeat([]float64{math.Inf(1)}, len(w.Model))}, nil
	},
	"another length": func(w *Work) (*Update, error) {
		return &Update{Vector: make([]float64, len(w.Model)-1)}, nil
	},
	"a panic": func(w *Work) (*Update, error) {
		none := w.Model[:0]
		return &Update{Vector: []float64{none[len(none)]}}, nil
	},
	"one round of three": func(w *Work) (*Update, error) {
		if w.Round == 2 {
			return nil, io.ErrUnexpectedEOF
		}
		return &Update{Vector: make([]float64, len(w.Model))}, nil
	},
}

// events plays a federation of an honest server, and returns all that the server sees of the first
// party, and that party's log.
func events(
	t *testing.T, f *federation.Federation, train func(w *Work) (*Update, error),
) (seen *cheat, log string) {
	t.Helper()
	c := newCheat(f, join(1), round(1), round(2), join(2), round(3))
	var b bytes.Buffer
	c.play(t, func(p *Party) {
		p.Log = slog.New(slog.NewTextHandler(&b, nil))
		p.Trainer = TrainerFunc(func(_ context.Context, w *Work) (*Update, error) { return train(w) })
	}, nil)
	return c, b.String()
}

// With noise a server sees the same of a party whose rows make no update and of one whose rows make
// one: the same requests in the same order, as long; only the party's own log knows. Without noise
// it sees that the party is absent.
func TestEventsOfTraining(t *testing.T) {
	update := func(w *Work) (*Update, error) {
		return &Update{Vector: slices.Repeat([]float64{0.1}, len(w.Model))}, nil
	}
	want, _ := events(t, few(t), update)
	if len(want.released) != 3 || len(want.heard) < 10 {
		t.Fatalf("%d submissions, %q", len(want.released), want.heard)
	}
	plain, _ := events(t, fewOf(t, fewText), update)
	for name, train := range unfit {
		got, log := events(t, few(t), train)
		got.check(t)
		if len(got.papers) != 3 || !slices.Equal(got.papers, want.papers) {
			t.Errorf("%s: it asks for the receipts %v, want %v", name, got.papers, want.papers)
		}
		if !slices.Equal(got.heard, want.heard) {
			t.Errorf("%s: the server sees\n%swant\n%s", name, strings.Join(got.heard, ""),
				strings.Join(want.heard, ""))
		}
		for r := uint64(1); r <= 3; r++ {
			if len(got.sums[r]) != 1 {
				t.Errorf("%s: round %d has sums %v", name, r, got.sums[r])
			}
		}
		if absent := errors.Is(got.absent, ErrAbsent); absent == (name == "one round of three") {
			t.Errorf("%s: the party's end is %v", name, got.absent)
		}
		if !strings.Contains(log, "zeros with noise are submitted") {
			t.Errorf("%s: the log does not say so: %s", name, log)
		}
		if name == "a panic" {
			continue // it ends the process where no noise hides that
		}
		if seen, _ := events(t, fewOf(t, fewText), train); slices.Equal(seen.heard, plain.heard) {
			t.Errorf("%s: without noise the server sees nothing", name)
		}
	}
}

// A training command that takes longer than its time submits zeros with noise, as one that fails.
func TestEventsOfCommand(t *testing.T) {
	command := func(line string) *cheat {
		c := newCheat(few(t), join(1), round(1))
		c.play(t, func(p *Party) {
			p.Trainer = &Command{Line: line, Folder: t.TempDir(), Limit: 200 * time.Millisecond}
		}, nil)
		return c
	}
	want, _ := events(t, few(t), func(w *Work) (*Update, error) {
		return &Update{Vector: make([]float64, len(w.Model))}, nil
	})
	for _, line := range []string{"exec sleep 60", "exit 3", "kill -9 $$", "true"} {
		got := command(line)
		n := len(got.heard) - 2 // up to the end of the round
		if len(got.released) != 1 || !slices.Equal(got.heard[:n], want.heard[:n]) {
			t.Errorf("%s: %q, want %q", line, got.heard, want.heard)
		}
	}
}
