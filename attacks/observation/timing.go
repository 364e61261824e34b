package observation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/attacks"
)

// ErrClock: an attack that measures time was given no clock.
var errClock = errors.New("attacks: no clock; set Options.Now")

// Filler is a sampler of package noise.
type filler interface{ Fill(dst []int64) error }

// TimeSamples draws samples one by one and returns the correlation of the time that
// each took and its absolute value, and the number of samples it is of. The slowest
// percent are left out: interrupts fall on those whatever the value.
func timeSamples(ctx context.Context, f filler, samples int, now func() time.Time) (r float64, n int, err error) {
	if now == nil {
		return 0, 0, errClock
	}
	took, size := make([]float64, samples), make([]float64, samples)
	var x [1]int64
	for i := range took {
		if i%1000 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		start := now()
		err := f.Fill(x[:])
		took[i] = float64(now().Sub(start))
		if err != nil {
			return 0, 0, err
		}
		size[i] = math.Abs(float64(x[0]))
	}
	sorted := slices.Clone(took)
	slices.Sort(sorted)
	limit := sorted[len(sorted)*99/100]
	for i, t := range took {
		if t <= limit {
			took[n], size[n] = t, size[i]
			n++
		}
	}
	return attacks.Correlation(took[:n], size[:n]), n, nil
}
