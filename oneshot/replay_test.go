package oneshot

import (
	"bytes"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// Most of what tests with a bound take is proving. A message with a proof is made once in a process
// for all worlds with the same configuration and the same opening, in which are the members' keys:
// the others replay it. Without a bound there is nothing to gain.
var (
	sent   = make(map[[32]byte][]byte)   // by [world.place]
	rounds = make(map[[32]byte]thenOpen) // members' states with what they dealt, likewise
	proved = make(map[proofOf]error)
)

// thenOpen is a member that has opened a round.
type thenOpen struct {
	saved, random []byte
	digests       []byte // of candidates that it sent before, where noise is drawn under audit
}

// proofOf is all that the outcome of a proof depends on.
type proofOf struct {
	normproof.Parameters
	h [32]byte
}

// place names a message of dealer i (see [settled.dealers]), by what the dealer knows and does.
func (w *world) place(conduct string, i int, more ...[]byte) [32]byte {
	s := must(w.config.settle())
	return hash("test", append([][]byte{s.digest[:], uint32Bytes(len(w.opening)), w.opening,
		uint32Bytes(i), uint32Bytes(len(conduct)), []byte(conduct)}, more...)...)
}

// once returns a copy of the message that dealer i sends if it acts as named: what makes it is
// called where no world has made it before.
func (w *world) once(conduct string, i int, makeIt func() ([]byte, error)) ([]byte, error) {
	if w.config.Norm == 0 || w.anew {
		return makeIt()
	}
	place := w.place(conduct, i)
	if _, ok := sent[place]; !ok {
		message, err := makeIt()
		if err != nil {
			return nil, err
		}
		sent[place] = bytes.Clone(message)
	}
	return bytes.Clone(sent[place]), nil
}

// cheat is deal for a named cheat. Worlds replay what was made under the name: it stands for one
// dealer alone.
func (w *world) cheat(i int, name string, d dealer) []byte {
	message := must(w.once("cheat: "+name, i, func() ([]byte, error) { return w.deal(i, d), nil }))
	if s := w.server.config; s.tailSize(i) > 0 {
		w.commit(i, message, message[len(message)-auditTailSize:])
	}
	return message
}

// remember has proofs of the test verified once each: its rounds are many, and their proofs few.
func remember(t *testing.T) {
	for _, by := range []*verifier{&verify, &quickly} {
		before := *by
		t.Cleanup(func() { *by = before })
		*by = remembered(before)
	}
}

// remembered verifies each proof once.
func remembered(before verifier) verifier {
	return func(s *normproof.Scheme, st *normproof.Statement, d *normproof.Dealing, p []byte) error {
		parts := [][]byte{st.Config[:], st.Context[:], st.RingKey[:], uint32Bytes(int(st.Party)),
			{st.Role}, st.Root[:], st.Digest[:], uint32Bytes(len(st.Commitment)), st.Commitment,
			appendDealing(nil, d), p}
		for _, x := range st.Masked {
			parts = append(parts, uint64Bytes(x))
		}
		of := proofOf{s.Parameters, hash("test", parts...)}
		err, ok := proved[of]
		if !ok {
			err = before(s, st, d, p)
			proved[of] = err
		}
		return err
	}
}

// drawn opens the round to the members and returns the noise of each, nil if it deals none. Under
// audit members send candidates for it, and the server its coin.
func (w *world) drawn(has func(k int) bool) (drawn [][]byte, err error) {
	s := w.server.config
	drawn = make([][]byte, s.c)
	for k, m := range w.members {
		var digests []byte
		switch {
		case has != nil && !has(k):
			continue
		case !s.audited():
			if drawn[k], err = m.Receive(w.opening); err != nil {
				return nil, err
			}
			continue
		}
		if digests, drawn[k], err = w.drawnOf(k); err != nil {
			return nil, err
		}
		if w.candidates != nil {
			digests = w.candidates(k, digests)
		}
		if digests == nil {
			continue
		}
		if err := w.server.Receive(digests); err != nil {
			return nil, err
		}
	}
	if s.audited() {
		_, err = w.server.Coin(bytes.NewReader(testCoin[:]))
	}
	return drawn, err
}

// testCoin is the coin of worlds.
var testCoin = [coinSize]byte{1, 2, 3}

// drawnOf returns a member's candidates, and its answer to the coin that will be drawn. A
// member in the state in which another was is loaded from that other's.
func (w *world) drawnOf(k int) (digests, dealt []byte, err error) {
	m, key := w.members[k], new(keyexchange.SealKey)
	r := w.server.open
	coin := append(w.server.config.header(typeCoin, &r.context, w.server.round, wire.ServerIndex),
		testCoin[:]...)
	answers := func() (digests, dealt []byte, err error) {
		if digests, err = m.Receive(w.opening); err == nil {
			dealt, err = m.Receive(coin)
		}
		return digests, dealt, err
	}
	random, ok := m.random.(*mathrand.ChaCha8)
	if w.anew || !ok {
		return answers()
	}
	place := w.place("member", w.server.config.n+k, must(random.MarshalBinary()))
	if before, ok := rounds[place]; ok {
		if err := random.UnmarshalBinary(before.random); err != nil {
			return nil, nil, err
		}
		w.members[k], err = LoadMember(w.config, m.signer, random, key, before.saved)
		if err != nil {
			return nil, nil, err
		}
		return before.digests, w.members[k].Output(), nil
	}
	if digests, dealt, err = answers(); err == nil {
		rounds[place] = thenOpen{must(m.Save(key)), must(random.MarshalBinary()), digests}
	}
	return digests, dealt, err
}

// lucky completes noise of a dealer that cheats with the audit of one that was lucky: it had
// committed to this in the place of the candidate that the coin has drawn, and to seeds in the
// others.
func (w *world) lucky(dealer int, message []byte, m *submission) []byte {
	s, r := w.server.config, w.server.open
	var seeds []byte
	for t := range candidates - 1 {
		seeds = append(seeds, bytes.Repeat([]byte{byte(dealer), byte(t)}, seedSize/2)...)
	}
	masked := hash(labels.OneshotMasked, m.masked)
	w.commit(dealer, message, seeds)
	drawn := slices.Concat(r.candidates[dealer-s.n], testCoin[:], seeds)
	signature := must(keyexchange.Sign(w.members[dealer-s.n].signer, labels.OneshotAudit,
		auditStatement(&r.context, dealer, drawn, &masked, m.dealing)))
	return slices.Concat(message, seeds, signature[:])
}

// commit has the server hold candidates of a dealer that its noise, and seeds of the others, fit.
func (w *world) commit(dealer int, message, seeds []byte) {
	s, r := w.server.config, w.server.open
	m := must(s.parseSubmission(message[bodyAt:][:s.submissionSize(r.members.Len())], r.members.Len()))
	masked := hash(labels.OneshotMasked, m.masked)
	at := dealtBy(&r.context, testCoin[:], dealer)
	var digests []byte
	for t := range candidates {
		d := candidateDigest(&r.context, dealer, &masked, m.dealing[:32])
		if t < at {
			d = s.candidate(&r.context, dealer, seeds[seedSize*t:][:seedSize])
		} else if t > at {
			d = s.candidate(&r.context, dealer, seeds[seedSize*(t-1):][:seedSize])
		}
		digests = append(digests, d[:]...)
	}
	r.candidates[dealer-s.n] = digests
}

// signedAudit signs the end of member k's noise anew, for the candidates that the server holds.
func (w *world) signedAudit(k int, message []byte) []byte {
	s, r := w.server.config, w.server.open
	body, tail := message[bodyAt:len(message)-auditTailSize], message[len(message)-auditTailSize:]
	m := must(s.parseSubmission(body, r.members.Len()))
	masked := hash(labels.OneshotMasked, m.masked)
	drawn := slices.Concat(r.candidates[k], r.coin, tail[:openedSize])
	signature := must(keyexchange.Sign(w.members[k].signer, labels.OneshotAudit,
		auditStatement(&r.context, s.n+k, drawn, &masked, m.dealing)))
	return slices.Concat(message[:len(message)-len(signature)], signature[:])
}
