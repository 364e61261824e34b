package receipt

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of comparisons.
var (
	// ErrConsistent: two receipts do not contradict each other. To compare heads of two sizes takes
	// the lines in between: see [Prefix].
	ErrConsistent = errors.New("receipt: nothing here contradicts the other")
	// ErrEvidence: the bytes are no evidence, or convict nobody.
	ErrEvidence = errors.New("receipt: this is no evidence that a key has signed two histories")
	// ErrApart: two receipts are of two federations, or under two keys, so that nobody can tell.
	ErrApart = errors.New("receipt: they are of two federations or two keys; if they should be " +
		"of one, ask the others which key it has")
)

// Kinds of evidence.
const (
	// Heads: two heads of one size have two roots.
	Heads = "heads"
	// Entries: two entries have one number.
	Entries = "entries"
	// Prefixes: a head's first lines are not those of a lower head.
	Prefixes = "prefixes"
)

// Evidence convicts the holder of a federation's key of two histories, before anyone who knows that
// the key is the federation's.
type Evidence struct {
	Kind       string
	Federation string // 64 digits
	Key        chain.Hash
	// One and Another are two heads, as signed notes, or two lines. Of prefixes, One is the lower.
	One, Another []byte
	// Root is that of the lines of Another up to One's size, as Proof shows; of prefixes.
	Root  chain.Hash
	Proof []chain.Hash
}

// Contradict returns evidence from two receipts that one honest key cannot have vouched for. It
// fails with the errors of [Receipt.Verify], with [ErrApart] and with [ErrConsistent].
func Contradict(a, b *Receipt, key ed25519.PublicKey) (*Evidence, error) {
	one, err := a.Verify(key)
	if err != nil {
		return nil, err
	}
	another, err := b.Verify(key)
	if err != nil {
		return nil, err
	}
	if a.Federation != b.Federation || a.Key != b.Key {
		return nil, ErrApart
	}
	e := &Evidence{Federation: a.Federation, Key: a.Key}
	switch {
	case one.Head.Contradicts(another.Head):
		e.Kind, e.One, e.Another = Heads, a.Head, b.Head
	case one.Entry.Number == another.Entry.Number && one.Entry.Segment == another.Entry.Segment &&
		!bytes.Equal(a.Entry, b.Entry):
		e.Kind, e.One, e.Another = Entries, a.Entry, b.Entry
	default:
		return nil, ErrConsistent
	}
	return e, nil
}

// Prefix compares a head, as a signed note, with the lines of a segment up to a higher one, or one
// of the same size. It returns evidence if the lines do not begin as the head says. It fails with
// [ErrConsistent] if they do, and with [ErrEvidence] if it cannot tell.
func Prefix(federation string, key ed25519.PublicKey, head, higher []byte, segment *chain.Tree,
) (*Evidence, error) {
	low, err := chain.OpenHead(head, federation, key)
	if err != nil {
		return nil, err
	}
	high, err := chain.OpenHead(higher, federation, key)
	if err != nil {
		return nil, err
	}
	if low.Origin() != high.Origin() || low.Size > high.Size || segment.Size() < high.Size {
		return nil, ErrEvidence
	}
	e := &Evidence{Kind: Prefixes, Federation: federation, Key: chain.Hash(key), One: head,
		Another: higher}
	if e.Root, err = segment.Root(low.Size); err != nil {
		return nil, err
	}
	if e.Root == low.Root {
		return nil, ErrConsistent
	}
	if e.Proof, err = segment.Consistency(low.Size, high.Size); err != nil {
		return nil, err
	}
	if err := e.Verify(); err != nil {
		return nil, err
	}
	return e, nil
}

// Verify fails with [ErrEvidence] unless the evidence convicts. Heads name the first 16 digits of a
// federation's identifier: of the others, evidence of heads shows nothing.
func (e *Evidence) Verify() error {
	key := ed25519.PublicKey(e.Key[:])
	if e.Kind != Prefixes && (e.Root != chain.Hash{} || e.Proof != nil) {
		return ErrEvidence
	}
	if e.Kind == Entries {
		one, err := chain.Open(e.One, e.Federation, key)
		another, failed := chain.Open(e.Another, e.Federation, key)
		if errors.Join(err, failed) != nil || one.Number != another.Number ||
			one.Segment != another.Segment || bytes.Equal(e.One, e.Another) {
			return ErrEvidence
		}
		return nil
	}
	one, err := chain.OpenHead(e.One, e.Federation, key)
	another, failed := chain.OpenHead(e.Another, e.Federation, key)
	if errors.Join(err, failed, checkNote(e.One), checkNote(e.Another)) != nil {
		return ErrEvidence
	}
	switch e.Kind {
	case Heads:
		if one.Contradicts(another) {
			return nil
		}
	case Prefixes:
		kept := *one
		kept.Root = e.Root
		if e.Root != one.Root && chain.CheckConsistency(&kept, another, e.Proof) == nil {
			return nil
		}
	}
	return ErrEvidence
}

// MarshalText writes the evidence.
func (e *Evidence) MarshalText() ([]byte, error) {
	b := fmt.Appendf(nil, "%s\nkind %s\nfederation %s\nkey %v\nroot %v\nproof", labels.Evidence,
		e.Kind, e.Federation, e.Key, e.Root)
	b = append(appendHashes(b, e.Proof), '\n')
	for _, part := range [][]byte{e.One, e.Another} {
		text := strings.TrimSuffix(string(part), "\n")
		b = fmt.Appendf(b, "lines %d\n%s\n", 1+strings.Count(text, "\n"), text)
	}
	return b, nil
}

// IsEvidence reports whether bytes begin as evidence of this package does.
func IsEvidence(b []byte) bool { return bytes.HasPrefix(b, []byte(labels.Evidence+"\n")) }

// ParseEvidence reads evidence. It fails with [ErrEvidence]. See [Evidence.Verify].
func ParseEvidence(b []byte) (*Evidence, error) {
	if len(b) > Most {
		return nil, ErrEvidence
	}
	l := &lines{rest: string(b)}
	if l.line() != labels.Evidence {
		return nil, ErrEvidence
	}
	e := &Evidence{Kind: l.after("kind"), Federation: l.after("federation")}
	e.Key, e.Root = l.hash(l.after("key")), l.hash(l.after("root"))
	e.Proof = l.hashes("proof")
	for _, part := range []*[]byte{&e.One, &e.Another} {
		for range min(l.number(l.after("lines")), mostProof) {
			*part = append(append(*part, l.line()...), '\n')
		}
		if e.Kind == Entries {
			*part = bytes.TrimSuffix(*part, []byte("\n"))
		}
	}
	again, err := e.MarshalText()
	if l.err != nil || err != nil || !isDigest(e.Federation) || !bytes.Equal(again, b) {
		return nil, ErrEvidence
	}
	return e, nil
}
