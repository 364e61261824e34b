package session

import (
	"crypto/rand"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

var spoilers = compared(attacks.Attack{
	Name:      "Spoilers",
	Adversary: "colluding clients",
	About:     "has an honest party blamed, or ends round after round",
	Defence:   "blame by distinct counterparties, for which unopened shares count",
}, spoilerVariants)

const spoilerParties, spoiler, framed = 7, 6, 0

// spoil changes a message of the spoiler's, of which it gets the header and the body.
type spoil func(c *textbook.Client, h wire.Header, body []byte) []byte

// spoilerVariants have one spoiler of seven parties, which textbook plays. The target
// without the defence is textbook, which holds the party that revealed a wrong share
// responsible; with it only package protocol, since textbook has no policy of its own.
func spoilerVariants(seed uint64) []variant {
	inputs := randomInputs(seed, attackLayout, spoilerParties)
	only := []target{{real: true}}
	return []variant{{
		name:     "framing",
		defended: only,
		run: func(t target) (outcome, error) {
			s, _, err := spoiledRounds(t, inputs, 1, frame)
			if err != nil {
				return outcome{}, err
			}
			return counts(1, indicator(slices.Contains(blamed(s), framed))), nil
		},
		metrics: []metric{{"honest parties blamed", exactly(1), exactly(0)}},
	}, {
		name:     "shares that do not open",
		defended: only,
		run: func(t target) (outcome, error) {
			s, lost, err := spoiledRounds(t, inputs, 3, shut)
			if err != nil {
				return outcome{}, err
			}
			return counts(3, lost, indicator(slices.Contains(blamed(s), spoiler))), nil
		},
		metrics: []metric{
			{"rounds lost, of 3", exactly(3), exactly(1)},
			{"dealer named", exactly(0), exactly(1)},
		},
	}}
}

// spoiledRounds plays rounds in which the spoiler's messages are changed, and counts those
// without a right sum or somebody to blame.
func spoiledRounds(
	t target, inputs []segments, rounds int, change spoil,
) (s *textbook.Session, lost int, err error) {
	recovery := &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 2}
	signers, config := attackConfig(spoilerParties, recovery, 0)
	parties, err := t.parties(config, signers, spoiler)
	if err != nil {
		return nil, 0, err
	}
	server, err := t.server(config)
	if err != nil {
		return nil, 0, err
	}
	s = textbook.NewSession(config, server, parties)
	s.Carry = func(from, _ int, message []byte) []byte {
		if h, body, err := wire.ParseHeader(message); err == nil && from == spoiler {
			return change(parties[spoiler].(*textbook.Client), h, body)
		}
		return message
	}
	if err := s.SetUp(); err != nil {
		return nil, 0, err
	}
	want := sumOf(attackLayout, inputs, upTo(spoilerParties))
	for range rounds {
		sum, err := s.Round(nil, inputs)
		switch {
		case errors.Is(err, protocol.ErrMaterial), errors.Is(err, protocol.ErrTooFew):
			lost++
		case err != nil:
			return nil, 0, err
		case len(blamed(s)) == 0 && !equal(sum, want):
			lost++
		}
	}
	return s, lost, nil
}

// frame deals the framed party a wrong share under the right seal, and reveals a wrong
// share of that party's secret: two wrong pairs, of the same two parties.
func frame(c *textbook.Client, h wire.Header, body []byte) []byte {
	message := h.Append(nil)
	switch h.Type {
	case wire.TypeMasked:
		const holders = spoilerParties - 1
		m, err := wire.ParseMasked(body, attackLayout.PackedSize(), holders, holders)
		if err != nil {
			return append(message, body...)
		}
		at := slices.Index(c.Open.Near, framed)
		wrong, err := shamir.GenerateSecret(rand.Reader)
		if err != nil {
			return append(message, body...)
		}
		nonce := m.Nonce
		const purpose = keyexchange.SelfMaskShare
		key := c.Open.Channels[at].Key(purpose, spoiler, framed)
		data := textbook.ShareData(
			purpose, c.Session, c.Last, spoiler, framed, c.Open.Context)
		box, err := keyexchange.Seal((*keyexchange.Nonce)(&nonce), key, wrong[:], data)
		if err != nil {
			return append(message, body...)
		}
		m.Shares[at] = wire.SealedShare(box)
		return m.Append(message)
	case wire.TypeReveal:
		shares, err := wire.ParseReveal(body, spoilerParties)
		if err != nil {
			return append(message, body...)
		}
		for i := range shares {
			if shares[i].Owner == framed {
				shares[i].Share[0] ^= 1
			}
		}
		return shares.Append(message)
	}
	return append(message, body...)
}

// shut deals shares that do not open to all but one.
func shut(_ *textbook.Client, h wire.Header, body []byte) []byte {
	message := h.Append(nil)
	if h.Type != wire.TypeMasked {
		return append(message, body...)
	}
	const holders = spoilerParties - 1
	m, err := wire.ParseMasked(body, attackLayout.PackedSize(), holders, holders)
	if err != nil {
		return append(message, body...)
	}
	for i := range m.Shares[1:] {
		m.Shares[1+i][40] ^= 1
	}
	return m.Append(message)
}
