// Package numbers writes numbers for people, as commands print them.
package numbers

import (
	"fmt"
	"math"
	"strings"
)

// Epsilon writes an upper bound, rounded up.
func Epsilon(e float64) string { return Rounded(e, 1) }

// Rounded writes a number of 0 or more with four decimals, or digits if it is large or small:
// rounded up if sign is 1, down if it is -1.
func Rounded(x, sign float64) string {
	switch {
	case math.IsInf(x, 1) || math.IsNaN(x):
		return "infinite"
	case x >= 10000:
		return Short4(x * (1 + sign*5e-4))
	case x > 0 && x < .01:
		unit := math.Pow(10, math.Floor(math.Log10(x))-3)
		return Short4(sign * math.Ceil(sign*x/unit) * unit)
	}
	return fmt.Sprintf("%.4f", sign*math.Ceil(sign*x*1e4)/1e4)
}

// Short4 writes a number with four digits.
func Short4(x float64) string { return fmt.Sprintf("%.4g", x) }

// Grouped writes a number of 0 or more with commas between thousands.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural writes a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return Grouped(n) + " " + stem + "ies"
	}
	return Grouped(n) + " " + noun + "s"
}
