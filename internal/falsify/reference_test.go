package falsify

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/protocol"
)

// This file says in the words of docs/job.md what a job's noise is counted on, what it is charged
// and whom it protects. Nothing of package job works anything out here: fields are read, as they
// were written, and nothing else.

// reference has what follows from the fields of a job.
type reference struct {
	round   int // parties that a round is held among
	fewest  int // in a sum
	honest  int // shares of the noise that are certain
	sums    int // of all rounds
	charges int // of a party
	rate    float64
	// statement says in the accountant's terms what ε is about.
	statement accounting.Statement
}

// floorOf is ⌊share·n⌋ of a share as it was written, in decimals.
func floorOf(share float64, n int) int {
	x, _ := new(big.Rat).SetString(strconv.FormatFloat(share, 'f', -1, 64))
	x.Mul(x, big.NewRat(int64(n), 1))
	return int(new(big.Int).Quo(x.Num(), x.Denom()).Int64())
}

// referenceOf reads a job of n parties and a committee of the given number.
func referenceOf(j *job.Job, n, members int) (r reference) {
	p, s := &j.Parties, &j.Sum
	r.round = n // "0: all"
	if p.PerRound > 0 {
		r.round = min(n, p.PerRound)
	}
	// "Bounds the share of a round's parties that may be missing from its sum."
	r.fewest = max(1, r.round-floorOf(p.DropOut, r.round))
	oneshot := s.Protocol == "oneshot"
	if !oneshot && p.DropOut == 0 && !s.Recovery {
		r.fewest = r.round // all submit, or there is no sum
	}
	if s.Buffer > 0 { // "Has a round take this many submissions"
		r.fewest = min(r.fewest, s.Buffer)
	}
	// "Bounds how many parties may pool what they know with the server": they take their own out.
	r.honest = r.fewest - p.Colluders
	if j.Privacy.NoiseBy == "committee" {
		// "members that may lie or stay silent": as many are missing as are known to the server.
		r.honest = members - faultsOf(j, members) - leagueOf(j, members)
	}
	r.sums = max(1, j.Rounds)
	if t := &j.Training; t.Rule == "fedga" || t.Rule == "scaffold" && t.Variates == "fresh" {
		r.sums *= 2 // "each takes one private sum or two"
	}
	r.charges = r.sums
	if p.Participations > 0 {
		r.charges = p.Participations
	}
	if b := j.Privacy.Factorise; b > 0 { // a party begins in one round of b
		r.charges = (r.sums + b - 1) / b
	}
	r.rate = 1
	if p.Hidden > 0 {
		r.rate = p.Hidden
	}
	if j.Privacy.Unit == "record" && j.Training.Batch > 0 {
		// "with the record unit, those that a round expects"
		r.rate = float64(j.Training.Batch) / float64(j.Privacy.Records)
	}
	return r
}

// state works out the statement.
func (r *reference) state(x *tried) (err error) {
	j := x.settled.Job()
	server := map[string]accounting.Server{"cheating": accounting.CheatingServer,
		"semi-malicious": accounting.SemiMaliciousServer, "curious": accounting.CuriousServer}
	t := accounting.Terms{Server: server[j.Sum.Adversary],
		Colluders: accounting.Colluders(j.Parties.Colluders)}
	if j.Sum.Protocol != "oneshot" && j.Parties.DropOut == 0 && !j.Sum.Recovery {
		t.Server = accounting.CheatingServer // where all must submit none can do more (SPEC.md §13.1)
	}
	records := j.Privacy.Unit == "record"
	if records {
		t.Unit = accounting.RecordUnit
		if j.Privacy.Group != "" { // "whose records are protected together"
			t.Unit = accounting.RecordsOf(j.Privacy.Group)
		}
	}
	if c := x.settled.Oneshot(); c != nil { // "the members that pool what they know with the server"
		t.Committees = []accounting.Committee{{List: c.Committee.Digest(), Members: c.Committee.Len(),
			InLeague: leagueOf(j, c.Committee.Len())}}
		if j.Privacy.NoiseBy == "committee" { // "epsilon then rests on the honest members"
			t.Colluders = accounting.AnyColluders
		}
	}
	if j.Sum.Sparse {
		t.Assumes |= accounting.AssumesGraph
	}
	asks := len(j.Query) > 0
	if h := j.Parties.Hidden; records && !asks || h > 0 && h < 1 { // coins
		t.Assumes |= accounting.AssumesCoins
	}
	if j.Privacy.SubmitAfter == 0 && !(records && asks) { // whose answers are there before the round
		t.Assumes |= accounting.AssumesInstant
	}
	if records && !asks && j.Model.Name == "" { // a program of the party's own makes the sum
		t.Assumes |= accounting.AssumesProgram | accounting.AssumesTime | accounting.AssumesLastBit
	}
	r.statement, err = t.Statement()
	return err
}

// faultsOf is how many of some members may be at fault.
func faultsOf(j *job.Job, members int) int {
	if j.Sum.Faults > 0 {
		return j.Sum.Faults
	}
	return max(1, members/6) // "a sixth of them"
}

// leagueOf is how many of some members may pool what they know with the server.
func leagueOf(j *job.Job, members int) int {
	if j.Sum.Colluders > 0 {
		return j.Sum.Colluders
	}
	return faultsOf(j, members) // "sum.faults, or a sixth of them"
}

// releasable is the fewest parties of whom a session lets its server have a sum: by the conditions
// of SPEC.md §3.2, for every size that the session may have.
func releasable(c *protocol.Config, perRound int) int {
	n := c.Roster.Len()
	members := c.MinMembers
	if members == 0 {
		members = n
	}
	fewest := n
	for size := members; size <= n; size++ {
		round := size
		if perRound > 0 {
			round = min(round, perRound)
		}
		least := round // without recovery all submit
		if r := c.Recovery; r != nil {
			holders := round - 1
			if r.Degree > 0 {
				holders = min(holders, r.Degree)
			}
			t := r.Threshold
			if t == 0 { // "Threshold: half the holders and one, two thirds against a server that cheats"
				t = holders/2 + 1
				if r.Adversary != protocol.CuriousServer {
					t = 2*holders/3 + 1
				}
			}
			if least = t + 1; r.Adversary != protocol.CuriousServer && r.Degree == 0 {
				least = max(least, (round+c.Colluders)/2+1)
			}
			if r.MinSurvivors > 0 {
				least = r.MinSurvivors
			}
		}
		fewest = min(fewest, least)
	}
	return fewest
}

// same compares a figure with the reference's.
func same[T comparable](what string, is, want T) error {
	if is != want {
		return fmt.Errorf("%s: %v is charged, and by the words of its fields it is %v", what, is, want)
	}
	return nil
}
