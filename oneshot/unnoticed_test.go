package oneshot

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// A party answers round numbers in ascending order: neither its last number again nor one below it,
// whether it goes on or is loaded.
func TestPartyRoundsRise(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	var openings [][]byte
	for range 3 {
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		openings = append(openings, w.opening)
	}
	first := w.party(0)
	submit := func(p *Party, round int) error {
		_, err := p.Submit(openings[round-1], []byte("model"), w.values(0))
		return err
	}
	if err := submit(first, 2); err != nil {
		t.Fatal(err)
	}
	key := must(keyexchange.GenerateSealKey(nil))
	loaded := must(LoadParty(w.config, w.keys[0], nil, key, must(first.Save(key))))
	for name, p := range map[string]*Party{"first": first, "loaded": loaded} {
		for _, c := range []struct {
			round int
			want  error
		}{{2, ErrReplay}, {1, ErrReplay}, {3, nil}, {1, ErrReplay}} {
			if err := submit(p, c.round); !errors.Is(err, c.want) {
				t.Errorf("%s: round %d: %v", name, c.round, err)
			}
		}
	}
}

// A member takes no opening that does not list it: be it the last, after whom there is no key, or
// one whose key another member has signed as its own.
func TestOpeningWithoutMember(t *testing.T) {
	for _, out := range []int{0, 3} {
		w := newWorld(5, 4, small(Terms{}))
		must(w.members[out].Receive(inviteTo(w, 1)))
		if err := w.begin(func(k int) bool { return k != out }); err != nil {
			t.Fatal(err)
		}
		m, s := w.members[out], w.server.config
		_, body, err := wire.ParseHeader(w.opening)
		if err != nil {
			t.Fatal(err)
		}
		o := must(s.parseOpening(1, body))
		// The member that has the place of the one that is out signs that one's key.
		copied := min(out, len(o.keys)-1)
		by := slices.Collect(o.members.All())[copied]
		own := m.open.public
		signature := must(keyexchange.Sign(memberKey(by), labels.OneshotKey, s.keyStatement(1, by, own)))
		o.keys[copied] = slices.Concat(own, signature[:])
		another := o.append(s.header(typeOpening, &s.digest, 1, wire.ServerIndex))
		for _, opening := range [][]byte{w.opening, another} {
			if _, err := m.Receive(opening); !errors.Is(err, ErrOwnKey) || m.Opened() != 0 {
				t.Errorf("member %d: %v", out, err)
			}
		}
	}
}

// A member disputes what a party dealt to it if the value of the cover is no canonical scalar: the
// server would refuse the member's answer for it.
func TestCoverValueCanonical(t *testing.T) {
	w := newWorld(5, 4, small(Terms{Covered: true}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		message := must(w.submit(i))
		if i == 1 {
			message = w.deal(i, dealer{covers: func(shares []shamir.Share) { beyond(&shares[2].Value) }})
		}
		if err := w.server.Receive(message); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(func(k int, answer []byte) []byte {
		_, bad, err := parseNumbered(answer[bodyAt:], 5)
		if err != nil || bad.Has(1) != (k == 2) || bad.Len() > 1 {
			t.Errorf("member %d disputes %v: %v", k, slices.Collect(bad.All()), err)
		}
		return answer
	}); err != nil {
		t.Fatal(err)
	}
}

// beyond adds the order of the group to a scalar.
func beyond(v *[32]byte) {
	order := [32]byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde,
		0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i := range v {
		carry += int(v[i]) + int(order[i])
		v[i], carry = byte(carry), carry>>8
	}
}

// A member counts no signature of a member that has no key in the round.
func TestCertificateOfRound(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	if err := w.begin(func(k int) bool { return k != 3 }); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := w.server.Receive(must(w.submit(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	closing := must(w.server.Close())
	s, r := w.server.config, w.server.open
	for k := range 3 {
		if err := w.server.Receive(must(w.members[k].Receive(closing))); err != nil {
			t.Fatal(err)
		}
	}
	signed := slices.Clone(r.signatures)
	signature := must(keyexchange.Sign(memberKey(3), labels.OneshotClosing,
		closingStatement(&r.context, &r.chain, r.counts)))
	signed[2] = wire.PartySignature{Party: 3, Signature: signature}
	message := signed.Append(s.header(typeCertificate, &r.context, 1, wire.ServerIndex))
	if _, err := w.members[0].Receive(message); len(signed) != s.Quorum ||
		!errors.Is(err, ErrCertificate) {
		t.Errorf("%d signatures: %v", len(signed), err)
	}
}

// What a member holds of a round is erased when it ends, however that is.
func TestRoundErased(t *testing.T) {
	w := newWorld(5, 4, small(Terms{Covered: true}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		message := must(w.submit(i))
		if i == 1 {
			message = w.deal(i, badBoxes(0))
		}
		if err := w.server.Receive(message); err != nil {
			t.Fatal(err)
		}
	}
	envelopes := must(w.server.Batch())
	answer := must(w.members[0].Receive(envelopes[0].Message))
	key := must(keyexchange.GenerateSealKey(nil))
	pending := must(w.members[0].Save(key))
	if err := w.server.Receive(answer); err != nil {
		t.Fatal(err)
	}
	settled := must(w.server.Settle())
	s, context := w.server.config, w.server.open.context
	all := wire.NewSet(5)
	for i := range 5 {
		all.Add(i)
	}
	lost := appendNumbered(s.header(typeSettled, &context, 1, wire.ServerIndex), 1, all)
	for _, c := range []struct {
		name string
		end  func(m *Member)
		left bool // the round goes on
	}{
		{"settled", func(m *Member) { must(m.Receive(settled)) }, true},
		{"lost", func(m *Member) { must(m.Receive(lost)) }, false},
		{"abandoned", (*Member).Abandon, false},
		{"another key", func(m *Member) { must(m.Receive(inviteTo(w, 2))) }, false},
		{"answered", func(m *Member) { m.answer(nil) }, false},
	} {
		m := must(LoadMember(w.config, memberKey(0), nil, key, pending))
		r := m.open
		r.covers = []byte{1}
		r.kept = []keptPart{{0, [][32]byte{{1}}}}
		r.sum.Values[0][0] = 1
		private, covers, kept, sum := r.private, r.covers, r.kept[0].values, r.sum.Values
		parts := slices.Clone(r.pending)
		c.end(m)
		for i, p := range parts {
			if slices.ContainsFunc(p.part.Values, func(v [32]byte) bool { return v != [32]byte{} }) ||
				slices.ContainsFunc(p.cover, func(b byte) bool { return b != 0 }) {
				t.Errorf("%s: what party %d dealt is left", c.name, i)
			}
		}
		if c.left {
			continue
		}
		if *private != (privateKey{}) || covers[0] != 0 || kept[0] != [32]byte{} ||
			sum[0] != [32]byte{} {
			t.Errorf("%s: %x, %x, %x, %x are left", c.name, private.seed, covers, kept, sum[0])
		}
		if m.open != nil && (m.open == r || m.open.private == private) {
			t.Errorf("%s: the round is kept", c.name)
		}
	}
}

// reads remembers where randomness was read to.
type reads struct {
	io.Reader
	into [][]byte
}

func (r *reads) Read(b []byte) (int, error) {
	r.into = append(r.into, b)
	return r.Reader.Read(b)
}

// The seed of a member's key is not left where it was read.
func TestSeedErased(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	random := &reads{Reader: chacha(0)}
	m := must(NewMember(w.config, memberKey(0), random))
	must(m.Receive(w.server.Invite()))
	for _, b := range random.into {
		if len(b) != 32 || !bytes.Equal(b, make([]byte, 32)) {
			t.Errorf("%x is left", b)
		}
	}
	if len(random.into) == 0 {
		t.Error("no seed was read")
	}
}
