package simulation

import (
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
)

// recovering returns options of a session that survives drop-outs: ten parties,
// of which at least eight must stay.
func recovering(t testing.TB, drop float64) trial {
	o := averaging(census(t, 800, 10, 40))
	o.Rounds = 5
	o.Parties.DropOut, o.World.Drop = 0.2, drop
	return o
}

// left counts who leaves a round at each moment.
func left(leaves []moment) (count [never + 1]int) {
	for _, at := range leaves {
		count[at]++
	}
	return count
}

// The sum over those who stay is exact: the models are, to rounding, those of the
// same training in the clear over the same parties.
func TestRunWithDropOuts(t *testing.T) {
	o := recovering(t, 0.2)
	var reported []RoundResult
	s, err := o.run(t.Context(), func(r RoundResult) { reported = append(reported, withoutModel(r)) })
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rounds) != 5 || !reflect.DeepEqual(reported, s.Rounds) || s.Lost() != 0 {
		t.Fatalf("%d rounds, %d lost, want 5 and none", len(s.Rounds), s.Lost())
	}
	drops := newDropOuts(o.Seed, o.Job.DropOuts(10))
	some := false
	for i, r := range s.Rounds {
		want := 10 - left(drops.next(10))[beforeSubmit]
		if r.Round != i+1 || r.Dropped != 2 || r.Parties != want || r.Samples != 40*want {
			t.Errorf(
				"round %d: %d with %d in the sum, %d dropped, %d samples; want %d in the sum, 2 dropped",
				i+1, r.Round, r.Parties, r.Dropped, r.Samples, want)
		}
		if r.MaxAbsDiff == 0 || r.MaxAbsDiff > 1e-4 {
			t.Errorf("round %d: the models are %v apart", i+1, r.MaxAbsDiff)
		}
		some = some || want < 10
	}
	if !some {
		t.Error("nobody dropped out before submitting: choose another seed")
	}

	// The two models of the last round, by hand: with weights rounded as the
	// encoder does, the private one comes out bit for bit.
	private, inClear := byHand(t, o)
	if !slices.Equal(s.Model, private) {
		t.Error("the private model is not the average of the survivors' rounded weights")
	}
	for j := range inClear {
		if math.Abs(inClear[j]-s.Clear[j]) > 1e-12 {
			t.Fatalf("weight %d in the clear is %v, want %v", j, s.Clear[j], inClear[j])
		}
	}
}

// byHand trains with plain arithmetic, over the parties that submit.
func byHand(t *testing.T, o trial) (private, inClear []float64) {
	t.Helper()
	l := o.setting(t).newLearner()
	private, inClear = make([]float64, o.test.Features), make([]float64, o.test.Features)
	drops := newDropOuts(o.Seed, o.Job.DropOuts(10))
	unit := math.Ldexp(1, o.Sum.FractionBits)
	for range o.Rounds {
		leaves := drops.next(len(o.rows))
		sums := [2][]float64{make([]float64, len(private)), make([]float64, len(private))}
		n := 0.0
		for i, part := range o.rows {
			if leaves[i] == beforeSubmit {
				continue
			}
			n += float64(part.Len())
			for k, global := range [][]float64{private, inClear} {
				l.Weights, l.Models = global, true
				work, err := l.TakePart(t.Context(), 0, i, nil)
				if err != nil {
					t.Fatal(err)
				}
				w := work.Message.Vector
				for j := range w {
					x := w[j] * float64(part.Len()) * unit
					if k == 0 {
						x = math.RoundToEven(x)
					}
					sums[k][j] += x
				}
			}
		}
		for j := range private {
			private[j], inClear[j] = sums[0][j]/n/unit, sums[1][j]/n/unit
		}
	}
	return private, inClear
}

// Recovery alone changes no model, and neither do the number of cores, colluders
// or the adversary.
func TestRecoveryIsDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	plain := recovering(t, 0)
	plain.Parties.DropOut = 0
	want, err := plain.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := recovering(t, 0).run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Model, want.Model) || !slices.Equal(got.Clear, want.Clear) {
		t.Error("recovery without drop-outs changes the models")
	}
	if got.Rounds[0].Cost.BytesUp <= want.Rounds[0].Cost.BytesUp ||
		got.Setup.BytesUp <= want.Setup.BytesUp {
		t.Error("the messages of recovery are not counted")
	}

	var first *Result
	for _, cores := range []int{1, 4} {
		for _, adversary := range []string{"cheating", "curious"} {
			runtime.GOMAXPROCS(cores)
			o := recovering(t, 0.2)
			o.Sum.Adversary = adversary
			s, err := o.run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s
			}
			if !slices.Equal(s.Model, first.Model) || !slices.Equal(s.Clear, first.Clear) {
				t.Errorf("%d cores, %v: another model", cores, adversary)
			}
		}
	}
}

// A round with too few parties is lost, whatever step they are missing at, and
// the run goes on with the old model.
func TestLostRounds(t *testing.T) {
	o := recovering(t, 0.2)
	o.Parties.DropOut, o.Sum.Recovery = 0, true
	o.Rounds = 10
	s, err := o.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Rounds) != 10 || s.Lost() == 0 || s.Lost() == 10 {
		t.Fatalf("%d of %d rounds lost, want some of 10", s.Lost(), len(s.Rounds))
	}
	drops := newDropOuts(o.Seed, o.Job.DropOuts(10))
	var before RoundResult
	for _, r := range s.Rounds {
		submitted := 10 - left(drops.next(10))[beforeSubmit]
		if lost := submitted < 10; lost != (r.Lost != nil) {
			t.Errorf("round %d with %d inputs: %v", r.Round, submitted, r.Lost)
		}
		if r.Lost == nil {
			if r.Parties != submitted {
				t.Errorf("round %d: %d in the sum, want %d", r.Round, r.Parties, submitted)
			}
			before = r
			continue
		}
		if !errors.Is(r.Lost, protocol.ErrTooFew) || r.Parties != 0 || r.Samples != 0 {
			t.Errorf("round %d: %+v", r.Round, r)
		}
		if before.Round != 0 &&
			(!reflect.DeepEqual(r.Test, before.Test) || !reflect.DeepEqual(r.Clear, before.Clear) ||
				r.MaxAbsDiff != before.MaxAbsDiff) {
			t.Errorf("round %d is lost and changes the model", r.Round)
		}
	}
	if before.MaxAbsDiff > 1e-4 {
		t.Errorf("the models are %v apart", before.MaxAbsDiff)
	}
	if private, _ := byHand(t, o); slices.Equal(private, s.Model) {
		t.Error("lost rounds change nothing")
	}

	// For want of inputs, of signatures, and of shares: eight parties must submit. With three or
	// more of ten gone before that, no sum comes out.
	reasons := make(map[string]bool)
	for _, drop := range []float64{0.3, 0.4, 0.6} {
		o = recovering(t, drop)
		o.Rounds = 40
		s, err = o.run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		drops := newDropOuts(o.Seed, o.Job.DropOuts(10))
		for _, r := range s.Rounds {
			gone := left(drops.next(10))
			if few := 10-gone[beforeSubmit] < 8; few != (r.Lost != nil &&
				strings.Contains(r.Lost.Error(), "submitted")) {
				t.Errorf("round %d with %v is lost: %v", r.Round, gone, r.Lost)
			}
			for _, want := range []string{"submitted", "signed", "shares"} {
				if r.Lost != nil && strings.Contains(r.Lost.Error(), want) {
					reasons[want] = true
				}
			}
		}
	}
	if len(reasons) != 3 {
		t.Errorf("rounds were lost for want of %v only", reasons)
	}

	// Everybody leaves, at one moment or another: no round has a sum.
	o = recovering(t, 0.99)
	s, err = o.run(t.Context(), nil)
	if err != nil || s.Lost() != 5 || len(s.Rounds) != 5 {
		t.Fatalf("%d of %d rounds lost, %v; want all five", s.Lost(), len(s.Rounds), err)
	}
	if !slices.Equal(s.Model, make([]float64, len(s.Model))) {
		t.Error("a model without a sum")
	}
}

func TestDropOuts(t *testing.T) {
	j := &job.Job{}
	for drop, want := range map[float64]int{0: 0, 0.004: 0, 0.1: 10, 0.105: 11, 1: 100} {
		j.World.Drop = drop
		if got := j.DropOuts(100); got != want {
			t.Errorf("%v of 100 parties are %d, want %d", drop, got, want)
		}
	}
	drops, again := newDropOuts(1, 10), newDropOuts(1, 10)
	var total [never + 1]int
	for range 300 {
		leaves := drops.next(100)
		if !slices.Equal(leaves, again.next(100)) {
			t.Fatal("one seed, two draws")
		}
		count := left(leaves)
		if count[never] != 90 {
			t.Fatalf("%d stay, want 90", count[never])
		}
		for i, n := range count {
			total[i] += n
		}
	}
	// 3000 draws: 1000 of each moment, standard deviation 26. The seed is fixed.
	for _, n := range total[:never] {
		if n < 870 || n > 1130 {
			t.Errorf("moments %v, want about 1000 of each", total[:never])
		}
	}
}

// Progress counts the parties up once a round, over all steps of it.
func TestRecoveryProgress(t *testing.T) {
	o := recovering(t, 0.2)
	last := [2]int{0, -1}
	o.world = func(w *World) {
		w.Progress = func(round, done, _ int) {
			now := [2]int{round, done}
			if slices.Compare(now[:], last[:]) <= 0 || done > 10 || round > last[0] && done != 0 {
				t.Errorf("progress %v after %v", now, last)
			}
			last = now
		}
	}
	if _, err := o.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if last != [2]int{5, 10} {
		t.Errorf("progress ends with %v", last)
	}
}
