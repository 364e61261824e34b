package oblivious

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
)

// jointTrio is a session of three parties in which party 1 is the cheater.
func jointTrio(t testing.TB, seed byte, stage jointStage) []*Joint {
	t.Helper()
	parties := jointSession(t, JointConfig{Label: "trio", Length: 2, Bound: 2, Coins: []int{1, 1}},
		[][]uint64{{1, 2}, {0, 1}, {2, 0}}, seeded(seed))
	jointUntil(t, parties, stage)
	if stage == stageTurns { // party 1 is to move
		if err := jointStep(t, parties, nil); err != nil {
			t.Fatal(err)
		}
	}
	return parties
}

// honestBody returns the body that an honest party sends in its step.
func honestBody(t testing.TB, j *Joint) []byte {
	t.Helper()
	var body []byte
	var err error
	switch j.due() {
	case jointKey:
		_, body, err = makeKey(j.session, j.party, j.random)
	case jointInput:
		body, err = j.makeInput()
	case jointTurn:
		body, err = j.makeTurn()
	case jointShare:
		body, err = j.open.make(j.party, j.secret, j.random)
	}
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// plus adds multiples of G to an element.
func plus(t testing.TB, element []byte, x uint64) []byte {
	t.Helper()
	p, err := decodePoint(element)
	if err != nil {
		t.Fatal(err)
	}
	return appendElement(nil, p.Add(p, new(edwards25519.Point).ScalarBaseMult(small(x))))
}

// swapRecords changes two records of a size in place of each other, in both parts of a turn.
func swapRecords(body []byte, n, i, k int) []byte {
	out := bytes.Clone(body)
	for _, part := range []struct{ at, size int }{{0, moveSize}, {n * moveSize, responseSize}} {
		a := bytes.Clone(out[part.at+i*part.size:][:part.size])
		copy(out[part.at+i*part.size:], out[part.at+k*part.size:][:part.size])
		copy(out[part.at+k*part.size:], a)
	}
	return out
}

// Every lie of a party is refused by the others, who then know that party's name, and a session
// in which it then tells the truth goes on.
func TestJointLies(t *testing.T) {
	fresh := seeded(99)
	for _, lie := range []struct {
		name  string
		stage jointStage
		body  func(t *testing.T, parties []*Joint) []byte
	}{
		{"a key that cancels another, with that one's proof", stageKeys,
			func(t *testing.T, parties []*Joint) []byte {
				other := honestBody(t, parties[0])
				p, err := decodePoint(other[:elementSize])
				if err != nil {
					t.Fatal(err)
				}
				x := new(edwards25519.Point).ScalarBaseMult(small(5))
				return append(appendElement(nil, x.Subtract(x, p)), other[elementSize:]...)
			}},
		{"another party's key and proof", stageKeys, func(t *testing.T, parties []*Joint) []byte {
			return honestBody(t, parties[0])
		}},
		{"a key proved for another session", stageKeys, func(t *testing.T, parties []*Joint) []byte {
			_, body, err := makeKey([32]byte{1}, 1, fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"a key of no element", stageKeys, func(t *testing.T, parties []*Joint) []byte {
			return make([]byte, keySize)
		}},
		{"another party's input", stageInputs, func(t *testing.T, parties []*Joint) []byte {
			return honestBody(t, parties[0])
		}},
		{"a bit of 2", stageInputs, func(t *testing.T, parties []*Joint) []byte {
			body := honestBody(t, parties[1])
			return bytes.Join([][]byte{body[:32], plus(t, body[32:64], 1), body[64:]}, nil)
		}},
		{"a bit of 2, as proved as can be", stageInputs, func(t *testing.T, parties []*Joint) []byte {
			// E − C for a C of −1, on which an honest turn would be honest.
			j := parties[1]
			turn := j.turnOf(jointInput, 1)
			turn.current[0].b.Negate(generator)
			body, err := turn.make([]byte{1, 0, 0, 0}, fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"an input as a turn", stageInputs, func(t *testing.T, parties []*Joint) []byte {
			turn := parties[1].turnOf(jointInput, 1)
			turn.label = labels.JointProofTurn
			body, err := turn.make(make([]byte, 4), fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"an input of another session", stageInputs, func(t *testing.T, parties []*Joint) []byte {
			return honestBody(t, jointTrio(t, 77, stageInputs)[1])
		}},
		{"fresh coins in the place of those that were flipped", stageTurns,
			func(t *testing.T, parties []*Joint) []byte {
				turn := parties[1].turnOf(jointTurn, 1)
				turn.current = trivials(len(turn.current))
				body, err := turn.make(make([]byte, len(turn.current)), fresh)
				if err != nil {
					t.Fatal(err)
				}
				return body
			}},
		{"a coin of 2", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			body := honestBody(t, parties[1])
			return bytes.Join([][]byte{body[:32], plus(t, body[32:64], 1), body[64:]}, nil)
		}},
		{"a coin of another key", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			turn := parties[1].turnOf(jointTurn, 1)
			turn.key = newJointPublic(generator)
			body, err := turn.make(make([]byte, len(turn.current)), fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"a proof under another coin", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			return swapRecords(honestBody(t, parties[1]), 4, 0, 1)
		}},
		{"a coin that was flipped in another's place", stageTurns,
			func(t *testing.T, parties []*Joint) []byte {
				turn := parties[1].turnOf(jointTurn, 1)
				turn.current = slices.Clone(turn.current)
				turn.current[0], turn.current[2] = turn.current[2], turn.current[0]
				body, err := turn.make(make([]byte, 4), fresh)
				if err != nil {
					t.Fatal(err)
				}
				return body
			}},
		{"the turn of a party before", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			// As long as the same session; its coins are sent once more.
			return honestBody(t, jointTrio(t, 77, stageTurns)[1])
		}},
		{"a turn proved by another party", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			body, err := parties[1].turnOf(jointTurn, 2).make(make([]byte, 4), fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"a turn without proof", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			body := honestBody(t, parties[1])
			clear(body[4*moveSize:])
			return body
		}},
		{"both branches simulated", stageTurns, func(t *testing.T, parties []*Joint) []byte {
			return simulateBoth(t, parties[1].turnOf(jointTurn, 1))
		}},
		{"a share that is too large", stageShares, func(t *testing.T, parties []*Joint) []byte {
			body := honestBody(t, parties[1])
			return append(plus(t, body[:32], 1), body[32:]...)
		}},
		{"shares whose errors cancel", stageShares, func(t *testing.T, parties []*Joint) []byte {
			return cancelling(t, parties[1])
		}},
		{"a share by another secret", stageShares, func(t *testing.T, parties []*Joint) []byte {
			body, err := parties[1].open.make(1, small(7), fresh)
			if err != nil {
				t.Fatal(err)
			}
			return body
		}},
		{"another party's share", stageShares, func(t *testing.T, parties []*Joint) []byte {
			return honestBody(t, parties[0])
		}},
		{"shares of coordinates in each other's place", stageShares,
			func(t *testing.T, parties []*Joint) []byte {
				body := honestBody(t, parties[1])
				return bytes.Join([][]byte{body[32:64], body[:32], body[64:]}, nil)
			}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			parties := jointTrio(t, 1, lie.stage)
			for i, j := range parties {
				j.random = seeded(byte(50 + i)) // what the lie draws is not drawn again
			}
			message := parties[1].forge(t, lie.body(t, parties))
			for _, i := range []int{0, 2} {
				err := parties[i].Receive(message)
				var peer *PeerError
				if !errors.As(err, &peer) || peer.Peer != 1 ||
					!errors.Is(err, ErrProof) && lie.name != "a key of no element" {
					t.Fatalf("party %d: %v", i, err)
				}
			}
			if lie.stage == stageInputs {
				parties[1].input = []uint64{0, 1} // it was erased when the lie was made
			}
			jointUntil(t, parties, stageSum)
			if _, err := parties[2].Sum(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// simulateBoth makes a turn into coins of 1 in every place, by proofs of which both branches are
// simulated: responses and challenges first, then what fits them, then the hash.
func simulateBoth(t testing.TB, turn *turn) []byte {
	t.Helper()
	r := seeded(98)
	draw := func() *edwards25519.Scalar {
		s, err := drawScalar(r)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var moves, responses []byte
	for _, c := range turn.current {
		after := ciphertext{}
		turn.randomise(&after, draw())
		after.b.Add(&after.b, generator)
		moves = appendElement(appendElement(moves, &after.a), &after.b)
		x := [2]ciphertext{after, after}
		x[0].a.Subtract(&after.a, &c.a)
		x[0].b.Subtract(&after.b, &c.b)
		x[1].add(&c)
		x[1].b.Subtract(&x[1].b, generator)
		e := [2]*edwards25519.Scalar{draw(), draw()}
		z := [2]*edwards25519.Scalar{draw(), draw()}
		for branch := range 2 {
			k := ciphertext{}
			turn.randomise(&k, z[branch])
			x[branch].a.ScalarMult(e[branch], &x[branch].a)
			x[branch].b.ScalarMult(e[branch], &x[branch].b)
			k.a.Subtract(&k.a, &x[branch].a)
			k.b.Subtract(&k.b, &x[branch].b)
			moves = appendElement(appendElement(moves, &k.a), &k.b)
		}
		for _, s := range []*edwards25519.Scalar{e[0], z[0], z[1]} {
			responses = append(responses, s.Bytes()...)
		}
	}
	return append(moves, responses...)
}

// cancelling makes shares D_0 + E and D_1 − E, with a proof that would hold if every coordinate
// had the weight 1.
func cancelling(t testing.TB, j *Joint) []byte {
	t.Helper()
	body := honestBody(t, j)
	second, err := decodePoint(body[32:64])
	if err != nil {
		t.Fatal(err)
	}
	second.Subtract(second, generator)
	encoded := appendElement(plus(t, body[:32], 1), second)
	sum := edwards25519.NewIdentityPoint() // with weights of 1: the honest one's
	for k := range j.open.sums {
		sum.Add(sum, &j.open.sums[k].a)
	}
	w := small(12345)
	c := j.open.challenge(j.party, encoded, new(edwards25519.Point).ScalarBaseMult(w),
		sum.ScalarMult(w, sum))
	z := new(edwards25519.Scalar).MultiplyAdd(c, j.secret, w)
	return append(append(encoded, c.Bytes()...), z.Bytes()...)
}

// Whatever bit of a body is changed, and signed again by its sender, it is refused.
func TestJointChanged(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for stage := stageKeys; stage <= stageShares; stage++ {
		parties := jointTrio(t, 2, stage)
		if stage == stageConfirm {
			continue // it has no body
		}
		body := honestBody(t, parties[1])
		n := len(body) / turnSize
		for try := range suite.Size(12, 12, 200, 2000) {
			at := r.IntN(len(body))
			if stage == stageInputs || stage == stageTurns { // each field in turn
				at = r.IntN(n)*moveSize + try%9*elementSize + r.IntN(elementSize)
				if try%9 >= 6 {
					at = n*moveSize + r.IntN(n)*responseSize + try%9%3*scalarSize + r.IntN(scalarSize)
				}
			}
			changed := bytes.Clone(body)
			changed[at] ^= 1 << r.IntN(8)
			err := parties[0].Receive(parties[1].forge(t, changed))
			var peer *PeerError
			if !errors.As(err, &peer) || peer.Peer != 1 ||
				!errors.Is(err, ErrProof) && !errors.Is(err, ErrEncoding) {
				t.Fatalf("stage %d, byte %d: %v", stage, at, err)
			}
		}
		for _, wrong := range [][]byte{body[1:], append(bytes.Clone(body), 0), nil} {
			if err := parties[0].Receive(parties[1].forge(t, wrong)); !errors.Is(err, ErrEncoding) {
				t.Fatalf("stage %d, %d bytes: %v", stage, len(wrong), err)
			}
		}
		if err := parties[0].Receive(parties[1].forge(t, body)); err != nil {
			t.Fatalf("stage %d: the message as it was: %v", stage, err)
		}
	}
}

// A message that somebody changed on its way, or made up, is nobody's.
func TestJointOnTheWay(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for stage := stageKeys; stage <= stageShares; stage++ {
		parties := jointTrio(t, 2, stage)
		message, err := parties[1].Next()
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			changed := bytes.Clone(message)
			changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
			err := parties[0].Receive(changed)
			var peer *PeerError
			if err == nil || errors.As(err, &peer) {
				t.Fatalf("stage %d: %v", stage, err)
			}
		}
		other, _ := parties[1].config.parseJoint(message)
		other.from = 2
		for name, want := range map[string]error{"unsigned": ErrSignature, "own": ErrSender,
			"stranger": ErrSender, "session": ErrSender, "kind": ErrEncoding, "version": ErrEncoding} {
			m := other
			switch name {
			case "own":
				m.from = 0
			case "stranger":
				m.from = 3
			case "session":
				m.session[0]++
			case "kind":
				m.kind = 0
			}
			b := m.append(nil)
			if name == "version" {
				b[0]++
			}
			if stage == stageTurns && name == "unsigned" {
				want = ErrPhase // it is not party 2's turn
			}
			if err := parties[0].Receive(b); !errors.Is(err, want) {
				t.Errorf("stage %d, %s: %v", stage, name, err)
			}
		}
		if err := parties[0].Receive(message); err != nil {
			t.Fatal(err)
		}
		want := ErrDuplicate
		if stage == stageTurns {
			want = ErrPhase
		}
		if err := parties[0].Receive(message); !errors.Is(err, want) {
			t.Errorf("stage %d, again: %v", stage, err)
		}
	}
}

// Messages of another step wait; so do turns out of turn.
func TestJointPhases(t *testing.T) {
	late := jointTrio(t, 3, stageKeys)
	early := jointTrio(t, 3, stageInputs)
	message, err := early[1].Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := late[0].Receive(message); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	parties := jointTrio(t, 3, stageTurns) // party 1 is to move
	if message, err := parties[2].Next(); message != nil || err != nil {
		t.Error("a turn out of turn", err)
	}
	err = parties[0].Receive(parties[2].forge(t, honestBody(t, parties[2])))
	if !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
}

// A carrier with a cheater that shows two parties different things gets no share of either,
// wherever the two begin to differ.
func TestJointEquivocation(t *testing.T) {
	for stage := stageKeys; stage <= stageTurns; stage++ {
		for cheater := range 3 {
			parties := jointTrio(t, 4, stageKeys)
			jointUntil(t, parties, stage)
			for stage == stageTurns && parties[0].turn < cheater {
				if err := jointStep(t, parties, nil); err != nil {
					t.Fatal(err)
				}
			}
			// The cheater is two parties from here on, of which each honest one sees one.
			twin := *parties[cheater]
			twin.bodies = append([][]byte(nil), twin.bodies...)
			twin.keys = append([]*edwards25519.Point(nil), twin.keys...)
			twin.inputs = append([][]ciphertext(nil), twin.inputs...)
			twin.shares = append([][]*edwards25519.Point(nil), twin.shares...)
			twin.input = append([]uint64(nil), twin.input...)
			twin.random = seeded(66)
			last := (cheater + 2) % 3 // sees the twin
			all := append(append([]*Joint(nil), parties...), &twin)
			type delivery struct {
				to      int
				message []byte
			}
			var refused error
			var pending []delivery
			for range 12 {
				for k, from := range all {
					message, err := from.Next()
					if err != nil {
						t.Fatal(err)
					}
					for l, to := range all {
						hidden := k == cheater && l == last || k == 3 && l != last
						if message != nil && !hidden && from.party != to.party {
							pending = append(pending, delivery{l, message})
						}
					}
				}
				waiting := pending
				pending = nil
				for _, d := range waiting {
					err := all[d.to].Receive(d.message)
					if errors.Is(err, ErrPhase) {
						pending = append(pending, d)
					} else if err != nil {
						refused = errors.Join(refused, err)
					}
				}
			}
			for i, j := range parties {
				if i != cheater && j.Spent() {
					t.Errorf("stage %d, cheater %d: party %d has made its share", stage, cheater, i)
				}
			}
			if !errors.Is(refused, ErrSignature) {
				t.Errorf("stage %d, cheater %d: %v", stage, cheater, refused)
			}
		}
	}
}

// What a challenge is over: a change in any of it, at the checker's, and the proof does not hold.
func TestJointTranscript(t *testing.T) {
	parties := jointTrio(t, 5, stageTurns)
	honest := parties[1].turnOf(jointTurn, 1)
	body := honestBody(t, parties[1])
	for name, change := range map[string]func(*turn){
		"as it is": func(*turn) {},
		"label":    func(c *turn) { c.label = labels.JointProofInput },
		"before":   func(c *turn) { c.before[31]++ },
		"party":    func(c *turn) { c.party++ },
		"key":      func(c *turn) { c.key = newJointPublic(generator) },
		"current":  func(c *turn) { c.current[3].a.Add(&c.current[3].a, generator) },
	} {
		other := *honest
		other.current = slices.Clone(other.current)
		change(&other)
		if _, err := other.take(body); !errors.Is(err, ErrProof) && name != "as it is" ||
			err != nil && name == "as it is" {
			t.Errorf("%s: %v", name, err)
		}
	}
	parties = jointTrio(t, 5, stageShares)
	open, body := parties[1].open, honestBody(t, parties[1])
	swapped := opening{open.before, []ciphertext{open.sums[1], open.sums[0]}}
	for name, err := range map[string]error{
		"as it is":   second(open.take(1, parties[1].keys[1], body)),
		"party":      second(open.take(2, parties[1].keys[1], body)),
		"key":        second(open.take(1, parties[1].keys[2], body)),
		"before":     second((&opening{[32]byte{1}, open.sums}).take(1, parties[1].keys[1], body)),
		"other sums": second(swapped.take(1, parties[1].keys[1], body)),
	} {
		if (err == nil) != (name == "as it is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
