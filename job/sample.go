package job

import (
	"fmt"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// This file has what follows from rounds that are held among some of the parties.

// sampled finds the fewest in a sum of a job that draws so few parties for a round that no one
// threshold is right for these and for the whole roster, which a server that cheats may gather. The
// thresholds of protocol then follow from how many a round is held among, and with them the fewest:
// no round of PerRound or more has fewer than one of PerRound.
func (x *settling) sampled() error {
	p, declared := &x.Parties, x.out.survivors
	if !x.Recovers() || x.Threshold(p.Count) > 0 {
		return x.drawn()
	}
	least := protocol.Config{Roster: x.files.Roster, MinMembers: p.PerRound, Colluders: p.Colluders,
		Layout:   masking.Layout{{Length: 1, Bits: 1}},
		Recovery: &protocol.Recovery{Adversary: adversaries[x.Sum.Adversary]}}
	numbers, err := least.EffectiveRecovery()
	if err != nil {
		return x.Mistake("parties.per_round",
			"draw more parties, or allow fewer colluders, or a weaker sum.adversary",
			"rounds of %d parties: %v", p.PerRound, err)
	}
	if declared < numbers.MinSurvivors {
		advice := "draw more parties, or name a weaker sum.adversary"
		if most := 100 * (p.PerRound - numbers.MinSurvivors) / p.PerRound; most > 0 {
			advice = fmt.Sprintf("write %.2g or less, or %s", float64(most)/100, advice)
		}
		return x.Mistake("parties.drop_out", advice,
			"%d of the %d parties of a round would make a sum, and against a %v server it takes %d",
			declared, p.PerRound, x.Sum.Adversary, numbers.MinSurvivors)
	}
	x.out.survivors = numbers.MinSurvivors
	return nil
}

// Threshold returns how many shares rebuild a secret, if sums of a roster of n parties recover: the
// fewest shares that keep the promise with all n parties, and so with fewer. Threshold returns 0 if
// the job draws so few parties for a round that a sum may have no more than that many: the
// threshold then follows from the parties of the round.
func (j *Job) Threshold(n int) int {
	least := (n-1+j.Parties.Colluders)/2 + 1
	if j.Sum.Adversary == "curious" {
		least = j.Parties.Colluders + 1
	}
	if j.Parties.PerRound > 0 && j.fewest(n) <= least {
		return 0
	}
	return least
}

// Recovery returns what sessions of a job with defaults survive, if the job recovers and no sum has
// fewer than least parties: by the thresholds of a given number of parties in all. MinSurvivors is
// 0 where the thresholds follow from the parties of a round. It fails with a [ConfigError].
func (j *Job) Recovery(least, parties int) (*protocol.Recovery, error) {
	r := &protocol.Recovery{Adversary: adversaries[j.Sum.Adversary], MinSurvivors: least,
		Threshold: j.Threshold(parties)}
	if j.Sum.Sparse {
		graph, err := j.graph(least, parties)
		r.Degree, r.Threshold = graph.Neighbours, graph.Threshold
		r.CorruptNeighbours = graph.CorruptNeighbours
		return r, err
	}
	if r.Threshold == 0 {
		r.MinSurvivors = 0
	}
	return r, nil
}

// drawn sees that those of a round are enough for a sum, which without recovery all parties are in.
func (x *settling) drawn() error {
	if p, least := x.Parties.PerRound, x.out.survivors; p > 0 && p < least {
		return x.Mistake("parties.per_round",
			within(least, x.files.Roster.Len(), "write sum.recovery = true or a larger drop_out"),
			"%d take part, and no fewer than %d make a sum", p, least)
	}
	return nil
}
