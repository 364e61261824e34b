package accounting

import (
	"fmt"
	"math"
)

// Binomial is the number of heads of Coins fair coins, added to an integer that one client changes
// by at most Sensitivity; subtracting Coins/2 changes nothing. Its support is finite, so that no
// pure ε is finite. For a vector of d coordinates, each changed by at most Sensitivity, compose d
// steps.
type Binomial struct {
	Coins       int // at least 1; the variance is Coins/4
	Sensitivity int // at least 1
}

func (m Binomial) key() string { return fmt.Sprintf("binomial %d %d", m.Coins, m.Sensitivity) }

func (m Binomial) law() (law, error) { return plainLaw(m) }

func (m Binomial) base() (base, error) {
	// From 2^52 on, floating-point numbers are too coarse for the numbers of coins.
	if m.Coins < 1 || float64(m.Coins) > 1<<52 {
		return nil, configError("%d coins, want 1 to 2^52", m.Coins)
	}
	if err := checkSensitivity(m.Sensitivity); err != nil {
		return nil, err
	}
	n, d := m.Coins, m.Sensitivity
	// Farther from the middle than this is a mass of at most 2·e^−140 (Hoeffding).
	reach := math.Ceil(math.Sqrt(70 * float64(n)))
	if err := checkAtoms(2*reach + float64(d)); err != nil {
		return nil, err
	}
	b := &table{maxP: math.Inf(1), maxQ: math.Inf(1)}
	low, high := 0, n
	if float64(n/2) > reach {
		low, high = n/2-int(reach), n-n/2+int(reach)
		b.lostP, b.lostQ = 2*math.Exp(-140), 2*math.Exp(-140)
	}
	heads := make([]float64, high-low+1)
	heads[n/2-low] = 1
	for k := n / 2; k < high; k++ {
		heads[k+1-low] = heads[k-low] * float64(n-k) / float64(k+1)
	}
	for k := n / 2; k > low; k-- {
		heads[k-1-low] = heads[k-low] * float64(k) / float64(n-k+1)
	}
	sum := 0.0
	for i := range (len(heads) + 1) / 2 { // from the small to the large
		sum += heads[i]
		if j := len(heads) - 1 - i; j != i {
			sum += heads[j]
		}
	}
	for i := range heads {
		heads[i] /= sum
	}
	b.relative = 8 * unit * float64(len(heads)+2)
	at := func(i int) float64 {
		if i < 0 || i >= len(heads) {
			return 0
		}
		return heads[i]
	}
	b.list = make([]atom, 0, len(heads)+d)
	for i := range len(heads) + d {
		if p, q := at(i-d), at(i); p > 0 || q > 0 {
			b.list = append(b.list, atom{math.Log(p) - math.Log(q), p, q})
		}
	}
	return b, nil
}
