package committee

import (
	"errors"
	"math/big"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/oneshot/normproof"
	"github.com/hushsum/hushsum/shamir"
)

// runGroups attacks medians of groups: cheats move them, or a server fills a victim's group up.
func runGroups(r *runner) error {
	var moved, alone [2]bool
	for i, groups := range []int{1, 3} {
		var err error
		if moved[i], err = r.movedBeyond(groups); err != nil {
			return err
		}
	}
	r.counts("a backdoor: one of six parties adds a vector as long as passes",
		"sums moved beyond honest values", moved[0], moved[1])
	r.rows[0].Note = "without: one sum of all; with: three groups"
	for i, colluders := range []int{0, 1} {
		var err error
		if alone[i], err = r.filledGroup(colluders); err != nil {
			return err
		}
	}
	r.counts("a victim's group, left with a colluder alone", "inputs recovered exactly", alone[0],
		alone[1])
	r.rows[1].Note = "without: MinSurvivors of a group that count no colluder"
	return nil
}

// movedBeyond reports whether a cheat of six parties, with the longest vector that a proof passes,
// moves a coordinate of the result beyond what honest parties have in it.
func (r *runner) movedBeyond(groups int) (bool, error) {
	const all, cheats, value = 6, 1, 10
	keys, roster, err := identities('p', all)
	if err != nil {
		return false, err
	}
	n, err := termedNormWorld(r.o.Seed, true, func(c *oneshot.Config) error {
		c.Roster, c.Groups, c.MinSurvivors, c.Colluders, c.Norm = roster, groups, 2, 0, 16*normBound
		return nil
	})
	if err != nil {
		return false, err
	}
	n.w.partyKeys = keys
	for i, key := range keys {
		var message []byte
		if i < cheats {
			// 5/4 of the bound in one coordinate passes but for 4·10^-6.
			long := int64(1.25 / 3.05 * n.figures.Factor * 16 * normBound)
			cheat := crook.Dealer{Config: n.w.config, Key: key, Party: i, Vector: []int64{long}}
			message, err = cheat.Submit(n.w.opening)
		} else {
			var p *oneshot.Party
			if p, err = oneshot.NewParty(n.w.config, key, nil); err == nil {
				message, err = p.Submit(n.w.opening, []byte(model), []int64{value, value, value, value})
			}
		}
		if err == nil {
			err = n.server.Receive(message)
		}
		if err != nil {
			return false, err
		}
	}
	if err := n.settle(); err != nil {
		return false, err
	}
	sum, err := n.finish()
	if err != nil {
		return false, err
	}
	// Noise of honest parties deviates by 7.1, and a group's mean by less: thirteen times that.
	return sum[0] > all*value+all*13*7, nil
}

// filledGroup reports whether a server that leaves a victim alone with a colluder in its group
// reads the victim's input, if members count so many colluders of a group.
func (r *runner) filledGroup(colluders int) (bool, error) {
	const all, groups, victim = 9, 3, 0
	w, err := newWorld(r.o.Seed, 0, true)
	if err != nil {
		return false, err
	}
	if w.partyKeys, w.config.Roster, err = identities('p', all); err != nil {
		return false, err
	}
	terms := &w.config.Terms
	terms.Groups, terms.Colluders, terms.MinSurvivors = groups, colluders, 2+colluders
	if w.figures, err = w.config.Parameters(); err != nil {
		return false, err
	}
	if w.digest, err = w.config.Digest(); err != nil {
		return false, err
	}
	n, err := newRound(w)
	if err != nil {
		return false, err
	}
	of := oneshot.Groups(&w.context, all, groups)
	var own []*dealing // in the victim's group
	var helper []int64
	for i, key := range w.partyKeys {
		if of[i] == of[victim] && len(own) == 2 {
			continue // the server says that it has left
		}
		p, err := oneshot.NewParty(w.config, key, nil)
		if err != nil {
			return false, err
		}
		input := []int64{int64(i) - 100, 7, int64(-i), 100}
		message, err := p.Submit(w.opening, []byte(model), input)
		if err != nil {
			return false, err
		}
		if err := n.server.Receive(message); err != nil {
			return false, err
		}
		if of[i] == of[victim] {
			own, helper = append(own, w.parse(i, message[wire.HeaderSize:])), input
		}
	}
	if err := n.settle(); err != nil {
		return false, err
	}
	shares, err := n.groupParts(of[victim], groups)
	if err != nil || shares == nil {
		return false, err
	}
	secrets, _, err := shamir.CombinePackedVarTime(w.packing(), 0, shares)
	if err != nil {
		return false, err
	}
	sum := w.read(w.add(own...), unpack(secrets))
	return slices.Equal(minus(sum, helper), []int64{-100, 7, 0, 100}), nil
}

// groupParts has members answer, and returns what they send of a group, nil if that is nothing.
func (r *round) groupParts(group, groups int) (shares []shamir.PackedShare, err error) {
	closing, err := r.server.Close()
	if err != nil {
		return nil, err
	}
	for _, m := range r.members {
		signed, err := m.Receive(closing)
		if err != nil {
			return nil, err
		}
		if err := r.server.Receive(signed); err != nil {
			return nil, err
		}
	}
	certificate, err := r.server.Certificate()
	if err != nil {
		return nil, err
	}
	size := 32 * r.w.figures.Polynomials
	for _, m := range r.members {
		part, err := m.Receive(certificate)
		if err != nil {
			return nil, err
		}
		part = part[wire.HeaderSize:]
		switch len(part) {
		case groups * size:
			shares = append(shares, r.w.share(m.Index(), part[group*size:]))
		case (groups - 1) * size: // of the others
		default:
			return nil, errors.New("a part of another number of groups")
		}
	}
	return shares, nil
}

// runKeyNoise compares sums that have no more noise than hides keys with sums that protect parties.
func runKeyNoise(r *runner) error {
	const clips = 8
	var in [2]bool
	for i, key := range []bool{false, true} {
		n, err := termedNormWorld(r.o.Seed, true, func(c *oneshot.Config) error {
			c.Bits = 12
			if key {
				c.Noise = oneshot.KeyNoise(c.MinSurvivors - c.Colluders)
				return nil
			}
			var err error
			c.Noise, err = noise.DiscreteGaussian(big.NewRat(normBound*normBound, 1))
			return err
		})
		if err != nil {
			return err
		}
		cheat := crook.Dealer{Config: n.w.config, Key: n.w.partyKeys[parties-1], Party: parties - 1,
			Vector: []int64{clips * normBound}}
		message, err := cheat.Submit(n.w.opening)
		if errors.Is(err, normproof.ErrLimit) { // there is no proof: it sends one of another vector
			message, err = n.cheat(func(p *parts) { n.add(p, clips*normBound) })
		}
		if err != nil {
			return err
		}
		out, err := n.play(message)
		if err != nil {
			return err
		}
		if in[i] = !out.named && !out.lost; key && (!out.named || out.proof.Verify() != nil) {
			return errors.New("a vector of eight clips under key noise: nobody is named")
		}
	}
	r.counts("eight clips in one value", "sums with it", in[0], in[1])
	r.rows[0].Note = "without: parties add noise of a clip, which hides as much; with: key noise"
	return r.keyNoiseHidesNothing()
}

// keyNoiseHidesNothing takes the sums of two rounds, with a party and without it.
func (r *runner) keyNoiseHidesNothing() error {
	const bits, victim = 21, 1
	var sums [2][]int64
	var input []int64
	for i := range sums {
		w, err := newWorld(r.o.Seed, 0, true)
		if err != nil {
			return err
		}
		terms := &w.config.Terms
		terms.Bits, terms.Noise = bits, oneshot.KeyNoise(terms.MinSurvivors-terms.Colluders)
		if w.figures, err = w.config.Parameters(); err != nil {
			return err
		}
		if w.digest, err = w.config.Digest(); err != nil {
			return err
		}
		n, err := newRound(w)
		if err != nil {
			return err
		}
		for party := range parties {
			for k := range w.inputs[party] {
				w.inputs[party][k] <<= bits - 8
			}
			if party == victim && i == 1 {
				continue
			}
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			if err := n.send(d); err != nil {
				return err
			}
		}
		input = w.inputs[victim]
		if err := n.settle(); err != nil {
			return err
		}
		if sums[i], err = n.finish(); err != nil {
			return err
		}
	}
	known := true
	for k, v := range minus(sums[0], sums[1]) {
		// Nine parties' noise of 6.4 stays within 13 of its deviations.
		known = known && max(v-input[k], input[k]-v) <= 13*20
	}
	r.rows = append(r.rows, attacks.Row{Case: "two sums, with a party and without",
		Metric:   "inputs known to a thousandth of their range",
		Defended: attacks.Exactly(one(known), 1, 1),
		Limit:    true, Note: "key noise protects no vector, and comes with no epsilon"})
	return nil
}
