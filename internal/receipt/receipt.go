package receipt

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
)

// Errors of receipts that are whole.
var (
	// ErrProof: what a receipt has does not fit together, or the federation's key has not signed it.
	ErrProof = errors.New("receipt: it does not verify; keep it, and fetch it again")
	// ErrKey: the receipt names another key than the federation's.
	ErrKey = errors.New("receipt: it is under another key than the one given; ask the federation's " +
		"parties which key they have")
)

const (
	mostProof = 64 // hashes
	// Most is the length of the longest receipt, in bytes.
	Most = 1 << 20
)

// Receipt is a party's paper of a round. Its text has one form.
type Receipt struct {
	Statement
	Salt  Salt         // of the leaf
	Place uint64       // of the leaf among those of the sum
	Path  []chain.Hash // proves that the leaf is there

	Key   chain.Hash   // the federation's public key
	Index uint64       // of the entry in its segment
	Proof []chain.Hash // proves that the entry is there
	Entry []byte       // the line of the sum
	Head  []byte       // the segment's head, a signed note that may have cosignatures
}

// MarshalText writes the receipt. It fails with [ErrReceipt].
func (r *Receipt) MarshalText() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, "%s\n%ssalt %v\nplace %d\npath", labels.Receipt, r.text(),
		chain.Hash(r.Salt),
		r.Place)
	b = fmt.Appendf(appendHashes(b, r.Path), "\nkey %v\nindex %d\nproof", r.Key, r.Index)
	b = append(appendHashes(b, r.Proof), "\nentry "...)
	b = append(append(append(b, r.Entry...), '\n', '\n'), r.Head...)
	if len(b) > Most {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrReceipt, len(b), Most)
	}
	return b, nil
}

func appendHashes(b []byte, all []chain.Hash) []byte {
	for _, h := range all {
		b = append(append(b, ' '), h.String()...)
	}
	return b
}

func (r *Receipt) check() error {
	if err := r.Statement.check(); err != nil {
		return err
	}
	if r.Place >= r.Count || r.Index >= mostNumber || len(r.Path) > mostProof ||
		len(r.Proof) > mostProof || len(r.Entry) > chain.MostLine {
		return ErrReceipt
	}
	if _, err := chain.Parse(r.Entry); err != nil {
		return fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	return checkNote(r.Head)
}

// checkNote fails unless the signatures of a note are written in the one form that they have:
// package note reads others too, and a receipt that differs from another says something else.
func checkNote(b []byte) error {
	_, signatures, found := strings.Cut(string(b), "\n\n")
	if !found || signatures == "" || !strings.HasSuffix(signatures, "\n") {
		return ErrReceipt
	}
	seen := make(map[string]bool)
	for line := range strings.SplitSeq(strings.TrimSuffix(signatures, "\n"), "\n") {
		fields := strings.Split(line, " ")
		if len(fields) != 3 || fields[0] != "—" || len(seen) == mostProof {
			return ErrReceipt
		}
		s, err := base64.StdEncoding.Strict().DecodeString(fields[2])
		if err != nil || len(s) < 5 || strings.ContainsAny(line, "\r") {
			return ErrReceipt
		}
		by := fields[1] + string(s[:4])
		if seen[by] {
			return ErrReceipt
		}
		seen[by] = true
	}
	return nil
}

// Parse reads a receipt as MarshalText writes it. It fails with [ErrReceipt]. It verifies nothing:
// see [Receipt.Verify].
func Parse(b []byte) (*Receipt, error) {
	if len(b) > Most {
		return nil, ErrReceipt
	}
	l := &lines{rest: string(b)}
	if l.line() != labels.Receipt {
		return nil, ErrReceipt
	}
	r := &Receipt{Statement: l.statement()}
	r.Salt = Salt(l.hash(l.after("salt")))
	r.Place = l.number(l.after("place"))
	r.Path = l.hashes("path")
	r.Key = l.hash(l.after("key"))
	r.Index = l.number(l.after("index"))
	r.Proof = l.hashes("proof")
	r.Entry = []byte(l.after("entry"))
	if l.line() != "" || l.err != nil {
		return nil, ErrReceipt
	}
	r.Head = []byte(l.rest)
	again, err := r.MarshalText()
	if err != nil {
		return nil, err
	}
	if string(again) != string(b) {
		return nil, ErrReceipt
	}
	return r, nil
}

// Shown holds what follows from a receipt that verifies: the federation's key has signed the entry
// of the sum and a head with that entry, and the entry vouches for the statement.
type Shown struct {
	Entry *chain.Entry
	Head  *chain.Head
}

// Verify fails with [ErrKey] if the receipt is under another key than a given one, and with
// [ErrProof] unless the receipt shows what it says under its key. A nil key takes the receipt's
// own, which the reader compares.
func (r *Receipt) Verify(key ed25519.PublicKey) (*Shown, error) {
	if key != nil && !key.Equal(ed25519.PublicKey(r.Key[:])) {
		return nil, ErrKey
	}
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrProof, what) }
	own := ed25519.PublicKey(r.Key[:])
	entry, err := chain.Open(r.Entry, r.Federation, own)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	head, err := chain.OpenHead(r.Head, r.Federation, own)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	switch survivors := entry.Survivors; {
	case entry.Kind != chain.Sum:
		return nil, bad("its entry is of no sum")
	case entry.Round < r.Round: // the next may have begun
		return nil, bad("its entry is of an earlier round")
	case survivors == nil || survivors.Count != r.Count:
		return nil, bad("its entry has another number of parties in the sum")
	case entry.Segment != head.Segment:
		return nil, bad("its head is of another segment than its entry")
	}
	if r.Parties != nil && r.Parties[r.Place] != r.Party {
		return nil, bad("the leaf is another party's")
	}
	leaf, err := r.Leaf(r.Salt)
	if err != nil {
		return nil, err
	}
	sum := &chain.Head{Size: r.Count, Root: entry.Survivors.Root}
	if err := chain.CheckInclusion(leaf[:], r.Place, sum, r.Path); err != nil {
		return nil, bad("the entry does not vouch for its lines")
	}
	if err := chain.CheckInclusion(r.Entry, r.Index, head, r.Proof); err != nil {
		return nil, bad("the head does not have its entry")
	}
	return &Shown{entry, head}, nil
}
