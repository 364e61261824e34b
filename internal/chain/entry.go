package chain

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of entries.
var (
	// ErrEntry: a line is no entry as this package writes it.
	ErrEntry = errors.New("chain: the line is no entry; look for the entry in another copy")
	// ErrSignature: the federation's key has not signed the entry.
	ErrSignature = errors.New("chain: the signature of an entry does not verify; look for the entry " +
		"in another copy")
	// ErrFederation: the entry is another federation's.
	ErrFederation = errors.New("chain: the entry is of another federation")
)

const (
	version = 1
	// MostLine is the length of the longest line, in bytes.
	MostLine = 64 << 10
	// identifier is the length of a federation's identifier, in digits.
	identifier = 64

	labelEntry = labels.Entry + "\n"
)

// Hash is the SHA-256 of a line, or of something that an entry names. Its text is 64 digits.
type Hash [sha256.Size]byte

// HashOf returns the hash of a line, or of anything else.
func HashOf(b []byte) Hash { return sha256.Sum256(b) }

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText returns 64 digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses 64 digits.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) != 2*len(h) {
		return ErrEntry
	}
	var out Hash
	if _, err := hex.Decode(out[:], b); err != nil {
		return ErrEntry
	}
	*h = out
	return nil
}

// Kind names what an entry decides.
type Kind string

// Kinds of entries.
const (
	Birth       Kind = "birth"   // the first
	Claim       Kind = "claim"   // a node leads
	Decided     Kind = "decided" // of no kind that is told
	Keys        Kind = "keys"
	Begin       Kind = "begin" // of a round
	Survivors   Kind = "survivors"
	Certificate Kind = "certificate"
	Sum         Kind = "sum"
	Lost        Kind = "lost" // of a round
	Order       Kind = "order"
	Setback     Kind = "setback" // the first of a segment, after the first segment
	Damage      Kind = "damage"
	Healed      Kind = "healed"
	Forget      Kind = "forget"
)

var kinds = map[Kind]bool{Birth: true, Claim: true, Decided: true, Keys: true, Begin: true,
	Survivors: true, Certificate: true, Sum: true, Lost: true, Order: true, Setback: true,
	Damage: true, Healed: true, Forget: true}

// Entry holds a decision.
type Entry struct {
	Version    int    `json:"v"`
	Federation string `json:"federation"` // 64 digits
	Segment    uint64 `json:"segment"`
	Number     uint64 `json:"number"`
	// Before is the hash of the line before, that of a setback the last line that it follows; zero of
	// a birth.
	Before Hash      `json:"before"`
	Claim  uint64    `json:"claim"` // how many claims there were
	Kind   Kind      `json:"kind"`
	Node   string    `json:"node,omitempty"` // a word, and no proof
	Time   time.Time `json:"time"`           // in UTC

	Session   uint64      `json:"session,omitempty"`
	Round     uint64      `json:"round,omitempty"`
	Members   *Commitment `json:"members,omitempty"`
	Survivors *Commitment `json:"survivors,omitempty"`
	Release   *Hash       `json:"release,omitempty"`
	// Ledger is a salted digest of what all parties have spent, and Spent what any has spent at most,
	// with its statement: the text of an accounting.Claim.
	Ledger *Hash           `json:"ledger,omitempty"`
	Spent  json.RawMessage `json:"spent,omitempty"`
	// State is the newest. Unknown says that nobody knows which that is: it was lost.
	State   *Object `json:"state,omitempty"`
	Unknown bool    `json:"unknown,omitempty"`
	Model   *Object `json:"model,omitempty"`
	Order   string  `json:"order,omitempty"`
	// Notes has lines for people, sealed: they have names, and nothing else of an entry does. Whoever
	// erases the key erases them in all copies.
	Notes []byte `json:"notes,omitempty"`
	// Heads lists the highest heads that anybody knew at a setback, and Lost the numbers that are in
	// no copy.
	Heads []Height `json:"heads,omitempty"`
	Lost  []Range  `json:"lost,omitempty"`
	// Key is the federation's public key, of a birth.
	Key *Hash `json:"key,omitempty"`
}

// Commitment is a list of parties or members: their count, and a root over salted leaves.
type Commitment struct {
	Count uint64 `json:"count"`
	Root  Hash   `json:"root"`
}

// Object names an object that is stored elsewhere.
type Object struct {
	Name   string `json:"name"`
	Digest Hash   `json:"digest"`
	Size   uint64 `json:"size"`
	Parts  uint64 `json:"parts,omitempty"`
}

// Height has the parts of a head that others are compared by.
type Height struct {
	Segment uint64 `json:"segment"`
	Size    uint64 `json:"size"`
	Root    Hash   `json:"root"`
}

// Range is some numbers in a row.
type Range struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"` // the last
}

func (r Range) String() string {
	if r.From == r.To {
		return fmt.Sprint(r.From)
	}
	return fmt.Sprintf("%d to %d", r.From, r.To)
}

// check fails unless the parts of an entry fit together.
func (e *Entry) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrEntry, what) }
	_, err := hex.DecodeString(e.Federation)
	switch {
	case e.Version != version:
		return bad(fmt.Sprintf("it has version %d, want %d", e.Version, version))
	case len(e.Federation) != identifier, err != nil, strings.ToLower(e.Federation) != e.Federation:
		return bad("its federation is no identifier")
	case !kinds[e.Kind]:
		return bad(fmt.Sprintf("there is no kind %.20q", e.Kind))
	case e.Time.Location() != time.UTC:
		return bad("its time is not in UTC")
	case (e.Kind == Birth) != (e.Number == 0):
		return bad("entry 0 is the birth, and no other is")
	case (e.Kind == Birth) != (e.Before == Hash{}):
		return bad("it does not say what it follows")
	case (e.Kind == Birth) != (e.Key != nil):
		return bad("the birth names the key, and no other entry does")
	case e.Kind == Birth && e.Segment != 0:
		return bad("a birth is of segment 0")
	case e.Kind == Setback && e.Segment == 0:
		return bad("a setback begins a segment after the first")
	case e.Kind != Setback && (e.Heads != nil || e.Lost != nil):
		return bad("a setback alone names heads and what is lost")
	}
	next := uint64(0)
	for _, r := range e.Lost {
		if r.From < next || r.To < r.From || r.To >= e.Number {
			return bad("what is lost is not in order, or not before it")
		}
		next = r.To + 2 // else it would be one range
	}
	return nil
}

// Sign writes an entry as a line, without a newline. It fails with [ErrEntry].
func Sign(e *Entry, key ed25519.PrivateKey) (line []byte, err error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	if line, err = json.Marshal(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	signature := ed25519.Sign(key, signed(line))
	line = base64.RawStdEncoding.AppendEncode(append(line, ' '), signature)
	if len(line) > MostLine {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrEntry, len(line), MostLine)
	}
	return line, nil
}

// signed returns what is signed of an entry.
func signed(text []byte) []byte { return append([]byte(labelEntry), text...) }

// Parse reads a line that an entry is, without its newline: the entry that [Sign] writes it for. It
// fails with [ErrEntry]. It does not verify the signature: see [Open].
func Parse(line []byte) (*Entry, error) {
	e, _, _, err := parse(line)
	return e, err
}

func parse(line []byte) (e *Entry, text, signature []byte, err error) {
	if len(line) > MostLine {
		return nil, nil, nil, ErrEntry
	}
	at := bytes.LastIndexByte(line, ' ')
	if at < 0 {
		return nil, nil, nil, ErrEntry
	}
	text = line[:at]
	signature, err = base64.RawStdEncoding.Strict().DecodeString(string(line[at+1:]))
	if err != nil || len(signature) != ed25519.SignatureSize || bytes.ContainsAny(line, "\r\n") {
		return nil, nil, nil, ErrEntry
	}
	e = new(Entry)
	if err := json.Unmarshal(text, e); err != nil {
		return nil, nil, nil, ErrEntry
	}
	if err := e.check(); err != nil {
		return nil, nil, nil, err
	}
	// One text for an entry: no other order of fields, no field twice, none unknown.
	again, err := json.Marshal(e)
	if err != nil || !bytes.Equal(again, text) {
		return nil, nil, nil, ErrEntry
	}
	return e, text, signature, nil
}

// Open reads a line as [Parse] does, of a federation and signed under its key. It fails with
// [ErrEntry], [ErrFederation] or [ErrSignature].
func Open(line []byte, federation string, key ed25519.PublicKey) (*Entry, error) {
	e, text, signature, err := parse(line)
	switch {
	case err != nil:
		return nil, err
	case e.Federation != federation:
		return nil, ErrFederation
	case !verify(key, text, signature):
		return nil, ErrSignature
	}
	return e, nil
}

// verify reports whether a key has signed the text of an entry.
func verify(key ed25519.PublicKey, text, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, signed(text), signature)
}
