package oneshot

import (
	"encoding/hex"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/shamir"
)

// byPaths returns a world of a committee whose members get values of P by paths: ten of them, with
// r = 8.
func byPaths(t *testing.T) *world {
	t.Helper()
	terms := bounded(Terms{})
	terms.PerPolynomial = 7
	w := newWorld(4, 10, terms)
	if s := must(w.config.settle()); !s.byPath() || s.entryDealingSize() != 32*7 ||
		s.dealingSize() != 32*10 {
		t.Fatalf("%d bytes in place of %d", s.entryDealingSize(), s.dealingSize())
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPoints: with values of P by paths a sum comes out, a share that does not fit convicts its
// dealer, and the evidence holds for others.
func TestPoints(t *testing.T) {
	w := byPaths(t)
	var messages [][]byte
	for i := range 4 {
		d := dealer{}
		if i == 3 {
			d.parts = func(parts []shamir.PackedShare) {
				x := must(edwards25519.NewScalar().SetCanonicalBytes(parts[4].Values[0][:]))
				parts[4].Values[0] = [32]byte(x.Add(x, scalarOf(1)).Bytes())
			}
		}
		messages = append(messages, w.deal(i, d))
	}
	sum, err := w.run(messages)
	if err != nil {
		t.Fatal(err)
	}
	w.near(t, sum, w.total(0, 1, 2))
	if len(w.convicted) != 1 || w.convicted[0].Party != 3 {
		t.Fatal(w.convicted)
	}
	b := must(w.convicted[0].Evidence.AppendBinary(nil))
	evidence := must(ParseEvidence(b))
	if k, shares := evidence.Member(); !shares || k != 4 || evidence.Verify() != nil {
		t.Errorf("member %d, %v: %v", k, shares, evidence.Verify())
	}
}

// TestPointsChanged: a member that is shown another value of P, path or commitment than the dealer
// signed disputes and opens nothing. If it believed the value it would open an honest party's leaf.
func TestPointsChanged(t *testing.T) {
	w := byPaths(t)
	if err := w.server.Receive(must(w.submit(0))); err != nil {
		t.Fatal(err)
	}
	s := w.server.config
	envelopes := must(w.server.Batch())
	for at := range s.entryDealingSize() / 32 {
		e := envelopes[at]
		message := slices.Clone(e.Message)
		message[bodyAt+4+4+64+32+s.extraSize()+32*at] ^= 1
		answer, err := w.members[e.To].Receive(message)
		if err != nil {
			t.Fatal(err)
		}
		kind, dispute := answer[1], answer[len(answer)-1]
		if kind != byte(typeDisputes) || dispute != 1 {
			t.Errorf("place %d: a message of type %d, %x", at, kind, dispute)
		}
	}
}

// TestPointsOf: values are those of the polynomial, and their paths lead to the root that a dealer
// signs; a dealing whose P is no scalars has none.
func TestPointsOf(t *testing.T) {
	w := byPaths(t)
	s := w.server.config
	var context [32]byte
	for i := range context {
		context[i] = byte(i)
	}
	dealing := make([]byte, s.dealingSize())
	dealing[64], dealing[96], dealing[64+32*7] = 5, 3, 1 // 5 + 3x + x^7
	p := s.pointsOf(&context, 2, dealing)
	for k := range 10 {
		x := k + 1
		want := 5 + 3*x + x*x*x*x*x*x*x
		if got := scalarOf(uint32(want)); [32]byte(got.Bytes()) != p.values[k] {
			t.Errorf("value %d is not %d", k, want)
		}
		leaf := pointLeaf(&context, 2, k, p.values[k][:])
		if root := rootOf(leaf, k, path(p.levels, k)); !slices.Equal(root[:], p.root()) {
			t.Errorf("the path of %d leads elsewhere", k)
		}
	}
	// What is signed is that of a program that was written from the specification.
	if got := hex.EncodeToString(s.bindDigest(&context, 2, dealing, nil)); got !=
		"b9faf45953449abcc8738ad02146819f53ad94860c9a8c446379249a228fd5ee" {
		t.Error(got)
	}
	dealing[95] = 255
	if s.pointsOf(&context, 2, dealing) != nil {
		t.Error("values of what is no polynomial")
	}
	if s.bindDigest(&context, 2, dealing, nil) == nil {
		t.Error("nothing is bound")
	}
}
