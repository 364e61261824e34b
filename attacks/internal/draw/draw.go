// Package draw draws random numbers of attacks.
package draw

import (
	"math/rand/v2"

	"github.com/hushsum/hushsum/noise"
)

// Bytes fills b with bytes from a run's random numbers.
func Bytes(b []byte, r *rand.Rand) {
	for i := range b {
		b[i] = byte(r.Uint64())
	}
}

// Table is the table that each party draws its share from.
func Table(shares noise.Shares) (*noise.Table, error) {
	own, err := shares.Party()
	if err != nil {
		return nil, err
	}
	return noise.NewTable(own)
}

// Samples draws from a law by its table, with fresh randomness: released noise is
// never seeded.
func Samples(law noise.Law, count int) ([]int64, error) {
	table, err := noise.NewTable(law)
	if err != nil {
		return nil, err
	}
	samples := make([]int64, count)
	return samples, table.NewSampler(nil).Fill(samples)
}
