// Package suggest finds the name that was meant by a mistyped one.
package suggest

import "strings"

// Nearest returns the known name that is fewest changes away from what was typed, the
// first of several; empty if more than a third of the letters would have to change. A
// name cut short is one change away.
func Nearest(typed string, known []string) string {
	typed = strings.ToLower(typed)
	best, fewest := "", min(max(1, len(typed)/3), len(typed)-1)+1
	for _, name := range known {
		lower := strings.ToLower(name)
		n := changes(typed, lower)
		if len(typed) >= 3 && strings.HasPrefix(lower, typed) {
			n = min(n, 1)
		}
		if n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// changes counts the letters to put in, take out or replace, and the neighbours to
// swap, that make one word of another: the restricted distance of (Damerau 1964).
func changes(from, to string) int {
	a, b := []rune(from), []rune(to)
	// The rows of the table for the last two letters of from, and for this one.
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i, x := range a {
		row[0] = i + 1
		for j, y := range b {
			other := 1
			if x == y {
				other = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+other)
			if i > 0 && j > 0 && x == b[j-1] && a[i-1] == y {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
