package protocol

import (
	"crypto"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// drop says when a party leaves a round.
type drop int

const (
	stays           drop = iota
	beforeMasked         // it never submits, or its submission is lost
	beforeSigning        // it submits and does not sign
	beforeRevealing      // it signs and does not reveal
	drops
)

// expected says what a round must come to when the given parties of P leave it:
// the survivors, or the refusal.
func expected(
	t *terms, neighbours func(i int) []int, participants []int, pattern []drop,
) (survivors []int, refusal error) {
	var revealers []int
	signers := 0
	for _, i := range participants {
		if pattern[i] != beforeMasked {
			survivors = append(survivors, i)
			if pattern[i] != beforeSigning {
				signers++
				if pattern[i] == stays {
					revealers = append(revealers, i)
				}
			}
		}
	}
	if len(survivors) < t.minSurvivors || signers < t.quorum {
		return nil, ErrTooFew
	}
	for _, owner := range participants {
		shares := 0
		for _, i := range neighbours(owner) {
			if slices.Contains(revealers, i) {
				shares++
			}
		}
		if shares < t.threshold {
			return nil, ErrTooFew
		}
	}
	return survivors, nil
}

// sumOf adds the inputs of some parties.
func sumOf(layout masking.Layout, in [][][]uint64, parties []int) [][]uint64 {
	sum := make([][]uint64, len(layout))
	for j, s := range layout {
		sum[j] = make([]uint64, s.Length)
		for _, i := range parties {
			for k, x := range in[i][j] {
				sum[j][k] = (sum[j][k] + x) & (^uint64(0) >> (64 - s.Bits))
			}
		}
	}
	return sum
}

// dropping returns a Carry that loses messages as the pattern says; with lost,
// it is the party's own message that is lost and not the one it answers.
func dropping(pattern []drop, lost bool) func(from, to int, message []byte) []byte {
	return func(from, to int, message []byte) []byte {
		for party, d := range pattern {
			var gone bool
			switch kind := wire.Type(message[1]); {
			case kind.SetUp(): // whose types are not in the order of a round
			case lost && from == party:
				gone = d == beforeMasked && kind == wire.TypeMasked ||
					d == beforeSigning && kind >= wire.TypeSigned ||
					d == beforeRevealing && kind == wire.TypeReveal
			case !lost && to == party:
				gone = d == beforeMasked && kind == wire.TypeBegin ||
					d == beforeSigning && kind >= wire.TypeSurvivors ||
					d == beforeRevealing && kind == wire.TypeCertificate
			}
			if gone {
				return nil
			}
		}
		return message
	}
}

// recoveries yields every configuration of n parties on a complete graph that
// Validate accepts.
func recoveries(n int, yield func(*Recovery, int)) {
	for adversary := CheatingServer; adversary <= CuriousServer; adversary++ {
		for t := 1; t < n; t++ {
			for c := 0; c < n; c++ {
				yield(&Recovery{Adversary: adversary, Threshold: t}, c)
			}
		}
	}
}

// Every pattern of drop-outs at every step, for every n up to 4 (with -long up to 5),
// threshold and adversary: the sum of the survivors, exactly, or the documented refusal.
// All patterns of one configuration run in one session, so that every party that
// dropped out of a round must come back for the next.
func TestEveryDropoutPattern(t *testing.T) {
	rounds, refusals := 0, 0
	for n := 2; n <= suite.Size(4, 4, 5, 5); n++ {
		signers, roster := parties(t, n)
		seen := map[string]bool{}
		recoveries(n, func(r *Recovery, colluders int) {
			config := testConfig(roster)
			config.Recovery, config.Colluders = r, colluders
			own, err := config.settle()
			if err != nil {
				if !errors.Is(err, ErrConfig) {
					t.Fatal(err)
				}
				return
			}
			terms := own.terms(n)
			// Colluders change the rules of acceptance only.
			key := fmt.Sprint(terms.threshold, terms.quorum, terms.minSurvivors)
			if seen[key] {
				return
			}
			seen[key] = true
			l, err := NewLocal(config, signers, nil)
			if err != nil {
				t.Fatal(err)
			}
			in, _ := inputs(uint64(n), config.Layout, n)
			everybody := make([]int, n)
			for i := range everybody {
				everybody[i] = i
			}
			others := func(i int) []int { return slices.Delete(slices.Clone(everybody), i, i+1) }
			pattern := make([]drop, n)
			for code := range pow(int(drops), n) {
				for i := range pattern {
					pattern[i] = drop(code / pow(int(drops), i) % int(drops))
				}
				survivors, refusal := expected(&terms, others, everybody, pattern)
				l.Carry = dropping(pattern, code%2 == 0)
				sum, err := l.Round(nil, in)
				l.Carry = nil
				rounds++
				if refusal != nil {
					refusals++
					if !errors.Is(err, refusal) {
						t.Fatalf("n = %d, t = %d, %v: got %v, want %v", n, terms.threshold, pattern, err, refusal)
					}
					continue
				}
				if err != nil || !equal(sum, sumOf(config.Layout, in, survivors)) ||
					!slices.Equal(l.Server.Included(), survivors) {
					t.Fatalf("n = %d, t = %d, %v: %v, want the sum of %v", n, terms.threshold, pattern, err,
						survivors)
				}
			}
			if e := l.Server.Excluded(); len(e) != 0 {
				t.Errorf("honest parties were excluded: %v", e)
			}
		})
	}
	t.Logf("%d rounds, %d of them refused", rounds, refusals)
}

func pow(b, e int) int {
	r := 1
	for range e {
		r *= b
	}
	return r
}

// Random patterns for 50 parties (with -long for 100), up to the limits and beyond, in
// sessions of 5 rounds with rejoining.
func TestRandomDropouts(t *testing.T) {
	n := suite.Size(50, 50, 100, 100)
	sessions := suite.Size(2, 4, 20, 1000)
	signers, roster := parties(t, n)
	for seed := range uint64(sessions) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomSession(t, seed, signers, roster)
		})
	}
}

// randomSession runs one session of TestRandomDropouts.
func randomSession(t *testing.T, seed uint64, signers []crypto.Signer, roster *keyexchange.Roster) {
	n := len(signers)
	rng := rand.New(rand.NewPCG(seed, 1))
	config := &Config{Roster: roster,
		Layout: masking.Layout{{Length: 20, Bits: 24}, {Length: 3, Bits: 33}}, Recovery: &Recovery{
			Adversary: []Adversary{CheatingServer, CuriousServer}[seed%2],
		}, Colluders: rng.IntN(n / 5)}
	if seed%4 == 3 { // a sparse graph
		config.Recovery = &Recovery{
			Adversary: SemiMaliciousServer, Degree: n * 2 / 5, Threshold: (n + 2) / 4,
		}
		config.Colluders = n * 9 / 100
	}
	if seed%5 == 4 {
		config.PerRound = n * 4 / 5
	}
	own, err := config.settle()
	if err != nil {
		t.Fatal(err)
	}
	terms := own.terms(n)
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := inputs(seed, config.Layout, n)
	for range 5 {
		// From none to a little over what the session can stand.
		spare := float64(terms.scheduled - terms.minSurvivors)
		most := rng.Float64() * 1.2 * spare / float64(terms.scheduled)
		pattern := make([]drop, n)
		for i := range pattern {
			if rng.Float64() < most {
				pattern[i] = 1 + drop(rng.IntN(int(drops)-1))
			}
		}
		l.Carry = dropping(pattern, rng.IntN(2) == 0)
		sum, err := l.Round([]byte("model"), in)
		l.Carry = nil
		round := l.Server.Round()
		participants := l.Server.topology.scheduled(round)
		survivors, refusal := expected(&terms,
			func(i int) []int { return l.Server.topology.neighbours(round, i) }, participants, pattern)
		switch {
		case refusal != nil:
			if !errors.Is(err, refusal) {
				t.Fatalf("session %d, round %d: got %v, want %v", seed, round, err, refusal)
			}
		case own.sparse && errors.Is(err, ErrTooFew):
			// In a sparse graph a party without enough signatures of neighbours does
			// not reveal: one more way to be too few.
		case err != nil || !equal(sum, sumOf(config.Layout, in, survivors)):
			t.Fatalf("session %d, round %d: %v, want the sum of %d survivors", seed, round, err,
				len(survivors))
		}
	}
}
