package observation

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/draw"
	"github.com/hushsum/hushsum/noise"
)

var disaggregation = attacks.Attack{
	Name:      "Disaggregation",
	Adversary: "curious server",
	About: "factor many sums, with counts of participation, into who took part " +
		"and with what",
	Defence: "noise; participation that cannot be linked",
	Run:     runDisaggregation,
}

// Participation holds a curious server's view of some rounds in which the same parties
// submit about the same updates every time.
type Participation struct {
	Sums *mat.Dense // rounds × coordinates
	// Window is the number of rounds over which counts are reported; it divides the
	// rounds, of which there are at most 20.
	Window int
	// Counts says per party and window how often the party took part. There are at most
	// as many parties as rounds, and as coordinates.
	Counts [][]int
}

// ErrDisaggregation: the sums and counts do not fit together.
var ErrDisaggregation = errors.New("observation: sums and counts that no disaggregation has")

// maxRounds bounds the search, which goes through all subsets of the rounds.
const maxRounds = 20

// valid reports whether the numbers of rounds, coordinates, parties and windows fit.
func (p Participation) valid() bool {
	if p.Sums == nil || p.Sums.IsEmpty() {
		return false
	}
	rounds, coordinates := p.Sums.Dims()
	parties := len(p.Counts)
	return rounds <= maxRounds && p.Window >= 1 && rounds%p.Window == 0 &&
		parties >= 1 && parties <= min(rounds, coordinates) &&
		!slices.ContainsFunc(p.Counts, func(counts []int) bool {
			return len(counts) != rounds/p.Window
		})
}

// Disaggregate factors sums into who took part when, matrix by party and round, and the
// parties' updates, parties × coordinates (Lam 2021, "Gradient Disaggregation"). Sums =
// P·X, with P the unknown 0/1 matrix and X the updates: each column of P is in the column
// space of the sums, is of 0 and 1, and has the counts of its party. The search goes
// through all such columns, and takes the one that is nearest to that space; X follows by
// least squares. It fails with [ErrDisaggregation].
//
// Parties with the same counts in all windows cannot be told apart: the nearest
// columns go to them in order.
func Disaggregate(p Participation) (matrix [][]uint8, updates *mat.Dense, err error) {
	if !p.valid() {
		return nil, nil, ErrDisaggregation
	}
	rounds, _ := p.Sums.Dims()
	parties := len(p.Counts)
	var svd mat.SVD
	if !svd.Factorize(p.Sums, mat.SVDThin) {
		return nil, nil, ErrDisaggregation
	}
	var basis mat.Dense // its first columns span the column space of the sums
	svd.UTo(&basis)
	taken := make(map[uint32]bool)
	chosen := mat.NewDense(rounds, parties, nil)
	for i, counts := range p.Counts {
		nearest, least := uint32(0), math.Inf(1)
		for column := uint32(0); column < 1<<rounds; column++ {
			if taken[column] || !hasCounts(column, counts, p.Window) {
				continue
			}
			if distance := squaredDistance(column, &basis, parties); distance < least {
				nearest, least = column, distance
			}
		}
		if math.IsInf(least, 1) {
			return nil, nil, ErrDisaggregation
		}
		taken[nearest] = true
		column := make([]uint8, rounds)
		for round := range column {
			column[round] = uint8(nearest >> round & 1)
			chosen.Set(round, i, float64(column[round]))
		}
		matrix = append(matrix, column)
	}
	updates = new(mat.Dense)
	if err := updates.Solve(chosen, p.Sums); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) {
			return nil, nil, err
		}
	}
	return matrix, updates, nil
}

// hasCounts reports whether the column, of which bit i is round i, has the given numbers
// of ones in its windows.
func hasCounts(column uint32, counts []int, window int) bool {
	for w, count := range counts {
		if bits.OnesCount32(column>>(w*window)&(1<<window-1)) != count {
			return false
		}
	}
	return true
}

// squaredDistance returns how far the column is from the space of the first rank columns
// of an orthonormal basis: its square less those of its products with them.
func squaredDistance(column uint32, basis *mat.Dense, rank int) float64 {
	distance := float64(bits.OnesCount32(column))
	for k := range rank {
		product := 0.0
		for rest := column; rest != 0; rest &= rest - 1 {
			product += basis.At(bits.TrailingZeros32(rest), k)
		}
		distance -= product * product
	}
	return distance
}

// Parties take part by fair coins; counts are reported for every 4 rounds.
const (
	linkedParties     = 6
	linkedRounds      = 16
	linkedWindow      = 4
	linkedCoordinates = 20
)

// linkedSteps is how many steps of the lattice, on which noise is drawn, a norm of 1 has.
const linkedSteps = 1 << 10

// linkedTrial makes up parties, with updates of norm 1, and attacks their sums with noise
// of a law in every coordinate, in steps of the lattice; the zero law: without. It counts the
// parties whose column was found, and those whose update was found to a tenth of its norm.
func linkedTrial(law noise.Law, r *rand.Rand) (columns, found int, err error) {
	truth := mat.NewDense(linkedRounds, linkedParties, nil)
	p := Participation{Window: linkedWindow}
	for i := range linkedParties {
		counts := make([]int, linkedRounds/linkedWindow)
		for round := range linkedRounds {
			if r.Uint64()&1 == 1 {
				truth.Set(round, i, 1)
				counts[round/linkedWindow]++
			}
		}
		p.Counts = append(p.Counts, counts)
	}
	updates := mat.NewDense(linkedParties, linkedCoordinates, nil)
	for i := range linkedParties {
		drawUnit(updates.RawRowView(i), r)
	}
	p.Sums = new(mat.Dense)
	p.Sums.Mul(truth, updates)
	if law != (noise.Law{}) {
		added, err := draw.Samples(law, linkedRounds*linkedCoordinates)
		if err != nil {
			return 0, 0, err
		}
		p.Sums.Apply(func(i, j int, v float64) float64 {
			return v + float64(added[i*linkedCoordinates+j])/linkedSteps
		}, p.Sums)
	}
	matrix, got, err := Disaggregate(p)
	if err != nil {
		return 0, 0, err
	}
	for i := range linkedParties {
		same := true
		for round := range linkedRounds {
			same = same && float64(matrix[i][round]) == truth.At(round, i)
		}
		if same {
			columns++
		}
		missed, norm := 0.0, 0.0
		for j := range linkedCoordinates {
			missed = math.Hypot(missed, got.At(i, j)-updates.At(i, j))
			norm = math.Hypot(norm, updates.At(i, j))
		}
		if missed < norm/10 {
			found++
		}
	}
	return columns, found, nil
}

// drawUnit draws a vector of norm 1.
func drawUnit(vector []float64, r *rand.Rand) {
	square := 0.0
	for j := range vector {
		vector[j] = r.NormFloat64()
		square += vector[j] * vector[j]
	}
	for j := range vector {
		vector[j] /= math.Sqrt(square)
	}
}

func runDisaggregation(ctx context.Context, o attacks.Options) (*attacks.Report, error) {
	trials, noisyTrials := 20, 100
	if o.Long {
		trials, noisyTrials = 200, 1000
	}
	count := func(part uint64, trials int, law noise.Law) (columns, found int, err error) {
		trialColumns, trialFound := make([]int, trials), make([]int, trials)
		err = o.Parallel(ctx, part, trials, func(i int, r *rand.Rand) (err error) {
			trialColumns[i], trialFound[i], err = linkedTrial(law, r)
			return err
		})
		for i := range trials {
			columns += trialColumns[i]
			found += trialFound[i]
		}
		return columns, found, err
	}
	columns, found, err := count(partParticipation, trials, noise.Law{})
	if err != nil {
		return nil, err
	}
	law, err := noise.DiscreteGaussian(big.NewRat(linkedSteps*linkedSteps, 1))
	if err != nil {
		return nil, err
	}
	noisyColumns, noisyFound, err := count(partNoisyParticipation, noisyTrials, law)
	if err != nil {
		return nil, err
	}
	// Two parties have equal counts in all four windows with probability (70/256)^4 =
	// .0056, and are then swapped every other time: with 15 pairs, in 1.4 % of all
	// places. Six vectors that depend on each other cost as little. With the noise 0.025 of the rounds
	// were found in 1,000 trials, with half of it 0.093 in 100: of 600 more than 0.08 are found with a
	// probability below 1e-6, even if they come by pairs.
	parties, noisyParties := linkedParties*trials, linkedParties*noisyTrials
	return &attacks.Report{Rows: []attacks.Row{{
		Case:       "participation",
		Metric:     "parties' rounds found",
		Undefended: attacks.Proportion(columns, parties, 0.8, 1),
		Defended:   attacks.Proportion(noisyColumns, noisyParties, 0, 0.08),
		Limit:      true,
		Note: "noise of the size of an update; counts per window stay a leak, " +
			"so link no participation",
	}, {
		Case:       "updates",
		Metric:     "updates found within a tenth",
		Undefended: attacks.Proportion(found, parties, 0.8, 1),
		Defended:   attacks.Proportion(noisyFound, noisyParties, 0, 0),
		Limit:      true,
	}}}, nil
}
