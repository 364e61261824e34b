package session

import (
	"maps"
	"slices"

	"github.com/hushsum/hushsum/protocol"
)

// splitPlan is a round in which everybody may be told something else.
type splitPlan struct {
	colluders    []int
	participants func(party int) []int // nil: everybody
	broadcast    func(party int) []byte
	survivors    map[int][]int // by honest party; not in the map: told nothing
	input        func(party int, broadcast []byte) segments
	forge        bool  // fill certificates up with forgeries
	uncertified  []int // who gets no certificate
}

// everyone tells parties the same list of survivors.
func everyone(parties, list []int) map[int][]int {
	survivors := make(map[int][]int)
	for _, i := range parties {
		survivors[i] = list
	}
	return survivors
}

// attackSplit runs such a round with the colluders' help. It is the attack of
// SplitView, SplitParticipants, ModelInconsistency and LateInput, which differ in
// the plan.
func (c *cheater) attackSplit(plan splitPlan) {
	c.nextRound()
	c.forge = plan.forge
	for i := range c.parties {
		c.refused(c.submitSplit(plan, i))
	}
	if !c.terms.Recovery {
		return
	}
	for _, i := range plan.colluders {
		c.poolShares(i)
	}
	honest := slices.Sorted(maps.Keys(plan.survivors))
	for _, i := range honest {
		if c.views[i] != nil {
			c.refused(c.survivors(i, plan.survivors[i]))
		}
	}
	for _, i := range honest {
		if c.views[i] == nil || c.views[i].statement == "" || slices.Contains(plan.uncertified, i) {
			continue
		}
		certificate, err := c.certificate(i, plan.colluders)
		if err == nil {
			err = c.reveal(i, certificate)
		}
		if err != nil && c.reveal(i, c.acrossViews(i)) == nil {
			err = nil
		}
		c.refused(err)
	}
}

// submitSplit has a party begin the round as planned and submit.
func (c *cheater) submitSplit(plan splitPlan, party int) error {
	var broadcast []byte
	if plan.broadcast != nil {
		broadcast = plan.broadcast(party)
	}
	participants := upTo(c.terms.Parties)
	if plan.participants != nil {
		participants = plan.participants(party)
	}
	if err := c.begin(party, participants, broadcast); err != nil {
		return err
	}
	if slices.Contains(plan.colluders, party) {
		if err := c.poolSecrets(party); err != nil {
			return err
		}
	}
	return c.submit(party, broadcast, plan.input(party, broadcast))
}

// split sets up a session of parties with the given inputs and runs a plan against it.
func split(
	t target, recovery *protocol.Recovery, colluders int, plan splitPlan, inputs []segments,
) (*cheater, error) {
	signers, config := attackConfig(len(inputs), recovery, colluders)
	c, err := newSession(t, config, signers, plan.colluders...)
	if err != nil {
		return nil, err
	}
	plan.input = func(i int, _ []byte) segments { return inputs[i] }
	c.attackSplit(plan)
	return c, nil
}

// soundRecovery is t = 5, q = 6, MinSurvivors = 6 of 8 parties, two of which
// collude; lowRecovery would do against a curious server.
var (
	soundRecovery = &protocol.Recovery{}
	lowRecovery   = &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 3}
)
