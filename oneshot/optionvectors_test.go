package oneshot

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"testing"
	"testing/cryptotest"

	"github.com/hushsum/hushsum/keyexchange"
)

// TestOptionVectors: whole rounds with a bound and with what may be asked for besides, of four
// parties with weights and five members of whom two may be in league and one faulty: with members'
// noise, drawn under audit, and with groups.
func TestOptionVectors(t *testing.T) {
	remember(t)
	noisy := bounded(Terms{Colluders: 1, KEM: KEMX25519})
	noisy.Faults, noisy.InLeague, noisy.Bits = 1, 2, 12
	grouped := noisy
	noisy.CommitteeNoise, noisy.Noise = true, gaussian(20, 2)
	grouped.Groups, grouped.MinSurvivors, grouped.Colluders = 2, 2, 0
	grouped.Noise = KeyNoise(2)
	compare(t, "audited.json", recordOptions(t, "a bound, weights, two members in league, noise of "+
		"members under audit, X25519", noisy))
	compare(t, "groups.json", recordOptions(t, "a bound, weights, two members in league, two groups, "+
		"X25519", grouped))
}

// recordOptions plays a round in which everybody is honest.
func recordOptions(t *testing.T, description string, terms Terms) *vectorRound {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 1)
	weights := []int{1, 3, 2, 5}
	w := newWorld(len(weights), 5, terms)
	w.config.Roster = must(w.config.Roster.Weigh(weights))
	s := must(w.config.settle())
	w.server = must(NewServer(w.config, 0))
	_, memberKeys := people("member", s.c)
	for k := range w.members {
		w.members[k] = must(NewMember(w.config, memberKeys[k], chacha(k)))
	}
	roster, committee := s.Roster.Digest(), s.Committee.Digest()
	r := &recorded{world: w}
	out := &r.out
	*out = vectorRound{
		Description: description,
		Config: vectorConfig{Label: s.Label, Length: s.Length, Bits: s.Bits,
			Noise: s.Terms.Noise.Scale().RatString(), MinSurvivors: s.MinSurvivors,
			Colluders: s.Colluders, Faults: s.Faults, Disputes: s.Figures.Disputes,
			PerPolynomial: s.Figures.PerPolynomial, KEM: int(s.KEM), Norm: s.Norm,
			InLeague: s.Figures.InLeague, MembersNoise: s.CommitteeNoise, Groups: s.Groups,
			Weights: weights},
		Figures: vectorFigures{Modulus: s.Modulus, Scale: s.Scale, Spare: s.Spare,
			Polynomials: s.Polynomials, Answers: s.Answers, Quorum: s.Quorum},
		RosterDigest: roster[:], CommitteeDigest: committee[:], ConfigDigest: s.digest[:],
		Broadcast: hexBytes("model"),
	}
	person := func(list *keyexchange.Roster, i int, key ed25519.PrivateKey) vectorPerson {
		return vectorPerson{Name: list.Name(i), Identity: hexBytes(key.Seed()),
			Public: hexBytes(list.Key(i))}
	}
	for i, key := range w.keys {
		out.Parties = append(out.Parties, person(s.Roster, i, key))
	}
	for k, key := range memberKeys {
		out.Members = append(out.Members, person(s.Committee, k, key))
	}
	receive := func(from string, message []byte) {
		r.note(from, "server", message)
		if err := w.server.Receive(message); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(to string, message []byte, after func(k int)) {
		r.note("server", to, message)
		for k, m := range w.members {
			answer := must(m.Receive(message))
			if after != nil {
				after(k)
			}
			if answer != nil {
				receive(fmt.Sprintf("member %d", k), answer)
			}
		}
	}
	settle := func() {
		for _, e := range must(w.server.Batch()) {
			r.note("server", fmt.Sprintf("member %d", e.To), e.Message)
			receive(fmt.Sprintf("member %d", e.To), must(w.members[e.To].Receive(e.Message)))
		}
		tell("members", must(w.server.Settle()), nil)
	}
	tell("members", w.server.Invite(), func(k int) {
		out.Members[k].Private = bytes.Clone(w.members[k].open.private.seed[:])
	})
	out.Round = w.server.Round()
	w.opening = must(w.server.Open(out.Broadcast))
	tell("all", w.opening, func(k int) {
		for _, seed := range w.members[k].open.seeds {
			out.Members[k].Seeds = append(out.Members[k].Seeds, bytes.Clone(seed[:]))
		}
	})
	context := w.server.open.context
	out.Context = context[:]
	if s.audited() {
		tell("members", must(w.server.Coin(bytes.NewReader(testCoin[:]))), nil)
		settle()
	}
	for i := range w.keys {
		values := []int64{200 + int64(i), -int64(i), 7, 0, -100}
		receive(fmt.Sprintf("party %d", i), must(w.party(i).Submit(w.opening, out.Broadcast, values)))
		out.Dealings = append(out.Dealings, vectorDealing{Party: i, Values: values})
	}
	settle()
	chain := w.server.open.chain
	out.Chain = chain[:]
	tell("members", must(w.server.Close()), nil)
	tell("members", must(w.server.Certificate()), nil)
	out.Included, out.Sum = w.server.Included(), must(w.server.Sum())
	return out
}
