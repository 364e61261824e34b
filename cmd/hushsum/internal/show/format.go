// Package show prints for people and for programs: numbers, tables with a moving line, JSON, and
// signs of life of long runs.
package show

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
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

// Epsilon prints an upper bound, rounded up.
func Epsilon(e float64) string { return numbers.Epsilon(e) }

// LowerBound prints a lower bound, rounded down, or a dash if none is proved.
func LowerBound(s accounting.Spent) string {
	if !(s.Lower > 0) {
		return "-"
	}
	return numbers.Rounded(s.Lower, -1)
}

// AttainedBy names the neighbour that attains the lower bound and says how far that is below the
// upper one, or is empty.
func AttainedBy(s accounting.Spent) string {
	if s.Neighbour == "" {
		return ""
	}
	apart := ""
	if d := s.Width() / s.Upper; d > .001 && d < 1 {
		apart = fmt.Sprintf(", %.1f %% below the proven bound", math.Ceil(1000*d)/10)
	}
	whose, where := "one party's vector that", ", in each sum"
	switch {
	case strings.HasPrefix(s.Neighbour, "vectors "): // these name the sums
		whose, where = "one party that", ""
	case s.Unit == accounting.RecordUnit:
		whose = "a record whose part"
	}
	return fmt.Sprintf("epsilon %s is attained%s: by %s differs in %s%s.",
		LowerBound(s), apart, whose, s.Neighbour, where)
}

// Unbounded says for an infinite upper bound whether no finite one is true, or none is proved.
func Unbounded(s accounting.Spent) string {
	if math.IsInf(s.Lower, 1) {
		return "There is no finite epsilon"
	}
	return "No finite epsilon could be proved"
}

// Short4 prints a number with four digits.
func Short4(x float64) string { return numbers.Short4(x) }

// Grouped prints a number of 0 or more with commas between thousands.
func Grouped(n int) string { return numbers.Grouped(n) }

// Plural prints a number with its noun.
func Plural(n int, noun string) string { return numbers.Plural(n, noun) }
