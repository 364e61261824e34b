package session

import (
	"crypto"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

var splitView = compared(attacks.Attack{
	Name:      "SplitView",
	Adversary: cheatingServer,
	About: "tells some parties that one survived and others that it dropped out, " +
		"and collects both of its secrets",
	Defence: "thresholds; signatures of more than half on one list of survivors",
}, splitViewVariants)

// The session of SplitView has eight parties, two of whom collude.
const splitParties = 8

var splitColluders = []int{6, 7}

// bothSecrets goes for both of party 0's secrets: 1 and 2 give shares of its self mask, 3,
// 4 and 5 of its recovery key, the colluders of both.
func bothSecrets() splitPlan {
	everybody := upTo(splitParties)
	without0 := except(everybody, 0)
	return splitPlan{
		colluders: splitColluders,
		survivors: map[int][]int{
			1: everybody, 2: everybody, 3: without0, 4: without0, 5: without0,
		},
	}
}

// scatteredLists tells each honest party a list of MinSurvivors of its own, such that all
// keep 0 and 1, and three of them leave out each of the others.
func scatteredLists() splitPlan {
	everybody := upTo(splitParties)
	return splitPlan{
		colluders: splitColluders,
		survivors: map[int][]int{
			0: except(everybody, 2, 3),
			1: except(everybody, 4, 5),
			2: except(everybody, 3, 4),
			3: except(everybody, 4, 5),
			4: except(everybody, 5, 2),
			5: except(everybody, 2, 3),
		},
	}
}

// twoLists has two lists, each signed by three honest parties and the colluders:
// 2t = n + c.
func twoLists() splitPlan {
	first, second := []int{0, 1, 2, 3, 6, 7}, []int{0, 1, 4, 5, 6, 7}
	return splitPlan{
		colluders: splitColluders,
		survivors: map[int][]int{0: first, 2: first, 3: first, 1: second, 4: second, 5: second},
	}
}

// splitViewVariants have a server that tells some holders that a party survived and others
// that it dropped out. Where thresholds are low it collects both of its secrets, and with
// them its input. With sound thresholds it cannot have both; without certificates it still gets
// the sum of two honest parties where the session promises four; with certificates of t
// signatures too. A quorum of more than half of parties and colluders stops that.
func splitViewVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, splitParties)
	variants := splitSecretVariants(inputs)
	variants = append(variants, splitSumVariants(inputs)...)
	variants = append(variants, splitSignatureVariants(inputs)...)
	variants = append(variants, splitListVariants(inputs)...)
	return append(variants, quorumVariant())
}

// splitSecretVariants go for both secrets of one party.
func splitSecretVariants(inputs []segments) []variant {
	recovery := func(t target) *protocol.Recovery {
		if t.lacks(textbook.ValidConfig) { // its thresholds are too low for this server
			return lowRecovery
		}
		return soundRecovery
	}
	lacks := textbook.Quorum | textbook.ValidConfig
	return []variant{{
		name:  "both secrets of one",
		lacks: lacks,
		run: func(t target) (outcome, error) {
			c, err := split(t, recovery(t), len(splitColluders), bothSecrets(), inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0), c.refusedWith(protocol.ErrCertificate)), nil
		},
		metrics: []metric{
			{inputsRecovered, exactly(1), exactly(0)},
			{"refusals of the certificate", exactly(0), exactly(5)},
		},
	}, {
		name:     "both, t alone",
		lacks:    lacks,
		defended: []target{{without: textbook.Quorum}},
		run: func(t target) (outcome, error) {
			c, err := split(t, recovery(t), len(splitColluders), bothSecrets(), inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0)), nil
		},
		metrics: []metric{{inputsRecovered, exactly(1), exactly(0)}},
	}, {
		name:  "made for a curious server",
		lacks: textbook.Quorum,
		run: func(t target) (outcome, error) {
			c, err := split(t, lowRecovery, len(splitColluders), bothSecrets(), inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0)), nil
		},
		metrics: []metric{{inputsRecovered, exactly(1), exactly(1)}},
		limit:   "a session for a curious server does not withstand one that cheats",
	}}
}

// splitSumVariants go for the sum of the inputs of parties 0 and 1.
func splitSumVariants(inputs []segments) []variant {
	// Sums read, inputs of one of the two, and refusals because of the certificate.
	run := func(plan splitPlan) func(target) (outcome, error) {
		return func(t target) (outcome, error) {
			c, err := split(t, soundRecovery, len(splitColluders), plan, inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0, 1), c.recovers(inputs, 0),
				c.refusedWith(protocol.ErrCertificate)), nil
		}
	}
	metrics := []metric{
		{"sums of two inputs read", exactly(1), exactly(0)},
		{"one of the two alone", exactly(0), exactly(0)},
		{"refusals of the certificate", exactly(0), exactly(6)},
	}
	return []variant{{
		name:    "a list for each",
		lacks:   textbook.Quorum,
		run:     run(scatteredLists()),
		metrics: metrics,
	}, {
		name:    "two lists",
		lacks:   textbook.MajorityQuorum,
		run:     run(twoLists()),
		metrics: metrics,
	}, {
		name:  "forged signatures",
		lacks: textbook.Certificates,
		run: func(t target) (outcome, error) {
			plan := twoLists()
			plan.forge = true
			c, err := split(t, soundRecovery, len(splitColluders), plan, inputs)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, c.recovers(inputs, 0, 1)), nil
		},
		metrics: metrics[:1],
	}}
}

// splitSignatureVariants begin once two lists are signed: a signature on the one does not
// count for the other, and nobody signs a second one.
func splitSignatureVariants(inputs []segments) []variant {
	return []variant{{
		name:  "a signature on the other list",
		lacks: textbook.Certificates,
		run: func(t target) (outcome, error) {
			c, err := signedLists(t, twoLists(), inputs)
			if err != nil {
				return outcome{}, err
			}
			padded, err := c.certificate(0, splitColluders) // one short
			if err != nil {
				return outcome{}, err
			}
			for _, s := range c.signed[c.views[1].statement] {
				if s.Party == 1 {
					padded = slices.Insert(padded, 1, s)
				}
			}
			c.refused(c.reveal(0, padded))
			return counts(1, 1-len(c.refusals), c.refusedWith(protocol.ErrSignature)), nil
		},
		metrics: []metric{
			{"certificates accepted", exactly(1), exactly(0)},
			{documentedRefusals, exactly(0), exactly(1)},
		},
	}, {
		name:  "a second list for one party",
		lacks: textbook.Ordered,
		run: func(t target) (outcome, error) {
			c, err := signedLists(t, twoLists(), inputs)
			if err != nil {
				return outcome{}, err
			}
			err = c.survivors(0, upTo(splitParties))
			return counts(1, indicator(err == nil)), nil
		},
		metrics: []metric{{"second lists signed", exactly(1), exactly(0)}},
	}}
}

// signedLists runs a plan up to the signatures.
func signedLists(t target, plan splitPlan, inputs []segments) (*cheater, error) {
	signers, config := attackConfig(splitParties, soundRecovery, len(splitColluders))
	c, err := newSession(t, config, signers, plan.colluders...)
	if err != nil {
		return nil, err
	}
	c.nextRound()
	for i, input := range inputs {
		if err := c.enter(i, upTo(splitParties), input); err != nil {
			return nil, err
		}
	}
	for _, i := range slices.Sorted(maps.Keys(plan.survivors)) {
		if err := c.survivors(i, plan.survivors[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// splitListVariants have lists that nobody signs, whatever is behind them: one that the
// party is not in, one that is too short, and one with a party that it was not told of.
func splitListVariants(inputs []segments) []variant {
	var variants []variant
	for _, bad := range []struct {
		name string
		list []int
		want error
	}{
		{"a list without the signer", []int{1, 2, 3, 4, 5, 6}, protocol.ErrSurvivors},
		{"a list that is too short", []int{0, 1, 2, 3, 4}, protocol.ErrTooFew},
		{"a list with a stranger", upTo(splitParties), protocol.ErrSurvivors},
	} {
		plan := splitPlan{
			colluders: []int{6},
			survivors: map[int][]int{0: bad.list},
			// Party 7 is not told of the round that it is not in.
			participants: func(int) []int { return upTo(7) },
		}
		variants = append(variants, variant{
			name:  bad.name,
			lacks: textbook.Lists,
			run: func(t target) (outcome, error) {
				c, err := split(t, soundRecovery, len(splitColluders), plan, inputs)
				if err != nil {
					return outcome{}, err
				}
				signed := c.views[0] != nil && c.views[0].statement != ""
				return counts(1, indicator(signed), c.refusedWith(bad.want)), nil
			},
			metrics: []metric{
				{"lists signed", exactly(1), exactly(0)},
				{documentedRefusals, unmeasured, atLeast(1)},
			},
		})
	}
	return variants
}

// quorumVariant shows that no two certificates can exist. For every n and c the quorum is more than
// half of parties and colluders, while t = ⌊(n−1+c)/2⌋ + 1, the least that keeps a
// party's two secrets apart, allows two whenever n + c is even. The quorum of real
// clients is in the digest that they sign.
func quorumVariant() variant {
	return variant{
		name:  "quorums for 3 to 40 parties",
		lacks: textbook.MajorityQuorum,
		run: func(t target) (outcome, error) {
			all, possible := 0, 0
			for n := 3; n <= 40; n++ {
				signers, config := attackConfig(n, nil, 0)
				for colluders := range n - 2 {
					config.Colluders = colluders
					config.Recovery = &protocol.Recovery{Threshold: (n-1+colluders)/2 + 1}
					two, err := twoCertificates(t, config, signers[0])
					if err != nil {
						return outcome{}, err
					}
					all++
					possible += indicator(two)
				}
			}
			return counts(all, possible), nil
		},
		metrics: []metric{{"with two certificates possible", atLeast(1), exactly(0)}},
	}
}

// twoCertificates reports whether two certificates can exist in a session, or the quorum
// of the target is not known.
func twoCertificates(t target, config *protocol.Config, signer crypto.Signer) (bool, error) {
	terms, err := textbook.NewTerms(config, t.without)
	if err != nil {
		return false, err
	}
	if t.real {
		client, err := protocol.NewClient(config, signer, nil)
		if err != nil {
			return false, err
		}
		header, _, err := wire.ParseHeader(client.Announce())
		if err != nil || header.Session != terms.Digest {
			return true, nil
		}
	}
	// Two lists need 2·(signatures − c) honest signers, each of whom signs once.
	colluders := config.Colluders
	return 2*(terms.Quorum-colluders) <= terms.Parties-colluders, nil
}
