package party

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/durable"
	"github.com/hushsum/hushsum/service/exchange"
)

var (
	chainID  = strings.Repeat("5e", 32)
	chainKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
)

// forged is a chain that whoever has the federation's key makes.
type forged struct {
	t *testing.T
	*chain.Chain
}

func newForged(t *testing.T, copies ...[]byte) *forged {
	t.Helper()
	public := chainKey.Public().(ed25519.PublicKey)
	birth := chain.NewBirth(chainID, public)
	birth.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line, err := chain.Sign(birth, chainKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chain.Union(chainID, public, append(copies, line)...)
	if err != nil {
		t.Fatal(err)
	}
	return &forged{t, c}
}

// more adds entries, which by differ from those of another chain.
func (c *forged) more(n int, by string, known ...*chain.Head) *forged {
	c.t.Helper()
	for range n {
		e := c.Next(chain.Begin, 0, false, known...)
		e.Node, e.Round, e.Time = by, e.Number, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		line, err := chain.Sign(e, chainKey)
		if err == nil {
			err = c.Append(line)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		known = nil
	}
	return c
}

// copied returns a chain of the same entries.
func (c *forged) copied() *forged {
	return newForged(c.t, bytes.Join(c.Lines(0), []byte("\n")))
}

// told returns what a door tells, to a question with a head.
func (c *forged) told(question *chain.Head) *exchange.Told {
	c.t.Helper()
	head, err := c.Head()
	if err != nil {
		c.t.Fatal(err)
	}
	note, err := chain.SignHead(head, chainKey)
	if err != nil {
		c.t.Fatal(err)
	}
	lines := c.Lines(0)
	told := &exchange.Told{Note: note, Line: lines[len(lines)-1]}
	if question != nil {
		told.Proof, _ = c.Consistency(question)
	}
	return told
}

// headsOf returns the heads of a party that hears from a door with a chain.
func headsOf(t *testing.T, of **forged) *heads {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchange.SetHead(w.Header(), (*of).told(nil).Note)
		from := uint64(0)
		_, _ = fmt.Sscan(r.URL.Query().Get("from"), &from)
		_, _ = w.Write(bytes.Join((*of).Lines(from), []byte("\n")))
	}))
	t.Cleanup(server.Close)
	way, err := NewServer(server.URL, "", seedOf(0))
	if err != nil {
		t.Fatal(err)
	}
	h := &heads{id: chainID, server: way, folder: t.TempDir(), few: true,
		log: func(string, ...any) {}, has: accepted{Key: chainKey.Public().(ed25519.PublicKey)}}
	if err := h.openLines(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

// Of two chains that are the same up to an entry, a party of one accepts what follows from its own
// head and nothing else, whatever is given as a proof. It keeps both heads of what it refuses, and
// two heads of one size convict the holder of the key.
func TestHeadsThatFollow(t *testing.T) {
	const most = 6
	cases, convicted := 0, 0
	for same := 1; same <= most; same++ {
		var of [2][most + 1]*forged
		for k, by := range []string{"a", "b"} {
			c := newForged(t).more(same-1, "a")
			for size := same; size <= most; size++ {
				of[k][size] = c.copied()
				c.more(1, by)
			}
		}
		for had := same; had <= most; had++ {
			for is := same; is <= most; is++ {
				door := of[1][is]
				h := headsOf(t, &door)
				if err := h.take(t.Context(), of[0][had].told(nil)); err != nil {
					t.Fatal(err)
				}
				first := h.note()
				own := h.head
				follows := is >= had && had == same
				proofs := [][]chain.Hash{door.told(own).Proof, of[0][most].told(own).Proof}
				for _, proof := range proofs {
					told := door.told(nil)
					told.Proof = proof
					err := h.take(t.Context(), told)
					if follows && err == nil {
						break
					}
					if cases++; follows || !errors.Is(err, ErrHead) || !bytes.Equal(h.note(), first) {
						t.Fatalf("the same up to %d, the party has %d, and is told %d: %v", same, had, is, err)
					}
					other, err := h.open(told.Note)
					if err != nil {
						t.Fatal(err)
					}
					if own.Contradicts(other) {
						convicted++
					}
					name := filepath.Join(h.folder, folderEvidence,
						fmt.Sprintf("heads-%.8s.evidence", chain.HashOf(told.Note)))
					b, err := os.ReadFile(name)
					if err != nil || !bytes.Equal(b, exchange.Heads(first, told.Note)) {
						t.Fatalf("the evidence: %q, %v", b, err)
					}
				}
				h.close()
			}
		}
	}
	if convicted == 0 {
		t.Error("nobody is convicted")
	}
	t.Logf("%d heads refused, %d of them convict", cases, convicted)
}

// A later segment is accepted if it says what became of the party's head, and only then. The lines
// that it does not have are kept.
func TestHeadsOfSegments(t *testing.T) {
	for name, c := range map[string]struct {
		names   bool // the setback names the party's head
		follows bool
	}{"named": {true, true}, "not named": {false, false}} {
		t.Run(name, func(t *testing.T) {
			old := newForged(t).more(5, "a")
			door := old
			h := headsOf(t, &door)
			if err := h.take(t.Context(), old.told(nil)); err != nil {
				t.Fatal(err)
			}
			h.fetch(t.Context())
			h.fetches.Wait()
			if !h.up() {
				t.Fatal("the lines are not fetched")
			}
			door = newForged(t).more(2, "a").more(1, "b") // of an old copy, which has gone on
			given := h.given(door.told(nil).Note)
			if len(given.Lines) != 6 || !bytes.Equal(given.Lines[5], h.has.Line) {
				t.Errorf("%d lines are given", len(given.Lines))
			}
			other := h.head
			if !c.names {
				other = &chain.Head{Federation: chainID, Size: 5, Root: chain.Hash{1}}
			}
			door.more(3, "b", other)
			err := h.take(t.Context(), door.told(h.head))
			if c.follows != (err == nil) || err != nil && !errors.Is(err, ErrHead) {
				t.Fatal(err)
			}
			if !c.follows {
				return
			}
			if h.head.Segment != 1 || h.head.Size != 3 || !h.up() {
				t.Errorf("it has %+v", h.head)
			}
			kept, err := os.ReadFile(filepath.Join(h.folder, folderEvidence, "segment-0.chain"))
			if err != nil || !bytes.Contains(kept, given.Lines[5]) {
				t.Errorf("what it had: %v", err)
			}
			read, err := h.file.Read()
			if err != nil {
				t.Fatal(err)
			}
			again, err := chain.Union(chainID, h.has.Key, read.Bytes)
			if err != nil || again.Last().Number != door.Last().Number {
				t.Errorf("its file: %v", err)
			}
		})
	}
}

// What is not signed by the pinned key, does not end with its line, or tells nothing, counts for
// nothing; and another key than the pinned one ends the party.
func TestHeadsOfStrangers(t *testing.T) {
	door := newForged(t).more(3, "a")
	h := headsOf(t, &door)
	good := door.told(nil)
	for name, told := range map[string]*exchange.Told{
		"nothing":      nil,
		"another line": {Note: good.Note, Line: door.Lines(0)[1]},
		"no note":      {Line: good.Line},
		"damaged":      {Note: append([]byte("x"), good.Note...), Line: good.Line},
	} {
		if err := h.take(t.Context(), told); !errors.Is(err, ErrHead) || h.head != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := &exchange.Told{Note: good.Note} // its line is with the others
	if err := h.take(t.Context(), long); err != nil || !bytes.Equal(h.has.Line, good.Line) {
		t.Fatal(err)
	}
	if err := h.take(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	f := committed(t)
	load := func(key ed25519.PublicKey) (*heads, error) {
		of := *f
		of.ID, of.Key = chainID, key
		r := (&Party{Federation: &of, Folder: t.TempDir()}).running()
		got, err := r.loadHeads(h.save())
		t.Cleanup(got.close)
		return got, err
	}
	for _, key := range []ed25519.PublicKey{nil, h.has.Key} { // who says no key gets no further
		if got, err := load(key); err != nil || *got.head != *h.head || got.round != h.round {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := load(make(ed25519.PublicKey, 32)); !errors.Is(err, ErrKey) {
		t.Errorf("another key: %v", err)
	}
}

// Lines of a party that are damaged, or gone, are fetched again, up to the newest head.
func TestLinesAreFetched(t *testing.T) {
	door := newForged(t).more(4, "a")
	h := headsOf(t, &door)
	if err := h.take(t.Context(), door.told(nil)); err != nil {
		t.Fatal(err)
	}
	h.fetch(t.Context())
	h.fetches.Wait()
	read, err := h.file.Read()
	if err != nil {
		t.Fatal(err)
	}
	h.close()
	name := filepath.Join(h.folder, fileChain)
	for at := range read.Bytes {
		if at%7 > 0 {
			continue
		}
		damaged := bytes.Clone(read.Bytes)
		damaged[at] ^= 4
		if err := durable.Write(name, bytes.NewReader(damaged)); err != nil {
			t.Fatal(err)
		}
		if err := h.openLines(); err != nil {
			t.Fatal(err)
		}
		h.fetch(t.Context())
		h.fetches.Wait()
		if !h.up() {
			t.Fatalf("with byte %d damaged the lines are not fetched", at)
		}
		h.close()
	}
}
