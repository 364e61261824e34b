package job

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// This file says what helps where more may be missing than the adversary lets.

// tooFew says that more may be missing than the adversary lets, and how many may.
func (x *settling) tooFew(err error) error {
	p, s, n := x.Parties, x.out.session, x.files.Present
	join := ""
	if n < p.Count {
		join = fmt.Sprintf("have more of the %d parties join in round 1, or ", p.Count)
	}
	if r := s.Recovery; r != nil && r.MinSurvivors > 0 && !x.Sum.Sparse {
		more := *r
		s.Recovery = &more
		for least := x.out.survivors + 1; least <= n; least++ {
			s.MinMembers, more.MinSurvivors = least, least
			if s.Validate() != nil {
				continue
			}
			allow := fmt.Sprintf("at most %d of them", n-least)
			if least == n {
				allow = "none (sum.recovery = true, and no drop_out)"
			}
			ways := []string{join + "allow " + allow + " to be missing"}
			if join == "" {
				ways = append(ways, x.ways(n)...)
			}
			return x.Mistake("parties.drop_out", strings.Join(ways, ", or "),
				"%v lets %d of %d parties make a sum, and against a %v with %d colluders a sum takes %d",
				p.DropOut, x.out.survivors, n, more.Adversary, p.Colluders, least)
		}
	}
	return x.Mistake("parties.drop_out",
		join+"allow fewer to be missing, fewer colluders, or a weaker sum.adversary",
		"%v lets %d of %d parties make a sum: %v", p.DropOut, x.out.survivors, n, err)
}

// ways lists what else makes a job's sums possible while as many may be missing: fewer colluders,
// more parties, and the strongest adversary below that of the job.
func (x *settling) ways(n int) (list []string) {
	for c := x.Parties.Colluders - 1; c >= 0; c-- {
		if x.possible(n, func(j *Job) { j.Parties.Colluders = c }) {
			list = append(list, fmt.Sprintf("write parties.colluders = %d", c))
			break
		}
	}
	for more := n + 1; more <= n+mostMore; more++ {
		if x.possible(more, func(*Job) {}) {
			list = append(list, fmt.Sprintf("have %d parties", more))
			break
		}
	}
	for _, weaker := range []string{"semi-malicious", "curious"} {
		if adversaries[weaker] != adversaries[x.Sum.Adversary] && x.Sum.Adversary != "curious" &&
			x.possible(n, func(j *Job) { j.Sum.Adversary = weaker }) {
			return append(list, fmt.Sprintf("write sum.adversary = %q", weaker))
		}
	}
	return list
}

// mostMore is how many parties more are looked at.
const mostMore = 5

// possible reports whether a job with a change, and any given number of parties, has sums.
func (x *settling) possible(n int, change func(*Job)) bool {
	j := x.Job.Clone()
	change(j)
	roster, err := Nobody(n)
	if err != nil {
		return false
	}
	s := x.out.session
	s.Roster, s.Colluders, s.MinMembers = roster, j.Parties.Colluders, j.fewest(n)
	s.Recovery = &protocol.Recovery{Adversary: adversaries[j.Sum.Adversary],
		Threshold: j.Threshold(n), MinSurvivors: s.MinMembers}
	return s.Recovery.Threshold > 0 && s.Validate() == nil
}

// Nobody returns a roster of parties whose keys anybody knows, to find out what that many can have.
func Nobody(parties int) (*keyexchange.Roster, error) {
	entries := make([]keyexchange.Entry, parties)
	for i := range entries {
		seed := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		entries[i] = keyexchange.Entry{Name: fmt.Sprint("party-", i+1), Key: key}
	}
	return keyexchange.NewRoster(entries)
}

// Least returns the fewest of n parties whose sum withstands the server and the colluders that a
// job declares. It fails with a [ConfigError] if n parties do not withstand as many colluders.
func (j *Job) Least(n int) (int, error) {
	roster, err := Nobody(n)
	if err != nil {
		return 0, err
	}
	against := adversaries[cmp.Or(j.Sum.Adversary, "cheating")]
	least := func(colluders int) (int, error) {
		r, err := (&protocol.Config{Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 1}},
			Colluders: colluders, Recovery: &protocol.Recovery{Adversary: against}}).EffectiveRecovery()
		if err != nil {
			return 0, err
		}
		return r.MinSurvivors, nil
	}
	found, err := least(j.Parties.Colluders)
	if err == nil {
		return found, nil
	}
	most := -1
	for most+1 < n {
		if _, failed := least(most + 1); failed != nil {
			break
		}
		most++
	}
	if most < 0 {
		return 0, j.Mistake("parties.drop_out", "have more parties", "%v", err)
	}
	return 0, j.Mistake("parties.colluders",
		fmt.Sprintf("use 0 to %d, with which %d parties withstand a %v", most, n, against),
		"%d is outside 0 to %d", j.Parties.Colluders, most)
}
