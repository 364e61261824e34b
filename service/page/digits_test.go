package page

import (
	"math"
	"strconv"
	"testing"

	"github.com/hushsum/hushsum/accounting"
)

// Figures have two or three digits and a unit, and an epsilon is never told too small.
func TestDigits(t *testing.T) {
	for seconds, want := range map[float64]string{0.0004: "0 ms", 0.5714: "571 ms", 0.9996: "1 s",
		5.714: "5.71 s", 99.9: "99.9 s", 100: "1.67 min", 5990: "1.66 h", 90000: "25 h"} {
		if got := took(seconds); got != want {
			t.Errorf("%v s is %s, want %s", seconds, got, want)
		}
	}
	terms := accounting.Terms{Unit: accounting.PartyUnit, Server: accounting.CuriousServer}
	about, err := terms.Statement()
	if err != nil {
		t.Fatal(err)
	}
	for x := 1e-5; x < 1e5; x *= 1.0371 {
		c := accounting.NewClaim(about, accounting.Figures{Delta: 1e-5,
			Bound: accounting.Bound{Upper: x}})
		got, err := strconv.ParseFloat(epsilon(&c), 64)
		if err != nil || got < x || got > x*1.0101 || len(epsilon(&c)) > 8 {
			t.Errorf("%v is %s", x, epsilon(&c))
		}
	}
	c := accounting.NewClaim(about, accounting.Figures{Bound: accounting.Bound{Upper: math.Inf(1)},
		Delta: 1e-5})
	if got := epsilon(&c); got != "infinite" {
		t.Errorf("no bound is %s", got)
	}
}
