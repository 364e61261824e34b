package oneshot

import (
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
)

// boundedNoise is bounded with noise by the members, each of whom deviates by 20.
func boundedNoise(members, faults int) Terms {
	t := membersNoise(20, members, faults)
	t.Norm, t.Colluders, t.MinSurvivors = 290, 1, 3
	return t
}

// TestBoundedNoise: what spoils a sum, or puts more into it than noise, names the member that dealt
// it, with evidence that holds, and that holds of nobody else; the sum has the noise of the others.
// Each cheat takes its turn as one of two faults, next to a party that cheats in the same way.
func TestBoundedNoise(t *testing.T) {
	remember(t)
	const parties, members, liar = 5, 7, 4
	for name, cheat := range cheats {
		t.Run(name, func(t *testing.T) {
			w := newWorld(parties, members, boundedNoise(members, 2))
			var refused *MemberError
			w.noise = func(k int, m []byte) []byte {
				if k != liar {
					return m
				}
				m = w.cheat(parties+liar, name, cheat)
				err := w.server.Receive(m)
				if err == nil {
					return nil // it shows in the shares
				}
				if !errors.Is(err, ErrProof) || !errors.As(err, &refused) || w.server.Awaits(liar) {
					t.Fatal(err)
				}
				return nil
			}
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			if err := w.deliver(nil); err != nil {
				t.Fatal(err)
			}
			if refused == nil && len(w.liars) == 1 {
				refused = w.liars[0]
			} else if len(w.liars)+len(w.convicted) != 0 {
				t.Fatalf("%v and %v are convicted", w.liars, w.convicted)
			}
			if refused == nil || refused.Member != liar || refused.Evidence == nil {
				t.Fatalf("%v is named", refused)
			}
			checkNoiseEvidence(t, refused.Evidence, liar)
			if got := w.server.NoiseOf(); !slices.Equal(got, []int{0, 1, 2, 3, 5, 6}) {
				t.Errorf("noise of %v", got)
			}
			message := w.cheat(0, name, cheat)
			err := w.server.Receive(message)
			var named *PartyError
			if err != nil && (!errors.Is(err, ErrProof) || !errors.As(err, &named) || named.Party != 0) {
				t.Fatal(err)
			}
			var messages [][]byte
			for i := 1; i < parties; i++ {
				messages = append(messages, must(w.submit(i)))
			}
			sum, err := w.run(messages)
			if err != nil {
				t.Fatal(err)
			}
			w.near(t, sum, w.total(1, 2, 3, 4))
		})
	}
}

// TestBoundedNoiseTooFew: where more than Faults members are convicted the noise of the others is
// too little, and the batch has no outcome.
func TestBoundedNoiseTooFew(t *testing.T) {
	w := newWorld(5, 7, boundedNoise(7, 2))
	w.noise = func(k int, m []byte) []byte {
		if k < 3 {
			m = w.deal(5+k, dealer{parts: moved(5)})
		}
		return m
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(nil); !errors.Is(err, ErrTooFew) {
		t.Errorf("noise of 4 of 7: %v", err)
	}
}

// checkNoiseEvidence: evidence names the member, also once it has travelled, and holds of no other.
func checkNoiseEvidence(t *testing.T, e *Evidence, member int) {
	t.Helper()
	e, err := ParseEvidence(must(e.AppendBinary(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if k, noise := e.NoiseOf(); !noise || k != member || e.Party() != -1 || e.Verify() != nil {
		t.Errorf("evidence of %d, %v, party %d: %v", k, noise, e.Party(), e.Verify())
	}
	other := *e
	other.claim.Party--
	if !errors.Is(other.Verify(), ErrEvidence) {
		t.Error("the evidence convicts another member")
	}
	other.claim.Party = 0
	if !errors.Is(other.Verify(), ErrEvidence) {
		t.Error("the evidence convicts a party")
	}
}

// TestBoundedNoiseRoles: noise is not a party's vector and a vector no noise, though one proof is
// like the other.
func TestBoundedNoiseRoles(t *testing.T) {
	w := newWorld(5, 7, boundedNoise(7, 2))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	s := w.server.config
	if s.memberBound >= s.bound || s.prover(0).Bound != s.bound || s.prover(5).Bound != s.memberBound {
		t.Errorf("bounds %d and %d", s.bound, s.memberBound)
	}
	var context, root [32]byte
	if s.proofStatement(&context, 4, root, root, nil, nil).Role != 0 ||
		s.proofStatement(&context, 5, root, root, nil, nil).Role != 1 {
		t.Error("roles of proofs")
	}
	party := must(w.submit(0))
	for name, one := range map[string]struct {
		dealer int
		copied []byte
	}{
		"a party's proof for noise": {5 + 3, party},
		"noise of another's proof":  {5 + 3, w.members[2].Output()},
		"noise's proof for a party": {0, w.members[2].Output()},
	} {
		w.server.open.received.Remove(5 + 3)
		message := w.deal(one.dealer, dealer{copied: one.copied})
		if err := w.server.Receive(message); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBoundedNoiseTerms: modulus and lanes have room for what all parties and all members can add,
// and the digest of the configuration is over both bounds.
func TestBoundedNoiseTerms(t *testing.T) {
	terms := boundedNoise(10, 2)
	all, err := derive(5, 10, &terms)
	if err != nil {
		t.Fatal(err)
	}
	without := terms
	without.CommitteeNoise = false
	parties, err := derive(5, 10, &without)
	if err != nil {
		t.Fatal(err)
	}
	// A member's variance is 400 and a party's 40.96, of 5 values and 64.
	if want := uint64(400 * (69 + 11*9)); all.memberBound != want {
		t.Errorf("β² of members is %d, want %d", all.memberBound, want)
	}
	if want := mostOf(all.bound, 5) + mostOf(all.memberBound, 10); all.off != want {
		t.Errorf("sums lie within %d, want %d", all.off, want)
	}
	adds := 3.05 * math.Sqrt(float64(all.memberBound)) / float64(terms.Norm)
	if math.Abs(all.MemberAdds-adds) > 1e-9 {
		t.Errorf("a member adds %v, want %v", all.MemberAdds, adds)
	}
	if all.bound >= parties.bound {
		t.Errorf("a party's bound is %d, and %d where it adds the noise", all.bound, parties.bound)
	}
	crowd := terms
	for _, n := range []int{5, 259, 260, 4400, 1 << 17} {
		crowd.MinSurvivors, crowd.Colluders = n, 0
		d, err := derive(n, 10, &crowd)
		if err != nil {
			t.Fatal(err)
		}
		need := 973 * float64(n+10)
		if edge := math.Ldexp(1, int(d.lanes)-1); edge < need || d.lanes > narrow && edge >= 2*need {
			t.Errorf("lanes of %d bits for %d parties", d.lanes, n)
		}
	}
	loud := membersNoise(1000, 10, 2)
	loud.Norm, loud.Colluders = 1, 1
	d, err := derive(5, 10, &loud)
	if err != nil || d.memberBound <= d.bound {
		t.Errorf("members' noise that is longer than what parties add: %v", err)
	}
	// Where one member may be faulty, nothing else asks for so large a modulus as its bound does:
	// there is a power of two between for one of these, so that bits are missing.
	for _, sigma := range []int64{1000, 1300, 1700} {
		loud := membersNoise(sigma, 10, 1)
		loud.Norm, loud.Colluders, loud.Length = 1, 1, 10_000
		if d, err := derive(5, 10, &loud); err != nil ||
			float64(d.Modulus) < unwrapped*math.Sqrt(float64(d.memberBound)) {
			t.Errorf("the modulus is too short for members' noise of %d: %v", sigma, err)
		}
	}
	w := newWorld(5, 7, boundedNoise(7, 2))
	digest := must(w.config.settle()).digest
	if got := hex.EncodeToString(digest[:8]); got != "3a35e612a629336f" {
		t.Errorf("digest %s…", got)
	}
}
