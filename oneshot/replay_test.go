package oneshot

import (
	"bytes"
	mathrand "math/rand/v2"
	"testing"

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
type thenOpen struct{ saved, random []byte }

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
	return must(w.once("cheat: "+name, i, func() ([]byte, error) { return w.deal(i, d), nil }))
}

// opened has member k open the round and returns its noise, if members deal it. A member in the
// state in which another was is loaded from that other's.
func (w *world) opened(k int) ([]byte, error) {
	m, key := w.members[k], new(keyexchange.SealKey)
	random, ok := m.random.(*mathrand.ChaCha8)
	if w.config.Norm == 0 || !w.config.CommitteeNoise || w.anew || !ok {
		return m.Receive(w.opening)
	}
	place := w.place("member", w.server.config.n+k, must(random.MarshalBinary()))
	if before, ok := rounds[place]; ok {
		if err := random.UnmarshalBinary(before.random); err != nil {
			return nil, err
		}
		loaded, err := LoadMember(w.config, m.signer, random, key, before.saved)
		if err != nil {
			return nil, err
		}
		w.members[k] = loaded
		return loaded.Output(), nil
	}
	dealt, err := m.Receive(w.opening)
	if err != nil {
		return nil, err
	}
	rounds[place] = thenOpen{must(m.Save(key)), must(random.MarshalBinary())}
	return dealt, nil
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
