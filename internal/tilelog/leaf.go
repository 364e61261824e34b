package tilelog

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
)

// ErrLeaf: the bytes are no leaf as this package writes it.
var ErrLeaf = errors.New("tilelog: this is no leaf of a log")

// Kind names what a leaf says.
type Kind string

// Kinds of leaves.
const (
	Birth       Kind = "birth"       // a federation was declared
	Head        Kind = "head"        // its chain has come this far
	End         Kind = "end"         // it has ended
	Forget      Kind = "forget"      // what it has computed was deleted
	Certificate Kind = "certificate" // the door will show another one
)

// Leaf is an entry of a log.
type Leaf struct {
	Kind Kind
	Day  string // in UTC, as 2026-01-02
	// Key is the federation's key; of a certificate the digest of what the door says of the next one.
	Key chain.Hash
	// Job is the digest of what is declared, and People a commitment to roster and committee, of a
	// birth.
	Job, People chain.Hash
	// Segment, Size and Root are those of the chain's head.
	Segment, Size uint64
	Root          chain.Hash
}

// Day returns the day of a time, as leaves have it.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// People returns a commitment to the digests of a roster and a committee, zero for none, under a
// secret of the federation.
func People(secret []byte, roster, committee [32]byte) (out chain.Hash) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(labels.People + "\n"))
	mac.Write(append(roster[:], committee[:]...))
	return chain.Hash(mac.Sum(nil))
}

// MarshalText writes the leaf. It fails with [ErrLeaf].
func (l *Leaf) MarshalText() ([]byte, error) {
	if _, err := time.Parse(time.DateOnly, l.Day); err != nil {
		return nil, ErrLeaf
	}
	b := fmt.Appendf(nil, "%s\n%s %s\nkey %v\n", labels.Log, l.Kind, l.Day, l.Key)
	switch l.Kind {
	case Birth:
		b = fmt.Appendf(b, "job %v\npeople %v\n", l.Job, l.People)
	case Head:
		b = fmt.Appendf(b, "segment %d\nsize %d\nroot %v\n", l.Segment, l.Size, l.Root)
	case End, Forget, Certificate:
	default:
		return nil, ErrLeaf
	}
	return b, nil
}

// ParseLeaf reads a leaf as MarshalText writes it. It fails with [ErrLeaf].
func ParseLeaf(b []byte) (*Leaf, error) {
	l := new(Leaf)
	var key, one, another string
	_, err := fmt.Sscanf(string(b[:min(len(b), mostLeaf)]), labels.Log+"\n%s %s\nkey %s\n", &l.Kind,
		&l.Day, &key)
	if err != nil {
		return nil, ErrLeaf
	}
	head := len(fmt.Sprintf("%s\n%s %s\nkey %s\n", labels.Log, l.Kind, l.Day, key))
	rest := string(b[min(head, len(b)):])
	switch l.Kind {
	case Birth:
		_, err = fmt.Sscanf(rest, "job %s\npeople %s\n", &one, &another)
		err = errors.Join(err, l.Job.UnmarshalText([]byte(one)),
			l.People.UnmarshalText([]byte(another)))
	case Head:
		_, err = fmt.Sscanf(rest, "segment %d\nsize %d\nroot %s\n", &l.Segment, &l.Size, &one)
		err = errors.Join(err, l.Root.UnmarshalText([]byte(one)))
	}
	if err = errors.Join(err, l.Key.UnmarshalText([]byte(key))); err != nil {
		return nil, ErrLeaf
	}
	again, err := l.MarshalText()
	if err != nil || string(again) != string(b) {
		return nil, ErrLeaf
	}
	return l, nil
}

const mostLeaf = 1 << 10 // bytes
