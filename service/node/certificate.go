package node

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/store"
)

// This file has the door's certificate, and replaces it while parties that pin it continue: the
// next one is announced, signed by the present one, for a declared time, and shown at the latest
// when that time is over.

const (
	suffixNext     = ".next"                 // of the files of a certificate that is to come
	fileSaid       = "next-certificate.json" // what the present one says of it
	defaultOverlap = 7 * 24 * time.Hour
	// The next one is shown by this much before the time of the present one is over, or by a fourth of
	// the overlap if that is less, since nodes' clocks, and others' notions of the end, differ.
	early    = 10 * time.Minute
	endsSoon = 30 * 24 * time.Hour // when the log begins to say so, once a day
)

// certificate is the certificate of a door.
type certificate struct {
	files, nextFiles [2]string // of the certificate and of its key, which may be one
	watched          []*watched
	said             string // file of the statement
	now              func() time.Time

	mutex   sync.Mutex
	present *tls.Certificate
	next    *tls.Certificate // nil: none is to come
	word    *exchange.NextCertificate
	told    time.Time // when the log said that the present one ends
}

// now returns the time that the door uses.
func (n *Node) now() time.Time {
	if n.hooks.Now != nil {
		return n.hooks.Now()
	}
	return time.Now()
}

func fingerprint(c *tls.Certificate) [32]byte { return sha256.Sum256(c.Certificate[0]) }

// readPair reads a certificate and its key, which only its owner may be able to read.
func readPair(files [2]string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(files[0], files[1])
	if err == nil {
		err = keyfile.Private(files[1])
	}
	if err != nil {
		return nil, fmt.Errorf("node: the door's certificate, in %s and %s: %w", files[0], files[1], err)
	}
	return &pair, nil
}

// openCertificate reads the certificate of the door.
func (n *Node) openCertificate() error {
	c := &n.certificate
	c.now = n.now
	c.said = filepath.Join(n.Folder, fileSaid)
	c.files = [2]string{n.CertificateFile, cmp.Or(n.CertificateKey, n.CertificateFile)}
	if n.CertificateFile == "" {
		name := filepath.Join(n.Folder, fileCertificate)
		if _, err := keyfile.Keep(name, n.selfSigned); err != nil {
			return err
		}
		c.files = [2]string{name, name}
	}
	for i, name := range c.files {
		c.nextFiles[i] = name + suffixNext
	}
	for _, name := range slices.Concat(c.files[:], c.nextFiles[:]) {
		c.watched = append(c.watched, &watched{name: name})
		c.watched[len(c.watched)-1].changed()
	}
	b, err := os.ReadFile(c.said)
	if err == nil {
		c.word = new(exchange.NextCertificate)
		err = json.Unmarshal(b, c.word)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("node: %s: %w", c.said, err)
	}
	if c.present, err = readPair(c.files); err != nil {
		return err
	}
	if err := n.announce(); err != nil {
		return err
	}
	n.show(c.present)
	return nil
}

// renew reads the files again if they have changed, and shows the next certificate once the time of
// the present one is over.
func (n *Node) renew() {
	c := &n.certificate
	changed := false
	for _, w := range c.watched {
		changed = w.changed() || changed
	}
	if changed {
		pair, err := readPair(c.files)
		if err == nil {
			n.show(pair)
			err = n.announce()
		}
		if err != nil { // one of the two may be written and the other not yet
			n.Log.Error("the door's certificate stays", "error", err.Error())
		}
	}
	c.mutex.Lock()
	present := c.present
	c.mutex.Unlock()
	n.show(present)
}

// show shows a certificate from now on, or the next one if its time has come, whatever the files of
// the present one contain.
func (n *Node) show(pair *tls.Certificate) {
	c := &n.certificate
	c.mutex.Lock()
	was := c.present
	ahead := min(early, cmp.Or(n.Overlap, defaultOverlap)/4)
	due := c.next != nil && c.over(ahead) && c.word.Next == fmt.Sprintf("%x", fingerprint(c.next))
	if due {
		pair = c.next
	}
	c.present = pair
	c.mutex.Unlock()
	changed := fingerprint(was) != fingerprint(pair)
	n.tellEnd(changed)
	if changed {
		n.Log.Warn("the door now uses another certificate", "fingerprint",
			fmt.Sprintf("%x", fingerprint(pair)))
		if due {
			n.Log.Warn("the time of the certificate before is over: move the .next files over it", "file",
				c.nextFiles[0])
		}
	}
}

// tellEnd logs once a day that the certificate that is shown ends soon, or has ended, and at once
// if it is another one.
func (n *Node) tellEnd(changed bool) {
	c := &n.certificate
	end, now := c.expires(), c.now()
	if end.IsZero() || end.Sub(now) > endsSoon || !changed && now.Sub(c.told) < 24*time.Hour {
		return
	}
	c.told = now
	what := "the door's certificate ends soon"
	if now.After(end) {
		what = "the door's certificate has ended"
	}
	n.Log.Warn(what+": parties that do not pin it refuse it from then on; see Another certificate in "+
		"docs/service-mend.md", "end", end.UTC().Format(time.RFC3339))
}

// over reports whether the time of the certificate before the next is over, or is in a while. The
// caller holds the mutex.
func (c *certificate) over(ahead time.Duration) bool {
	return c.word != nil && !c.now().Add(ahead).Before(c.word.Until)
}

// announce has the present certificate name the next one, if there are files of one.
func (n *Node) announce() error {
	c := &n.certificate
	next, err := readPair(c.nextFiles)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		c.next = nil
		return nil
	}
	if err != nil {
		return err
	}
	c.next = next
	name := fmt.Sprintf("%x", fingerprint(next))
	if fingerprint(c.present) == fingerprint(next) || c.word != nil && c.word.Next == name {
		return nil
	}
	until := n.now().Add(cmp.Or(n.Overlap, defaultOverlap))
	word, err := exchange.SignNext(c.present, fingerprint(next), until)
	if err != nil {
		return err
	}
	b, err := json.Marshal(word)
	if err == nil {
		err = store.FileStore(c.said).Save(b) // the time stays, over other starts too
	}
	if err != nil {
		return err
	}
	c.word = word
	n.Log.Warn("another certificate is announced to parties", "fingerprint", name, "until",
		word.Until.Format(time.RFC3339))
	return nil
}

// shown returns the fingerprints of the certificates that the door shows and may show next.
func (c *certificate) shown() (present, next string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.present != nil {
		f := fingerprint(c.present)
		present = hex.EncodeToString(f[:])
	}
	if c.next != nil {
		f := fingerprint(c.next)
		next = hex.EncodeToString(f[:])
	}
	return present, next
}

// expires returns the end of validity of the certificate that the door shows; zero: there is none.
func (c *certificate) expires() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.present == nil || c.present.Leaf == nil {
		return time.Time{}
	}
	return c.present.Leaf.NotAfter
}

// config returns the configuration of the door, which shows the present certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			return c.present, nil
		},
		NextProtos: []string{"http/1.1"},
	}
}

// says returns the statement of this node's certificate about its next, as long as it is of use.
func (c *certificate) says() *exchange.NextCertificate {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.over(0) {
		return nil
	}
	return c.word
}

// statements returns the statements of the certificates of all nodes: a party may have pinned
// certificates of nodes that it does not ask.
func (n *Node) statements() (all []exchange.NextCertificate) {
	add := func(c *exchange.NextCertificate) {
		same := func(had exchange.NextCertificate) bool { return bytes.Equal(had.Signature, c.Signature) }
		if c != nil && n.now().Before(c.Until) && !slices.ContainsFunc(all, same) {
			all = append(all, *c)
		}
	}
	add(n.certificate.says())
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(n.others)) {
		add(n.others[name].Certificate)
	}
	return all
}
