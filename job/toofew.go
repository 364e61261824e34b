package job

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/keyexchange"
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
	entries := make([]keyexchange.Entry, n)
	for i := range entries {
		seed := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		entries[i] = keyexchange.Entry{Name: fmt.Sprint("p", i), Key: key}
	}
	roster, err := keyexchange.NewRoster(entries)
	if err != nil {
		return false
	}
	s := x.out.session
	s.Roster, s.Colluders, s.MinMembers = roster, j.Parties.Colluders, j.fewest(n)
	s.Recovery = &protocol.Recovery{Adversary: adversaries[j.Sum.Adversary],
		Threshold: j.Threshold(n), MinSurvivors: s.MinMembers}
	return s.Recovery.Threshold > 0 && s.Validate() == nil
}
