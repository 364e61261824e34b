package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/chain"
)

var update = flag.Bool("update", false, "write testdata anew")

var (
	testID  = strings.Repeat("5e", 32)
	testKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	public  = testKey.Public().(ed25519.PublicKey)
	secret  = bytes.Repeat([]byte{9}, 32)
)

// world is a chain with one sum, and all that a leader knows of it.
type world struct {
	chain *chain.Chain
	sum   uint64 // number of its entry
	tree  *chain.Tree
	all   []Statement
}

func sign(t testing.TB, e *chain.Entry) []byte {
	t.Helper()
	e.Time = time.Date(2026, 1, 2, 3, 4, int(e.Number), 0, time.UTC)
	line, err := chain.Sign(e, testKey)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// summed makes a chain of a birth, some entries, a sum of a given number of parties, of which party
// 3 was not in it if there are more than 3, and some entries.
func summed(t testing.TB, parties uint64, node string) *world {
	t.Helper()
	c, err := chain.Union(testID, public, sign(t, chain.NewBirth(testID, public)))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{chain: c}
	w.more(t, 5, node)
	var in []uint64
	for p := range parties {
		if p != 3 {
			in = append(in, p)
		}
	}
	var leaves []chain.Hash
	for _, p := range in {
		s := Statement{Federation: testID, Job: strings.Repeat("0b", 32), Party: p, Round: 7, Rounds: 20,
			Session: 2, Submission: chain.HashOf(fmt.Appendf(nil, "submission %d", p)),
			Count: uint64(len(in)), Parties: in, Released: Released([]float64{1, -2.5}),
			Spent: "epsilon 1.2391 of 2 at delta 1e-05 for each party"}
		leaf, err := s.Leaf(SaltOf(secret, s.Round, p))
		if err != nil {
			t.Fatal(err)
		}
		w.all, leaves = append(w.all, s), append(leaves, leaf)
	}
	e := c.Next(chain.Sum, 0, false)
	e.Node, e.Round, e.Session = node, 7, 2
	if w.tree, e.Survivors, err = Tree(leaves); err != nil {
		t.Fatal(err)
	}
	w.sum = e.Number
	if err := c.Append(sign(t, e)); err != nil {
		t.Fatal(err)
	}
	w.more(t, 4, node)
	return w
}

func (w *world) more(t testing.TB, entries int, node string) {
	t.Helper()
	for range entries {
		e := w.chain.Next(chain.Begin, 0, false)
		e.Node, e.Round = node, e.Number
		if err := w.chain.Append(sign(t, e)); err != nil {
			t.Fatal(err)
		}
	}
}

// receipt makes the receipt of the party at a place.
func (w *world) receipt(t testing.TB, place int) *Receipt {
	t.Helper()
	s := w.all[place]
	r := &Receipt{Statement: s, Salt: SaltOf(secret, s.Round, s.Party), Place: uint64(place),
		Key: chain.Hash(public), Index: w.sum, Entry: w.chain.Lines(w.sum)[0]}
	var err error
	if r.Path, err = w.tree.Inclusion(r.Place, r.Count); err != nil {
		t.Fatal(err)
	}
	h, err := w.chain.Head()
	if err != nil {
		t.Fatal(err)
	}
	tree, _, err := w.chain.Tree()
	if err != nil {
		t.Fatal(err)
	}
	if r.Proof, err = tree.Inclusion(r.Index, h.Size); err != nil {
		t.Fatal(err)
	}
	if r.Head, err = chain.SignHead(h, testKey); err != nil {
		t.Fatal(err)
	}
	return r
}

func textOf(t testing.TB, r *Receipt) []byte {
	t.Helper()
	b, err := r.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every party of a sum has a receipt that verifies, of a length that grows little with the parties.
func TestReceipts(t *testing.T) {
	for _, parties := range []uint64{1, 2, 6, 1000} {
		w := summed(t, parties, "a")
		for _, place := range []int{0, len(w.all) / 2, len(w.all) - 1} {
			b := textOf(t, w.receipt(t, place))
			r, err := Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := r.Verify(public)
			if err != nil {
				t.Fatal(err)
			}
			if shown.Entry.Number != w.sum || shown.Head.Size != 11 {
				t.Errorf("%+v", shown)
			}
			if place == 0 {
				t.Logf("%d parties: %d bytes", parties, len(b))
			}
			if len(b) > 4000 {
				t.Errorf("a receipt has %d bytes", len(b))
			}
		}
	}
}

// A receipt that was changed in any way is refused: each bit of one, and 10,000 changes at random.
func TestMutations(t *testing.T) {
	w := summed(t, 6, "a")
	b, other := textOf(t, w.receipt(t, 2)), textOf(t, w.receipt(t, 4))
	accepted := func(m []byte) bool {
		r, err := Parse(m)
		if err != nil {
			return false
		}
		_, err = r.Verify(nil)
		return err == nil && !bytes.Equal(m, b) && !bytes.Equal(m, other)
	}
	for i := range 8 * len(b) {
		m := bytes.Clone(b)
		m[i/8] ^= 1 << (i % 8)
		if accepted(m) {
			t.Errorf("bit %d of byte %d, at %q", i%8, i/8, b[max(0, i/8-20):i/8])
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	lines := bytes.SplitAfter(b, []byte("\n"))
	others := bytes.SplitAfter(other, []byte("\n"))
	for n := range 10_000 {
		m := bytes.Clone(b)
		from := random.IntN(len(m))
		to := from + random.IntN(min(len(m)-from, 70)+1)
		switch n % 7 {
		case 0:
			m = slices.Delete(m, from, to)
		case 1:
			m = slices.Insert(m, from, m[random.IntN(len(m))])
		case 2:
			m = slices.Insert(m, from, m[from:to]...)
		case 3: // a line of another party's
			all := slices.Clone(lines)
			k := random.IntN(len(all))
			all[k] = others[k]
			m = bytes.Join(all, nil)
		case 4:
			all := slices.Clone(lines)
			j, k := random.IntN(len(all)), random.IntN(len(all))
			all[j], all[k] = all[k], all[j]
			m = bytes.Join(all, nil)
		case 5:
			m[from] = "0123456789abcdef \n-ABCxyz"[random.IntN(24)]
		default:
			m = m[:from]
		}
		if accepted(m) {
			t.Errorf("change %d, at %d to %d: %q", n, from, to, m)
		}
	}
}

// Whatever a statement vouches for, another leaf stands for another statement.
func TestLeaves(t *testing.T) {
	s := summed(t, 6, "a").all[1]
	salt := SaltOf(secret, s.Round, s.Party)
	leaf := func(s Statement) chain.Hash {
		h, err := s.Leaf(salt)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	seen := map[chain.Hash]int{leaf(s): -1}
	for k, change := range []func(s *Statement){
		func(s *Statement) { s.Federation = strings.Repeat("5f", 32) },
		func(s *Statement) { s.Job = strings.Repeat("0c", 32) },
		func(s *Statement) { s.Party = 2 },
		func(s *Statement) { s.Round = 8 },
		func(s *Statement) { s.Rounds = 21 },
		func(s *Statement) { s.Session = 3 },
		func(s *Statement) { s.Submission[0] ^= 1 },
		func(s *Statement) { s.Parties = nil },
		func(s *Statement) { s.Parties = []uint64{0, 1, 2, 3, 4} },
		func(s *Statement) { s.Parties, s.Count = nil, 6 },
		func(s *Statement) { s.Released[0] ^= 1 },
		func(s *Statement) { s.Spent = "" },
	} {
		other := s
		change(&other)
		h := leaf(other)
		if before, found := seen[h]; found {
			t.Errorf("changes %d and %d have one leaf", before, k)
		}
		seen[h] = k
	}
	if SaltOf(secret, 1, 2) == SaltOf(secret, 2, 1) {
		t.Error("two leaves have one salt")
	}
}

// Numbers are written and read as they were.
func TestRanges(t *testing.T) {
	for text, numbers := range map[string][]uint64{"0": {0}, "0-2 4 6-7": {0, 1, 2, 4, 6, 7}} {
		if got := ranges(numbers); got != text {
			t.Errorf("%v is %q", numbers, got)
		}
	}
	for _, text := range []string{"", "1-", "2-1", "0-99999999999", "a", "-1"} {
		if out, err := parseRanges(text, 10); err == nil {
			t.Errorf("%q is %v", text, out)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.Uint64Range(0, 30), 1, 20, rapid.ID).Draw(t, "numbers")
		slices.Sort(numbers)
		again, err := parseRanges(ranges(numbers), uint64(len(numbers)))
		if err != nil || !slices.Equal(again, numbers) {
			t.Fatalf("%v is %v, %v", numbers, again, err)
		}
	})
}

// Two receipts of two histories convict the key that signed them, and their evidence does alone.
func TestConvict(t *testing.T) {
	a, b := summed(t, 6, "a"), summed(t, 6, "b")
	e, err := Contradict(a.receipt(t, 0), b.receipt(t, 1), public)
	if err != nil || e.Kind != Heads {
		t.Fatalf("%+v, %v", e, err)
	}
	convicts(t, e)
	b.more(t, 3, "b")
	e, err = Contradict(a.receipt(t, 0), b.receipt(t, 1), nil)
	if err != nil || e.Kind != Entries {
		t.Fatalf("%+v, %v", e, err)
	}
	convicts(t, e)
	_, err = Contradict(a.receipt(t, 0), a.receipt(t, 1), public)
	if !errors.Is(err, ErrConsistent) {
		t.Error(err)
	}
	first := a.receipt(t, 0)
	a.more(t, 3, "a")
	if _, err = Contradict(first, a.receipt(t, 1), public); !errors.Is(err, ErrConsistent) {
		t.Error(err)
	}
}

// A head that higher lines do not continue convicts, with a proof of what they begin with.
func TestPrefixes(t *testing.T) {
	a, b := summed(t, 6, "a"), summed(t, 6, "b")
	b.more(t, 3, "b")
	tree, _, err := b.chain.Tree()
	if err != nil {
		t.Fatal(err)
	}
	low, high := a.receipt(t, 0), b.receipt(t, 0)
	e, err := Prefix(testID, public, low.Head, high.Head, tree)
	if err != nil || e.Kind != Prefixes {
		t.Fatalf("%+v, %v", e, err)
	}
	convicts(t, e)
	_, err = Prefix(testID, public, summed(t, 6, "b").receipt(t, 0).Head, high.Head, tree)
	if !errors.Is(err, ErrConsistent) {
		t.Error(err)
	}
}

func convicts(t *testing.T, e *Evidence) {
	t.Helper()
	text, err := e.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseEvidence(text)
	if err != nil || !reflect.DeepEqual(again, e) || again.Verify() != nil {
		t.Fatalf("%+v, %v, %s", again, err, text)
	}
	for i := range text {
		m := bytes.Clone(text)
		m[i] ^= 1
		e, err := ParseEvidence(m)
		if err == nil && e.Verify() == nil && e.Federation == testID {
			t.Errorf("evidence with byte %d changed convicts: %q", i, m)
		}
	}
	again.One = again.Another
	if err := again.Verify(); !errors.Is(err, ErrEvidence) {
		t.Error(err)
	}
}

// A receipt under another key is refused by name.
func TestKeys(t *testing.T) {
	r := summed(t, 6, "a").receipt(t, 0)
	other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	if _, err := r.Verify(other); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	r.Key = chain.Hash(other)
	if _, err := r.Verify(other); !errors.Is(err, ErrProof) {
		t.Error(err)
	}
}

// vectors are known answers.
type vectors struct {
	Secret, Seed string
	Salt         chain.Hash // of party 2 in round 7
	Leaf         chain.Hash
}

// Receipts, leaves and evidence have the bytes that they had when testdata was written: a.receipt
// and later.receipt are of the history in chain.txt, and b.receipt is of another.
func TestVectors(t *testing.T) {
	w, other := summed(t, 6, "a"), summed(t, 6, "b")
	r := w.receipt(t, 2)
	leaf, err := r.Leaf(r.Salt)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Contradict(r, other.receipt(t, 4), public)
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := e.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	known, err := json.MarshalIndent(vectors{hex.EncodeToString(secret),
		hex.EncodeToString(testKey.Seed()), chain.Hash(r.Salt), leaf}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"vectors.json": append(known, '\n'), "a.receipt": textOf(t, r),
		"b.receipt": textOf(t, other.receipt(t, 4)), "ab.evidence": evidence}
	w.more(t, 5, "a")
	files["later.receipt"] = textOf(t, w.receipt(t, 0))
	lines := append(bytes.Join(w.chain.Lines(0), []byte("\n")), '\n')
	files["chain.txt"] = append(lines, w.receipt(t, 0).Head...)
	for name, got := range files {
		name = filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs: %s", name, got)
		}
	}
}

// A receipt has one text, and nothing else parses.
func FuzzParse(f *testing.F) {
	w := summed(f, 6, "a")
	f.Add(textOf(f, w.receipt(f, 2)))
	f.Add(textOf(f, summed(f, 1, "a").receipt(f, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			if r != nil || !errors.Is(err, ErrReceipt) {
				t.Fatal(err)
			}
			return
		}
		again, err := r.MarshalText()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q is %q again, %v", b, again, err)
		}
		_, _ = r.Verify(nil)
	})
}

// Evidence has one text, and nothing else parses.
func FuzzParseEvidence(f *testing.F) {
	e, err := Contradict(summed(f, 6, "a").receipt(f, 0), summed(f, 6, "b").receipt(f, 0), nil)
	if err != nil {
		f.Fatal(err)
	}
	text, err := e.MarshalText()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEvidence(b)
		if err != nil {
			if e != nil || !errors.Is(err, ErrEvidence) {
				t.Fatal(err)
			}
			return
		}
		again, err := e.MarshalText()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q is %q again, %v", b, again, err)
		}
		_ = e.Verify()
	})
}
