// Package dudect tests whether the time of an operation depends on its secret input, by
// the method of (Reparaz 2017, "Dude, is my code constant time?"): the operation is timed
// on inputs of two classes in random order, and Welch's t-test asks whether the two
// distributions of times have one mean. It is for tests.
//
// A large |t| shows a dependence; a small one shows only that none was seen with a given number
// of measurements on this machine. A test of a defence therefore runs next to a leaky twin
// that the same number of measurements must find.
package dudect

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// Limit is the |t| above which a dependence counts as shown. For two equal
// distributions |t| exceeds it with a probability below 1e-9 for each of the cuts; with
// them all, below 1e-7.
const Limit = 6.5

// cuts are the quantiles of all times above which times are left out, one test each: the
// long tails are interrupts, which hide a small difference. 1 leaves nothing out.
var cuts = []float64{0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1}

// Check measures an operation and says whether times show its class, as they must for a
// leaky twin and must not otherwise. Without the flag -timing it skips the test, see package
// suite. Where the first measurement says something else, one
// of four times as many inputs decides: a dependence shows in it all the more, and an effect
// of the machine or of chance does not come twice. A false alarm has a probability below
// 1e-13, apart from a fault of the machine that falls on one class.
func Check[T any](t testing.TB, name string, leaks bool, measurements int,
	prepare func(class int) T, run func(T),
) {
	t.Helper()
	suite.OnlyTiming(t)
	result := Measure(measurements, prepare, run)
	if (result > Limit) != leaks {
		t.Logf("%s: |t| = %.1f at first", name, result)
		result = Measure(4*measurements, prepare, run)
	}
	t.Logf("%s: |t| = %.1f", name, result)
	if (result > Limit) != leaks {
		t.Errorf("%s: |t| = %.1f, the limit is %v, and leaks is %v", name, result, Limit, leaks)
	}
}

// Measure times run on a given number of inputs, at random of class 0 or 1, which prepare
// makes outside of the measurement, and returns the largest |t| of all cuts. A run should
// take a microsecond at least: repeat the work within run if it takes less.
func Measure[T any](measurements int, prepare func(class int) T, run func(T)) float64 {
	const batch = 256 // inputs that are made before they are timed
	times := make([][]float64, 2)
	inputs, classes := make([]T, batch), make([]int, batch)
	for done := 0; done < measurements; done += batch {
		for i := range inputs {
			classes[i] = rand.IntN(2)
			inputs[i] = prepare(classes[i])
		}
		// Garbage is looked for in between, where it falls on no class.
		runtime.GC()
		before := debug.SetGCPercent(-1)
		for i, input := range inputs {
			began := time.Now()
			run(input)
			took := float64(time.Since(began))
			if done > 0 { // the first batch warms up
				times[classes[i]] = append(times[classes[i]], took)
			}
		}
		debug.SetGCPercent(before)
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	largest := 0.
	for _, cut := range cuts {
		below := all[int(cut*float64(len(all)-1))]
		largest = max(largest, math.Abs(welch(kept(times[0], below), kept(times[1], below))))
	}
	return largest
}

func kept(times []float64, below float64) []float64 {
	var out []float64
	for _, t := range times {
		if t <= below {
			out = append(out, t)
		}
	}
	return out
}

// welch returns the t statistic of two samples of unequal variance.
func welch(a, b []float64) float64 {
	moments := func(x []float64) (mean, squares float64) {
		for _, v := range x {
			mean += v
		}
		mean /= float64(len(x))
		for _, v := range x {
			squares += (v - mean) * (v - mean)
		}
		return mean, squares / float64(len(x)-1) / float64(len(x))
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	meanA, varA := moments(a)
	meanB, varB := moments(b)
	if varA+varB == 0 {
		return 0
	}
	return (meanA - meanB) / math.Sqrt(varA+varB)
}
