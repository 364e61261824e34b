package chain

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Errors of chains.
var (
	// ErrNone: no copy has an entry.
	ErrNone = errors.New("chain: no copy has an entry of the federation")
	// ErrFork: the federation's key has signed two entries of one number, or one that does not follow
	// from the one before. Nobody may lead until an operator says which stands.
	ErrFork = errors.New("chain: there are two histories of the federation; keep all copies, and " +
		"say which one stands")
	// ErrLost: entries are in no copy.
	ErrLost = errors.New("chain: entries are in no copy; look for another copy")
	// ErrBehind: somebody has a signed head that is higher than what all copies have.
	ErrBehind = errors.New("chain: the record is behind a head that the federation's key has " +
		"signed; look for another copy")
	// ErrNext: an entry is not the next one.
	ErrNext = errors.New("chain: the entry is not the next")
)

// Chain holds the lines that the copies of a federation's chain have together.
type Chain struct {
	federation string
	key        ed25519.PublicKey
	lines      map[uint64][]byte
	entries    map[uint64]*Entry
	last       *Entry // the highest
	tree       *Tree  // of the segment of last; nil: some of its lines are lost
	first      uint64 // number of the first of that segment
	// Bad counts the lines of each copy that are damaged, or not the federation's.
	Bad []int
	// Lost lists the numbers that no copy has and that no setback has named yet.
	Lost []Range
	// Superseded lists lines that an entry of a later segment has taken the number of.
	Superseded [][]byte
}

// ForkError has two lines that prove a fork. It is [ErrFork].
type ForkError struct {
	Number       uint64
	One, Another []byte
}

func (f *ForkError) Error() string { return fmt.Sprintf("%v: entry %d", ErrFork, f.Number) }

// Is makes it ErrFork.
func (f *ForkError) Is(target error) bool { return target == ErrFork }

// Union makes a chain of copies: bytes with a line for each entry, in any order, and anything in
// between. A line that is damaged is none. It fails with [ErrNone], or with a [ForkError].
//
// An entry has the hash of the whole line before it, signature and all. So a line whose hash an
// entry has that is signed needs no check of its own signature: of a chain that is whole the last
// is checked.
func Union(federation string, key ed25519.PublicKey, copies ...[]byte) (*Chain, error) {
	all, bad := verified(federation, key, copies)
	if len(all) == 0 {
		return nil, ErrNone
	}
	// Of two histories the one stands that a setback follows: it names what does not. Lines that were
	// lost and are found again stand too.
	var err error
	for _, named := range []bool{false, true} {
		err = nil
		c := &Chain{federation: federation, key: key, lines: make(map[uint64][]byte),
			entries: make(map[uint64]*Entry), Bad: bad}
		for _, x := range c.supersede(all, named) {
			if err = c.take(x.entry, x.line); err != nil {
				break
			}
		}
		if err == nil {
			err = c.link()
		}
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrFork) {
			break
		}
	}
	return nil, err
}

// verified returns the entries of copies that the key has signed, the latest first, each once, and
// how many other lines each copy has.
func verified(federation string, key ed25519.PublicKey, copies [][]byte) (
	all []candidate, bad []int,
) {
	bad = make([]int, len(copies))
	for k, b := range copies {
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			e, text, signature, err := parse(line)
			if err != nil || e.Federation != federation {
				bad[k]++
				continue
			}
			all = append(all, candidate{e, line, text, signature, k})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Compare(b.entry.Number, a.entry.Number)
	})
	known := make(map[Hash]bool) // of lines that a signed entry follows
	had := make(map[Hash]bool)
	all = slices.DeleteFunc(all, func(x candidate) bool {
		hash := HashOf(x.line)
		if had[hash] {
			return true
		}
		if !known[hash] && !verify(key, x.text, x.signature) {
			bad[x.copy]++
			return true
		}
		known[x.entry.Before], had[hash] = true, true
		return false
	})
	return all, bad
}

// candidate is a line of some copy that may be an entry.
type candidate struct {
	entry                 *Entry
	line, text, signature []byte
	copy                  int
}

// take adds an entry of some copy.
func (c *Chain) take(e *Entry, line []byte) error {
	if had := c.lines[e.Number]; had != nil {
		return &ForkError{e.Number, had, bytes.Clone(line)}
	}
	c.entries[e.Number], c.lines[e.Number] = e, bytes.Clone(line)
	return nil
}

// supersede leaves out the entries whose numbers a later segment begins anew, since whoever wrote
// its setback did not know of them, and those that its setback names as lost, if named says so.
func (c *Chain) supersede(all []candidate, named bool) (left []candidate) {
	begins := make(map[uint64]uint64) // the lowest number of a segment
	var setbacks []*Entry
	for _, x := range all {
		if first, known := begins[x.entry.Segment]; !known || x.entry.Number < first {
			begins[x.entry.Segment] = x.entry.Number
		}
		if named && x.entry.Kind == Setback {
			setbacks = append(setbacks, x.entry)
		}
	}
	if len(begins) == 1 {
		return all
	}
	stands := func(e *Entry) bool {
		for segment, first := range begins {
			if segment > e.Segment && first <= e.Number {
				return false
			}
		}
		return !slices.ContainsFunc(setbacks, func(s *Entry) bool {
			return s.Segment > e.Segment && slices.ContainsFunc(s.Lost, func(r Range) bool {
				return r.From <= e.Number && e.Number <= r.To
			})
		})
	}
	for _, x := range all {
		if stands(x.entry) {
			left = append(left, x)
		} else {
			c.Superseded = append(c.Superseded, bytes.Clone(x.line))
		}
	}
	return left
}

// link checks that each entry follows the one before, names what is lost, and makes the tree.
func (c *Chain) link() error {
	numbers := slices.Sorted(maps.Keys(c.entries))
	var named []Range
	for _, n := range numbers {
		named = append(named, c.entries[n].Lost...)
	}
	next, before := uint64(0), (*Entry)(nil)
	for _, n := range numbers {
		e := c.entries[n]
		c.Lost = append(c.Lost, without(next, n, named)...)
		if before != nil && !c.follows(e, before) {
			return &ForkError{n, c.lines[before.Number], c.lines[n]}
		}
		next, before = n+1, e
	}
	c.last = before
	return c.plant()
}

// follows reports whether an entry may follow the one of the highest number below its own.
func (c *Chain) follows(e, before *Entry) bool {
	next := e.Number == before.Number+1
	hash := e.Before == HashOf(c.lines[before.Number])
	if e.Kind != Setback {
		return !next || hash && e.Segment == before.Segment
	}
	lost := slices.ContainsFunc(e.Lost, func(r Range) bool {
		return r.From <= before.Number && before.Number <= r.To
	})
	return e.Segment > before.Segment && (!next || hash || lost)
}

// without returns the numbers from one on and below another, but for those of ranges.
func without(from, below uint64, named []Range) (left []Range) {
	if from >= below {
		return nil
	}
	left = []Range{{from, below - 1}}
	for _, n := range named {
		var rest []Range
		for _, l := range left {
			if n.To < l.From || n.From > l.To {
				rest = append(rest, l)
				continue
			}
			if n.From > l.From {
				rest = append(rest, Range{l.From, n.From - 1})
			}
			if n.To < l.To {
				rest = append(rest, Range{n.To + 1, l.To})
			}
		}
		left = rest
	}
	return left
}

// plant makes the tree of the last segment, if all its lines are there.
func (c *Chain) plant() error {
	tree := new(Tree)
	first := c.last.Number
	for c.entries[first].Kind != Birth && c.entries[first].Kind != Setback {
		first--
		if c.entries[first] == nil {
			return nil
		}
	}
	for n := first; n <= c.last.Number; n++ {
		if err := tree.Append(c.lines[n]); err != nil {
			return err
		}
	}
	c.tree, c.first = tree, first
	return nil
}

// Gaps lists the numbers that no copy has, also those that a setback has named: what was decided
// there is lost. Numbers of a history that does not stand are none.
func (c *Chain) Gaps() []Range {
	numbers := slices.Collect(maps.Keys(c.entries))
	for _, line := range c.Superseded {
		if e, err := Parse(line); err == nil {
			numbers = append(numbers, e.Number)
		}
	}
	slices.Sort(numbers)
	var gaps []Range
	next := uint64(0)
	for _, n := range numbers {
		if n > next {
			gaps = append(gaps, Range{next, n - 1})
		}
		next = n + 1
	}
	return gaps
}

// Entry returns an entry, nil if no copy has it.
func (c *Chain) Entry(number uint64) *Entry { return c.entries[number] }

// Last returns the entry of the highest number.
func (c *Chain) Last() *Entry { return c.last }

// Lines returns all lines from a number on, in order.
func (c *Chain) Lines(from uint64) (lines [][]byte) {
	for _, n := range slices.Sorted(maps.Keys(c.lines)) {
		if n >= from {
			lines = append(lines, c.lines[n])
		}
	}
	return lines
}

// Head returns the head. It fails with [ErrLost] if lines of its segment are in no copy: the next
// entry has to be a setback then.
func (c *Chain) Head() (*Head, error) {
	if c.tree == nil {
		return nil, c.lost()
	}
	root, err := c.tree.Root(c.tree.Size())
	return &Head{c.federation, c.last.Segment, c.tree.Size(), root,
		HashOf(c.lines[c.last.Number])}, err
}

// lost fails with [ErrLost], and names the numbers.
func (c *Chain) lost() error { return fmt.Errorf("%w: %v", ErrLost, c.Lost) }

// Tree returns the tree of the last segment, and the number of its first entry. It fails with
// [ErrLost].
func (c *Chain) Tree() (tree *Tree, first uint64, err error) {
	if c.tree == nil {
		return nil, 0, c.lost()
	}
	return c.tree, c.first, nil
}

// mostRanges is how many ranges of lost numbers an entry names one by one.
const mostRanges = 500

// Next begins the entry that follows, of a number that is at least a given one: a setback of the
// next segment if any numbers are lost, or if anew says that other versions may exist, and else one
// of a given kind. known are heads that others have. It carries on what the last entry says of the
// federation.
func (c *Chain) Next(kind Kind, least uint64, anew bool, known ...*Head) *Entry {
	last := c.last
	e := &Entry{Version: version, Federation: c.federation, Segment: last.Segment,
		Number: last.Number + 1, Before: HashOf(c.lines[last.Number]), Claim: last.Claim, Kind: kind,
		Session: last.Session, Round: last.Round, Ledger: last.Ledger, Spent: last.Spent,
		State: last.State, Model: last.Model, Unknown: last.Unknown}
	if len(c.Lost) == 0 && c.tree != nil && !anew && least <= e.Number && c.Behind(known...) == nil {
		return e
	}
	e.Kind, e.Segment, e.Lost = Setback, last.Segment+1, slices.Clone(c.Lost)
	e.Number = max(e.Number, least)
	for _, h := range known {
		if c.Behind(h) == nil {
			continue
		}
		e.Heads = append(e.Heads, Height{h.Segment, h.Size, h.Root})
		e.Segment = max(e.Segment, h.Segment+1)
		if h.Segment == last.Segment && c.tree != nil {
			e.Number = max(e.Number, c.first+h.Size)
		}
	}
	if many := len(e.Lost); many > mostRanges { // what is between them is named with them
		e.Lost = []Range{{e.Lost[0].From, e.Lost[many-1].To}}
	}
	if next := last.Number + 1; e.Number > next {
		if k := len(e.Lost) - 1; k >= 0 && e.Lost[k].To+1 == next {
			e.Lost[k].To = e.Number - 1
		} else {
			e.Lost = append(e.Lost, Range{next, e.Number - 1})
		}
	}
	return e
}

// Behind fails with [ErrBehind] if a head that somebody has is higher than that of the chain, or of
// an earlier segment and the chain does not say what became of it; and with [ErrFork] if it
// contradicts the chain.
func (c *Chain) Behind(known ...*Head) error {
	for _, h := range known {
		switch {
		case h.Segment < c.last.Segment:
			if err := c.covers(h); err != nil {
				return err
			}
		case h.Segment > c.last.Segment || c.tree != nil && h.Size > c.tree.Size():
			return behind(h)
		case c.tree != nil:
			root, err := c.tree.Root(h.Size)
			if err != nil {
				return err
			}
			if root != h.Root {
				return fmt.Errorf("%w: a head of %d entries has another root", ErrFork, h.Size)
			}
		}
	}
	return nil
}

// Append adds the next entry. It fails with the errors of [Open], or with [ErrNext].
func (c *Chain) Append(line []byte) error {
	e, err := Open(line, c.federation, c.key)
	if err != nil {
		return err
	}
	follows := e.Before == HashOf(c.lines[c.last.Number])
	switch {
	case e.Kind == Setback:
		if !follows || e.Segment <= c.last.Segment || e.Number <= c.last.Number {
			return ErrNext
		}
		c.tree, c.first, c.Lost = new(Tree), e.Number, nil
	case !follows || e.Segment != c.last.Segment || e.Number != c.last.Number+1 || c.tree == nil:
		return ErrNext
	}
	c.entries[e.Number], c.lines[e.Number], c.last = e, bytes.Clone(line), e
	return c.tree.Append(line)
}

// NewBirth begins the first entry of a federation.
func NewBirth(federation string, key ed25519.PublicKey) *Entry {
	public := Hash(key)
	return &Entry{Version: version, Federation: federation, Kind: Birth, Key: &public}
}

// Histories returns the lines of each history that copies have, the longest first: where there is
// more than one, an operator says which stands. A history goes from its last entry back to the
// first, or to a number that no copy has.
func Histories(federation string, key ed25519.PublicKey, copies ...[]byte) (all [][][]byte) {
	entries, _ := verified(federation, key, copies)
	of := make(map[Hash]candidate)
	followed := make(map[Hash]bool)
	for _, x := range entries {
		of[HashOf(x.line)] = x
		followed[x.entry.Before] = true
	}
	for _, last := range entries {
		if followed[HashOf(last.line)] {
			continue
		}
		var lines [][]byte
		for x, found := last, true; found; x, found = of[x.entry.Before] {
			lines = append(lines, bytes.Clone(x.line))
		}
		slices.Reverse(lines)
		all = append(all, lines)
	}
	slices.SortStableFunc(all, func(a, b [][]byte) int { return cmp.Compare(len(b), len(a)) })
	return all
}
