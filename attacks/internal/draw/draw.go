// Package draw draws what several families of attacks need: bytes that can be repeated,
// and noise that cannot.
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
