package falsify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/training"
)

// F2: no unit moves what leaves by more than is charged for, whatever is in it, whatever the others
// are, and whatever model the server has chosen.
func TestDistance(t *testing.T) {
	n := neighbours
	if suite.Long() {
		n *= 5
	}
	over(t, 2, func(x *tried) (bool, error) {
		s := x.settled
		if s.Mechanism() == nil {
			return false, nil
		}
		random := x.random(2)
		if err := fresh(s); err != nil {
			return true, err
		}
		for range n {
			if err := neighbour(s, random); err != nil {
				return true, err
			}
		}
		return true, nil
	})
}

// fresh sees that a party's next submission has noise of its own, which nothing sent before takes
// off.
func fresh(s *job.Settled) error {
	m := job.Update[float64]{Vector: make([]float64, s.Length()), Samples: 1, Trained: s.Trains()}
	l := &s.Mechanism().Vector
	if s.Oneshot() != nil || float64(len(m.Vector))*math.Log2(l.SumStdDev(1)) < 60 {
		return nil // it is in the masks; or two shares may be equal by chance
	}
	if s.Mechanism().Signs != nil {
		m.Signed, m.Voted = m.Vector, []float64{0}
	}
	var last [][]uint64
	for range 2 {
		values, err := s.Encode([32]byte{}, m, nil)
		if err != nil {
			return err
		}
		if last != nil && slices.Equal(values[0], last[0]) {
			return errors.New("two submissions have one share of the noise")
		}
		last = values
	}
	return nil
}

// neighbour draws data and a neighbour of them, and compares what leaves of the two.
func neighbour(s *job.Settled, random *rand.Rand) error {
	j := s.Job()
	switch {
	case j.Asks():
		return ofRows(s, random)
	case j.Model.Name != "" && j.PerRecord():
		return ofRecords(s, random)
	case j.Model.Name != "" && j.Privacy.Factorise > 0:
		return ofBands(s, random)
	case j.Model.Name != "":
		return ofTraining(s, random)
	case j.PerRecord():
		return ofSums(s, random)
	}
	return ofVectors(s, random)
}

// submitted encodes a message, or where that fails the zeros that leave in its place, and compares
// with zeros that have the same share of the noise.
func submitted(s *job.Settled, m job.Update[float64], random *rand.Rand) (moved, error) {
	noise, dither := random.Uint64(), random.Uint64()
	zeros, err := blank(s, sourceOf(noise, dither))
	if err != nil {
		return nil, err
	}
	values, err := s.Encode(broadcastOf(random), m, sourceOf(noise, dither))
	if err != nil {
		return nil, refusal(err)
	}
	return minus(values, zeros, s.Layout()), nil
}

// errNothing marks what is refused at the door: nothing but zeros leaves.
var errNothing = errors.New("nothing leaves")

func refusal(err error) error { return fmt.Errorf("%w: %w", errNothing, err) }

// leaves reports an error that is not a refusal, and holds what left against its charge.
func leaves(s *job.Settled, m moved, err error) error {
	switch {
	case errors.Is(err, errNothing):
		return nil
	case err != nil:
		return err
	}
	return within(m, s.Round())
}

func broadcastOf(random *rand.Rand) (b [32]byte) {
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// ofVectors has a program of the party's own bring any vector, in place or as a message.
func ofVectors(s *job.Settled, random *rand.Rand) error {
	v := anyVector(random, s.Length(), s.Job().Privacy.Clip)
	if s.Oneshot() == nil && s.Alone() && random.IntN(2) == 0 {
		noise, dither := random.Uint64(), random.Uint64()
		zeros, err := blank(s, sourceOf(noise, dither))
		if err != nil {
			return err
		}
		var values [][]uint64
		if random.IntN(3) == 0 {
			short := make([]float32, len(v))
			for i, x := range v {
				short[i] = float32(x)
			}
			values, err = encodeTo(s, broadcastOf(random), short, sourceOf(noise, dither))
		} else {
			values, err = encodeTo(s, broadcastOf(random), v, sourceOf(noise, dither))
		}
		if err != nil {
			return nil
		}
		return within(minus(values, zeros, s.Layout()), s.Round())
	}
	samples := pick(random, 1, 1, 2, 1000, math.MaxInt, 0)
	m := job.Update[float64]{Vector: v, Samples: samples}
	if s.Buffer() > 0 {
		m = m.Weighed(uint64(random.IntN(20)))
	}
	if s.Job().Metrics.Share > 0 {
		m.Loss = pick(random, 0, 1, 10, 1e300, math.NaN(), math.Inf(-1))
		m.Accuracy = pick(random, 0, 0.5, 1, 1e300, math.NaN(), math.Inf(1))
	}
	if s.Job().Privacy.ClipQuantile > 0 {
		m.Voted = []float64{pick(random, -1.0, 1, 0, 5)}
	}
	diff, err := submitted(s, m, random)
	return leaves(s, diff, err)
}

// anyVector draws a vector that may be of any length, or none.
func anyVector(random *rand.Rand, d int, clip float64) []float64 {
	v := make([]float64, d)
	for i := range v {
		v[i] = random.NormFloat64()
	}
	size := 0.0
	for _, x := range v {
		size = math.Hypot(size, x)
	}
	by := clip / size * pick(random, 1e-9, 0.5, 1, 1, 1+0x1p-52, 2, 1e6, 1e200)
	for i := range v {
		v[i] *= by
	}
	at := random.IntN(d)
	switch random.IntN(12) {
	case 0:
		v[at] = pick(random, math.NaN(), math.Inf(1), math.Inf(-1))
	case 1:
		v[at] = pick(random, math.MaxFloat64, -math.MaxFloat64, 5e-324, -5e-324)
	case 2: // one coordinate
		clear(v)
		v[at] = clip * pick(random, 1.0, -1, 3)
	case 3: // all alike
		for i := range v {
			v[i] = clip / math.Sqrt(float64(d))
		}
	case 4: // subnormal
		for i := range v {
			v[i] = 5e-324 * float64(random.IntN(9)-4)
		}
	case 5:
		for i := range v {
			v[i] = math.MaxFloat64 * float64(random.IntN(3)-1)
		}
	}
	return v
}

// ofTraining has a party train on any rows, from any model.
func ofTraining(s *job.Settled, random *rand.Rand) error {
	o, err := training.OptionsOf(s.Job())
	if err != nil {
		return err
	}
	rows := anyRows(random, o.Model, 1+random.IntN(8), 2)
	l := training.NewLearner(o, parties(s, 1, rows))
	l.Weights = anyWeights(random, o.Model, rows, 0)
	if l.Adaptive != nil { // votes may have moved it anywhere
		l.Norm *= math.Exp(20 * random.NormFloat64())
		l.Adaptive.Norm = l.Norm
	}
	w, err := l.TakePart(context.Background(), 1, 1, nil)
	if err != nil {
		return nil
	}
	m := w.Message
	if s.Buffer() > 0 {
		m = m.Weighed(uint64(random.IntN(20)))
	}
	diff, err := submitted(s, m, random)
	return leaves(s, diff, err)
}

// ofBands has a party take turns, over all rounds: what it sends of each vector is charged once.
func ofBands(s *job.Settled, random *rand.Rand) error {
	tr, err := training.Of(s)
	if err != nil {
		return err
	}
	o := tr.Options()
	rows := anyRows(random, o.Model, 1+random.IntN(4), 2)
	who := random.IntN(s.Roster().Len())
	own, err := tr.Party(who, rows, nil)
	if err != nil {
		return nil
	}
	b := len(s.Band())
	standing := tr.First()
	var sums []moved // of each band, all sums next to each other
	for number := 1; number <= s.Rounds(); number++ {
		at := *standing
		at.Number, at.Round = uint64(number), min(number, s.Job().Rounds)
		at.Model = anyWeights(random, o.Model, rows, 0)
		m, err := own.Message(context.Background(), &at)
		if err != nil {
			return nil
		}
		diff, err := submitted(s, m, random)
		if errors.Is(err, errNothing) {
			continue
		} else if err != nil {
			return err
		}
		offset, began := s.Band().Offset(who, uint64(number))
		if len(sums) == 0 || began && offset == 0 {
			sums = append(sums, moved{nil})
		}
		last := sums[len(sums)-1]
		last[0] = append(last[0], diff[0]...)
		if random.IntN(6) > 0 { // else the round has no sum
			standing.Earlier = earlier(number, b, standing.Earlier, len(at.Model))
		}
	}
	if len(sums) > s.Charges(s.Rounds())+1 {
		return fmt.Errorf("%d vectors are begun, and %d are charged", len(sums), s.Charges(s.Rounds()))
	}
	for _, m := range sums {
		if err := within(m, s.Round()); err != nil {
			return err
		}
	}
	return nil
}
