package collusion

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oblivious"
)

var jointPooling = attacks.Attack{
	Name:      "JointPooling",
	Adversary: "n−1 clients",
	About: "pool the secret bits of their turns in oblivious.Joint, or choose them, and subtract " +
		"the noise that they explain",
	Defence: "a turn of the honest party, by bits of its own",
	Run:     runJoint,
}

// Sizes of the sessions that are played. There are few coordinates, since a coin takes public-key
// work of every party. So the sessions show that the noise is the sum of the parties' bits,
// modulo 2 in each coin, and no more; plain bits of many more parties and coins then show how much
// n − 1 of them know of that.
const (
	jointParties = 3
	jointHonest  = 1 // a colluder has its turn before the honest party, and one after
	jointLength  = 64
	jointCoins   = 4
	jointBound   = 3
)

// Sizes of the runs on plain bits, with the thesis's number of parties: the coins of a count at
// ε = 1 and δ = 1e-6, and a bound for which the inputs' variance is in the same proportion to the
// noise's as that of the thesis's weights to a Laplace variable's, 8.43.
const (
	bitsCoins = 80
	bitsBound = 44
)

// jointCase is a case that has rows.
type jointCase struct {
	name, note string
	play       func(r *rand.Rand) (*jointRun, error)
	part       uint64
}

func runJoint(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	runs := 100_000
	if o.Long {
		runs = 2_000_000
	}
	report := &attacks.Report{}
	for i, c := range []jointCase{
		{
			name: "sessions",
			note: fmt.Sprintf("oblivious.Joint, n = %d, %d coordinates of %d coins; undefended: the "+
				"pool knows the honest party's bits too, as it would without its turn",
				jointParties, jointLength, jointCoins),
			play: func(r *rand.Rand) (*jointRun, error) { return playJoint(false, r) },
			part: partJoint,
		},
		{
			name: "sessions, bits chosen",
			note: "the same, and colluders flip all coins of every other coordinate and no others",
			play: func(r *rand.Rand) (*jointRun, error) { return playJoint(true, r) },
			part: partJointChosen,
		},
		{
			name: "bits",
			note: fmt.Sprintf("the bits of n = %d parties without their encryption, %d coins",
				tableParties, bitsCoins),
			play: func(r *rand.Rand) (*jointRun, error) { return drawJoint(runs, r), nil },
			part: partJointBits,
		},
	} {
		o.Advance(i, 3)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, err := c.play(o.Rand(c.part))
		if err != nil {
			return nil, err
		}
		report.Rows = append(report.Rows, run.rows(c.name, c.note)...)
	}
	return report, nil
}

// jointRun holds what sessions of oblivious.Joint come to, by coordinate, and what the pool
// makes of it. The pool's own inputs are 0.
type jointRun struct {
	bound  int       // of inputs
	coins  int       // of a coordinate
	inputs []float64 // of the honest party
	sums   []float64 // with noise
	pooled []float64 // heads that the pool's bits alone would have come to
	heads  []float64 // heads by the bits of all
}

// add adds the coins of a coordinate, by the pool's bits and by those of all.
func (j *jointRun) add(pooled, all int) {
	j.pooled, j.heads = append(j.pooled, float64(pooled)), append(j.heads, float64(all))
}

// rows measures r² of the honest input and of estimates of it: an outsider's, which is the sum; the
// pool's, which is the sum less what its bits explain of the noise; and, without the defence,
// the sum less the noise. The pool is given the straight line through noise and bits that fits
// best in hindsight.
//
// r² must be var(x)/(var(x) + m/4), but for 6/√N in Fisher's transform of r. Inputs and noise
// have lighter tails than normal ones, for which that would be too few or too many with a
// probability of 2e-9; TestJointRange has the rate in sessions of 64 coordinates.
func (j *jointRun) rows(name, note string) []attacks.Row {
	n := len(j.inputs)
	noises, pool, known := make([]float64, n), make([]float64, n), make([]float64, n)
	for k, x := range j.inputs {
		noises[k] = j.sums[k] - x
	}
	correlation := attacks.Correlation(noises, j.pooled)
	slope := 0.0 // of the line
	if v := variance(j.pooled); v > 0 {
		slope = correlation * math.Sqrt(variance(noises)/v)
	}
	for k, sum := range j.sums {
		pool[k], known[k] = sum-slope*j.pooled[k], sum-j.heads[k]
	}
	limit := attacks.Sigmas / math.Sqrt(float64(n))
	exactly := func(r float64) attacks.Measure {
		return attacks.Exactly(r, n, 1).Within(1-1e-9, 1+1e-9) // of rounding
	}
	return []attacks.Row{{
		Case:       name,
		Metric:     "r², n−1 that pool",
		Undefended: exactly(math.Pow(attacks.Correlation(j.inputs, known), 2)),
		Defended:   j.determined(pool),
		Note:       note,
	}, {
		Case:     name,
		Metric:   "r², an outsider",
		Defended: j.determined(j.sums),
		Note:     "var(x)/(var(x) + m/4), whoever pools",
	}, {
		Case:       name,
		Metric:     "correlation of noise and pooled bits",
		Undefended: exactly(attacks.Correlation(noises, j.heads)),
		Defended:   attacks.Correlated(correlation, n).Within(-limit, limit),
		Note:       "at most 6/√N",
	}}
}

// want is r² of an input, uniform from 0 to bound, and of the input with the noise.
func (j *jointRun) want() float64 {
	input := float64(j.bound*(j.bound+2)) / 12
	return input / (input + float64(j.coins)/4)
}

// determined measures r² of the inputs and of estimates whose error is the noise.
func (j *jointRun) determined(estimates []float64) attacks.Measure {
	n, want := len(j.inputs), j.want()
	standardError := 2 * math.Sqrt(want) * (1 - want) / math.Sqrt(float64(n))
	return squaredCorrelation(attacks.Correlation(j.inputs, estimates), want, standardError, n)
}

// variance returns the variance of the values.
func variance(values []float64) float64 {
	_, standardError := attacks.MeanAndError(values)
	return standardError * standardError * float64(len(values))
}

// drawJoint draws the bits of n parties' turns, the last of whom is honest, and adds up the coins.
func drawJoint(runs int, r *rand.Rand) *jointRun {
	j := &jointRun{bound: bitsBound, coins: bitsCoins}
	for range runs {
		var pooled [2]uint64 // a bit of each coin
		flip := func() {
			pooled[0] ^= r.Uint64()
			pooled[1] ^= r.Uint64() & (1<<(bitsCoins-64) - 1)
		}
		for range tableParties - 1 {
			flip()
		}
		known := bits.OnesCount64(pooled[0]) + bits.OnesCount64(pooled[1])
		flip()
		heads := bits.OnesCount64(pooled[0]) + bits.OnesCount64(pooled[1])
		j.add(known, heads)
		x := float64(r.IntN(bitsBound + 1))
		j.inputs, j.sums = append(j.inputs, x), append(j.sums, x+float64(heads))
	}
	return j
}

// jointReader keeps the bits that a party draws for its turn, which it reads at once: no
// other read of the sessions here is as long.
type jointReader struct {
	random io.Reader
	chosen []byte // what a colluder flips coins by, in place of what is random
	bits   []byte
}

func (r *jointReader) Read(b []byte) (int, error) {
	n, err := io.ReadFull(r.random, b)
	if len(b) == jointLength*jointCoins {
		copy(b, r.chosen)
		r.bits = append([]byte(nil), b...)
	}
	return n, err
}

// playJoint plays a session. With chosen the colluder after the honest party flips all coins of
// every other coordinate, and the one before it none.
func playJoint(chosen bool, r *rand.Rand) (*jointRun, error) {
	config := &oblivious.JointConfig{
		Label:  "attack",
		Length: jointLength,
		Bound:  jointBound,
		Coins:  []int{jointCoins},
	}
	identities := make([]ed25519.PrivateKey, jointParties)
	entries := make([]keyexchange.Entry, jointParties)
	for i := range identities {
		var err error
		if identities[i], err = keyexchange.GenerateIdentity(chacha(r)); err != nil {
			return nil, err
		}
		public := identities[i].Public().(ed25519.PublicKey)
		entries[i] = keyexchange.Entry{Name: fmt.Sprint("party", i), Key: public}
	}
	var err error
	if config.Roster, err = keyexchange.NewRoster(entries); err != nil {
		return nil, err
	}
	j := &jointRun{bound: jointBound, coins: jointCoins}
	parties, readers := make([]*oblivious.Joint, jointParties), make([]jointReader, jointParties)
	for i := range parties {
		input := make([]uint64, jointLength)
		readers[i].random = chacha(r)
		switch {
		case i == jointHonest:
			for k := range input {
				input[k] = r.Uint64N(jointBound + 1)
				j.inputs = append(j.inputs, float64(input[k]))
			}
		case chosen:
			readers[i].chosen = chosenBits(i > jointHonest)
		}
		parties[i], err = oblivious.NewJoint(config, identities[i], i, input, &readers[i])
		if err != nil {
			return nil, err
		}
	}
	sums, err := oblivious.RunJoint(parties)
	if err != nil {
		return nil, err
	}
	for k, sum := range sums {
		j.sums = append(j.sums, float64(sum))
		pooled, heads := 0, 0
		for c := range jointCoins {
			at := k*jointCoins + c
			bit := readers[0].bits[at] ^ readers[2].bits[at]
			pooled += int(bit & 1)
			heads += int((bit ^ readers[jointHonest].bits[at]) & 1)
		}
		j.add(pooled, heads)
	}
	return j, nil
}

// chosenBits returns zeros, or ones for the coins of every other coordinate.
func chosenBits(ones bool) []byte {
	b := make([]byte, jointLength*jointCoins)
	for i := range b {
		if ones && i/jointCoins%2 == 0 {
			b[i] = 1
		}
	}
	return b
}
