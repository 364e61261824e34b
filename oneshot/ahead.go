package oneshot

import (
	"context"

	"github.com/hushsum/hushsum/internal/cores"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// verdict says of a submission whether its proof holds.
type verdict struct {
	statement string // what the party signed: it has digests of all that the proof is about
	holds     bool
}

// Check verifies proofs ahead of time, on all cores, of submissions that [Server.Receive] is given
// next: Receive then takes less time for each submission; results and saved states stay the same.
// Check verifies one message of each party, the first that is due, so that a party costs the server
// one proof a round. It does not keep messages. Without [Terms.Norm], and with Covered, it does
// nothing.
func (s *Server) Check(messages [][]byte) {
	c, r := s.config, s.open
	if c.scheme == nil || c.reduces || r == nil || r.step != stepSubmissions {
		return
	}
	var bodies [][]byte
	var dealers []int
	taken := make(map[int]bool)
	for _, message := range messages {
		h, body, err := c.parse(message)
		if err != nil || h.Type != typeSubmission ||
			s.checkRound(h, &r.context, stepSubmissions) != nil {
			continue
		}
		dealer, ok := c.dealer(h.Sender)
		if _, known := r.verdicts[dealer]; !ok || known || taken[dealer] || s.refuses(dealer) != nil {
			continue
		}
		if body, _, err = c.untailed(dealer, body); err != nil {
			continue
		}
		taken[dealer] = true
		bodies, dealers = append(bodies, body), append(dealers, dealer)
	}
	subs := make([]*submitted, len(bodies))
	each(len(bodies), func(i int) {
		// What is refused here is refused by Receive, with its error.
		subs[i], _ = c.checkSubmission(s.round, &r.context, r.members, dealers[i], bodies[i])
	})
	by := make(map[*normproof.Scheme][]*submitted)
	for _, sub := range subs {
		if sub != nil {
			scheme := c.prover(sub.party)
			by[scheme] = append(by[scheme], sub)
		}
	}
	for scheme, some := range by {
		errs := scheme.VerifyAll(len(some), func(i int) *normproof.Claim {
			return s.claimOf(some[i])
		})
		for i, err := range errs {
			r.verdicts[some[i].party] = verdict{string(some[i].statement), err == nil}
		}
	}
}

// claimOf returns what the proof of a submission claims.
func (s *Server) claimOf(sub *submitted) *normproof.Claim {
	m, err := s.config.parseSubmission(sub.body, s.open.members.Len())
	if err != nil {
		panic("oneshot: " + err.Error()) // it was parsed before
	}
	return s.config.claimOf(&s.open.context, sub.party, sub.levels[s.config.depth][0], m,
		s.config.unpack(m.masked), m.proof)
}

// each calls work for 0 to n − 1 on all cores.
func each(n int, work func(i int)) {
	err := cores.Each(context.Background(), n, func(i int) error {
		work(i)
		return nil
	}, nil)
	if err != nil {
		panic("oneshot: " + err.Error()) // cannot happen: nothing fails and nothing is cancelled
	}
}
