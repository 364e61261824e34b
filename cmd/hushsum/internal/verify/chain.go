package verify

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
)

// history holds what a file of entries has.
type history struct {
	Federation string   `json:"federation"`
	From       uint64   `json:"from"`
	To         uint64   `json:"to"`
	Segments   int      `json:"segments"`
	Sums       int      `json:"sums"`
	Lost       int      `json:"lost"`              // rounds
	Missing    []string `json:"missing,omitempty"` // numbers of entries
	Signed     bool     `json:"signed"`            // the file ends with a head
	Size       uint64   `json:"size"`              // of the last segment
	Root       string   `json:"root"`
}

// parts splits a file into entries and the head that it ends with, nil if it has none.
func parts(b []byte) (entries, head []byte) {
	const begins = "hushsum/"
	if bytes.HasPrefix(b, []byte(begins)) {
		return nil, b
	}
	if at := bytes.Index(b, []byte("\n"+begins)); at >= 0 {
		return b[:at+1], b[at+1:]
	}
	return b, nil
}

// errChain: a file has something that no entry is.
var errChain = errors.New("it has lines that are no entries of the federation")

// chain checks a file of entries, and compares receipts with it.
func (c *checker) chain(name string, b []byte, receipts []string) int {
	out := &checked{File: name}
	entries, head := parts(b)
	all, key, err := c.read(entries)
	if err != nil {
		out.Error = wrong(err)
		return c.report(out, nil)
	}
	out.Key = chain.Hash(key).String()
	var tree *chain.Tree
	if out.Chain, tree, err = summary(all, key, head); err != nil {
		out.Error = wrong(err)
		return c.report(out, nil)
	}
	out.Verifies = true
	if c.log != nil {
		out.Log = c.inLog(chain.Hash(key))
		if out.Error = out.Log.of(all, tree); out.Error != "" {
			out.Verifies = false
			return c.report(out, nil)
		}
	}
	for _, file := range receipts {
		shownAs, b, err := read(file)
		if err != nil {
			return c.fails(err)
		}
		is := &compared{File: shownAs, Is: "consistent"}
		out.Against = append(out.Against, is)
		e, err := against(all, key, head, tree, b)
		switch {
		case err != nil:
			is.Is, out.Verifies, out.Error = wrong(err), false, shownAs+": "+wrong(err)
		case e != nil:
			is.Is, out.Verifies = "contradicted", false
			out.Error = shownAs + ": " + contradicts(e)
			if out.Evidence, err = keep(shownAs, e); err != nil {
				return c.fails(err)
			}
		}
	}
	return c.report(out, func(s *show.Screen) { c.tellChain(s, out, key) })
}

// read reads the entries of a file, which the birth among them names the key of, unless one was
// given.
func (c *checker) read(entries []byte) (*chain.Chain, ed25519.PublicKey, error) {
	federation, key := "", c.key
	for line := range bytes.SplitSeq(entries, []byte("\n")) {
		e, err := chain.Parse(line)
		if err != nil {
			continue
		}
		if federation == "" {
			federation = e.Federation
		}
		if e.Key != nil && key == nil {
			key = ed25519.PublicKey(e.Key[:])
		}
	}
	if federation == "" {
		return nil, nil, chain.ErrNone
	}
	if key == nil {
		return nil, nil, errors.New("it lacks entry 0, which names the key: give --key")
	}
	all, err := chain.Union(federation, key, entries)
	if err == nil && all.Bad[0] > 0 {
		err = fmt.Errorf("%w: %d", errChain, all.Bad[0])
	}
	return all, key, err
}

// summary says what a chain has, and checks its head.
func summary(all *chain.Chain, key ed25519.PublicKey, head []byte) (*history, *chain.Tree, error) {
	last := all.Last()
	h := &history{Federation: last.Federation, From: last.Number, To: last.Number}
	segments := make(map[uint64]bool)
	for _, line := range all.Lines(0) {
		e, err := chain.Parse(line)
		if err != nil {
			return nil, nil, err
		}
		h.From = min(h.From, e.Number)
		segments[e.Segment] = true
		switch e.Kind {
		case chain.Sum:
			h.Sums++
		case chain.Lost:
			h.Lost++
		}
	}
	h.Segments = len(segments)
	for _, r := range all.Gaps() {
		h.Missing = append(h.Missing, r.String())
	}
	own, err := all.Head()
	if err != nil { // its segment is not whole
		if head != nil {
			return nil, nil, err
		}
		return h, nil, nil
	}
	h.Size, h.Root = own.Size, own.Root.String()
	tree, _, err := all.Tree()
	if head == nil || err != nil {
		return h, tree, err
	}
	signed, err := chain.OpenHead(head, last.Federation, key)
	switch {
	case err != nil:
		return nil, nil, err
	case *signed != *own:
		return nil, nil, fmt.Errorf("its head has %d entries of segment %d, and other ones than the file",
			signed.Size, signed.Segment)
	}
	h.Signed = true
	return h, tree, nil
}

// errRest: a receipt is of more entries than a chain has.
var errRest = errors.New("get the rest")

// against compares a receipt with a chain. It returns evidence if they contradict each other.
func against(all *chain.Chain, key ed25519.PublicKey, head []byte, tree *chain.Tree, b []byte,
) (*receipt.Evidence, error) {
	r, err := receipt.Parse(b)
	if err != nil {
		return nil, err
	}
	shown, err := r.Verify(key)
	if err != nil {
		return nil, err
	}
	if r.Federation != all.Last().Federation {
		return nil, receipt.ErrApart
	}
	had := all.Entry(shown.Entry.Number)
	if had != nil && had.Segment == shown.Entry.Segment {
		line := all.Lines(had.Number)[0]
		if !bytes.Equal(line, r.Entry) {
			e := &receipt.Evidence{Kind: receipt.Entries, Federation: r.Federation, Key: r.Key,
				One: r.Entry, Another: line}
			return e, e.Verify()
		}
	}
	if tree == nil || shown.Head.Segment != all.Last().Segment {
		return nil, nil // what is there agrees
	}
	if shown.Head.Size > tree.Size() {
		return nil, fmt.Errorf("its head has %d entries, and the chain ends with %d: %w",
			shown.Head.Size, tree.Size(), errRest)
	}
	root, err := tree.Root(shown.Head.Size)
	if err != nil || root == shown.Head.Root {
		return nil, err
	}
	if head == nil {
		return nil, errors.New("its head is of another history, and the chain has no head that proves " +
			"it: get one that has")
	}
	return receipt.Prefix(r.Federation, key, r.Head, head, tree)
}

// tellChain prints what follows from a file of entries.
func (c *checker) tellChain(s *show.Screen, out *checked, key ed25519.PublicKey) {
	h := out.Chain
	s.Printf("chain     of federation\n          %s\n", h.Federation)
	c.tellKey(s, chain.Hash(key))
	s.Field("entries", "%d to %d, in %s", h.From, h.To, show.Plural(h.Segments, "segment"))
	s.Field("rounds", "%s, %d lost", show.Plural(h.Sums, "sum"), h.Lost)
	if len(h.Missing) > 0 {
		s.Field("missing", "entries %v", h.Missing)
	}
	switch {
	case h.Signed:
		s.Field("head", "signed: %s, root", show.Plural(int(h.Size), "entry"))
	case h.Size > 0:
		s.Field("head", "not signed in this file: %s, root", show.Plural(int(h.Size), "entry"))
	}
	if h.Size > 0 {
		s.Printf("          %s\n", h.Root)
	}
	tellLog(s, out.Log)
	for _, r := range out.Against {
		s.Field("receipt", "%s: its entry and its head are of this chain", r.File)
	}
	if h.From == 0 && len(h.Missing) == 0 {
		s.Sentence("By the word of the federation's key: these are all its decisions up to the last, " +
			"each follows from the one before, and none was left out or changed since it was signed.")
	} else {
		s.Sentence("By the word of the federation's key: each of these is its decision, unchanged. " +
			"Others are not in the file, or were lost.")
	}
	s.Sentence("Not shown: that nobody was given another history, which heads of others show, that " +
		"sums were computed as the rules say, and who the parties behind the numbers are. Times and " +
		"nodes are words of whoever had the key.")
}
