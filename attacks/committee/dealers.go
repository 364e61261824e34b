package committee

import (
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/shamir"
)

// round is a round of package oneshot with honest members, one of whom may dispute.
type round struct {
	server   *oneshot.Server
	members  []*oneshot.Member
	w        *world
	disputes func(member int, answer []byte)
	parts    []shamir.PackedShare // that members sent
}

func newRound(w *world) (*round, error) {
	out := &round{w: w}
	var err error
	if out.server, err = oneshot.NewServer(w.config, 0); err != nil {
		return nil, err
	}
	invite := out.server.Invite()
	w.keys = nil
	for _, key := range w.memberKeys {
		m, err := oneshot.NewMember(w.config, key, nil)
		if err != nil {
			return nil, err
		}
		answer, err := m.Receive(invite)
		if err != nil {
			return nil, err
		}
		if err := out.server.Receive(answer); err != nil {
			return nil, err
		}
		w.keys = append(w.keys, answer[wire.HeaderSize:][:32])
		out.members = append(out.members, m)
	}
	if w.opening, err = out.server.Open([]byte(model)); err != nil {
		return nil, err
	}
	body := w.opening[wire.HeaderSize:]
	hashed := [][]byte{w.digest[:], u64(w.round), body[:33]}
	w.context = [32]byte(h(labels.OneshotContext, append(hashed, w.keys...)...))
	for _, m := range out.members {
		if _, err := m.Receive(w.opening); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// send has the server take a dealing.
func (r *round) send(d *dealing) error {
	header := wire.Header{Type: typeSubmission, Session: r.w.context, Round: r.w.round,
		Sender: uint32(d.party)}
	body := slices.Concat(d.masked, slices.Concat(d.leaves...), slices.Concat(d.boxes...), d.signature)
	return r.server.Receive(append(header.Append(nil), body...))
}

// settle takes what waits through the committee.
func (r *round) settle() error {
	envelopes, err := r.server.Batch()
	if err != nil {
		return err
	}
	for _, e := range envelopes {
		answer, err := r.members[e.To].Receive(e.Message)
		if err != nil {
			return err
		}
		if r.disputes != nil {
			r.disputes(e.To, answer)
		}
		if err := r.server.Receive(answer); err != nil && !errors.Is(err, oneshot.ErrExcluded) {
			return err
		}
	}
	settled, err := r.server.Settle()
	if err != nil {
		return err
	}
	for _, m := range r.members {
		if _, err := m.Receive(settled); err != nil {
			return err
		}
	}
	return nil
}

// finish takes the round to its sum.
func (r *round) finish() ([]int64, error) {
	for _, next := range []func() ([]byte, error){r.server.Close, r.server.Certificate} {
		message, err := next()
		if err != nil {
			return nil, err
		}
		for _, m := range r.members {
			if m.Lost() {
				continue
			}
			answer, err := m.Receive(message)
			if err != nil {
				return nil, err
			}
			if err := r.server.Receive(answer); err != nil && !errors.Is(err, oneshot.ErrExcluded) {
				return nil, err
			}
			if answer[1] == byte(typePart) {
				r.parts = append(r.parts, r.w.share(m.Index(), answer[wire.HeaderSize:]))
			}
		}
	}
	return r.server.Sum()
}

// runDealers has a party deal shares of no key, or send values that fit none. Without the
// defence, a decoder takes the first r parts, and releases what comes.
func runDealers(r *runner) error {
	for _, c := range []struct {
		name string
		want error
		bad  func(w *world, d *dealing) (*dealing, error)
	}{
		{"shares of no polynomial", oneshot.ErrParts, func(w *world, d *dealing) (*dealing, error) {
			parts, err := w.split(victimKey())
			if err != nil {
				return nil, err
			}
			for i := range parts {
				for k := range parts[i].Values {
					secret, err := shamir.GenerateSecret(nil)
					if err != nil {
						return nil, err
					}
					parts[i].Values[k] = secret
				}
			}
			return w.deal(0, d.party, d.masked, parts, w.partyKeys[d.party])
		}},
		{"values of no key", oneshot.ErrNoise, func(w *world, d *dealing) (*dealing, error) {
			parts, err := w.split(victimKey())
			if err != nil {
				return nil, err
			}
			return w.deal(0, d.party, d.masked, parts, w.partyKeys[d.party])
		}},
	} {
		w, err := newWorld(r.o.Seed, 0, true)
		if err != nil {
			return err
		}
		round, err := newRound(w)
		if err != nil {
			return err
		}
		total := make([]int64, length)
		var set []*dealing
		for party := range parties {
			d, err := w.submit(party)
			if err != nil {
				return err
			}
			if party == parties-1 {
				if d, err = c.bad(w, d); err != nil {
					return err
				}
			}
			if err := round.send(d); err != nil {
				return err
			}
			set = append(set, d)
			for k, v := range w.inputs[party] {
				total[k] += v
			}
		}
		if err := round.settle(); err != nil {
			return err
		}
		sum, err := round.finish()
		if err != nil && !errors.Is(err, c.want) {
			return err
		}
		released := err == nil && !slices.Equal(sum, total)
		// Of the same parts, as many as determine a polynomial always do.
		secrets, _, err := shamir.CombinePackedVarTime(w.packing(), 0, round.parts[:w.figures.Threshold])
		if err != nil {
			return err
		}
		plain := w.read(w.add(set...), unpack(secrets))
		r.counts(c.name, "wrong sums released", !slices.Equal(plain, total), released)
		r.rows[len(r.rows)-1].Note = "the round is lost, and nobody is named"
	}
	return nil
}

// runDisputes has one member dispute every honest party. Without charges the server
// leaves out all; with them, no more than c + f.
func runDisputes(r *runner) error {
	w, err := newWorld(r.o.Seed, 0, true)
	if err != nil {
		return err
	}
	round, err := newRound(w)
	if err != nil {
		return err
	}
	round.disputes = func(member int, answer []byte) {
		if member == honest {
			answer[len(answer)-1] |= 1 // batches of one
		}
	}
	for party := range parties {
		d, err := w.submit(party)
		if err != nil {
			return err
		}
		if err := round.send(d); err != nil {
			return err
		}
		if err := round.settle(); err != nil {
			return err
		}
	}
	if _, err := round.finish(); err != nil {
		return err
	}
	in := len(round.server.Included())
	figures, err := w.config.Parameters()
	if err != nil {
		return err
	}
	most := float64(w.config.Faults * (figures.Disputes + 1))
	r.rows = append(r.rows, attacks.Row{Metric: "honest parties kept out, of 5",
		Undefended: attacks.Exactly(float64(parties), 1, parties),
		Defended:   attacks.Exactly(float64(parties-in), 1, most), Limit: true,
		Note: "at most f·(Δ + 1); without charges a server believes every dispute"})
	return nil
}
