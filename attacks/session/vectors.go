package session

import (
	"crypto"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// segments is a vector in the ring, with a slice of values for each segment of a layout.
type segments = [][]uint64

// attackLayout has 256·32 + 32·64 = 10,240 bits: unrelated vectors are equal with
// probability 2^-10240, and one 64-bit value of them with 2^-64.
var attackLayout = masking.Layout{{Length: 256, Bits: 32}, {Length: 32, Bits: 64}}

// attackConfig returns the signers and the configuration of a session of n parties with
// fixed identities, of whom up to a given number collude; recovery may be nil. Keys are
// classical: textbook knows no others.
func attackConfig(
	n int, recovery *protocol.Recovery, colluders int,
) ([]crypto.Signer, *protocol.Config) {
	signers := textbook.Signers(n)
	return signers, &protocol.Config{
		Label:     "attack",
		Roster:    textbook.RosterOf("party", signers),
		Layout:    attackLayout,
		Recovery:  recovery,
		Colluders: colluders,
		Classical: true,
	}
}

// randomInputs draws an input for each of n parties.
func randomInputs(seed uint64, layout masking.Layout, n int) []segments {
	r := rand.New(rand.NewPCG(seed, 0))
	inputs := make([]segments, n)
	for i := range inputs {
		for _, s := range layout {
			values := make([]uint64, s.Length)
			for k := range values {
				values[k] = r.Uint64() >> (64 - s.Bits)
			}
			inputs[i] = append(inputs[i], values)
		}
	}
	return inputs
}

// sumOf is the sum of some parties' inputs in the ring.
func sumOf(layout masking.Layout, inputs []segments, parties []int) segments {
	sum := make(segments, len(layout))
	for j, s := range layout {
		sum[j] = make([]uint64, s.Length)
		for _, i := range parties {
			for k, x := range inputs[i][j] {
				sum[j][k] = (sum[j][k] + x) & (^uint64(0) >> (64 - s.Bits))
			}
		}
	}
	return sum
}

// minus is a − b in the ring of attackLayout.
func minus(a, b segments) segments {
	difference := make(segments, len(a))
	for j, s := range attackLayout {
		for k := range a[j] {
			d := (a[j][k] - b[j][k]) & (^uint64(0) >> (64 - s.Bits))
			difference[j] = append(difference[j], d)
		}
	}
	return difference
}

// equal reports whether there is a vector a, and it is b.
func equal(a, b segments) bool { return a != nil && reflect.DeepEqual(a, b) }

// agreements counts equal 64-bit values, of 32. In unrelated vectors, any agree
// with probability 32·2^-64.
func agreements(a, b segments) int {
	count := 0
	for i := range a[1] {
		if a[1][i] == b[1][i] {
			count++
		}
	}
	return count
}

// nibbles is the number of half bytes in the 32-bit segment of attackLayout.
const nibbles = 256 * 8

// chiSquare is χ² over the 16 values of the half bytes of 32-bit values, with 15
// degrees of freedom: of uniform values it is above 80 with probability below
// 1e-10.
func chiSquare(values []uint64) float64 {
	var count [16]float64
	for _, x := range values {
		for shift := 0; shift < 32; shift += 4 {
			count[x>>shift&15]++
		}
	}
	mean, chi := float64(8*len(values))/16, 0.0
	for _, c := range count {
		chi += (c - mean) * (c - mean) / mean
	}
	return chi
}

// uniform is where chiSquare is of values without structure.
var uniform = bounds{0, 80}

// upTo is the parties 0 to n − 1.
func upTo(n int) []int {
	parties := make([]int, n)
	for i := range parties {
		parties[i] = i
	}
	return parties
}

// except is a list without some parties.
func except(list []int, out ...int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool {
		return slices.Contains(out, i)
	})
}
