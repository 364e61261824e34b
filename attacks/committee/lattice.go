package committee

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/oneshot"
)

// toy is a ring small enough for LLL.
type toy struct {
	n, samples int
}

// runLattice finds how large the modulus of a toy ring must be for LLL to find a key:
// knowing the masked values alone, and knowing the sum of the key with another and that of
// their errors, as the server does. The sum makes the key look narrower by √2. Keys and
// errors of half the deviation are found where those of the whole are not.
func runLattice(r *runner) error {
	t, trials := toy{32, 40}, 9
	if r.o.Long {
		t, trials = toy{64, 80}, 15
	}
	const sigma = 6.4
	var rates [3]rates
	for i, c := range []struct {
		name         string
		hint         bool
		sigma, seems float64
	}{
		{"masked values alone", false, sigma, sigma},
		{"with the sum of two keys", true, sigma, sigma / math.Sqrt2},
		{"with the sum, σ halved", true, sigma / 2, sigma / 2 / math.Sqrt2},
	} {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		predicted := t.predict(c.seems)
		var err error
		if rates[i], err = t.rates(int(predicted)-3, trials, c.sigma, c.hint, r.o.Seed); err != nil {
			return err
		}
		least := rates[i].least()
		r.rows = append(r.rows, attacks.Row{
			Case: fmt.Sprintf("N = %d, %s", t.n, c.name), Metric: "bits of the modulus that LLL needs",
			Undefended: attacks.Exactly(least, trials, least).Within(predicted-2, predicted+2),
			Note:       fmt.Sprintf("predicted for a deviation of %.2f: %.1f bits", c.seems, predicted)})
	}
	modulus := int(math.Ceil(rates[2].least()))
	r.rows = append(r.rows, attacks.Row{
		Case: fmt.Sprintf("N = %d, σ halved, %d bits", t.n, modulus), Metric: "keys found",
		Undefended: attacks.Exactly(rates[2].at(modulus), trials, 1).Within(0.5, 1),
		Defended:   attacks.Exactly(rates[1].at(modulus), trials, 0).Within(0, 0.5)})
	f, err := oneshot.Parameters(10_000, 40,
		oneshot.Terms{Length: 100_000, Bits: 16, MinSurvivors: 9000, Faults: 10})
	if err != nil {
		return err
	}
	r.rows = append(r.rows,
		attacks.Row{Case: fmt.Sprintf("N = 2048, %d bits, the same model", f.ModulusBits),
			Metric: "log₂ of the attack's cost", Defended: attacks.Exactly(f.Classical, 1, f.Classical).
				Within(128, 400)})
	return nil
}

// predict returns log₂ of the modulus from which LLL finds a key of the given deviation:
// the second minimum must be .48·δ^d times the first, with LLL's root Hermite factor δ
// (Gama, Nguyen 2008, §4).
func (t toy) predict(sigma float64) float64 {
	const delta = 1.0219
	d := float64(t.n + t.samples + 1)
	gap := math.Log2(0.48) + d*math.Log2(delta)
	return d / float64(t.samples) * (gap + math.Log2(sigma*math.Sqrt(2*math.Pi*math.E)))
}

// rates are how often keys are found, for moduli of first bits and more.
type rates struct {
	first int
	found []float64
}

func (r rates) at(bits int) float64 {
	switch i := bits - r.first; {
	case i < 0:
		return 0
	case i >= len(r.found):
		return 1
	default:
		return r.found[i]
	}
}

// least returns about how many bits are enough for half of the keys: as many as the
// moduli with which none is found, and a part of one for each that finds some.
func (r rates) least() float64 {
	bits := float64(r.first)
	for _, rate := range r.found {
		bits += 1 - rate
	}
	return bits
}

// rates tries moduli up to two in a row with which all keys are found.
func (t toy) rates(first, trials int, sigma float64, hint bool, seed uint64) (rates, error) {
	out := rates{first: max(first, bits.Len(uint(2*t.n))+1)} // else there is no prime
	for sure := 0; sure < 2 && len(out.found) < 12; {
		q := prime(out.first+len(out.found), t.n)
		found := 0
		for trial := range trials {
			ok, err := t.try(q, sigma, hint, seed*1000+uint64(trial))
			if err != nil {
				return out, err
			}
			if ok {
				found++
			}
		}
		out.found = append(out.found, float64(found)/float64(trials))
		if sure++; found < trials {
			sure = 0
		}
	}
	return out, nil
}

// prime returns the largest prime of the given number of bits that is 1 modulo 2n.
func prime(bits, n int) uint64 {
	q := uint64(1)<<bits - uint64(2*n) + 1
	for !new(big.Int).SetUint64(q).ProbablyPrime(0) {
		q -= uint64(2 * n)
	}
	return q
}

// try makes an instance and reports whether LLL finds its key.
func (t toy) try(q uint64, sigma float64, hint bool, seed uint64) (bool, error) {
	variance := new(big.Rat).SetFloat64(sigma * sigma)
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	sampler, err := law(variance, random)
	if err != nil {
		return false, err
	}
	draw := func(n int) []int64 {
		out := make([]int64, n)
		err = errors.Join(err, sampler.Fill(out))
		return out
	}
	s, other := draw(t.n), draw(t.n)
	e, otherError := draw(t.samples), draw(t.samples)
	if err != nil {
		return false, err
	}
	rq := ring.New(t.n, q)
	var columns [][]uint64 // of the matrix: y = A·s + e
	y := make([]uint64, t.samples)
	blocks := (t.samples + t.n - 1) / t.n
	for j := range t.n {
		unit := make([]int64, t.n)
		unit[j] = 1
		var column []uint64
		for block := range blocks {
			a := make([]uint64, t.n)
			rq.NewExpander(&[32]byte{byte(seed), byte(seed >> 8), 9}).Expand(a, block)
			rq.MulInto(a, a, rq.NewFactor(unit))
			column = append(column, a...)
		}
		columns = append(columns, column[:t.samples])
		for i := range y {
			hi := new(big.Int).Mul(new(big.Int).SetUint64(column[i]), big.NewInt(s[j]))
			y[i] = hi.Add(hi, new(big.Int).SetUint64(y[i])).Mod(hi, new(big.Int).SetUint64(q)).Uint64()
		}
	}
	rq.AddSigned(y, e)

	// The lattice of (x, z) with A·x + z = 0, twice as large with a hint: the short vector
	// is then 2(s, e) − the sums, with coordinates of deviation √2·σ.
	d, factor, embed := t.n+t.samples, int64(1), int64(6)
	if hint {
		factor, embed = 2, 9
	}
	basis := make([][]int64, 0, d+1)
	for j := range t.n {
		row := make([]int64, d+1)
		row[j] = factor
		for i := range t.samples {
			row[t.n+i] = -factor * int64(columns[j][i])
		}
		basis = append(basis, row)
	}
	for i := range t.samples {
		row := make([]int64, d+1)
		row[t.n+i] = factor * int64(q)
		basis = append(basis, row)
	}
	target, want := make([]int64, d+1), make([]int64, d+1)
	for i := range y {
		target[t.n+i] = factor * int64(y[i])
	}
	for i := range d {
		if i < t.n {
			want[i] = factor * s[i]
		} else {
			want[i] = factor * e[i-t.n]
		}
		if hint {
			sum := int64(0)
			if i < t.n {
				sum = s[i] + other[i]
			} else {
				sum = e[i-t.n] + otherError[i-t.n]
			}
			target[i] -= sum
			want[i] -= sum
		}
	}
	target[d], want[d] = embed, embed
	basis = append(basis, target)
	// The rows with q first make a triangle, which LLL can begin with.
	reduce(reorder(basis, t.n, t.samples))
	for _, row := range basis {
		if same(row, want, 1) || same(row, want, -1) {
			return true, nil
		}
	}
	return false, nil
}

// reorder puts the rows of q before the others, in place.
func reorder(basis [][]int64, n, samples int) [][]int64 {
	rows := append(append([][]int64{}, basis[n:n+samples]...), basis[:n]...)
	copy(basis, append(rows, basis[n+samples:]...))
	return basis
}

func same(row, want []int64, sign int64) bool {
	for i := range row {
		if row[i] != sign*want[i] {
			return false
		}
	}
	return true
}

// reduce is LLL with δ = .99 (Lenstra, Lenstra, Lovász 1982; Cohen 1993, Algorithm
// 2.6.3) in floating point, again from a fresh orthogonalisation until nothing changes.
func reduce(b [][]int64) {
	for range 10 {
		if !newReduction(b).run() {
			return
		}
	}
}

// reduction has the Gram–Schmidt coefficients of a basis and the squared norms.
type reduction struct {
	b    [][]int64
	mu   [][]float64
	norm []float64
}

func newReduction(b [][]int64) *reduction {
	n := len(b)
	r := &reduction{b, make([][]float64, n), make([]float64, n)}
	star := make([][]float64, n)
	for k := range n {
		r.mu[k] = make([]float64, n)
		star[k] = make([]float64, len(b[k]))
		for i, x := range b[k] {
			star[k][i] = float64(x)
		}
		for j := range k {
			var dot float64
			for i, x := range star[j] {
				dot += x * star[k][i] // of what is left: steadier than of b[k]
			}
			r.mu[k][j] = dot / r.norm[j]
			for i, x := range star[j] {
				star[k][i] -= r.mu[k][j] * x
			}
		}
		for _, x := range star[k] {
			r.norm[k] += x * x
		}
	}
	return r
}

// run reports whether it changed anything.
func (r *reduction) run() (changed bool) {
	for k := 1; k < len(r.b); {
		changed = r.shorten(k, k-1) || changed
		m := r.mu[k][k-1]
		if r.norm[k] < (0.99-m*m)*r.norm[k-1] {
			r.swap(k)
			changed = true
			k = max(k-1, 1)
			continue
		}
		for j := k - 2; j >= 0; j-- {
			changed = r.shorten(k, j) || changed
		}
		k++
	}
	return changed
}

// shorten takes the nearest multiple of row j off row k.
func (r *reduction) shorten(k, j int) bool {
	c := math.Round(r.mu[k][j])
	if c == 0 {
		return false
	}
	for i, x := range r.b[j] {
		r.b[k][i] -= int64(c) * x
	}
	for i := range j {
		r.mu[k][i] -= c * r.mu[j][i]
	}
	r.mu[k][j] -= c
	return true
}

// swap exchanges rows k and k − 1.
func (r *reduction) swap(k int) {
	m := r.mu[k][k-1]
	sum := r.norm[k] + m*m*r.norm[k-1]
	r.b[k], r.b[k-1] = r.b[k-1], r.b[k]
	for j := range k - 1 {
		r.mu[k][j], r.mu[k-1][j] = r.mu[k-1][j], r.mu[k][j]
	}
	r.mu[k][k-1] = m * r.norm[k-1] / sum
	r.norm[k] *= r.norm[k-1] / sum
	r.norm[k-1] = sum
	for i := k + 1; i < len(r.b); i++ {
		t := r.mu[i][k]
		r.mu[i][k] = r.mu[i][k-1] - m*t
		r.mu[i][k-1] = t + r.mu[k][k-1]*r.mu[i][k]
	}
}
