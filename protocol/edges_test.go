package protocol

import (
	"crypto/ed25519"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"crypto/sha512"
	"encoding/hex"
	"testing"

	"filippo.io/edwards25519"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// The vectors of testdata/edges.json: what libraries do differently.
type (
	edgeDecapsulation struct { // FIPS 203 §6.3: what is wrong gives a secret too
		Seed       hexBytes `json:"mlkem_seed"`
		Ciphertext hexBytes `json:"ciphertext"`
		Secret     hexBytes `json:"secret,omitempty"` // none: it is refused for its length
		About      string   `json:"about"`
	}
	edgeSignature struct { // §2.3
		Key       hexBytes `json:"key"`
		Label     string   `json:"label"`
		Statement hexBytes `json:"statement"`
		Signature hexBytes `json:"signature"`
		Accepted  string   `json:"accepted"` // yes, no or either
		About     string   `json:"about"`
	}
	edges struct {
		Decapsulations []edgeDecapsulation `json:"decapsulations"`
		Signatures     []edgeSignature     `json:"signatures"`
		Identities     []partKey           `json:"identities"`
	}
)

func edgeDecapsulations(t *testing.T) []edgeDecapsulation {
	t.Helper()
	draw := hash("hushsum vectors edges mlkem")
	seed := append(draw[:], draw[:]...)
	key, err := keyexchange.ParseDecapsulationKey(seed)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := mlkem.NewDecapsulationKey768(seed)
	if err != nil {
		t.Fatal(err)
	}
	m := hash("hushsum vectors edges m")
	_, right, err := mlkemtest.Encapsulate768(theirs.EncapsulationKey(), m[:])
	if err != nil {
		t.Fatal(err)
	}
	changed := append([]byte(nil), right...)
	changed[1087] ^= 0x80
	first := append([]byte(nil), right...)
	first[0] ^= 1
	var out []edgeDecapsulation
	for _, c := range []struct {
		about      string
		ciphertext []byte
	}{
		{"as it was made", right},
		{"the last bit changed", changed},
		{"the first bit changed", first},
		{"zeros", make([]byte, 1088)},
		{"a byte short", right[:1087]},
		{"a byte long", append(append([]byte(nil), right...), 0)},
	} {
		e := edgeDecapsulation{Seed: seed, Ciphertext: c.ciphertext, About: c.about}
		agreement := new(keyexchange.Agreement)
		if err := agreement.Decapsulate(key, c.ciphertext); err == nil {
			b, err := agreement.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Secret = b[33:65]
		}
		out = append(out, e)
	}
	return out
}

// edgeSigner signs as RFC 8032 §5.1.6 does, but for what it is told to do otherwise.
type edgeSigner struct {
	*testing.T
	secret *edwards25519.Scalar
	public *edwards25519.Point
}

func newEdgeSigner(t *testing.T) *edgeSigner {
	seed := hash("hushsum vectors edges identity")
	h := sha512.Sum512(seed[:])
	secret, err := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	if err != nil {
		t.Fatal(err)
	}
	return &edgeSigner{t, secret, new(edwards25519.Point).ScalarBaseMult(secret)}
}

// sign makes a signature with r, of which R is encoded as given, under an encoded key.
func (s *edgeSigner) sign(r *edwards25519.Scalar, encodedR, key, message []byte) []byte {
	s.Helper()
	h := sha512.New()
	h.Write(encodedR)
	h.Write(key)
	h.Write(message)
	k, err := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	if err != nil {
		s.Fatal(err)
	}
	return append(append([]byte(nil), encodedR...),
		new(edwards25519.Scalar).MultiplyAdd(k, s.secret, r).Bytes()...)
}

func edgeSignatures(t *testing.T) []edgeSignature {
	t.Helper()
	s := newEdgeSigner(t)
	statement := make([]byte, 33)
	message := append([]byte{byte(len(labels.Survivors))}, labels.Survivors...)
	message = append(message, statement...)
	wide := sha512.Sum512([]byte("hushsum vectors edges r"))
	r, err := new(edwards25519.Scalar).SetUniformBytes(wide[:])
	if err != nil {
		t.Fatal(err)
	}
	point := func(text string) *edwards25519.Point {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := new(edwards25519.Point).SetBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	torsion := point("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a") // of order 8
	bigR := new(edwards25519.Point).ScalarBaseMult(r)
	key, zero := s.public.Bytes(), edwards25519.NewScalar()
	right := s.sign(r, bigR.Bytes(), key, message)
	var out []edgeSignature
	add := func(about, want string, key, signature []byte) {
		err := keyexchange.Verify(ed25519.PublicKey(key), labels.Survivors, statement,
			(*[64]byte)(signature))
		if want != "either" && (err == nil) != (want == "yes") {
			t.Errorf("%s: %v", about, err)
		}
		out = append(out, edgeSignature{key, labels.Survivors, statement, signature, want, about})
	}
	changed := func(at int) []byte {
		b := append([]byte(nil), right...)
		b[at] ^= 1
		return b
	}
	add("as RFC 8032 makes it, but for the choice of r", "yes", key, right)
	add("a bit of R changed", "no", key, changed(0))
	add("a bit of S changed", "no", key, changed(32))
	add("S + L", "no", key, addOrder(right))
	add("R with a point of order 8 added before it is hashed: with the cofactor it would hold", "no",
		key, s.sign(r, new(edwards25519.Point).Add(bigR, torsion).Bytes(), key, message))
	identity := edwards25519.NewIdentityPoint().Bytes()
	add("R is the neutral element", "either", key, s.sign(zero, identity, key, message))
	other := make([]byte, 32)
	for i := range other {
		other[i] = 0xff
	}
	other[0], other[31] = 0xee, 0x7f // y = p + 1
	add("R is the neutral element, not canonical", "no", key, s.sign(zero, other, key, message))
	mixed := new(edwards25519.Point).Add(s.public, torsion).Bytes()
	add("a key with a point of order 8 in it: with the cofactor it would hold", "no", mixed,
		s.sign(r, bigR.Bytes(), mixed, message))
	return out
}

// addOrder adds the group's order to S of a signature.
func addOrder(signature []byte) []byte {
	order := [32]byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde,
		0xf9, 0xde, 0x14, 31: 0x10}
	out := append([]byte(nil), signature...)
	carry := 0
	for i, x := range order {
		carry += int(out[32+i]) + int(x)
		out[32+i] = byte(carry)
		carry >>= 8
	}
	return out
}

// The code still makes all that testdata/edges.json says.
func TestEdges(t *testing.T) {
	e := edges{Decapsulations: edgeDecapsulations(t), Signatures: edgeSignatures(t)}
	s := newEdgeSigner(t)
	b, _ := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	torsion, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []struct {
		about string
		bytes []byte
	}{
		{"of order L", s.public.Bytes()},
		{"of order 8·L", new(edwards25519.Point).Add(s.public, torsion).Bytes()},
		{"of order 8", b},
	} {
		other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
		_, err := keyexchange.NewRoster([]keyexchange.Entry{{Name: "a", Key: key.bytes},
			{Name: "b", Key: other}})
		e.Identities = append(e.Identities, partKey{"identity", key.bytes, err == nil, key.about})
	}
	checkGolden(t, "edges", e)
}
