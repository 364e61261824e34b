package party

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
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

// A certificate that was pinned names its next, and that another; each is good until a later one
// was seen, whatever the time, or for as long again as the party has known of the next, and a day
// at least. Nobody else's word counts, nor that of one about a second next.
func TestPins(t *testing.T) {
	a, printA := madePair(t)
	b, printB := madePair(t)
	_, printC := madePair(t)
	stranger, printS := madePair(t)
	began := time.Now().Truncate(time.Second) // as statements are
	at := began
	file := filepath.Join(t.TempDir(), "certificates.json")
	fresh := func() *pins {
		p := newPins([][32]byte{printA})
		p.now = func() time.Time { return at }
		return p
	}
	word := func(of *tls.Certificate, next [32]byte, after time.Duration) *step {
		c, err := exchange.SignNext(of, next, began.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return &step{NextCertificate: *c, Taken: at}
	}
	p := fresh()
	good := func(when string, want ...error) {
		t.Helper()
		for i, f := range [][32]byte{printA, printB, printC, printS} {
			err := p.good(f)
			if !errors.Is(err, want[i]) {
				t.Errorf("%s: certificate %d: %v, want %v", when, i, err, want[i])
			}
			if p.met && fatal(err) {
				t.Errorf("%s: certificate %d ends the party: %v", when, i, err)
			}
		}
	}
	shows := func(when string, f [32]byte, news bool) {
		t.Helper()
		if err := p.good(f); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if p.see(f) != news {
			t.Errorf("%s: news is %v", when, !news)
		}
	}
	day := 24 * time.Hour
	aToB, bToC := word(a, printB, time.Hour), word(b, printC, 3*day)
	forged := word(a, printS, time.Hour)
	forged.Signature = aToB.Signature
	good("at first", nil, ErrServer, ErrServer, ErrServer)
	shows("the first contact", printA, false)
	good("afterwards", nil, errUnknown, errUnknown, errUnknown)
	for _, c := range []*step{word(stranger, printS, time.Hour), forged, bToC,
		{NextCertificate: exchange.NextCertificate{Certificate: []byte{1}}}} {
		if p.take([]*step{c}) {
			t.Errorf("taken: %+v", c)
		}
	}
	if err := p.keep(file); err != nil {
		t.Fatal(err)
	}
	if !p.take([]*step{bToC, aToB}) || p.take([]*step{bToC, aToB}) {
		t.Error("not taken, or twice")
	}
	good("both are known", nil, nil, nil, errUnknown)
	if p.take([]*step{word(a, printS, 9*day), word(a, printB, time.Minute)}) {
		t.Error("a second next is taken")
	}
	good("whoever has the key of the first", nil, nil, nil, errUnknown)
	if err := p.save(); err != nil {
		t.Fatal(err)
	}
	again := func(kept string, want ...error) {
		t.Helper()
		p = fresh()
		if err := p.keep(file); err != nil {
			t.Fatal(err)
		}
		good("after another start, "+kept, want...)
		p.met = true
	}
	at = began.Add(time.Hour + day - time.Second)
	again("a day after the time of the first", nil, nil, nil, ErrServer)
	at = at.Add(time.Second)
	again("and a second", errPassed, nil, nil, ErrServer)
	// The second was known of for three days before its time was over.
	at = began.Add(6*day - time.Second)
	again("three days after the time of the second", errPassed, nil, nil, ErrServer)
	at = at.Add(time.Second)
	again("and a second", errPassed, errPassed, nil, ErrServer)
	at = began
	again("before any time", nil, nil, nil, ErrServer)
	shows("the second", printB, true)
	good("the second was shown", errPassed, nil, nil, errUnknown)
	if err := p.save(); err != nil {
		t.Fatal(err)
	}
	again("the second was shown", errPassed, nil, nil, ErrServer)
	shows("the third", printC, true)
	good("the third was shown", errPassed, errPassed, nil, errUnknown)
	shows("the third again", printC, false)
}

// Statements in a circle end no party, and its first certificate is not good again.
func TestPinsInACircle(t *testing.T) {
	a, printA := madePair(t)
	b, printB := madePair(t)
	p := newPins([][32]byte{printA})
	var all []*step
	for of, next := range map[*tls.Certificate][32]byte{a: printB, b: printA} {
		c, err := exchange.SignNext(of, next, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &step{NextCertificate: *c, Taken: time.Now()})
	}
	if !p.take(all) || p.good(printA) != nil || p.good(printB) != nil {
		t.Error("before either is shown both are good")
	}
	p.see(printB)
	if err := p.good(printA); !errors.Is(err, errPassed) || p.good(printB) != nil {
		t.Errorf("the second is shown: %v", err)
	}
}
