package oneshot

import (
	"crypto"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// dealer makes submissions that no honest party makes. Its fields change what it
// does; the zero value is honest.
type dealer struct {
	values     func([]int64)                    // changes the input, also out of range
	vector     func(noisy []int64)              // changes what is masked, which the proof is about
	masked     func(s *settled, y []byte)       // changes packed y
	parts      func(parts []shamir.PackedShare) // changes what is dealt
	box        func(member int, box []byte)     // changes a box
	covers     func(shares []shamir.Share)      // changes the shares of the cover
	commitment func(commitment []byte)          // and what the key of it is compared with
	context    func(context [32]byte) [32]byte  // deals under another context
	leaf       func(member int, leaf *[32]byte) // changes a leaf
	key        func(key []int64)                // changes the key that is dealt, not what masks
	dealing    func(dealing []byte)             // with a bound: changes C_s ‖ C_0 ‖ P
	proof      func(proof []byte)               // and the proof
	copied     []byte                           // or it is the other's whose submission this is
	signed     func(statement []byte)           // changes what is signed
	after      func(s *settled, m *submission)  // changes what is sent
}

// deal returns the submission of party i under the world's opening, or the noise of member i − n.
func (w *world) deal(i int, d dealer) []byte {
	s := must(w.config.settle())
	h, body, err := wire.ParseHeader(w.opening)
	if err != nil {
		panic(err)
	}
	o := must(s.parseOpening(h.Round, body))
	context := s.context(h.Round, o)
	inner := context
	if d.context != nil {
		inner = d.context(context)
	}
	key := make([]int64, degree)
	if err := s.keys.NewSampler(nil).Fill(key); err != nil {
		panic(err)
	}
	values, table, signer, sender := make([]int64, s.Length), s.dealt, crypto.Signer(nil), uint32(i)
	if i < s.n {
		values, table, signer = w.values(i), s.noise, w.keys[i]
	} else {
		signer, sender = w.members[i-s.n].signer, memberSender+uint32(i-s.n)
	}
	if d.values != nil {
		d.values(values)
	}
	noisy := make([]int64, s.length)
	m := &submission{masked: must(s.mask(table.NewSampler(rand.Reader), &inner, key, values, noisy))}
	if d.vector != nil {
		d.revise(s, m, noisy)
	}
	if d.masked != nil {
		d.masked(s, m.masked)
	}
	var indices []uint32
	for k := range o.members.All() {
		indices = append(indices, uint32(k)+1)
	}
	if d.key != nil {
		d.key(key)
	}
	parts, witness, err := s.shares(rand.Reader, key, must(shamir.GenerateSecret(nil)), indices)
	if err != nil {
		panic(err)
	}
	if d.parts != nil {
		d.parts(parts)
	}
	var y []uint64
	if s.scheme != nil {
		y = s.unpack(m.masked)
	}
	var covers []shamir.Share
	var stream cipher.Stream
	if s.Covered {
		p := &submitter{config: s, random: rand.Reader, self: i}
		if covers, stream, err = p.cover(&inner, indices, m, rand.Reader); err != nil {
			panic(err)
		}
		if d.covers != nil {
			d.covers(covers)
		}
		if d.commitment != nil {
			d.commitment(m.extra)
		}
	}
	if s.Stale > 0 {
		m.extra = append(m.extra, uint64Bytes(w.made(i))...)
	}
	leaves := make([][32]byte, s.leafPlaces())
	for at, part := range parts {
		k := int(part.Index) - 1
		var plain []byte
		for _, v := range part.Values {
			plain = append(plain, v[:]...)
		}
		if s.Covered && !s.reduces {
			plain = append(plain, covers[at].Value[:]...)
		}
		plain = append(plain, make([]byte, blindSize)...)
		leaves[k] = leaf(&inner, i, k, plain)
		if d.leaf != nil {
			d.leaf(k, &leaves[k])
		}
		if s.reduces {
			plain = append(append(plain, covers[at].Value[:]...), make([]byte, blindSize)...)
			leaves[s.coverPlace(k)] = coverLeaf(&inner, i, k, plain[s.partPlainSize():])
		}
		box := must(seal(must(s.KEM.parseKey(s.key(o.keys[at]))), boxInfo(&inner, i, k), plain))
		if d.box != nil {
			d.box(k, box)
		}
		m.boxes = append(m.boxes, box...)
	}
	m.leaves = s.appendLeaves(nil, leaves, o.members)
	root := tree(leaves, s.depth)[s.depth][0]
	if s.scheme != nil {
		witness.Noisy = noisy
		err := s.prove(rand.Reader, &inner, i, root, m, y, witness)
		if errors.Is(err, ErrMissed) { // there is no proof: what is sent is one of zeros
			clear(noisy)
			clear(key)
			err = s.prove(rand.Reader, &inner, i, root, m, y, witness)
		}
		if err != nil {
			panic(err)
		}
		if d.copied != nil {
			other := must(s.parseSubmission(d.copied[bodyAt:][:s.submissionSize(len(o.keys))], len(o.keys)))
			m.dealing, m.proof = other.dealing, other.proof
		}
		if d.dealing != nil {
			d.dealing(m.dealing)
		}
		if d.proof != nil {
			d.proof(m.proof)
		}
		if s.Covered {
			stream.XORKeyStream(m.proof, m.proof)
		}
	}
	signed := statement(&inner, i, root, hash(labels.OneshotMasked, m.masked), m.extra,
		s.bind(&inner, i, m))
	if d.signed != nil {
		d.signed(signed)
	}
	m.signature = must(keyexchange.Sign(signer, s.statementLabel(i), signed))
	if d.after != nil {
		d.after(s, m)
	}
	message := m.append(s.header(typeSubmission, &context, h.Round, sender))
	if s.tailSize(i) > 0 {
		message = w.lucky(i, message, m)
	}
	return message
}

// revise changes a vector and what masks it alike.
func (d *dealer) revise(s *settled, m *submission, noisy []int64) {
	before := slices.Clone(noisy)
	d.vector(noisy)
	for i := range before {
		before[i] = noisy[i] - before[i]
	}
	y := s.unpack(m.masked)
	s.ring.AddSigned(y, before)
	m.masked = s.ring.AppendPacked(m.masked[:0], y)
}

// badBoxes spoils the boxes of the given members.
func badBoxes(members ...int) dealer {
	return dealer{box: func(k int, box []byte) {
		if slices.Contains(members, k) {
			box[len(box)-1] ^= 1
		}
	}}
}

// The dealers that spoil a sum, and what it then fails with.
var spoilers = map[string]struct {
	dealer
	want, covered error
}{
	"no polynomial": {dealer{parts: func(parts []shamir.PackedShare) {
		for i := range parts {
			parts[i].Values[0] = must(shamir.GenerateSecret(nil))
		}
	}}, ErrParts, ErrParts},
	"another key": {dealer{parts: func(parts []shamir.PackedShare) {
		for i := range parts { // one lane more
			more := shamir.PackedShare{Index: parts[i].Index, Values: make([][32]byte, len(parts[i].Values))}
			more.Values[0][0] = 1
			if err := parts[i].Add(&more); err != nil {
				panic(err)
			}
		}
	}}, ErrNoise, ErrNoise},
	"uniform y": {dealer{masked: func(s *settled, y []byte) {
		random := mathrand.New(mathrand.NewPCG(1, 2))
		c := make([]uint64, s.length)
		for i := range c {
			c[i] = random.Uint64N(s.Modulus)
		}
		s.ring.AppendPacked(y[:0], c)
	}}, ErrNoise, ErrNoise},
	"noise in the spare coordinates": {dealer{masked: func(s *settled, y []byte) {
		c := make([]uint64, s.length)
		s.ring.AddPacked(c, y)
		s.ring.AddSigned(c[s.Length:], []int64{s.tail * s.Scale * 2})
		s.ring.AppendPacked(y[:0], c)
	}}, ErrNoise, ErrNoise},
}

// TestSpoilers documents what a bad party can do: spoil the sum, unnamed. The round
// ends with the error that says so, and the next is well.
func TestSpoilers(t *testing.T) {
	for _, covered := range []bool{false, true} {
		for name, spoiler := range spoilers {
			w := newWorld(5, 7, small(Terms{Covered: covered}))
			want := spoiler.want
			if covered {
				want = spoiler.covered
			}
			for _, d := range []dealer{spoiler.dealer, {}} {
				if err := w.begin(nil); err != nil {
					t.Fatal(err)
				}
				messages := [][]byte{w.deal(0, d)}
				for i := 1; i < 5; i++ {
					messages = append(messages, must(w.submit(i)))
				}
				sum, err := w.run(messages)
				if want != nil {
					if !errors.Is(err, want) || sum != nil {
						t.Errorf("%s: %v", name, err)
					}
					want = nil
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				w.near(t, sum, w.total(0, 1, 2, 3, 4))
			}
		}
	}
	// A cover that does not open names the party.
	w := newWorld(5, 7, small(Terms{Covered: true}))
	for name, d := range map[string]dealer{
		"shares of nothing": {covers: func(shares []shamir.Share) {
			for i := range shares {
				shares[i].Value = must(shamir.GenerateSecret(nil))
			}
		}},
		"not reduced": {masked: func(_ *settled, y []byte) {
			for i := range y {
				y[i] = 255
			}
		}},
	} {
		if err := w.begin(nil); err != nil {
			t.Fatal(err)
		}
		messages := [][]byte{must(w.submit(0)), must(w.submit(1)), must(w.submit(2)), w.deal(3, d)}
		_, err := w.run(messages)
		var named *PartyError
		if !errors.Is(err, ErrCover) || !errors.As(err, &named) || named.Party != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// run takes the submissions through a round in which everybody else is honest.
func (w *world) run(messages [][]byte) ([]int64, error) {
	for _, m := range messages {
		if err := w.server.Receive(m); err != nil {
			return nil, err
		}
	}
	if err := w.deliver(nil); err != nil {
		return nil, err
	}
	for step, next := range []func() ([]byte, error){w.server.Close, w.server.Certificate} {
		message, err := next()
		if err != nil {
			return nil, err
		}
		if err := w.ask(step, message, nil); err != nil {
			return nil, err
		}
	}
	if w.config.Covered {
		for _, m := range messages {
			h, _, err := wire.ParseHeader(m)
			if err != nil {
				return nil, err
			}
			if slices.Contains(w.server.Included(), int(h.Sender)) {
				if err := w.server.Uncover(m); err != nil {
					return nil, err
				}
			}
		}
	}
	if w.server.config.reduces {
		if err := w.reduce(nil); err != nil {
			return nil, err
		}
	}
	return w.server.Sum()
}

// TestDisputes: bad boxes take their dealer out of the sum, charge who disputes, and do
// not more than documented.
func TestDisputes(t *testing.T) {
	for _, c := range []struct {
		name     string
		disputes int            // Δ
		dealers  map[int]dealer // parties' conduct
		in       []int
		excluded []int
	}{
		{"nobody", 1, nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, nil},
		{"one box", 1, map[int]dealer{3: badBoxes(1)}, []int{0, 1, 2, 4, 5, 6, 7}, nil},
		{"as many boxes as faults", 1, map[int]dealer{3: badBoxes(1, 2)}, []int{0, 1, 2, 4, 5, 6, 7}, nil},
		{"more boxes than faults", 1, map[int]dealer{3: badBoxes(1, 2, 3)}, []int{0, 1, 2, 4, 5, 6, 7}, nil},
		{"one member twice", 1, map[int]dealer{3: badBoxes(1), 5: badBoxes(1)},
			[]int{0, 1, 2, 4, 6, 7}, []int{1}},
		{"three shared", 1, map[int]dealer{0: badBoxes(1, 2), 1: badBoxes(1, 2), 2: badBoxes(1, 2)},
			[]int{3, 4, 5, 6, 7}, []int{1, 2}},
		{"one member twice with room", 2, map[int]dealer{3: badBoxes(1), 5: badBoxes(1)},
			[]int{0, 1, 2, 4, 6, 7}, nil},
		{"a third from who is out", 1,
			map[int]dealer{3: badBoxes(1), 5: badBoxes(1), 6: badBoxes(1)},
			[]int{0, 1, 2, 4, 6, 7}, []int{1}},
		{"a leaf of something else", 1,
			map[int]dealer{3: {leaf: func(k int, l *[32]byte) { l[0] ^= byte(k) }}},
			[]int{0, 1, 2, 4, 5, 6, 7}, nil},
		{"values that are not reduced", 1, map[int]dealer{3: {parts: func(parts []shamir.PackedShare) {
			for i := range 32 {
				parts[2].Values[1][i] = 255
			}
		}}},
			[]int{0, 1, 2, 4, 5, 6, 7}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			terms := small(Terms{Disputes: c.disputes})
			terms.Faults, terms.MinSurvivors, terms.PerPolynomial = 2, 4, 3
			w := newWorld(8, 11, terms)
			if err := w.begin(nil); err != nil {
				t.Fatal(err)
			}
			var messages [][]byte
			for i := range 8 {
				messages = append(messages, w.deal(i, c.dealers[i]))
			}
			sum, err := w.run(messages)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(w.server.Included(), c.in) {
				t.Errorf("%v are in, want %v", w.server.Included(), c.in)
			}
			w.near(t, sum, w.total(c.in...))
			lost := 0
			for _, m := range w.members {
				if m.Lost() {
					lost++
				}
			}
			if third := c.name == "a third from who is out"; (lost != 0) != third {
				t.Errorf("%d members are lost", lost)
			}
		})
	}
}
