package receipt

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
)

// ErrReceipt: the bytes are no receipt as this package writes it.
var ErrReceipt = errors.New("receipt: this is no receipt, or it was changed; fetch it again")

const (
	labelLeaf = labels.Leaf + "\n"
	labelSalt = labels.SaltLeaf + "\n"

	digits    = 64      // of a digest
	mostSpent = 1 << 10 // bytes of Spent
	// mostNumber bounds the numbers of a statement.
	mostNumber = 1 << 40
	// MostParties is the largest number of parties that a statement lists.
	MostParties = 1 << 20
)

// Statement says what a receipt vouches for.
type Statement struct {
	Federation    string // 64 digits
	Job           string // digest of the declaration, 64 digits
	Party         uint64 // its number in the roster, from 0
	Round, Rounds uint64 // the round, and how many the job has
	Session       uint64 // 0 with one-message sums
	// Submission is the digest of the party's message with its submission, as it was sent.
	Submission chain.Hash
	Count      uint64 // parties in the sum
	// Parties lists them by number, rising; nil: who was in the sum is nobody's business.
	Parties []uint64
	// Released is the digest of the model after the round: see [Released].
	Released chain.Hash
	// Spent says in words what the party has spent after the round; empty: the job adds no noise.
	Spent string
}

// Salt is the secret of one leaf: without it nobody can try statements against the leaf.
type Salt [32]byte

// SaltOf returns the salt of a party's leaf in a round, from a secret of the federation.
func SaltOf(secret []byte, round, party uint64) (s Salt) {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(labelSalt))
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, round), party))
	return Salt(mac.Sum(nil))
}

// Leaf returns the salted hash of a statement. It fails with [ErrReceipt] if no receipt could have
// the statement.
func (s *Statement) Leaf(salt Salt) (chain.Hash, error) {
	if err := s.check(); err != nil {
		return chain.Hash{}, err
	}
	b := append([]byte(labelLeaf), salt[:]...)
	return chain.HashOf(append(b, s.text()...)), nil
}

// Tree returns the tree over the leaves of a sum, by rising numbers of the parties, and what an
// entry names of it.
func Tree(leaves []chain.Hash) (*chain.Tree, *chain.Commitment, error) {
	t := new(chain.Tree)
	for _, leaf := range leaves {
		if err := t.Append(leaf[:]); err != nil {
			return nil, nil, err
		}
	}
	root, err := t.Root(t.Size())
	return t, &chain.Commitment{Count: t.Size(), Root: root}, err
}

func (s *Statement) check() error {
	bad := func(what string) error { return fmt.Errorf("%w: %s", ErrReceipt, what) }
	last, listed := uint64(0), false
	for i, p := range s.Parties {
		if i > 0 && p <= last || p >= mostNumber {
			return bad("its parties are not in order")
		}
		last, listed = p, listed || p == s.Party
	}
	switch {
	case !isDigest(s.Federation), !isDigest(s.Job):
		return bad("an identifier or digest has 64 digits")
	case s.Round == 0 || s.Round > s.Rounds || s.Rounds >= mostNumber:
		return bad("there is no such round")
	case s.Party >= mostNumber || s.Session >= 1<<62:
		return bad("there is no such number")
	case s.Count == 0 || s.Count > MostParties:
		return bad("there is no sum of so many")
	case s.Parties != nil && uint64(len(s.Parties)) != s.Count:
		return bad("its parties are not as many as it counts")
	case s.Parties != nil && !listed:
		return bad("its party is not in the sum")
	case len(s.Spent) > mostSpent || !utf8.ValidString(s.Spent) || s.Spent == nothing ||
		strings.TrimSpace(s.Spent) != s.Spent || strings.ContainsFunc(s.Spent, unprintable):
		return bad("what was spent is no line of text")
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func isDigest(s string) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// nothing stands where nothing is spent.
const nothing = "nothing"

// text returns the lines of a statement.
func (s *Statement) text() string {
	spent, list := s.Spent, ""
	if spent == "" {
		spent = nothing
	}
	if s.Parties != nil {
		list = ": " + ranges(s.Parties)
	}
	return fmt.Sprintf("federation %s\njob %s\nparty %d\nround %d of %d\nsession %d\nsubmission %v\n"+
		"sum %d%s\nreleased %v\nspent %s\n", s.Federation, s.Job, s.Party, s.Round, s.Rounds, s.Session,
		s.Submission, s.Count, list, s.Released, spent)
}

// ranges writes rising numbers: "0-2 4 6-9".
func ranges(numbers []uint64) string {
	var b []byte
	for i := 0; i < len(numbers); {
		to := i
		for to+1 < len(numbers) && numbers[to+1] == numbers[to]+1 {
			to++
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendUint(b, numbers[i], 10)
		if to > i {
			b = strconv.AppendUint(append(b, '-'), numbers[to], 10)
		}
		i = to + 1
	}
	return string(b)
}

// parseRanges reads at most a given number of numbers. What it reads need not be as [ranges] writes
// it: the caller compares.
func parseRanges(text string, most uint64) ([]uint64, error) {
	var out []uint64
	for part := range strings.SplitSeq(text, " ") {
		low, high, found := strings.Cut(part, "-")
		if !found {
			high = low
		}
		from, err := number(low)
		to, failed := number(high)
		if errors.Join(err, failed) != nil || to < from || to-from >= most-uint64(len(out)) {
			return nil, ErrReceipt
		}
		out = slices.Grow(out, int(to-from)+1)
		for n := from; n <= to; n++ {
			out = append(out, n)
		}
	}
	return out, nil
}

func number(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, ErrReceipt
	}
	return n, nil
}

// lines takes lines off a text, each of which begins with a word. After an error it takes nothing.
type lines struct {
	rest string
	err  error
}

func (l *lines) line() string {
	line, rest, found := strings.Cut(l.rest, "\n")
	if !found {
		l.err = ErrReceipt
	}
	if l.err != nil {
		return ""
	}
	l.rest = rest
	return line
}

// after returns what follows a word on the next line.
func (l *lines) after(word string) string {
	text, found := strings.CutPrefix(l.line(), word+" ")
	if !found {
		l.err = ErrReceipt
	}
	return text
}

func (l *lines) number(text string) uint64 {
	n, err := number(text)
	if err != nil {
		l.err = err
	}
	return n
}

func (l *lines) hash(text string) (h chain.Hash) {
	if err := h.UnmarshalText([]byte(text)); err != nil {
		l.err = ErrReceipt
	}
	return h
}

// hashes reads hashes with a space before each.
func (l *lines) hashes(word string) (all []chain.Hash) {
	text, found := strings.CutPrefix(l.line(), word)
	if !found || len(text)%(digits+1) != 0 || len(text) > mostProof*(digits+1) {
		l.err = ErrReceipt
		return nil
	}
	for ; text != "" && l.err == nil; text = text[digits+1:] {
		all = append(all, l.hash(text[1:digits+1]))
	}
	return all
}

// statement reads the lines of a statement, which need not be as text writes them.
func (l *lines) statement() (s Statement) {
	s.Federation, s.Job = l.after("federation"), l.after("job")
	s.Party = l.number(l.after("party"))
	round, rounds, _ := strings.Cut(l.after("round"), " of ")
	s.Round, s.Rounds = l.number(round), l.number(rounds)
	s.Session = l.number(l.after("session"))
	s.Submission = l.hash(l.after("submission"))
	count, list, listed := strings.Cut(l.after("sum"), ": ")
	s.Count = l.number(count)
	if listed && l.err == nil {
		s.Parties, l.err = parseRanges(list, min(s.Count, MostParties))
	}
	s.Released = l.hash(l.after("released"))
	if s.Spent = l.after("spent"); s.Spent == nothing {
		s.Spent = ""
	}
	return s
}
