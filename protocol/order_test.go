package protocol

import (
	"errors"
	"testing"

	"github.com/hushsum/hushsum/masking"
)

// Whoever has no round to come within MaxSkip is told so before anything is drawn
// (SPEC.md §11.1): its stream of randomness is where it was.
func TestErrSkipBeforeDraws(t *testing.T) {
	signers, roster := parties(t, 6)
	config := &Config{Label: "order", Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 8}},
		PerRound: 3, Classical: true, Seed: [32]byte{3},
		Recovery: &Recovery{Adversary: CuriousServer, Threshold: 2}}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for range 8 {
		if err := l.Begin(nil); err != nil {
			t.Fatal(err)
		}
		round := l.Server.Round()
		for _, i := range l.Server.topology.scheduled(round) {
			client := l.Clients[i]
			if next, err := client.topology.next(i, round); err != nil || next == round+1 {
				continue
			}
			tried++
			draws := new(stream)
			skip, random := client.config.maxSkip, client.random
			client.config.maxSkip, client.random = 1, draws
			if _, err := client.Submit(nil, []uint64{1}); !errors.Is(err, ErrSkip) {
				t.Errorf("round %d, party %d: %v", round, i, err)
			}
			if len(draws.reads) > 0 {
				t.Errorf("round %d, party %d: drew %d times", round, i, len(draws.reads))
			}
			client.config.maxSkip, client.random = skip, random
		}
		err := l.Submit(nil, func(int) ([][]uint64, error) { return [][]uint64{{1}}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Certify(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Server.Sum(); err != nil {
			t.Fatal(err)
		}
	}
	if tried == 0 {
		t.Error("all were in every round")
	}
}
