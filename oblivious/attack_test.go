package oblivious

import (
	"crypto/subtle"
	"math"
	"math/bits"
	"slices"
	"testing"
)

// The n−1 colluders of package attacks/collusion hold a party's side of the transfers,
// so they can do more than the views there show: try keys.
// Both attacks here know the code, and succeed where the base transfers are wired
// wrongly.

// wiring is a way to put the keys of base transfers wrong.
type wiring struct {
	name   string
	fault  func(sender *extSender, receiver *peer)
	broken bool
}

// couple runs a round between an honest party 0 and a colluder, party 1, puts the
// fault in for transfers from sender to the other, and opens round 2. It returns the
// messages of choices by sender.
func couple(t *testing.T, sender int, w wiring) (parties []*Transfer, choices [2][]byte) {
	t.Helper()
	config := &Config{Parties: 2, Length: 1024, Bits: 32, Noise: scale(20)}
	parties = session(t, config, seeded(60))
	if _, err := Exchange(parties, 1); err != nil {
		t.Fatal(err)
	}
	if w.fault != nil {
		w.fault(&parties[sender].peers[1-sender].offers, parties[1-sender].peers[sender])
	}
	for i, p := range parties {
		envelopes, err := p.Begin(2)
		if err != nil {
			t.Fatal(err)
		}
		choices[i] = envelopes[0].Message
	}
	return parties, choices
}

// rewire makes d the sender's bits, and its keys those that fit.
func rewire(s *extSender, receiver *peer, d element) {
	s.delta = d
	for k := range s.seeds {
		s.seeds[k] = receiver.takes.seeds[d.bit(k)][k]
	}
}

// openBody is the content of a message that t is to receive.
func openBody(tb testing.TB, t *Transfer, message []byte) []byte {
	tb.Helper()
	h, sealed, err := parseHeader(message)
	if err != nil {
		tb.Fatal(err)
	}
	body, err := t.open(t.peers[h.from], h, sealed)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

// recorder keeps the terms that it hands out.
type recorder struct {
	filler
	filled [][]int64
}

func (r *recorder) Fill(dst []int64) error {
	err := r.filler.Fill(dst)
	r.filled = append(r.filled, slices.Clone(dst))
	return err
}

// A receiver who opens the term that it did not choose knows by how much the honest
// party's noise can differ. The pad of that term is a hash of the row of the chosen
// one and Δ, so the colluder tries what Δ might be. A wrong guess is right for none
// of 1,024 terms but with probability 2^-22.
func TestAttackReceiverOpensBoth(t *testing.T) {
	for _, w := range []wiring{
		{name: "as built"},
		{"all bits of Δ are 0", func(s *extSender, r *peer) { rewire(s, r, element{}) }, true},
		{"all bits of Δ are 1", func(s *extSender, r *peer) { rewire(s, r, element{^uint64(0), ^uint64(0)}) }, true},
		{"one Δ for both directions", func(s *extSender, r *peer) { rewire(s, r, r.offers.delta) }, true},
	} {
		parties, choices := couple(t, 0, w)
		terms := &recorder{filler: parties[0].terms}
		parties[0].terms = terms
		// The colluder's rows, pads and choices, before it forgets them.
		state := *parties[1].peers[0]
		chosen, pads := slices.Clone(state.choices), slices.Clone(state.pads)
		count := parties[1].config.transfers()
		context, size := parties[1].context(2, 0, 1), columnSize(count)
		columns := make([]byte, kappa*size)
		for k := range kappa {
			stream(columns[k*size:(k+1)*size], &state.takes.seeds[0][k])
		}
		answers, err := parties[0].Receive(choices[1])
		if err != nil {
			t.Fatal(err)
		}
		offer, err := parties[1].config.parseOffer(openBody(t, parties[1], answers[0].Message))
		if err != nil {
			t.Fatal(err)
		}

		best := 0
		for _, guess := range []element{{}, {^uint64(0), ^uint64(0)}, state.offers.delta} {
			opened := 0
			for j := range count {
				c := chosen[j>>3] >> (j & 7) & 1
				known := offer[c][j] - pads[j]
				other := offer[1-c][j] - pad(context, j, row(columns, size, j).add(guess))
				want := terms.filled[1-c][j] - terms.filled[c][j]
				if (other-known)&mask(32) == uint64(want)&mask(32) {
					opened++
				}
			}
			best = max(best, opened)
		}
		if w.broken && best != count || !w.broken && best != 0 {
			t.Errorf("%s: %d of %d terms opened", w.name, best, count)
		}
		t.Logf("%s: %d of %d terms opened", w.name, best, count)
	}
}

// A sender who reads the choices knows which of its candidates is in the noise. The
// receiver sends columns u = t ⊕ t' ⊕ x of its choices x; the colluder has every key
// that its side of the session holds, and adds to each column the streams of any of
// those of its place. As built the 1,024 sums are independent of x: that one of them
// agrees with 1,024 choices in a share outside 1/2 ± .12 has probability below 1e-9
// (Hoeffding, times the number of sums).
func TestAttackSenderReadsChoices(t *testing.T) {
	for _, w := range []wiring{
		{name: "as built"},
		{"both keys of a transfer are one", func(_ *extSender, r *peer) { r.takes.seeds[1] = r.takes.seeds[0] }, true},
		{"a key serves both directions", func(_ *extSender, r *peer) { r.takes.seeds[1] = r.offers.seeds }, true},
	} {
		parties, choices := couple(t, 1, w)
		colluder, count := parties[1].peers[0], parties[1].config.transfers()
		body, size := openBody(t, parties[1], choices[0]), columnSize(count)
		x := parties[0].peers[1].choices
		worst, sum := 0.0, make([]byte, size)
		for k := range kappa {
			keys := [][32]byte{colluder.offers.seeds[k], colluder.takes.seeds[0][k],
				colluder.takes.seeds[1][k]}
			for subset := range 1 << len(keys) {
				copy(sum, body[k*size:])
				for i, key := range keys {
					if subset>>i&1 == 1 {
						column := make([]byte, size)
						stream(column, &key)
						subtle.XORBytes(sum, sum, column)
					}
				}
				agree := 0
				for i := range count / 8 {
					agree += 8 - bits.OnesCount8(sum[i]^x[i])
				}
				worst = max(worst, math.Abs(float64(agree)/float64(count)-0.5))
			}
		}
		if broken := worst > 0.12; broken != w.broken {
			t.Errorf("%s: choices are read in a share of 1/2 ± %.3f", w.name, worst)
		}
		t.Logf("%s: choices are read in a share of 1/2 ± %.3f", w.name, worst)
	}
}
