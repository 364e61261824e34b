package session

import (
	"maps"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// splitPlan is a round in which everybody may be told something else.
type splitPlan struct {
	colluders    []int
	participants func(party int) []int // nil: everybody
	broadcast    func(party int) []byte
	survivors    map[int][]int // by honest party; not in the map: told nothing
	input        func(party int, broadcast []byte) [][]uint64
	forge        bool  // fill certificates up with forgeries
	uncertified  []int // who gets no certificate
}

// attackSplit runs such a round with the colluders' help. It is the attack of
// SplitView, SplitParticipants, ModelInconsistency and LateInput, which differ in
// the plan.
func (c *cheater) attackSplit(plan splitPlan) {
	c.nextRound()
	c.forge = plan.forge
	for i := range c.parties {
		broadcast := []byte(nil)
		if plan.broadcast != nil {
			broadcast = plan.broadcast(i)
		}
		participants := upTo(c.terms.Parties)
		if plan.participants != nil {
			participants = plan.participants(i)
		}
		err := c.begin(i, participants, broadcast)
		if err == nil && slices.Contains(plan.colluders, i) {
			err = c.poolSecrets(i)
		}
		if err == nil {
			err = c.submit(i, broadcast, plan.input(i, broadcast))
		}
		c.refused(err)
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

// split sets up a session of n parties and runs a plan against it.
func split(t target, recovery *protocol.Recovery, colluders, n int, plan splitPlan, in [][][]uint64) (*cheater, error) {
	signers, config := attackConfig(n, recovery, colluders)
	c, err := newSession(t, config, signers, plan.colluders...)
	if err != nil {
		return nil, err
	}
	plan.input = func(i int, _ []byte) [][]uint64 { return in[i] }
	c.attackSplit(plan)
	return c, nil
}

// soundRecovery is t = 5, q = 6, MinSurvivors = 6 of 8 parties, two of whom
// collude; lowRecovery is what would do against a curious server.
var (
	soundRecovery = &protocol.Recovery{}
	lowRecovery   = &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 3}
)

// A server that tells some holders that a party survived and others that it
// dropped out collects both of its secrets where thresholds are low, and with them
// its input. With sound thresholds it cannot have both; without certificates it
// still gets the sum of two honest parties where the session promises four; with
// certificates of t signatures too. A quorum of more than half of parties and
// colluders stops that.
func splitView(r *runner) {
	const n = 8
	in := randomInputs(r.o.Seed, attackLayout, n)
	everybody := upTo(n)
	colluders := []int{6, 7}

	// Both of party 0's secrets: 1 and 2 give shares of its self mask, 3, 4 and 5
	// of its recovery key, the colluders of both.
	both := splitPlan{colluders: colluders, survivors: map[int][]int{
		1: everybody, 2: everybody, 3: except(everybody, 0), 4: except(everybody, 0), 5: except(everybody, 0)}}
	// Each honest party is told a list of MinSurvivors of its own, such that all
	// keep 0 and 1, and three of them leave out each of the others.
	scattered := splitPlan{colluders: colluders, survivors: map[int][]int{
		0: except(everybody, 2, 3), 1: except(everybody, 4, 5), 2: except(everybody, 3, 4),
		3: except(everybody, 4, 5), 4: except(everybody, 5, 2), 5: except(everybody, 2, 3)}}
	// Two lists, each signed by three honest parties and the colluders: 2t = n + c.
	halves := splitPlan{colluders: colluders, survivors: map[int][]int{
		0: {0, 1, 2, 3, 6, 7}, 2: {0, 1, 2, 3, 6, 7}, 3: {0, 1, 2, 3, 6, 7},
		1: {0, 1, 4, 5, 6, 7}, 4: {0, 1, 4, 5, 6, 7}, 5: {0, 1, 4, 5, 6, 7}}}
	forged := halves
	forged.forge = true

	// The sum of the targets, and how many refuse because of the certificate.
	run := func(plan splitPlan, targets ...int) func(target) (figures, error) {
		return func(t target) (figures, error) {
			recovery := soundRecovery
			if t.lacks(textbook.ValidConfig) { // its thresholds are too low for this server
				recovery = lowRecovery
			}
			c, err := split(t, recovery, len(colluders), n, plan, in)
			if err != nil {
				return figures{}, err
			}
			return counts(1, c.recovers(in, targets...), c.recovers(in, 0), c.refusedWith(protocol.ErrCertificate)), nil
		}
	}
	pick := func(run func(target) (figures, error), which ...int) func(target) (figures, error) {
		return func(t target) (figures, error) {
			f, err := run(t)
			if err != nil {
				return f, err
			}
			out := figures{samples: f.samples}
			for _, i := range which {
				out.values = append(out.values, f.values[i])
			}
			return out, nil
		}
	}
	single, pair := "inputs recovered exactly", "sums of two inputs read"
	r.compare("both secrets of one", textbook.Quorum|textbook.ValidConfig, pick(run(both, 0), 0, 2),
		metric{single, is(1), is(0)}, metric{"refusals of the certificate", is(0), is(5)})
	r.compareTargets("both, t alone", target{without: textbook.Quorum | textbook.ValidConfig},
		[]target{{without: textbook.Quorum}}, pick(run(both, 0), 0), metric{single, is(1), is(0)})
	r.compare("made for a curious server", textbook.Quorum, func(t target) (figures, error) {
		c, err := split(t, lowRecovery, 2, n, both, in)
		if err != nil {
			return figures{}, err
		}
		return counts(1, c.recovers(in, 0)), nil
	}, metric{single, is(1), is(1)})
	r.limit(1, "a session for a curious server does not withstand one that cheats")

	r.compare("a list for each", textbook.Quorum, run(scattered, 0, 1),
		metric{pair, is(1), is(0)}, metric{"one of the two alone", is(0), is(0)}, metric{"refusals of the certificate", is(0), is(6)})
	r.compare("two lists", textbook.MajorityQuorum, run(halves, 0, 1),
		metric{pair, is(1), is(0)}, metric{"one of the two alone", is(0), is(0)}, metric{"refusals of the certificate", is(0), is(6)})
	r.compare("forged signatures", textbook.Certificates, pick(run(forged, 0, 1), 0), metric{pair, is(1), is(0)})
	splitViewSigned(r, halves, in)
	splitViewLists(r, in)
	splitViewQuorum(r)
}

// Once two lists are signed: a signature on the one does not count for the other, and
// nobody signs a second one.
func splitViewSigned(r *runner, halves splitPlan, in [][][]uint64) {
	r.compare("a signature on the other list", textbook.Certificates, func(t target) (figures, error) {
		c, err := signedHalves(t, halves, in)
		if err != nil {
			return figures{}, err
		}
		padded, err := c.certificate(0, halves.colluders) // one short
		if err != nil {
			return figures{}, err
		}
		for _, e := range c.signed[c.views[1].statement] {
			if e.Party == 1 {
				padded = slices.Insert(padded, 1, e)
			}
		}
		c.refused(c.reveal(0, padded))
		return counts(1, 1-len(c.refusals), c.refusedWith(protocol.ErrSignature)), nil
	}, metric{"certificates accepted", is(1), is(0)}, metric{"documented refusals", is(0), is(1)})
	r.compare("a second list for one party", textbook.Ordered, func(t target) (figures, error) {
		c, err := signedHalves(t, halves, in)
		if err != nil {
			return figures{}, err
		}
		return counts(1, one(c.survivors(0, upTo(len(in))) == nil)), nil
	}, metric{"second lists signed", is(1), is(0)})
}

// signedHalves runs a plan up to the signatures.
func signedHalves(t target, plan splitPlan, in [][][]uint64) (*cheater, error) {
	signers, config := attackConfig(len(in), soundRecovery, 2)
	c, err := newSession(t, config, signers, plan.colluders...)
	if err != nil {
		return nil, err
	}
	c.nextRound()
	for i := range in {
		if err := c.enter(i, upTo(len(in)), in[i]); err != nil {
			return nil, err
		}
	}
	for i, list := range plan.survivors {
		if err := c.survivors(i, list); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Lists that nobody signs, whatever is behind them: one that the party is not in,
// one that is too short, and one with a party that it was not told of.
func splitViewLists(r *runner, in [][][]uint64) {
	for _, bad := range []struct {
		name string
		list []int
		want error
	}{
		{"a list without the signer", []int{1, 2, 3, 4, 5, 6}, protocol.ErrSurvivors},
		{"a list that is too short", []int{0, 1, 2, 3, 4}, protocol.ErrTooFew},
		{"a list with a stranger", upTo(8), protocol.ErrSurvivors},
	} {
		r.compare(bad.name, textbook.Lists, func(t target) (figures, error) {
			c, err := split(t, soundRecovery, 2, 8, splitPlan{colluders: []int{6}, survivors: map[int][]int{0: bad.list},
				participants: func(int) []int { return upTo(7) }}, in)
			if err != nil {
				return figures{}, err
			}
			// Party 7 is not told of the round that it is not in.
			return counts(1, one(c.views[0] != nil && c.views[0].statement != ""), c.refusedWith(bad.want)), nil
		}, metric{"lists signed", is(1), is(0)}, metric{"documented refusals", none, atLeast(1)})
	}
}

// No two certificates can exist: for every n and c the quorum is more than half
// of parties and colluders, while t = ⌊(n−1+c)/2⌋ + 1, the least that keeps a
// party's two secrets apart, allows two whenever n + c is even. The quorum of real
// clients is in the digest that they sign.
func splitViewQuorum(r *runner) {
	const most = 40
	// Two lists need 2·(signatures − c) honest signers, each of whom signs once.
	possible := func(signatures, n, c int) bool { return 2*(signatures-c) <= n-c }
	r.compare("quorums for 3 to 40 parties", textbook.MajorityQuorum, func(t target) (figures, error) {
		pairs, all := 0, 0
		for n := 3; n <= most; n++ {
			signers, config := attackConfig(n, nil, 0)
			for c := range n - 2 {
				config.Recovery, config.Colluders = &protocol.Recovery{Threshold: (n-1+c)/2 + 1}, c
				terms, err := textbook.NewTerms(config, t.without)
				if err != nil {
					return figures{}, err
				}
				same := true
				if t.real {
					client, err := protocol.NewClient(config, signers[0], nil)
					if err != nil {
						return figures{}, err
					}
					h, _, err := wire.ParseHeader(client.Announce())
					same = err == nil && h.Session == terms.Digest
				}
				all++
				pairs += one(!same || possible(terms.Quorum, n, c))
			}
		}
		return counts(all, pairs), nil
	}, metric{"with two certificates possible", atLeast(1), is(0)})
}
