package party

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/door"
)

func madePair(t *testing.T) (*tls.Certificate, [32]byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, sha256.Sum256(der)
}

// A certificate that was pinned names its next, and that another; each is good until the time that
// it said. Nobody else's word counts, nor that of one about a second next, nor one that comes late.
func TestPins(t *testing.T) {
	a, printA := madePair(t)
	b, printB := madePair(t)
	_, printC := madePair(t)
	stranger, printS := madePair(t)
	at := time.Now()
	fresh := func() *pins {
		p := newPins([][32]byte{printA})
		p.now = func() time.Time { return at }
		return p
	}
	word := func(of *tls.Certificate, next [32]byte, after time.Duration) door.NextCertificate {
		c, err := door.SignNext(of, next, at.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return *c
	}
	p := fresh()
	good := func(when string, want ...bool) {
		t.Helper()
		for i, f := range [][32]byte{printA, printB, printC, printS} {
			if p.good(f) != want[i] {
				t.Errorf("%s: certificate %d is good: %v", when, i, !want[i])
			}
		}
	}
	aToB, bToC := word(a, printB, time.Hour), word(b, printC, 3*time.Hour)
	forged := aToB
	forged.Next = word(stranger, printS, time.Hour).Next
	good("at first", true, false, false, false)
	for _, c := range []door.NextCertificate{word(stranger, printS, time.Hour), forged, bToC,
		word(a, printB, -time.Hour), {Certificate: []byte{1}}} {
		if p.take([]door.NextCertificate{c}, false) {
			t.Errorf("taken: %+v", c)
		}
	}
	file := filepath.Join(t.TempDir(), "certificates.json")
	if err := p.keep(file); err != nil {
		t.Fatal(err)
	}
	if !p.take([]door.NextCertificate{bToC, aToB}, false) {
		t.Error("not taken")
	}
	good("both are known", true, true, true, false)
	if p.take([]door.NextCertificate{word(a, printS, 9*time.Hour), aToB,
		word(a, printB, time.Minute)}, false) {
		t.Error("a second next is taken")
	}
	good("whoever has the key of the first", true, true, true, false)
	if err := p.save(); err != nil {
		t.Fatal(err)
	}
	at = at.Add(time.Hour)
	good("an hour later", false, true, true, false)
	p = fresh()
	if p.take([]door.NextCertificate{aToB}, false) {
		t.Error("taken when its time was over")
	}
	if err := p.keep(file); err != nil {
		t.Fatal(err)
	}
	good("after another start", false, true, true, false)
	at = at.Add(2 * time.Hour)
	good("three hours later", false, false, true, false)
}
