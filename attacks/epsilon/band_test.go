package epsilon

import (
	"cmp"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/audit"
	"github.com/hushsum/hushsum/privacy"
)

// playBands plays one run of bands, in which each party is a canary of its own coordinate that is
// there by a fair coin; whoever is not sends zeros. The adversary matches what it sees of a
// coordinate with the coefficients, and guesses the most extreme. It returns what the run shows at
// a confidence of 0.999, and what is claimed. With kept shares a party's randomness is the same in
// each round; the adversary then looks at differences of its sums.
func playBands(t *testing.T, z float64, kept bool) (found, claimed float64) {
	t.Helper()
	const (
		parties, length, rounds = 240, 4, 16
		delta                   = 1e-6
	)
	band, err := privacy.NewBand(length, rounds)
	if err != nil {
		t.Fatal(err)
	}
	release := privacy.Release{
		Promise: privacy.Assumed(parties, parties),
		Noise: privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Multiplier: z, Clip: 1,
			Bits: 32},
		Dimension: parties,
		Band:      band,
	}
	m, err := release.Mechanism()
	if err != nil {
		t.Fatal(err)
	}
	spent, err := m.Round().Spent(accounting.ServerView, rounds/length, delta)
	if err != nil {
		t.Fatal(err)
	}
	type canary struct {
		score float64
		there bool
	}
	coins := rand.New(rand.NewPCG(7, 8))
	all := make([]canary, parties)
	for i := range all {
		all[i].there = coins.Uint64()&1 == 1
	}
	middle := 0.0
	for _, c := range band {
		middle += c / length
	}
	// From the fourth round on all are in a band.
	for round := uint64(length); round < length+rounds; round++ {
		sum := make([]uint64, parties)
		for i := range all {
			offset, _ := band.Offset(i, round)
			vector := make([]float64, parties)
			if all[i].there {
				vector[i] = 1
			}
			var random io.Reader
			if kept {
				random = rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(
					make([]byte, 24), uint64(i))))
			}
			values, err := m.EncodeAt([32]byte{1}, offset, vector, random)
			if err != nil {
				t.Fatal(err)
			}
			for k, x := range values[0] {
				sum[k] = (sum[k] + x) & (1<<32 - 1)
			}
		}
		seen, _, err := m.Decode([32]byte{1}, [][]uint64{sum}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			offset, _ := band.Offset(i, round)
			weight := band[offset]
			if kept {
				weight -= middle
			}
			all[i].score += weight * seen[i]
		}
	}
	slices.SortFunc(all, func(a, b canary) int { return cmp.Compare(a.score, b.score) })
	outcome := audit.OneRun{Canaries: parties, Guesses: parties / 2}
	for i := range parties / 4 {
		if !all[i].there {
			outcome.Right++
		}
		if all[parties-1-i].there {
			outcome.Right++
		}
	}
	found, err = outcome.Epsilon(delta, 0.999)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d guesses are right: at least ε = %.3f, and %.3f is claimed", outcome.Right,
		outcome.Guesses, found, spent.Bare().Upper)
	return found, spent.Bare().Upper
}

// A one-run audit of bands stays below the ε that is claimed; with shares of noise that parties
// keep from one submission to the next, a claim is refuted. The first is wrong with a probability
// of 0.001 at most, if the claim is tight.
func TestAuditBands(t *testing.T) {
	if found, claimed := playBands(t, 2, false); found > claimed || found == 0 {
		t.Errorf("ε of at least %v is found, and %v is claimed", found, claimed)
	}
	if found, claimed := playBands(t, 8, true); found <= claimed {
		t.Errorf("kept shares: ε of at least %v is found, and %v is claimed", found, claimed)
	}
}
