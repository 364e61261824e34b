// Package numbers writes numbers for people, as commands print them.
package numbers

import (
	"fmt"
	"strings"
)

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
