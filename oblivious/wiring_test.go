package oblivious

import (
	"math/bits"
	"testing"
)

// What a finished set-up leaves in each pair: of each base transfer the sender of terms
// has the key of its bit and not the other, its bits are neither constant nor those of
// another pair, and no column comes twice.
func TestWiring(t *testing.T) {
	parties := session(t, &Config{Parties: 3, Length: 200, Bits: 16, Noise: scale(2)}, seeded(50))
	deltas, streams := map[element]bool{}, map[[32]byte]bool{}
	for round := uint64(1); round <= 3; round++ {
		if _, err := Exchange(parties, round); err != nil {
			t.Fatal(err)
		}
		for i, p := range parties {
			for j, peer := range p.peers {
				if peer == nil {
					continue
				}
				takes := parties[j].peers[i].takes
				for k := range kappa {
					b := peer.offers.delta.bit(k)
					if peer.offers.seeds[k] != takes.seeds[b][k] || peer.offers.seeds[k] == takes.seeds[1-b][k] {
						t.Fatalf("round %d, %d to %d: base transfer %d", round, i, j, k)
					}
					for c := range 2 {
						if streams[takes.seeds[c][k]] {
							t.Fatal("a seed serves two rounds or columns")
						}
						streams[takes.seeds[c][k]] = true
					}
				}
				d := peer.offers.delta
				// Bin(128, 1/2) is outside 28 to 100 with probability 2e-10.
				if w := bits.OnesCount64(d[0]) + bits.OnesCount64(d[1]); w < 28 || w > 100 ||
					round == 1 && deltas[d] {
					t.Fatalf("%d to %d: Δ has %d ones", i, j, w)
				}
				deltas[d] = true
			}
		}
	}
}
