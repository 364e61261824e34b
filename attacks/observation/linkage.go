package observation

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Participation is what a curious server has of some rounds in which the same parties
// submit about the same updates every time.
type Participation struct {
	Sums *mat.Dense // rounds × coordinates
	// Window is the number of rounds over which counts are reported; it divides the
	// rounds, of which there are at most 20.
	Window int
	Counts [][]int // per party and window, how often the party took part
}

// ErrDisaggregation: the sums and counts do not fit together.
var ErrDisaggregation = errors.New("attacks: sums and counts that no disaggregation has")

// Disaggregate factors sums into who took part when and the parties' updates
// (Lam 2021, "Gradient Disaggregation"). Sums = P·X, with P the unknown 0/1 matrix
// and X the updates: each column of P is in the column space of the sums, is of 0 and
// 1, and has the counts of its party. The search goes through all such columns, and
// takes the one that is nearest to that space; X follows by least squares.
//
// Parties with the same counts in all windows cannot be told apart: the nearest
// columns go to them in order.
func Disaggregate(p Participation) (matrix [][]uint8, updates *mat.Dense, err error) {
	rounds, coordinates := p.Sums.Dims()
	parties := len(p.Counts)
	if parties < 1 || rounds > 20 || p.Window < 1 || rounds%p.Window != 0 || parties > min(rounds, coordinates) {
		return nil, nil, ErrDisaggregation
	}
	var svd mat.SVD
	if !svd.Factorize(p.Sums, mat.SVDThin) {
		return nil, nil, ErrDisaggregation
	}
	var u mat.Dense
	svd.UTo(&u)
	taken := map[uint32]bool{}
	chosen := mat.NewDense(rounds, parties, nil)
	for i, counts := range p.Counts {
		if len(counts) != rounds/p.Window {
			return nil, nil, ErrDisaggregation
		}
		best, nearest := math.Inf(1), uint32(0)
		for column := uint32(0); column < 1<<rounds; column++ {
			if taken[column] || !hasCounts(column, counts, p.Window) {
				continue
			}
			// |column|² less the squares of its products with the basis of the space.
			distance := float64(bits.OnesCount32(column))
			for k := range parties {
				product := 0.0
				for rest := column; rest != 0; rest &= rest - 1 {
					product += u.At(bits.TrailingZeros32(rest), k)
				}
				distance -= product * product
			}
			if distance < best {
				best, nearest = distance, column
			}
		}
		if math.IsInf(best, 1) {
			return nil, nil, ErrDisaggregation
		}
		taken[nearest] = true
		column := make([]uint8, rounds)
		for r := range column {
			column[r] = uint8(nearest >> r & 1)
			chosen.Set(r, i, float64(column[r]))
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

// hasCounts reports whether the column has the given numbers of ones in its windows.
func hasCounts(column uint32, counts []int, window int) bool {
	for w, c := range counts {
		if bits.OnesCount32(column>>(w*window)&(1<<window-1)) != c {
			return false
		}
	}
	return true
}

// disaggregation makes up parties that take part by fair coins, with updates of norm
// 1, and attacks their sums with noise of the given standard deviation in every
// coordinate. It counts the parties whose column was found, and those whose update
// was found to a tenth of its norm.
func disaggregation(parties, rounds, window, coordinates int, sigma float64, r *rand.Rand) (columns, found int, err error) {
	truth := mat.NewDense(rounds, parties, nil)
	p := Participation{Window: window}
	for i := range parties {
		counts := make([]int, rounds/window)
		for t := range rounds {
			if r.Uint64()&1 == 1 {
				truth.Set(t, i, 1)
				counts[t/window]++
			}
		}
		p.Counts = append(p.Counts, counts)
	}
	updates := mat.NewDense(parties, coordinates, nil)
	for i := range parties {
		row := updates.RawRowView(i)
		norm := 0.0
		for j := range row {
			row[j] = r.NormFloat64()
			norm += row[j] * row[j]
		}
		for j := range row {
			row[j] /= math.Sqrt(norm)
		}
	}
	p.Sums = new(mat.Dense)
	p.Sums.Mul(truth, updates)
	if sigma > 0 {
		p.Sums.Apply(func(_, _ int, v float64) float64 { return v + sigma*r.NormFloat64() }, p.Sums)
	}
	matrix, got, err := Disaggregate(p)
	if err != nil {
		return 0, 0, err
	}
	for i := range parties {
		same := true
		for t := range rounds {
			same = same && float64(matrix[i][t]) == truth.At(t, i)
		}
		if same {
			columns++
		}
		missed, norm := 0.0, 0.0
		for j := range coordinates {
			missed = math.Hypot(missed, got.At(i, j)-updates.At(i, j))
			norm = math.Hypot(norm, updates.At(i, j))
		}
		if missed < norm/10 {
			found++
		}
	}
	return columns, found, nil
}
