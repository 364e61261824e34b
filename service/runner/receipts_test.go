package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
)

// receiptOf reads and verifies a party's receipt.
func (l *led) receiptOf(r *Runner, party, round int) (*receipt.Receipt, *receipt.Shown) {
	l.t.Helper()
	b, err := r.Receipt(context.Background(), party, round)
	if err != nil {
		l.t.Fatalf("party %d, round %d: %v", party, round, err)
	}
	out, err := receipt.Parse(b)
	if err != nil {
		l.t.Fatal(err)
	}
	shown, err := out.Verify(l.fed.Key)
	if err != nil {
		l.t.Fatal(err)
	}
	return out, shown
}

// Each party of a sum has a receipt of it, of the last rounds, which names what it has sent and
// spent, and after a takeover of the last one.
func TestReceipts(t *testing.T) {
	const rounds = mostReceipts + 2
	l := newLed(t, `privacy.noise = "discrete-gaussian"
privacy.epsilon = 50
privacy.delta = 1e-5`)
	l.hold(l.follow(), rounds, func(drive.Status) {})
	for round := 3; round <= rounds; round++ {
		for i := range parties {
			r, shown := l.receiptOf(l.Runner, i, round)
			if int(r.Round) != round || int(r.Party) != i || r.Rounds != 2000 ||
				!slices.Equal(r.Parties, []uint64{0, 1, 2, 3, 4}) || r.Submission == (chain.Hash{}) ||
				r.Job != l.fed.JobDigest || !strings.HasPrefix(r.Spent, "epsilon ") {
				t.Fatalf("%+v", r)
			}
			if shown.Entry.Kind != chain.Sum || r.Released == (chain.Hash{}) {
				t.Errorf("%+v", shown.Entry)
			}
			if round == rounds && i == 0 {
				t.Log(r.Spent)
			}
		}
	}
	one, _ := l.receiptOf(l.Runner, 0, rounds)
	if another, _ := l.receiptOf(l.Runner, 1, rounds); another.Submission == one.Submission ||
		another.Salt == one.Salt {
		t.Error("two parties have one submission or salt")
	}
	if one.Released != receipt.Released(l.model) {
		t.Error("the receipt names another model")
	}
	for _, round := range []int{1, 2, rounds + 1} {
		if _, err := l.Receipt(context.Background(), 0, round); !errors.Is(err, ErrNoReceipt) {
			t.Errorf("round %d: %v", round, err)
		}
	}
	next := l.start("m")
	again, _ := l.receiptOf(next, 0, rounds)
	if again.Submission != one.Submission || again.Spent != one.Spent || again.Salt != one.Salt {
		t.Errorf("%+v, want %+v", again, one)
	}
	if _, err := next.Receipt(context.Background(), 0, rounds-1); !errors.Is(err, ErrNoReceipt) {
		t.Error(err)
	}
	if _, err := receipt.Contradict(one, again, nil); !errors.Is(err, receipt.ErrConsistent) {
		t.Error(err)
	}
}

// Whoever was absent from a round has no receipt of it, and the others' say so.
func TestReceiptOfAbsent(t *testing.T) {
	l := newLed(t, "")
	followers := l.follow()
	followers[4].idle = func(round uint64) bool { return round == 2 }
	l.hold(followers, 2, func(drive.Status) {})
	r, _ := l.receiptOf(l.Runner, 3, 2)
	if !slices.Equal(r.Parties, []uint64{0, 1, 2, 3}) || r.Spent != "" {
		t.Errorf("%+v", r)
	}
	if _, err := l.Receipt(context.Background(), 4, 2); !errors.Is(err, ErrNoReceipt) {
		t.Error(err)
	}
	l.receiptOf(l.Runner, 4, 1)
}
