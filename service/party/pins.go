package party

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/service/door"
)

// mostPins bounds the changes of certificates that a party remembers.
const mostPins = 1000

// pins holds the certificates that a party accepts: those whose fingerprints it was given, and
// those that one of them, or one that came after it, has named as its next. One that has named
// another is good until the time that it stated, and its word about a third counts for nothing:
// anyone who steals the key of a certificate that was replaced gains nothing from a party that
// knows.
type pins struct {
	given [][32]byte
	now   func() time.Time

	mutex sync.Mutex
	next  map[[32]byte]*step // by the certificate that said so
	said  []door.NextCertificate
	file  string // that keeps them; empty: none
	seen  string // digest of the statements that a node had
}

// step is a change of certificates.
type step struct {
	to    [32]byte
	until time.Time
	at    int // in pins.said
}

func newPins(given [][32]byte) *pins {
	return &pins{given: given, now: time.Now, next: make(map[[32]byte]*step)}
}

// verify serves as the VerifyPeerCertificate of a tls.Config.
func (p *pins) verify(raw [][]byte, _ [][]*x509.Certificate) error {
	if len(raw) == 0 || !p.good(sha256.Sum256(raw[0])) {
		return fmt.Errorf("%w: its certificate has another fingerprint", ErrServer)
	}
	return nil
}

func (p *pins) good(fingerprint [32]byte) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if s := p.next[fingerprint]; s != nil && !p.now().Before(s.until) {
		return false
	}
	return p.known(fingerprint)
}

// known reports whether a certificate was ever acceptable. The caller holds the mutex.
func (p *pins) known(fingerprint [32]byte) bool {
	if slices.Contains(p.given, fingerprint) {
		return true
	}
	for _, s := range p.next {
		if s.to == fingerprint {
			return true
		}
	}
	return false
}

// take adds statements that known certificates have signed, and reports whether any was new. Those
// that are kept may be of times that are over.
func (p *pins) take(all []door.NextCertificate, kept bool) (some bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for again := true; again; { // one may be the next of another
		again = false
		for _, c := range all {
			present, next, err := c.Verify()
			if err != nil || !p.known(present) || present == next ||
				!kept && !p.now().Before(c.Until) {
				continue
			}
			switch had := p.next[present]; {
			case had == nil && len(p.said) < mostPins:
				p.next[present] = &step{next, c.Until, len(p.said)}
				p.said = append(p.said, c)
				again = true
			case had != nil && had.to == next && c.Until.After(had.until):
				had.until, p.said[had.at] = c.Until, c
				again = true
			}
		}
		some = some || again
	}
	return some
}

// keep reads the statements taken earlier from a file, and from now on writes there those that are
// taken.
func (p *pins) keep(file string) error {
	b, err := os.ReadFile(file)
	var all []door.NextCertificate
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := strictJSON(b, &all); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	p.take(all, true)
	p.file = file
	return nil
}

// save writes the statements taken.
func (p *pins) save() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.file == "" {
		return nil
	}
	b, err := json.Marshal(p.said)
	if err != nil {
		return err
	}
	return hushsum.FileStore(p.file).Save(b)
}

// KeepCertificates has a party that pins certificates remember in a file which ones came after
// them.
func (s *Server) KeepCertificates(file string) error {
	if s.pins == nil {
		return nil
	}
	return s.pins.keep(file)
}

// learn asks a node for the next certificates, if an answer's header says that it has others than
// those seen. A failure is retried with the next answer.
func (s *Server) learn(ctx context.Context, base, digest string) {
	p := s.pins
	if p == nil || digest == "" {
		return
	}
	p.mutex.Lock()
	had := p.seen == digest
	p.mutex.Unlock()
	if had {
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/certificates", nil)
	if err != nil {
		return
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, mostJSON))
	var all []door.NextCertificate
	if err != nil || answer.StatusCode != http.StatusOK || strictJSON(b, &all) != nil {
		return
	}
	if p.take(all, false) && p.save() != nil {
		return
	}
	p.mutex.Lock()
	p.seen = digest
	p.mutex.Unlock()
}
