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

	"github.com/hushsum/hushsum/service/exchange"
	stores "github.com/hushsum/hushsum/store"
)

// mostPins bounds the changes of certificates that a party remembers.
const mostPins = 1000

// pins holds the certificates that a party accepts: those whose fingerprints it was given, and
// those that one of them, or one that came after it, has named as its next. Its first word about
// the next is the only one. A certificate is good, whatever the time, until the party has seen a
// node show one that came after it: nodes, and clocks, change at different times. Whoever holds the
// next back from a party gains some time only, see [step.late].
type pins struct {
	given [][32]byte
	now   func() time.Time

	mutex sync.Mutex
	met   bool               // a node showed a good certificate
	next  map[[32]byte]*step // by the certificate that said so
	steps []*step
	file  string // that keeps them; empty: none
	had   string // digest of the statements that a node had
}

// step is a change of certificates.
type step struct {
	exchange.NextCertificate
	Taken time.Time `json:"taken"`
	Seen  bool      `json:"seen,omitempty"` // the next was shown

	to [32]byte
}

// leastLate is how long after its time a certificate is accepted, at least, whose next the party
// knows and has not seen.
const leastLate = 24 * time.Hour

// late reports whether a certificate is shown too long after its time, though the party has not
// seen the next: as long again as the party has known of that, and a day at least.
func (s *step) late(now time.Time) bool {
	return !now.Before(s.Until.Add(max(leastLate, s.Until.Sub(s.Taken))))
}

// errPassed: a node shows a certificate that is no longer good. Other nodes may show the next one,
// and so may this one soon.
var errPassed = errors.New("party: a node shows an earlier certificate")

// errUnknown: a node shows a certificate that no certificate has named, after others were met.
var errUnknown = errors.New("party: a node shows another certificate than those that were named; " +
	"compare its fingerprint with the operator's")

func newPins(given [][32]byte) *pins {
	return &pins{given: given, now: time.Now, next: make(map[[32]byte]*step)}
}

// verify serves as the VerifyPeerCertificate of a tls.Config.
func (p *pins) verify(raw [][]byte, _ [][]*x509.Certificate) error {
	if len(raw) == 0 {
		return fmt.Errorf("%w: it shows no certificate", ErrServer)
	}
	fingerprint := sha256.Sum256(raw[0])
	if err := p.good(fingerprint); err != nil {
		return err
	}
	if p.see(fingerprint) {
		return p.save()
	}
	return nil
}

// good fails unless a certificate is good: with [ErrServer] only if nothing good was met before, as
// with the address of another server.
func (p *pins) good(fingerprint [32]byte) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case !p.known(fingerprint) && !p.met:
		return fmt.Errorf("%w: its certificate has another fingerprint", ErrServer)
	case !p.known(fingerprint):
		return fmt.Errorf("%w: %x", errUnknown, fingerprint)
	}
	at := fingerprint
	for range p.steps { // at most
		s := p.next[at]
		switch {
		case s == nil, s.to == fingerprint:
			return nil
		case s.Seen:
			return fmt.Errorf("%w, %x, after the next was seen, %x", errPassed, fingerprint, s.to)
		case at == fingerprint && s.late(p.now()):
			return fmt.Errorf("%w, %x, whose time was over on %s, and never its next, %x; ask the "+
				"operator if that lasts", errPassed, fingerprint, s.Until.Format(time.RFC3339), s.to)
		}
		at = s.to
	}
	return nil
}

// see notes that a node shows a certificate, and reports whether that is news of a change.
func (p *pins) see(fingerprint [32]byte) (news bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.met = true
	for _, s := range p.steps {
		if s.to == fingerprint && !s.Seen {
			s.Seen, news = true, true
		}
	}
	return news
}

// known reports whether a certificate was ever acceptable. The caller holds the mutex.
func (p *pins) known(fingerprint [32]byte) bool {
	return slices.Contains(p.given, fingerprint) ||
		slices.ContainsFunc(p.steps, func(s *step) bool { return s.to == fingerprint })
}

// take adds statements that known certificates have signed, and reports whether any was new.
func (p *pins) take(all []*step) (some bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for again := true; again; { // one may be the next of another
		again = false
		for _, s := range all {
			present, next, err := s.Verify()
			if err != nil || !p.known(present) || present == next {
				continue
			}
			switch had := p.next[present]; {
			case had == nil && len(p.steps) < mostPins:
				s.to = next
				p.next[present] = s
				p.steps = append(p.steps, s)
				again = true
			case had != nil && had.to == next && s.Until.After(had.Until):
				had.NextCertificate = s.NextCertificate
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
	var all []*step
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := strictJSON(b, &all); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	p.take(all)
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
	b, err := json.Marshal(p.steps)
	if err != nil {
		return err
	}
	return stores.FileStore(p.file).Save(b)
}

// KeepCertificates has a party that pins certificates remember in a file which certificates came
// after them.
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
	same := p.had == digest
	p.mutex.Unlock()
	if same {
		return
	}
	answer, err := s.timely(ctx, http.MethodGet, base+"/v1/certificates", nil, nil)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, mostJSON))
	var all []exchange.NextCertificate
	if err != nil || answer.StatusCode != http.StatusOK || strictJSON(b, &all) != nil {
		return
	}
	var steps []*step
	for _, one := range all {
		steps = append(steps, &step{NextCertificate: one, Taken: p.now()})
	}
	if p.take(steps) && p.save() != nil {
		return
	}
	p.mutex.Lock()
	p.had = digest
	p.mutex.Unlock()
}
