package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// fill draws bytes, none of which is 0, so that a field that is left out shows.
func fill(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + rng.IntN(255))
	}
	return b
}

func fillSet(rng *rand.Rand, n int) (Set, []byte) {
	s, b := NewSet(n), make([]byte, (n+7)/8)
	for i := range n {
		if rng.IntN(2) == 0 {
			s.Add(i)
			b[i/8] |= 1 << (i % 8)
		}
	}
	return s, b
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func number32[T int | uint32](n T) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// A sample is a body: what it is, its bytes as the type's comment lays them out, and a
// reader that is told what a session knows beforehand.
type sample struct {
	name  string
	body  any
	bytes []byte
	read  func(b []byte) (any, error)
	list  bool // of any number of entries: it may end after each
}

// samples draws a body of each type in a session of n parties.
func samples(rng *rand.Rand, n int) []sample {
	var all []sample
	add := func(name string, body interface{ Append([]byte) []byte }, b []byte,
		read func(b []byte) (any, error)) {
		all = append(all, sample{name: name, body: body, bytes: b, read: read})
	}
	h := rng.IntN(4)
	sealed := func() (shares []SealedShare, b []byte) {
		shares = make([]SealedShare, h)
		for i := range shares {
			shares[i] = SealedShare(fill(rng, 72))
			b = append(b, shares[i][:]...)
		}
		return shares, b
	}
	underOneNonce := func(nonce []byte) (shares []SealedShare, b []byte) {
		shares = make([]SealedShare, h)
		for i := range shares {
			box := fill(rng, 48)
			shares[i] = SealedShare(join(nonce, box))
			b = append(b, box...)
		}
		return shares, b
	}

	for _, hybrid := range []bool{false, true} {
		key, encapsulation, signature := fill(rng, 32), []byte(nil), fill(rng, 64)
		if hybrid {
			encapsulation = fill(rng, 1184)
		}
		add("Announce", &Announce{[32]byte(key), encapsulation, [64]byte(signature)},
			join(key, encapsulation, signature),
			func(b []byte) (any, error) { return ParseAnnounce(b, hybrid) })

		announced, b := fillSet(rng, n)
		keys := &Keys{Hybrid: hybrid, Announced: announced, Entries: []KeyEntry{}}
		for range announced.Len() {
			e := KeyEntry{Key: [32]byte(fill(rng, 32)), Signature: [64]byte(fill(rng, 64))}
			b = append(b, e.Key[:]...)
			if hybrid {
				e.Digest = [32]byte(fill(rng, 32))
				b = append(b, e.Digest[:]...)
			}
			b = append(b, e.Signature[:]...)
			keys.Entries = append(keys.Entries, e)
		}
		for range h {
			keys.Encapsulation = append(keys.Encapsulation, fill(rng, 1184))
			b = append(b, keys.Encapsulation[len(keys.Encapsulation)-1]...)
		}
		add("Keys", keys, b, func(b []byte) (any, error) {
			return ParseKeys(b, n, hybrid, func(k *Keys) (int, error) {
				if !k.Announced.Equal(announced) || len(k.Entries) != announced.Len() {
					return 0, errors.New("asked too early")
				}
				return h, nil
			})
		})
	}

	set, packed := fillSet(rng, n)
	digest := fill(rng, 32)
	shares, b := sealed()
	count := func(s Set) int {
		if !s.Equal(set) {
			return -1
		}
		return h
	}
	add("Begin", &Begin{[32]byte(digest), set, shares}, join(digest, packed, b),
		func(b []byte) (any, error) { return ParseBegin(b, n, count) })
	add("Survivors", &Survivors{set, shares}, join(packed, b),
		func(b []byte) (any, error) { return ParseSurvivors(b, n, count) })

	round, commitment, nonce := rng.Uint64(), fill(rng, 32), fill(rng, 24)
	blob := join(nonce, fill(rng, 32*h+16))
	boxes, b := underOneNonce(nonce)
	upload := &Upload{round, [32]byte(commitment), blob, boxes}
	uploaded := join(binary.BigEndian.AppendUint64(nil, round), commitment, blob, b)
	add("Upload", upload, uploaded, func(b []byte) (any, error) { return ParseUpload(b, h) })

	vector, own := fill(rng, 5), fill(rng, 24)
	boxes, b = underOneNonce(own)
	add("Masked", &Masked{vector, [32]byte(digest), [24]byte(own), boxes, upload},
		join(vector, digest, own, b, uploaded),
		func(b []byte) (any, error) { return ParseMasked(b, len(vector), h, h) })

	ciphertexts := make([][]byte, 0)
	for range h {
		ciphertexts = append(ciphertexts, fill(rng, 1088))
	}
	signature := fill(rng, 64)
	if h == 0 {
		ciphertexts = nil
	}
	add("Encapsulate", &Encapsulate{ciphertexts, [64]byte(signature)},
		join(join(ciphertexts...), signature),
		func(b []byte) (any, error) { return ParseEncapsulate(b, h) })

	members := &Members{Members: set, Lower: make([]SignedCiphertext, h)}
	b = slices.Clone(packed)
	var lengths []int
	for i := range members.Lower {
		e := &members.Lower[i]
		e.Ciphertext, e.Signature = fill(rng, 1088), [64]byte(fill(rng, 64))
		lengths = append(lengths, rng.IntN(3))
		b = append(b, e.Ciphertext...)
		for range lengths[i] {
			e.Path = append(e.Path, [32]byte(fill(rng, 32)))
			b = append(b, e.Path[len(e.Path)-1][:]...)
		}
		b = append(b, e.Signature[:]...)
	}
	add("Members", members, b, func(b []byte) (any, error) {
		return ParseMembers(b, n, func(s Set) ([]int, error) {
			if !s.Equal(set) {
				return nil, errors.New("another set")
			}
			return lengths, nil
		})
	})

	certificate, reveal := Certificate{}, Reveal{}
	var signed, revealed []byte
	for party := range set.All() {
		s, v := fill(rng, 64), fill(rng, 32)
		certificate = append(certificate, PartySignature{party, [64]byte(s)})
		reveal = append(reveal, OwnedShare{party, [32]byte(v)})
		signed, revealed = join(signed, number32(party), s), join(revealed, number32(party), v)
	}
	add("Certificate", certificate, signed,
		func(b []byte) (any, error) { return ParseCertificate(b, n) })
	add("Reveal", reveal, revealed, func(b []byte) (any, error) { return ParseReveal(b, n) })
	all[len(all)-1].list, all[len(all)-2].list = true, true
	return all
}

// TestBodies draws bodies of every type: each has the bytes that its comment lays out, is
// read back as it was, and is refused a byte too short or too long, for its own reason.
func TestBodies(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		n := 1 + rng.IntN(20)
		for _, s := range samples(rng, n) {
			got := s.body.(interface{ Append([]byte) []byte }).Append([]byte("before"))
			if !bytes.Equal(got, join([]byte("before"), s.bytes)) {
				t.Fatalf("%s of %d parties is not laid out as it says", s.name, n)
			}
			back, err := s.read(slices.Clone(s.bytes))
			if err != nil || !reflect.DeepEqual(back, s.body) {
				t.Fatalf("%s of %d parties comes back as %+v, %v", s.name, n, back, err)
			}
			if len(s.bytes) > 0 {
				if _, err := s.read(s.bytes[:rng.IntN(len(s.bytes))]); !s.list &&
					!errors.Is(err, ErrTruncated) {
					t.Fatalf("%s cut: %v", s.name, err)
				}
				if _, err := s.read(s.bytes[:len(s.bytes)-1]); !errors.Is(err, ErrTruncated) {
					t.Fatalf("%s without its last byte: %v", s.name, err)
				}
			}
			want := ErrTrailing
			if s.list {
				want = ErrTruncated // a whole entry is expected
			}
			if _, err := s.read(append(slices.Clone(s.bytes), 0)); !errors.Is(err, want) {
				t.Fatalf("%s and a byte: %v", s.name, err)
			}
		}
	}
}

// TestHeader has the layout of a header, and every way to spoil it.
func TestHeader(t *testing.T) {
	h := Header{Type: TypeReveal, Session: [32]byte{1, 2, 3}, Round: 1<<40 + 5, Sender: 1<<31 + 7}
	b := h.Append([]byte{9})
	want := join([]byte{9, 1, 10}, h.Session[:], []byte{0, 0, 1, 0, 0, 0, 0, 5},
		[]byte{0x80, 0, 0, 7})
	if !bytes.Equal(b, want) || len(b) != 1+HeaderSize {
		t.Fatalf("header %x", b)
	}
	got, body, err := ParseHeader(append(b[1:], "body"...))
	if err != nil || got != h || string(body) != "body" {
		t.Fatalf("read as %+v, %q, %v", got, body, err)
	}
	for n := range HeaderSize {
		if _, _, err := ParseHeader(b[1 : 1+n]); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes of a header: %v", n, err)
		}
	}
	for _, version := range []byte{0, 2, 3, 255} {
		b[1] = version
		if _, _, err := ParseHeader(b[1:]); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if ServerIndex != math.MaxUint32 {
		t.Error("the server's index has changed")
	}
}

// TestTypes: each type has a name, and the messages of set-up go before a session has a name.
func TestTypes(t *testing.T) {
	names, setUp := map[string]bool{}, 0
	for k := TypeAnnounce; k <= TypeMembers; k++ {
		names[k.String()] = true
		if k.SetUp() {
			setUp++
		}
	}
	if len(names) != 12 || setUp != 4 || !TypeMembers.SetUp() || TypeBegin.SetUp() {
		t.Errorf("names %v, %d of set-up", names, setUp)
	}
	for _, k := range []Type{0, 13, 255} {
		if k.SetUp() || k.String() != "type "+map[Type]string{0: "0", 13: "13", 255: "255"}[k] {
			t.Errorf("type %d is called %s", uint8(k), k)
		}
	}
}

// TestSets compares sets of up to 20 parties with maps.
func TestSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for range 500 {
		n := 1 + rng.IntN(20)
		s, b := fillSet(rng, n)
		in := map[int]bool{}
		for i := range n {
			in[i] = b[i/8]>>(i%8)&1 == 1
		}
		var members, missing []int
		for i := -2; i < n+10; i++ {
			if s.Has(i) != in[i] {
				t.Fatalf("party %d of %x", i, b)
			}
			if in[i] {
				members = append(members, i)
			} else if i >= 0 && i < n {
				missing = append(missing, i)
			}
		}
		if !slices.Equal(slices.Collect(s.All()), members) || !slices.Equal(s.Missing(), missing) ||
			s.Len() != len(members) || !bytes.Equal(s.Bytes(), b) || !SetOf(n, members).Equal(s) {
			t.Fatalf("%x has %v and lacks %v", b, members, missing)
		}
		for i := range s.All() { // a loop that is left
			if i != members[0] {
				t.Fatal("not in order")
			}
			break
		}
		some := []int{n - 1, 0, rng.IntN(n)}
		if want := slices.DeleteFunc(slices.Clone(some), func(i int) bool { return !in[i] }); !slices.
			Equal(s.Of(some), want) {
			t.Fatalf("of %v: %v, want %v", some, s.Of(some), want)
		}
		if !s.Within(FullSet(n)) || !NewSet(n).Within(s) || FullSet(n).Within(s) != (len(missing) == 0) {
			t.Fatalf("what %x is within", b)
		}
		back, err := ParseSet(b, n)
		if err != nil || !back.Equal(s) {
			t.Fatalf("read as %v, %v", back, err)
		}
		b[0] ^= 1
		if !back.Equal(s) || back.Equal(FullSet(n+8)) {
			t.Fatal("a set that was read shares its bytes")
		}
		if len(members) > 0 {
			out := members[rng.IntN(len(members))]
			s.Remove(out)
			if s.Has(out) || s.Len() != len(members)-1 || s.Equal(back) {
				t.Fatal("not removed")
			}
		}
		for bit := n; bit < 8*len(b); bit++ {
			beyond := make([]byte, len(b))
			beyond[bit/8] = 1 << (bit % 8)
			if _, err := ParseSet(beyond, n); !errors.Is(err, ErrEncoding) {
				t.Fatalf("bit %d of %d: %v", bit, n, err)
			}
		}
		for _, wrong := range [][]byte{b[:len(b)-1], append(slices.Clone(b), 0)} {
			if _, err := ParseSet(wrong, n); err == nil {
				t.Fatalf("%d bytes for %d parties", len(wrong), n)
			}
		}
	}
}

// TestLists: parties in a list are of the roster, each once, ascending.
func TestLists(t *testing.T) {
	const n = 5
	for _, c := range []struct {
		parties []uint32
		want    error
	}{
		{nil, nil}, {[]uint32{0}, nil}, {[]uint32{0, 1, 2, 3, 4}, nil}, {[]uint32{1, 4}, nil},
		{[]uint32{1, 1}, ErrEncoding}, {[]uint32{2, 1}, ErrEncoding}, {[]uint32{5}, ErrEncoding},
		{[]uint32{math.MaxUint32}, ErrEncoding}, {[]uint32{0, 1, 2, 3, 4, 5}, ErrOversized},
	} {
		var certificate, reveal []byte
		for _, p := range c.parties {
			certificate = join(certificate, number32(p), make([]byte, 64))
			reveal = join(reveal, number32(p), make([]byte, 32))
		}
		if _, err := ParseCertificate(certificate, n); !errors.Is(err, c.want) {
			t.Errorf("signatures of %v: %v, want %v", c.parties, err, c.want)
		}
		if _, err := ParseReveal(reveal, n); !errors.Is(err, c.want) {
			t.Errorf("shares of %v: %v, want %v", c.parties, err, c.want)
		}
	}
}

// TestCallersRefusal: what a session says of a body's beginning ends the reading.
func TestCallersRefusal(t *testing.T) {
	refusal := errors.New("refused")
	b := make([]byte, 1)
	refuse := func(*Keys) (int, error) { return 0, refusal }
	if _, err := ParseKeys(b, 3, true, refuse); err != refusal {
		t.Error(err)
	}
	if _, err := ParseMembers(b, 3, func(Set) ([]int, error) { return nil, refusal }); err != refusal {
		t.Error(err)
	}
}
