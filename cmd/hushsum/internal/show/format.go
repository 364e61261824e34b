// Package show prints for people and for programs: numbers, tables with a moving line, JSON, and
// signs of life of long runs.
package show

import (
	"fmt"
	"time"

	"github.com/hushsum/hushsum/internal/numbers"
)

// Percent returns d in percent of a total, 0 if the total is 0.
func Percent[T ~int | ~int64](d, of T) float64 {
	if of <= 0 {
		return 0
	}
	return 100 * float64(d) / float64(of)
}

// Short prints milliseconds with about three digits.
func Short(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return Grouped(int(ms + 0.5))
}

// Short4 prints a number with four digits.
func Short4(x float64) string { return numbers.Short4(x) }

// Grouped prints a number of 0 or more with commas between thousands.
func Grouped(n int) string { return numbers.Grouped(n) }

// Plural prints a number with its noun.
func Plural(n int, noun string) string { return numbers.Plural(n, noun) }
