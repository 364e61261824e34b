package keyexchange

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"filippo.io/edwards25519"
	"golang.org/x/crypto/cryptobyte"

	"github.com/hushsum/hushsum/internal/charset"
	"github.com/hushsum/hushsum/internal/labels"
)

// maxNameLength is the longest name of a party, in bytes.
const maxNameLength = 64

// maxParties is the most parties that a roster can hold.
const maxParties = 1 << 20

// MaxWeight is the largest weight of a party.
const MaxWeight = 1 << 16

// Errors of rosters.
var (
	// ErrRosterSize: a roster needs at least two parties, since the sum of one
	// is that one's input, and at most 2^20.
	ErrRosterSize = errors.New("keyexchange: a roster needs between 2 and 1048576 parties")
	// ErrDuplicateIdentity: two parties have the same name or the same key. Give
	// every party its own.
	ErrDuplicateIdentity = errors.New("keyexchange: duplicate identity in the roster")
	// ErrIdentityKey: not the canonical encoding of an Ed25519 public key, or a
	// point of small order, under which anybody can sign.
	ErrIdentityKey = errors.New("keyexchange: not a usable Ed25519 public key")
	// ErrName: a name is empty, longer than 64 bytes, or has a character
	// outside the printable ASCII set without space and '#'.
	ErrName = errors.New(
		"keyexchange: a name is 1 to 64 printable ASCII characters without space or '#'")
	// ErrRosterLine: a line of a roster file is not "name hexkey" or "name hexkey weight".
	ErrRosterLine = errors.New("keyexchange: a roster line is a name, one space, and an Ed25519 key " +
		"of 64 lower-case hex digits, with another space and a weight if the roster has weights")
	// ErrWeight: a weight is outside 1 to [MaxWeight], or some parties have a weight and others have
	// none.
	ErrWeight = errors.New(
		"keyexchange: weights are whole numbers from 1 to 65536, of all parties of a roster or of none")
)

// Entry is one party of a roster.
type Entry struct {
	Name string            // shown in errors; see ErrName for its form
	Key  ed25519.PublicKey // the long-term identity
	// Weight, 1 to [MaxWeight], is how often the party's vector counts in sums with declared weights;
	// 0: the roster has no weights.
	Weight int
}

// Roster is the fixed list of the parties of a session, which every party and the server hold
// before the session begins. A party is known by its index in the list, from 0. The server cannot
// add parties to the list, so it cannot invent clients; for that the list must not come from the
// server.
//
// A Roster is immutable and safe for concurrent use.
type Roster struct {
	entries []Entry
	byKey   map[[ed25519.PublicKeySize]byte]int
	digest  [32]byte
}

// NewRoster checks the entries and makes a roster of them, in the order given.
// It fails with [ErrRosterSize], [ErrName], [ErrIdentityKey],
// [ErrDuplicateIdentity] or [ErrWeight].
func NewRoster(entries []Entry) (*Roster, error) {
	if len(entries) < 2 || len(entries) > maxParties {
		return nil, fmt.Errorf("%w: got %d", ErrRosterSize, len(entries))
	}
	r := &Roster{
		entries: make([]Entry, len(entries)),
		byKey:   make(map[[ed25519.PublicKeySize]byte]int, len(entries)),
	}
	names := make(map[string]int, len(entries))
	for i, e := range entries {
		if !validName(e.Name) {
			return nil, fmt.Errorf("%w: party %d is named %.80q", ErrName, i, e.Name)
		}
		if err := checkIdentityKey(e.Key); err != nil {
			return nil, fmt.Errorf("%w: party %d (%s)", err, i, e.Name)
		}
		if e.Weight < 0 || e.Weight > MaxWeight || (e.Weight == 0) != (entries[0].Weight == 0) {
			return nil, fmt.Errorf("%w: party %d (%s) has %d", ErrWeight, i, e.Name, e.Weight)
		}
		key := [ed25519.PublicKeySize]byte(e.Key)
		if j, ok := r.byKey[key]; ok && entries[j].Name == e.Name {
			return nil, fmt.Errorf("%w: %s is listed twice; remove one line", ErrDuplicateIdentity, e.Name)
		} else if ok {
			return nil, fmt.Errorf("%w: %s and %s have one key; each needs an identity of its own",
				ErrDuplicateIdentity, entries[j].Name, e.Name)
		}
		if _, ok := names[e.Name]; ok {
			return nil, fmt.Errorf("%w: two parties are named %s; give one another name",
				ErrDuplicateIdentity, e.Name)
		}
		r.byKey[key], names[e.Name] = i, i
		r.entries[i] = e
		r.entries[i].Key = ed25519.PublicKey(bytes.Clone(e.Key))
	}
	r.digest = r.computeDigest()
	return r, nil
}

// ParseRoster reads the text form: one party a line, its name, a space and its
// Ed25519 public key in 64 lower-case hex digits, and another space and its weight in
// decimal digits if the roster has weights. Empty lines and lines that
// begin with '#' are passed over, and so is a byte-order mark. It fails with
// [ErrRosterLine] and the line's number, or as [NewRoster] does.
func ParseRoster(text []byte) (*Roster, error) {
	text = bytes.TrimPrefix(text, []byte(charset.Mark))
	if encoding := charset.Of(text); strings.HasPrefix(encoding, "UTF") {
		reason, advice := charset.Foreign(encoding, "roster.txt")
		return nil, fmt.Errorf("%w: %s; %s", ErrRosterLine, reason, advice)
	}
	var entries []Entry
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, digits, ok := strings.Cut(line, " ")
		digits, number, weighed := strings.Cut(digits, " ")
		weight := 0
		if weighed {
			var err error
			if weight, err = strconv.Atoi(number); err != nil || strconv.Itoa(weight) != number {
				return nil, fmt.Errorf("%w: line %d", ErrRosterLine, n)
			} else if weight < 1 {
				return nil, fmt.Errorf("%w: line %d has %d", ErrWeight, n, weight)
			}
		}
		key, err := hex.DecodeString(digits)
		if !ok || err != nil || len(key) != ed25519.PublicKeySize || digits != strings.ToLower(digits) {
			return nil, fmt.Errorf("%w: line %d", ErrRosterLine, n)
		}
		if len(entries) == maxParties {
			return nil, fmt.Errorf("%w: more at line %d", ErrRosterSize, n)
		}
		entries = append(entries, Entry{Name: name, Key: key, Weight: weight})
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%w: a line is too long", ErrRosterLine)
	}
	return NewRoster(entries)
}

// AppendText appends the form that [ParseRoster] reads. It never fails.
func (r *Roster) AppendText(b []byte) ([]byte, error) {
	for _, e := range r.entries {
		b = fmt.Appendf(b, "%s %x", e.Name, []byte(e.Key))
		if e.Weight > 0 {
			b = fmt.Appendf(b, " %d", e.Weight)
		}
		b = append(b, '\n')
	}
	return b, nil
}

// MarshalText returns what AppendText appends.
func (r *Roster) MarshalText() ([]byte, error) { return r.AppendText(nil) }

// UnmarshalText makes r the roster that [ParseRoster] reads from text, and fails as
// it does; r is then unchanged. Use it on a new Roster only: one in use is immutable.
func (r *Roster) UnmarshalText(text []byte) error {
	parsed, err := ParseRoster(text)
	if err != nil {
		return err
	}
	*r = *parsed
	return nil
}

// Len returns the number of parties.
func (r *Roster) Len() int { return len(r.entries) }

// Name returns the name of party i; it panics if there is no such party.
func (r *Roster) Name(i int) string { return r.entries[i].Name }

// Key returns the identity of party i, which the caller must not change; it
// panics if there is no such party.
func (r *Roster) Key(i int) ed25519.PublicKey { return r.entries[i].Key }

// Weight returns the weight of party i, 0 if the roster has no weights; it panics if there is no
// such party.
func (r *Roster) Weight(i int) int { return r.entries[i].Weight }

// Weigh returns the roster with a weight for each party, in order. It fails with [ErrWeight].
func (r *Roster) Weigh(weights []int) (*Roster, error) {
	if len(weights) != len(r.entries) {
		return nil, fmt.Errorf("%w: %d weights for %d parties", ErrWeight, len(weights),
			len(r.entries))
	}
	out := &Roster{entries: slices.Clone(r.entries), byKey: r.byKey}
	for i, weight := range weights {
		if weight < 1 || weight > MaxWeight {
			return nil, fmt.Errorf("%w: party %d (%s) has %d", ErrWeight, i, r.Name(i), weight)
		}
		out.entries[i].Weight = weight
	}
	out.digest = out.computeDigest()
	return out, nil
}

// Index returns the index of the party with this identity, and whether there
// is one.
func (r *Roster) Index(key ed25519.PublicKey) (int, bool) {
	if len(key) != ed25519.PublicKeySize {
		return 0, false
	}
	i, ok := r.byKey[[ed25519.PublicKeySize]byte(key)]
	return i, ok
}

// Digest returns SHA-256 over the names, keys and weights in order: two rosters with the same
// digest are the same list.
func (r *Roster) Digest() [32]byte { return r.digest }

func (r *Roster) computeDigest() [32]byte {
	b := cryptobyte.NewBuilder(nil)
	b.AddBytes([]byte(labels.Roster))
	b.AddUint32(uint32(len(r.entries)))
	for _, e := range r.entries {
		b.AddUint8LengthPrefixed(func(b *cryptobyte.Builder) { b.AddBytes([]byte(e.Name)) })
		b.AddBytes(e.Key)
	}
	for _, e := range r.entries {
		if e.Weight > 0 {
			b.AddUint32(uint32(e.Weight))
		}
	}
	return sha256.Sum256(b.BytesOrPanic())
}

func validName(name string) bool {
	if name == "" || len(name) > maxNameLength || len(name) > math.MaxUint8 {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || c == '#' {
			return false
		}
	}
	return true
}

// checkIdentityKey refuses what crypto/ed25519 would take without complaint:
// encodings that are not canonical, which would let one key stand twice in a
// roster, and points of small order, under which a signature needs no secret.
func checkIdentityKey(key ed25519.PublicKey) error {
	point, err := new(edwards25519.Point).SetBytes(key)
	if err != nil || !bytes.Equal(point.Bytes(), key) {
		return ErrIdentityKey
	}
	if point.MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return ErrIdentityKey
	}
	return nil
}
