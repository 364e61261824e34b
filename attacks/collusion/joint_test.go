package collusion

import (
	"math/bits"
	"testing"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/suite"
)

// The noise of sessions equals the heads that the bits of all parties come to, modulo 2 in each
// coin: so bits without their encryption have its law. Colluders may choose their bits.
func TestJointBits(t *testing.T) {
	for _, chosen := range []bool{true, false} {
		if !chosen && !suite.Long() {
			continue
		}
		j, err := playJoint(chosen, attacks.Options{Seed: 3}.Rand(1))
		if err != nil {
			t.Fatal(err)
		}
		same := 0
		for k, sum := range j.sums {
			if sum != j.inputs[k]+j.heads[k] {
				t.Fatalf("chosen %v, coordinate %d: the sum is %v, of %v and %v heads",
					chosen, k, sum, j.inputs[k], j.heads[k])
			}
			if j.heads[k] == j.pooled[k] {
				same++
			}
			if want := float64(jointCoins * (1 - k%2)); chosen && j.pooled[k] != want {
				t.Fatalf("coordinate %d: colluders chose %v heads", k, j.pooled[k])
			}
		}
		if same == jointLength {
			t.Error("the honest party flips nothing")
		}
	}
}

// A protocol without the defence does not pass for held: one whose pool knows all bits.
func TestJointBroken(t *testing.T) {
	j := drawJoint(1000, attacks.Options{Seed: 4}.Rand(1))
	for _, row := range j.rows("", "") {
		if row.Verdict() != attacks.Held {
			t.Errorf("%s: %v, %+v", row.Metric, row.Verdict(), row)
		}
	}
	j.pooled = j.heads
	for i, row := range j.rows("", "") {
		if good := i == 1; row.Verdict().Good() != good { // an outsider does not have them
			t.Errorf("%s: %v with the honest party's bits", row.Metric, row.Verdict())
		}
	}
}

// A defence that holds is not taken for broken: of the three rows of each of a million sessions, in
// the longest form, none is out of its range.
func TestJointRange(t *testing.T) {
	r := attacks.Options{Seed: 5}.Rand(1)
	runs := suite.Size(2000, 10_000, 100_000, 1_000_000)
	out := 0
	for range runs {
		j := &jointRun{bound: jointBound, coins: jointCoins}
		for range jointLength {
			x, pooled, own := float64(r.IntN(jointBound+1)), r.Uint64()&15, r.Uint64()&15
			j.add(bits.OnesCount64(pooled), bits.OnesCount64(pooled^own))
			j.inputs = append(j.inputs, x)
			j.sums = append(j.sums, x+j.heads[len(j.heads)-1])
		}
		for _, row := range j.rows("", "") {
			if !row.Defended.OK() {
				out++
			}
		}
	}
	if out > 0 {
		t.Errorf("%d rows of %d sessions are out of range", out, runs)
	}
}
