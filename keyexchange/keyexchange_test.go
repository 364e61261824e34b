package keyexchange

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/labels"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// identities returns n identities from fixed seeds, and their roster.
func identities(t testing.TB, n int) ([]ed25519.PrivateKey, *Roster) {
	t.Helper()
	keys := make([]ed25519.PrivateKey, n)
	members := make([]Entry, n)
	for i := range keys {
		seed := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		key, err := GenerateIdentity(bytes.NewReader(seed[:]))
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
		members[i] = Entry{Name: "party-" + string(rune('a'+i)), Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return keys, roster
}

func fixedKey(t testing.TB, b byte) (*PrivateKey, PublicKey) {
	t.Helper()
	key, err := GenerateKey(bytes.NewReader(bytes.Repeat([]byte{b}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

// RFC 7748 §6.1.
func TestX25519KnownAnswer(t *testing.T) {
	const (
		alicePrivate = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"
		alicePublic  = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
		bobPrivate   = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
		bobPublic    = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
		shared       = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
	)
	for _, c := range []struct{ private, public, peer string }{
		{alicePrivate, alicePublic, bobPublic},
		{bobPrivate, bobPublic, alicePublic},
	} {
		key, err := GenerateKey(bytes.NewReader(unhex(t, c.private)))
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.Public()
		if err != nil || hex.EncodeToString(public[:]) != c.public {
			t.Errorf("public key %x, want %s (%v)", public, c.public, err)
		}
		peer, err := ParsePublicKey(unhex(t, c.peer))
		if err != nil {
			t.Fatal(err)
		}
		agreed, err := key.Agree(peer)
		if err != nil || hex.EncodeToString(agreed.x25519[:]) != shared {
			t.Errorf("secret %x, want %s (%v)", agreed.x25519, shared, err)
		}
	}
}

// RFC 5869 appendix A.1 and A.2, through the two calls that the package makes.
func TestHKDFKnownAnswer(t *testing.T) {
	sequence := func(from, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(from + i)
		}
		return b
	}
	for _, c := range []struct {
		name             string
		ikm, salt, info  []byte
		wantPRK, wantOKM string
	}{
		{
			"A.1", bytes.Repeat([]byte{0x0b}, 22), sequence(0, 13), sequence(0xf0, 10),
			"077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
			"3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
		},
		{
			"A.2", sequence(0, 80), sequence(0x60, 80), sequence(0xb0, 80),
			"06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
			"b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c" +
				"59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71" +
				"cc30c58179ec3e87c14c01d5c1f3434f1d87",
		},
	} {
		prk, err := hkdf.Extract(sha256.New, c.ikm, c.salt)
		if err != nil || hex.EncodeToString(prk) != c.wantPRK {
			t.Errorf("%s: PRK %x, want %s (%v)", c.name, prk, c.wantPRK, err)
		}
		okm := make([]byte, len(c.wantOKM)/2)
		expand(okm, prk, string(c.info))
		if hex.EncodeToString(okm) != c.wantOKM {
			t.Errorf("%s: OKM %x, want %s", c.name, okm, c.wantOKM)
		}
	}
}

// reference writes HKDF-Expand out with HMAC, so that the schedule is checked
// by code that shares nothing with it.
func reference(prk []byte, n int, info ...[]byte) []byte {
	var out, last []byte
	for i := byte(1); len(out) < n; i++ {
		mac := hmac.New(sha256.New, prk)
		mac.Write(last)
		mac.Write(bytes.Join(info, nil))
		mac.Write([]byte{i})
		last = mac.Sum(nil)
		out = append(out, last...)
	}
	return out[:n]
}

func TestChainSchedule(t *testing.T) {
	_, roster := identities(t, 3)
	a, publicA := fixedKey(t, 1)
	b, publicB := fixedKey(t, 2)
	session := [32]byte{7}

	// Party 2 is the higher one: the order of identities is the roster's.
	chainA, err := a.NewChain(session, roster, 2, 0, publicB)
	if err != nil {
		t.Fatal(err)
	}
	chainB, err := b.NewChain(session, roster, 0, 2, publicA)
	if err != nil {
		t.Fatal(err)
	}

	agreed, err := a.Agree(publicB)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, session[:])
	mac.Write(agreed.x25519[:])
	ck := reference(mac.Sum(nil), 32, []byte(labels.Chain), roster.Key(0), roster.Key(2))

	for round := uint64(1); round <= 4; round++ {
		if chainA.Round() != round || chainB.Round() != round {
			t.Fatalf("chains at rounds %d and %d, want %d", chainA.Round(), chainB.Round(), round)
		}
		channels := reference(ck, 128, []byte(labels.Channels))
		gotA, gotB := chainA.Channels(), chainB.Channels()
		for i, k := range []struct {
			purpose  Purpose
			from, to int
		}{{SelfMaskShare, 0, 2}, {SelfMaskShare, 2, 0}, {RecoveryShare, 0, 2}, {RecoveryShare, 2, 0}} {
			want := channels[32*i : 32*i+32]
			if !bytes.Equal(gotA.Key(k.purpose, k.from, k.to)[:], want) ||
				!bytes.Equal(gotB.Key(k.purpose, k.from, k.to)[:], want) {
				t.Errorf("round %d: channel %d differs from the schedule", round, i)
			}
		}
		next := reference(ck, 64, []byte(labels.Ratchet))
		ck = next[:32]
		secretA, secretB := chainA.Next(), chainB.Next()
		if !bytes.Equal(secretA[:], next[32:]) || secretA != secretB {
			t.Errorf("round %d: pair secret differs from the schedule", round)
		}
		context := sha256.Sum256([]byte{byte(round)})
		seed := secretA.MaskSeed(context)
		if !bytes.Equal(seed[:], reference(next[32:], 28, []byte(labels.Mask), context[:])) {
			t.Errorf("round %d: mask seed differs from the schedule", round)
		}
	}
	// One figure to notice a change by.
	if got, want := hex.EncodeToString(ck), chainKeyAfterFour; got != want {
		t.Errorf("chain key after four rounds %s, want %s", got, want)
	}
}

// The project's own vector: private keys of 32 bytes 01 and 02, session 07 00…,
// parties 2 and 0 of the test roster, four rounds on.
const chainKeyAfterFour = "be6db9ffd14e7ef3c9b459645d3bff40b9aefa4e1a5e35f4b426a3f964f24883"

func TestChainBindings(t *testing.T) {
	_, roster := identities(t, 3)
	a, _ := fixedKey(t, 1)
	_, publicB := fixedKey(t, 2)
	seen := map[PairSecret]string{}
	add := func(name string, session [32]byte, self, peer int) {
		t.Helper()
		chain, err := a.NewChain(session, roster, self, peer, publicB)
		if err != nil {
			t.Fatal(err)
		}
		secret := chain.Next()
		if other, ok := seen[secret]; ok {
			t.Errorf("%s and %s have one secret", name, other)
		}
		seen[secret] = name
	}
	add("base", [32]byte{}, 0, 1)
	add("other session", [32]byte{1}, 0, 1)
	add("other peer", [32]byte{}, 0, 2)
	add("other pair", [32]byte{}, 1, 2)
}

func TestChainSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := Chain{round: 1}
		copy(start.key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		to := uint64(rapid.IntRange(1, 40).Draw(t, "to"))
		slow, fast := start, start
		for slow.Round() < to {
			slow.Next()
		}
		if err := fast.Skip(to); err != nil {
			t.Fatal(err)
		}
		if slow != fast {
			t.Fatal("Skip and Next disagree")
		}
		if back := fast; to > 1 {
			if err := fast.Skip(to - 1); !errors.Is(err, ErrRoundBack) || fast != back {
				t.Fatalf("going back: %v", err)
			}
		}
	})
}

func TestErase(t *testing.T) {
	_, roster := identities(t, 2)
	key, public := fixedKey(t, 3)
	chain, err := key.NewChain([32]byte{}, roster, 0, 1, public)
	if err != nil {
		t.Fatal(err)
	}
	channels := chain.Channels()
	channels.Erase()
	chain.Erase()
	key.Erase()
	if chain.key != [32]byte{} || channels.keys != [2 * purposes]SealKey{} {
		t.Error("erased keys are still there")
	}
	if _, err := key.Public(); !errors.Is(err, ErrErased) {
		t.Errorf("Public after Erase: %v", err)
	}
	if _, err := key.NewChain([32]byte{}, roster, 0, 1, public); !errors.Is(err, ErrErased) {
		t.Errorf("NewChain after Erase: %v", err)
	}
}

// The list of low-order points is derived here from the torsion subgroup of
// edwards25519 (a point of order 8 and its multiples, u = (1+y)/(1−y)), and for
// the twist from the definition: every one of them gives the all-zero secret.
// What is appended parses back to the same, appends to what is there, and nothing of
// another length parses.
func TestEncodings(t *testing.T) {
	key, _ := fixedKey(t, 3)
	_, roster := identities(t, 2)
	_, peer := fixedKey(t, 4)
	chain, err := key.NewChain([32]byte{1}, roster, 0, 1, peer)
	if err != nil {
		t.Fatal(err)
	}
	if err := chain.Skip(7); err != nil {
		t.Fatal(err)
	}
	type appender interface {
		AppendBinary(b []byte) ([]byte, error)
	}
	for _, c := range []struct {
		name  string
		value appender
		size  int
		parse func(b []byte) (appender, error)
	}{
		{"chain", chain, ChainSize, func(b []byte) (appender, error) { return ParseChain(b) }},
		{"channels", chain.Channels(), ChannelsSize, func(b []byte) (appender, error) { return ParseChannels(b) }},
		{"key", key, KeySize, func(b []byte) (appender, error) { return ParseKey(b) }},
	} {
		b, err := c.value.AppendBinary([]byte("before"))
		if err != nil || len(b) != 6+c.size || string(b[:6]) != "before" {
			t.Fatalf("%s: %d bytes, %v", c.name, len(b), err)
		}
		b = b[6:]
		parsed, err := c.parse(b)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if again, err := parsed.AppendBinary(nil); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: parsed from %x, appends %x, %v", c.name, b, again, err)
		}
		for n := range 2 * c.size {
			if _, err := c.parse(make([]byte, n)); n != c.size && !errors.Is(err, ErrEncoding) {
				t.Errorf("%s of %d bytes: got %v, want ErrEncoding", c.name, n, err)
			}
		}
	}
	if chain, err := ParseChain(make([]byte, ChainSize)); !errors.Is(err, ErrEncoding) ||
		chain != nil {
		t.Errorf("a chain at round 0: got %v, want ErrEncoding", err)
	}
	key.Erase()
	if _, err := key.AppendBinary(nil); !errors.Is(err, ErrErased) {
		t.Errorf("an erased key: got %v, want ErrErased", err)
	}
}

func TestLowOrderPoints(t *testing.T) {
	var torsion []PublicKey
	// y of a point of order 8, RFC 8032 curve; found by multiplying an arbitrary
	// point by the group order.
	for seed := byte(0); len(torsion) < 8; seed++ {
		h := sha256.Sum256([]byte{seed})
		p, err := new(edwards25519.Point).SetBytes(h[:])
		if err != nil {
			continue
		}
		p = timesOrder(p)
		if eight := new(edwards25519.Point).
			MultByCofactor(p); eight.Equal(edwards25519.NewIdentityPoint()) != 1 {
			t.Fatal("order × point is not torsion")
		}
		four := new(edwards25519.Point).Add(p, p)
		four.Add(four, four)
		if four.Equal(edwards25519.NewIdentityPoint()) == 1 {
			continue // its order is not 8
		}
		q := edwards25519.NewIdentityPoint()
		for range 8 {
			torsion = append(torsion, PublicKey(q.BytesMontgomery()))
			q = new(edwards25519.Point).Add(q, p)
		}
	}
	minusOne := new(field.Element).Negate(new(field.Element).One())
	torsion = append(torsion, PublicKey(minusOne.Bytes())) // order 4 on the twist
	slices.SortFunc(torsion, func(a, b PublicKey) int { return bytes.Compare(a[:], b[:]) })
	torsion = slices.Compact(torsion)
	want := slices.Clone(lowOrder[:])
	slices.SortFunc(want, func(a, b PublicKey) int { return bytes.Compare(a[:], b[:]) })
	if !slices.Equal(torsion, want) {
		t.Errorf("low-order points are %x, the list has %x", torsion, want)
	}

	key, _ := fixedKey(t, 9)
	_, roster := identities(t, 2)
	for _, low := range lowOrder {
		if _, err := ParsePublicKey(low[:]); !errors.Is(err, ErrPublicKey) {
			t.Errorf("ParsePublicKey(%x): %v", low, err)
		}
		// Without the parser the all-zero secret is refused too.
		if _, err := key.NewChain([32]byte{}, roster, 0, 1, low); !errors.Is(err, ErrPublicKey) {
			t.Errorf("NewChain(%x): %v", low, err)
		}
	}
}

func timesOrder(p *edwards25519.Point) *edwards25519.Point {
	order, _ := new(big.Int).
		SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	sum := edwards25519.NewIdentityPoint()
	for i := order.BitLen() - 1; i >= 0; i-- {
		sum.Add(sum, sum)
		if order.Bit(i) == 1 {
			sum.Add(sum, p)
		}
	}
	return sum
}

func TestParsePublicKey(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	encode := func(n *big.Int) []byte {
		b := n.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		return b
	}
	for _, c := range []struct {
		name string
		key  []byte
		ok   bool
	}{
		{"base point", encode(big.NewInt(9)), true},
		{"p − 2", encode(new(big.Int).Sub(p, big.NewInt(2))), true},
		{"p", encode(p), false},
		{"p + 9, the base point again", encode(new(big.Int).Add(p, big.NewInt(9))), false},
		{"2^255 − 1", encode(new(big.Int).Add(p, big.NewInt(18))), false},
		{"high bit over the base point", encode(new(big.Int).SetBit(big.NewInt(9), 255, 1)), false},
		{"empty", nil, false},
		{"31 bytes", make([]byte, 31), false},
		{"33 bytes", append(encode(big.NewInt(9)), 0), false},
	} {
		key, err := ParsePublicKey(c.key)
		if c.ok && (err != nil || !bytes.Equal(key[:], c.key)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.ok && !errors.Is(err, ErrPublicKey) {
			t.Errorf("%s: got %v, want ErrPublicKey", c.name, err)
		}
	}
}

func TestSignatures(t *testing.T) {
	keys, roster := identities(t, 2)
	_, public := fixedKey(t, 4)
	_, other := fixedKey(t, 5)
	config := sha256.Sum256([]byte("config"))
	signature, err := SignKey(keys[1], config, 1, public, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyKey(roster, config, 1, public, nil, &signature); err != nil {
		t.Fatal(err)
	}
	bad := signature
	bad[3] ^= 1
	for name, err := range map[string]error{
		"other party":    VerifyKey(roster, config, 0, public, nil, &signature),
		"no such party":  VerifyKey(roster, config, 2, public, nil, &signature),
		"negative party": VerifyKey(roster, config, -1, public, nil, &signature),
		"other config":   VerifyKey(roster, [32]byte{}, 1, public, nil, &signature),
		"other key":      VerifyKey(roster, config, 1, other, nil, &signature),
		"flipped bit":    VerifyKey(roster, config, 1, public, nil, &bad),
		"other label": Verify(roster.Key(1), labels.Session, keyStatement(config, 1, public, nil),
			&signature),
		"short identity": Verify(roster.Key(1)[:31], labels.AnnouncedKey,
			keyStatement(config, 1, public, nil),
			&signature),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v, want ErrSignature", name, err)
		}
	}
	// Labels and statements cannot be shifted into each other.
	if bytes.Equal(signedBytes("ab", []byte("c")), signedBytes("a", []byte("bc"))) {
		t.Error("label and statement are not separated")
	}
}

func TestSignerErrors(t *testing.T) {
	if _, err := Sign(nil, "x", nil); !errors.Is(err, ErrSigner) {
		t.Errorf("nil signer: %v", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(key, "x", nil); !errors.Is(err, ErrSigner) {
		t.Errorf("RSA signer: %v", err)
	}
}

func TestRosterErrors(t *testing.T) {
	_, good := identities(t, 3)
	m := func(i int) Entry { return Entry{Name: good.Name(i), Key: good.Key(i)} }
	small := make([]byte, 32)
	small[0] = 1 // the identity point
	notCanonical := bytes.Repeat([]byte{0xff}, 32)
	notCanonical[0] = 0xee // y = p + 1, another encoding of the identity
	notCanonical[31] = 0x7f
	named := func(name string) Entry { return Entry{Name: name, Key: good.Key(1)} }
	for _, c := range []struct {
		name    string
		members []Entry
		want    error
	}{
		{"empty", nil, ErrRosterSize},
		{"roster of one", []Entry{m(0)}, ErrRosterSize},
		{"duplicate key", []Entry{m(0), {Name: "again", Key: good.Key(0)}}, ErrDuplicateIdentity},
		{"duplicate name", []Entry{m(0), {Name: m(0).Name, Key: good.Key(1)}}, ErrDuplicateIdentity},
		{"short key", []Entry{m(0), {Name: "b", Key: good.Key(1)[:31]}}, ErrIdentityKey},
		{"no key", []Entry{m(0), {Name: "b"}}, ErrIdentityKey},
		{"small-order key", []Entry{m(0), {Name: "b", Key: small}}, ErrIdentityKey},
		{"key not canonical", []Entry{m(0), {Name: "b", Key: notCanonical}}, ErrIdentityKey},
		{"no name", []Entry{m(0), named("")}, ErrName},
		{"name with a space", []Entry{m(0), named("a b")}, ErrName},
		{"name with a line break", []Entry{m(0), named("a\nb")}, ErrName},
		{"name like a comment", []Entry{m(0), named("#b")}, ErrName},
		{"name beyond ASCII", []Entry{m(0), named("é")}, ErrName},
		{"long name", []Entry{m(0), named(strings.Repeat("x", maxNameLength+1))}, ErrName},
	} {
		r, err := NewRoster(c.members)
		if !errors.Is(err, c.want) || r != nil {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := NewRoster([]Entry{m(0), m(1), m(0)}); !errors.Is(err, ErrDuplicateIdentity) ||
		!strings.Contains(err.Error(), good.Name(0)+" is listed twice; remove one line") {
		t.Errorf("one party twice: %v", err)
	}
}

func TestRosterText(t *testing.T) {
	_, roster := identities(t, 4)
	text, err := roster.AppendText([]byte("# the hospitals\n\n"))
	if err != nil {
		t.Fatal(err)
	}
	again := new(Roster)
	if err := again.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	if err := again.UnmarshalText(text[:len(text)-2]); !errors.Is(err, ErrRosterLine) {
		t.Errorf("a cut text: got %v, want ErrRosterLine", err)
	}
	marked, err := ParseRoster(append([]byte("\ufeff"), text...))
	if err != nil || marked.Digest() != roster.Digest() {
		t.Errorf("with a byte-order mark: %v", err)
	}
	wide := []byte("\xff\xfe")
	for _, b := range text {
		wide = append(wide, b, 0)
	}
	if _, err := ParseRoster(wide); !errors.Is(err, ErrRosterLine) ||
		!strings.Contains(err.Error(), "it is UTF-16, and not UTF-8; convert it: iconv -f UTF-16") {
		t.Errorf("UTF-16: %v", err)
	}
	if again.Digest() != roster.Digest() || again.Len() != 4 {
		t.Error("the roster changed by writing and reading")
	}
	for i := range 4 {
		if j, ok := again.Index(roster.Key(i)); !ok || i != j {
			t.Errorf("Index of party %d: %d, %v", i, j, ok)
		}
	}
	if _, ok := again.Index(make([]byte, 32)); ok {
		t.Error("a stranger has an index")
	}
	if _, ok := again.Index(nil); ok {
		t.Error("no key has an index")
	}
	// The order is part of what parties agree on.
	swapped, err := NewRoster([]Entry{{Name: roster.Name(1), Key: roster.Key(1)},
		{Name: roster.Name(0), Key: roster.Key(0)}, {Name: roster.Name(2), Key: roster.Key(2)},
		{Name: roster.Name(3), Key: roster.Key(3)}})
	if err != nil || swapped.Digest() == roster.Digest() {
		t.Errorf("another order has the same digest (%v)", err)
	}
	key := hex.EncodeToString(roster.Key(0))
	for _, line := range []string{"a", "a ", "a " + key[:62], "a " + key + "00", "a  " + key,
		"a " + strings.ToUpper(key), "a " + key + " ", "a " +
			strings.Repeat("zz", 32), strings.Repeat("x", 1<<17)} {
		if _, err := ParseRoster([]byte(line)); !errors.Is(err, ErrRosterLine) {
			t.Errorf("line %.80q: got %v, want ErrRosterLine", line, err)
		}
	}
}

// TestRosterWeights: weights are written, read and digested with the list, and are of all parties
// or of none.
func TestRosterWeights(t *testing.T) {
	var entries []Entry
	for i := range 3 {
		key, err := GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{Name: fmt.Sprint("p", i), Key: key.Public().(ed25519.PublicKey)})
	}
	plain, err := NewRoster(entries)
	if err != nil {
		t.Fatal(err)
	}
	weighed, err := plain.Weigh([]int{1, 300, MaxWeight})
	if err != nil {
		t.Fatal(err)
	}
	text, err := weighed.MarshalText()
	if err != nil || strings.Count(string(text), " 300\n") != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	again, err := ParseRoster(text)
	if err != nil || again.Digest() != weighed.Digest() || again.Weight(1) != 300 ||
		plain.Weight(1) != 0 {
		t.Errorf("read again: %v", err)
	}
	other, err := plain.Weigh([]int{1, 301, MaxWeight})
	if err != nil || other.Digest() == weighed.Digest() || plain.Digest() == weighed.Digest() {
		t.Errorf("other weights have the same digest (%v)", err)
	}
	for _, weights := range [][]int{{1, 2}, {1, 2, 0}, {1, 2, MaxWeight + 1}, {-1, 2, 3}} {
		if _, err := plain.Weigh(weights); !errors.Is(err, ErrWeight) {
			t.Errorf("%v: %v", weights, err)
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	for _, c := range []struct {
		line string
		want error
	}{
		{strings.Replace(lines[1], " 300", "", 1), ErrWeight},
		{strings.Replace(lines[1], " 300", " 0", 1), ErrWeight},
		{strings.Replace(lines[1], " 300", " 65537", 1), ErrWeight},
		{strings.Replace(lines[1], " 300", " 0300", 1), ErrRosterLine},
		{strings.Replace(lines[1], " 300", " +300", 1), ErrRosterLine},
		{strings.Replace(lines[1], " 300", " 300 1", 1), ErrRosterLine},
	} {
		if _, err := ParseRoster([]byte(lines[0] + c.line)); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.line, err, c.want)
		}
	}
}

func TestSeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var key SealKey
		copy(key[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key"))
		plaintext := rapid.SliceOf(rapid.Byte()).Draw(t, "plaintext")
		associated := rapid.SliceOf(rapid.Byte()).Draw(t, "associated")
		nonce, err := GenerateNonce(nil)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := Seal(&nonce, &key, plaintext, associated)
		if err != nil || len(sealed) != len(plaintext)+SealOverhead {
			t.Fatalf("%d bytes, %v", len(sealed), err)
		}
		opened, err := Open(&key, sealed, associated)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Fatalf("%x, %v", opened, err)
		}
		bit := rapid.IntRange(0, 8*len(sealed)-1).Draw(t, "bit")
		sealed[bit/8] ^= 1 << (bit % 8)
		if got, err := Open(&key, sealed, associated); !errors.Is(err, ErrOpen) || got != nil {
			t.Fatalf("a changed message opened: %v", err)
		}
		sealed[bit/8] ^= 1 << (bit % 8)
		if _, err := Open(&key, sealed, append(associated, 0)); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened under other associated data: %v", err)
		}
		if _, err := Open(&key, sealed[:rapid.IntRange(0, len(sealed)-1).Draw(t, "cut")],
			associated); !errors.Is(err, ErrOpen) {
			t.Fatalf("a cut message opened: %v", err)
		}
		key[0] ^= 1
		if _, err := Open(&key, sealed, associated); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened under another key: %v", err)
		}
	})
}

// XChaCha20-Poly1305, draft-irtf-cfrg-xchacha-03 appendix A.3.1: the format is
// nonce ‖ ciphertext ‖ tag.
func TestSealKnownAnswer(t *testing.T) {
	var key SealKey
	for i := range key {
		key[i] = byte(0x80 + i)
	}
	nonce := make([]byte, 24)
	for i := range nonce {
		nonce[i] = byte(0x40 + i)
	}
	plaintext := []byte("Ladies and Gentlemen of the class of '99: If I could offer you only one " +
		"tip for the future, sunscreen would be it.")
	associated := unhex(t, "50515253c0c1c2c3c4c5c6c7")
	sealed, err := Seal((*Nonce)(nonce), &key, plaintext, associated)
	if err != nil {
		t.Fatal(err)
	}
	tag := sealed[len(sealed)-16:]
	if want := "c0875924c1c7987947deafd8780acf49"; hex.EncodeToString(tag) != want {
		t.Errorf("tag %x, want %s", tag, want)
	}
	if want := "bd6d179d3e83d43b9576579493c0e939"; hex.EncodeToString(sealed[24:40]) != want {
		t.Errorf("ciphertext %x, want %s", sealed[24:40], want)
	}
}

func TestShortRandomness(t *testing.T) {
	short := func() io.Reader { return bytes.NewReader(make([]byte, 5)) }
	if _, err := GenerateIdentity(short()); !errors.Is(err, ErrRandom) ||
		!errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("GenerateIdentity: %v", err)
	}
	if _, err := GenerateKey(short()); !errors.Is(err, ErrRandom) ||
		!errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("GenerateKey: %v", err)
	}
	if nonce, err := GenerateNonce(short()); !errors.Is(err, ErrRandom) ||
		!errors.Is(err, io.ErrUnexpectedEOF) || nonce != (Nonce{}) {
		t.Errorf("GenerateNonce: %v", err)
	}
}
