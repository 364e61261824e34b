package chain

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

var update = flag.Bool("update", false, "write testdata anew")

var (
	testID  = strings.Repeat("5e", 32)
	testKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	public  = testKey.Public().(ed25519.PublicKey)
)

// sign completes an entry, and signs it.
func sign(t testing.TB, e *Entry) []byte {
	t.Helper()
	e.Time = time.Date(2026, 1, 2, 3, 4, int(e.Number), 0, time.UTC)
	line, err := Sign(e, testKey)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// chained makes a chain of a given number of entries.
func chained(t testing.TB, entries int) (*Chain, [][]byte) {
	t.Helper()
	c, err := Union(testID, public, sign(t, NewBirth(testID, public)))
	if err != nil {
		t.Fatal(err)
	}
	more(t, c, entries-1)
	return c, c.Lines(0)
}

// more appends entries to a chain.
func more(t testing.TB, c *Chain, entries int) {
	t.Helper()
	for range entries {
		e := c.Next(Begin, 0, false)
		e.Node, e.Round = "a", e.Number
		e.Survivors = &Commitment{3, HashOf([]byte("leaves"))}
		e.State = &Object{Name: "state", Digest: HashOf([]byte("state")), Size: 5}
		if err := c.Append(sign(t, e)); err != nil {
			t.Fatal(err)
		}
	}
}

func joined(lines [][]byte) (b []byte) {
	for _, line := range lines {
		b = framed(b, line)
	}
	return b
}

func headOf(t testing.TB, c *Chain) *Head {
	t.Helper()
	h, err := c.Head()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// vectors are known answers.
type vectors struct {
	Seed, Federation string
	Lines            []string
	Roots            []Hash // of the trees of 1, 2, … lines
	Head             string // of all lines
	Inclusion        []Hash // of line 2
	Consistency      []Hash // from 3 lines to all
}

// Lines, roots, heads and proofs have the bytes that they had when testdata was written.
func TestVectors(t *testing.T) {
	c, lines := chained(t, 7)
	got := vectors{Seed: hex.EncodeToString(testKey.Seed()), Federation: testID}
	tree, _, err := c.Tree()
	if err != nil {
		t.Fatal(err)
	}
	for k, line := range lines {
		got.Lines = append(got.Lines, string(line))
		root, err := tree.Root(uint64(k + 1))
		if err != nil {
			t.Fatal(err)
		}
		got.Roots = append(got.Roots, root)
	}
	head, err := SignHead(headOf(t, c), testKey)
	if err != nil {
		t.Fatal(err)
	}
	got.Head = string(head)
	if got.Inclusion, err = tree.Inclusion(2, 7); err != nil {
		t.Fatal(err)
	}
	if got.Consistency, err = tree.Consistency(3, 7); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("testdata", "vectors.json")
	if *update {
		b, err := json.MarshalIndent(got, "", " ")
		if err == nil {
			err = os.WriteFile(name, append(b, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var want vectors
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Of an entry there is one text: no bit of a line can be flipped, no line cut or lengthened, and no
// other key or federation opens it.
func TestOpen(t *testing.T) {
	_, lines := chained(t, 2)
	for _, line := range lines {
		if e, err := Open(line, testID, public); err != nil || e.Node != "a" && e.Number > 0 {
			t.Fatalf("%+v, %v", e, err)
		}
		if _, err := Open(line, strings.Repeat("5f", 32), public); !errors.Is(err, ErrFederation) {
			t.Errorf("of another federation: %v", err)
		}
		other := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
		if _, err := Open(line, testID, other); !errors.Is(err, ErrSignature) {
			t.Errorf("under another key: %v", err)
		}
		for i := range line {
			for bit := range 8 {
				flipped := bytes.Clone(line)
				flipped[i] ^= 1 << bit
				if e, err := Open(flipped, testID, public); err == nil {
					t.Fatalf("byte %d, bit %d: %+v", i, bit, e)
				}
			}
			if _, err := Open(line[:i], testID, public); err == nil {
				t.Fatalf("cut to %d bytes", i)
			}
		}
		if _, err := Open(append(bytes.Clone(line), 'A'), testID, public); !errors.Is(err, ErrEntry) {
			t.Errorf("a longer one: %v", err)
		}
	}
}

// What does not fit together is signed for nobody.
func TestSignRefuses(t *testing.T) {
	c, _ := chained(t, 3)
	for what, change := range map[string]func(*Entry){
		"version":       func(e *Entry) { e.Version++ },
		"federation":    func(e *Entry) { e.Federation = strings.ToUpper(testID) },
		"kind":          func(e *Entry) { e.Kind = "other" },
		"a second one":  func(e *Entry) { e.Kind = Birth },
		"number 0":      func(e *Entry) { e.Number = 0 },
		"before":        func(e *Entry) { e.Before = Hash{} },
		"key":           func(e *Entry) { e.Key = new(Hash) },
		"zone":          func(e *Entry) { e.Time = time.Unix(0, 0).In(time.FixedZone("", 60)) },
		"setback":       func(e *Entry) { e.Kind = Setback },
		"lost":          func(e *Entry) { e.Lost = []Range{{1, 1}} },
		"heads":         func(e *Entry) { e.Heads = []Height{{}} },
		"lost later":    func(e *Entry) { e.Kind, e.Segment, e.Lost = Setback, 1, []Range{{2, 9}} },
		"lost reversed": func(e *Entry) { e.Kind, e.Segment, e.Lost = Setback, 1, []Range{{2, 1}} },
		"lost twice": func(e *Entry) {
			e.Kind, e.Segment, e.Lost = Setback, 1, []Range{{0, 1}, {1, 1}}
		},
		"long": func(e *Entry) { e.Node = strings.Repeat("a", MostLine) },
	} {
		e := c.Next(Begin, 0, false)
		change(e)
		if line, err := Sign(e, testKey); !errors.Is(err, ErrEntry) || line != nil {
			t.Errorf("%s: %q, %v", what, line, err)
		}
	}
}

// The tree is that of RFC 6962: the roots of Certificate Transparency's reference implementation.
func TestTreeKnownAnswers(t *testing.T) {
	tree := new(Tree)
	for k, c := range []struct{ leaf, root string }{
		{"", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
		{"00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
		{"10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
		{"2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
		{"3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
		{"40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
		{"5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
		{"606162636465666768696a6b6c6d6e6f",
			"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
	} {
		leaf, err := hex.DecodeString(c.leaf)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Append(leaf); err != nil {
			t.Fatal(err)
		}
		root, err := tree.Root(uint64(k + 1))
		if err != nil || root.String() != c.root {
			t.Errorf("%d leaves: %v, want %s, %v", k+1, root, c.root, err)
		}
	}
}

// Every line of every size has a proof, and so has every size from every smaller one; none of them
// proves anything else.
func TestProofs(t *testing.T) {
	const most = 20
	c, lines := chained(t, most)
	tree, _, err := c.Tree()
	if err != nil {
		t.Fatal(err)
	}
	at := func(size int) *Head {
		root, err := tree.Root(uint64(size))
		if err != nil {
			t.Fatal(err)
		}
		return &Head{Federation: testID, Size: uint64(size), Root: root}
	}
	for size := 1; size <= most; size++ {
		h := at(size)
		for k := range size {
			proof, err := tree.Inclusion(uint64(k), h.Size)
			if err != nil {
				t.Fatal(err)
			}
			for other := range size {
				err := CheckInclusion(lines[other], uint64(k), h, proof)
				if (other == k) != (err == nil) || err != nil && !errors.Is(err, ErrProof) {
					t.Fatalf("line %d as %d of %d: %v", other, k, size, err)
				}
			}
			older := at(k + 1)
			proof, err = tree.Consistency(older.Size, h.Size)
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckConsistency(older, h, proof); err != nil {
				t.Fatalf("%d continued by %d: %v", k+1, size, err)
			}
			older.Root[3] ^= 1
			if err := CheckConsistency(older, h, proof); !errors.Is(err, ErrProof) {
				t.Fatalf("another root of %d: %v", k+1, err)
			}
			older = at(k + 1)
			older.Segment++
			if err := CheckConsistency(older, h, proof); !errors.Is(err, ErrProof) {
				t.Fatalf("another segment: %v", err)
			}
		}
		if _, err := tree.Inclusion(h.Size, h.Size); !errors.Is(err, ErrProof) {
			t.Errorf("a line that there is not: %v", err)
		}
	}
	for _, sizes := range [][2]uint64{{0, 3}, {4, 3}, {3, most + 1}} {
		if _, err := tree.Consistency(sizes[0], sizes[1]); !errors.Is(err, ErrProof) {
			t.Errorf("%d: %v", sizes, err)
		}
	}
	if _, err := tree.Root(most + 1); !errors.Is(err, ErrProof) {
		t.Error(err)
	}
}

// A head opens under the federation's key as it was signed, and in no other form; two of one size
// with two roots are proof.
func TestHeads(t *testing.T) {
	c, _ := chained(t, 5)
	h := headOf(t, c)
	b, err := SignHead(h, testKey)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenHead(b, testID, public)
	if err != nil || *got != *h {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range b {
		for bit := range 8 {
			flipped := bytes.Clone(b)
			flipped[i] ^= 1 << bit
			if got, err := OpenHead(flipped, testID, public); err == nil && *got != *h ||
				err != nil && !errors.Is(err, ErrHead) {
				t.Fatalf("byte %d, bit %d: %+v, %v", i, bit, got, err)
			}
		}
		if _, err := OpenHead(b[:i], testID, public); !errors.Is(err, ErrHead) {
			t.Fatalf("cut to %d: %v", i, err)
		}
	}
	verifier, err := verifierOf(h.Origin(), public)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		h.text() + "another line\n",
		strings.Replace(h.text(), "\n5\n", "\n05\n", 1),
		strings.Replace(h.text(), "\n5\n", "\n+5\n", 1),
	} {
		other, err := note.Sign(&note.Note{Text: text}, signer{verifier, testKey})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := OpenHead(other, testID, public); !errors.Is(err, ErrHead) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := OpenHead(b, strings.Repeat("00", 32), public); !errors.Is(err, ErrHead) {
		t.Errorf("of another federation: %v", err)
	}
	if _, err := SignHead(&Head{Federation: testID}, testKey); !errors.Is(err, ErrHead) {
		t.Errorf("of nothing: %v", err)
	}
	other := *h
	if h.Contradicts(&other) || h.Compare(&other) != 0 {
		t.Error("a head contradicts itself")
	}
	other.Root[0] ^= 1
	if !h.Contradicts(&other) {
		t.Error("two roots of one size are no contradiction")
	}
	other.Segment++
	other.Size = 1
	if h.Contradicts(&other) || h.Compare(&other) >= 0 || other.Compare(h) <= 0 {
		t.Error("a later segment is not higher")
	}
}

// Whatever bit of a file is flipped, one line is damaged at most, and it is said: by the count of
// bad lines, by the numbers that are lost, or by a head that somebody has. With another copy
// nothing is lost.
func TestFlip(t *testing.T) {
	c, lines := chained(t, 2)
	whole, head := joined(lines), headOf(t, c)
	count := map[string]int{}
	try := func(b []byte) (got *Chain) {
		got, err := Union(testID, public, b)
		switch {
		case errors.Is(err, ErrNone):
			count["named"]++
			return nil
		case err != nil:
			t.Fatal(err)
		case slices.EqualFunc(got.Lines(0), lines, bytes.Equal):
			count["harmless"]++
			return got
		case len(got.Lost) > 0:
			count["named"]++
		case errors.Is(got.Behind(head), ErrBehind):
			count["named"]++
		default:
			count["silent"]++
		}
		if count["named"]%8 > 0 {
			return got
		}
		healed, err := Union(testID, public, b, whole)
		if err != nil || len(healed.Lost) > 0 || !slices.EqualFunc(healed.Lines(0), lines, bytes.Equal) {
			t.Fatalf("another copy does not heal: %v, %v", healed, err)
		}
		count["healed"]++
		return got
	}
	for i := range whole {
		for bit := range 8 {
			flipped := bytes.Clone(whole)
			flipped[i] ^= 1 << bit
			if got := try(flipped); got == nil || len(got.Lines(0)) < len(lines)-1 ||
				got.Bad[0] > 2 { // a new newline makes two
				t.Fatalf("byte %d, bit %d costs more than a line: %+v", i, bit, got)
			}
		}
		try(whole[:i])
	}
	if count["silent"] > 0 || count["named"] == 0 || count["healed"] == 0 || count["harmless"] == 0 {
		t.Errorf("%v", count)
	}
	t.Logf("%v", count)
}

// Two entries of one number, and one that does not follow, are a fork.
func TestFork(t *testing.T) {
	c, lines := chained(t, 4)
	d, err := Union(testID, public, joined(lines[:3]))
	if err != nil {
		t.Fatal(err)
	}
	e := d.Next(Order, 0, false)
	other := sign(t, e)
	_, err = Union(testID, public, joined(lines), joined([][]byte{other}))
	if fork := new(ForkError); !errors.Is(err, ErrFork) || !errors.As(err, &fork) ||
		fork.Number != 3 || bytes.Equal(fork.One, fork.Another) {
		t.Errorf("two of one number: %v", err)
	}
	if err := d.Append(other); err != nil {
		t.Fatal(err)
	}
	later := sign(t, d.Next(Order, 0, false))
	if _, err := Union(testID, public, joined(lines), later); !errors.Is(err, ErrFork) {
		t.Errorf("one that follows from another: %v", err)
	}
	if err := c.Append(later); !errors.Is(err, ErrNext) {
		t.Errorf("appended: %v", err)
	}
	if err := c.Append(lines[3]); !errors.Is(err, ErrNext) {
		t.Errorf("appended twice: %v", err)
	}
	if err := c.Append([]byte("other")); !errors.Is(err, ErrEntry) {
		t.Errorf("no entry is appended: %v", err)
	}
	if err := d.Behind(headOf(t, c)); !errors.Is(err, ErrFork) {
		t.Errorf("a head of another chain: %v", err)
	}
	if err := c.Behind(headOf(t, c)); err != nil {
		t.Error(err)
	}
}

// What is in no copy is named, then a setback names it and begins a segment, and from then on it is
// not lost anew. What turns up later is superseded, and no fork.
func TestSegments(t *testing.T) {
	whole, lines := chained(t, 8)
	full := headOf(t, whole)
	damaged := joined(slices.Concat(lines[:2], lines[4:6]))
	c, err := Union(testID, public, damaged)
	if err != nil || !reflect.DeepEqual(c.Lost, []Range{{2, 3}}) {
		t.Fatalf("%v, %v", c.Lost, err)
	}
	if _, err := c.Head(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "2 to 3") {
		t.Errorf("a head over what is lost: %v", err)
	}
	if _, _, err := c.Tree(); !errors.Is(err, ErrLost) {
		t.Errorf("a tree over what is lost: %v", err)
	}
	e := c.Next(Begin, 0, false)
	e.Kind, e.Segment, e.Lost = Begin, 0, nil
	if err := c.Append(sign(t, e)); !errors.Is(err, ErrNext) {
		t.Errorf("as if nothing was lost: %v", err)
	}
	setback := c.Next(Begin, 0, false)
	if setback.Kind != Setback || setback.Segment != 1 || setback.Number != 6 {
		t.Fatalf("%+v", setback)
	}
	if err := c.Append(sign(t, setback)); err != nil {
		t.Fatal(err)
	}
	if found, err := Union(testID, public, joined(lines), joined(c.Lines(0))); err != nil ||
		len(found.Superseded) != 2 || *headOf(t, found) != *headOf(t, c) {
		t.Errorf("lines above a setback: %v", err)
	}
	more(t, c, 3)
	if h := headOf(t, c); h.Segment != 1 || h.Size != 4 {
		t.Errorf("%+v", h)
	}
	again, err := Union(testID, public, joined(c.Lines(0)))
	if err != nil || len(again.Lost) > 0 || *headOf(t, again) != *headOf(t, c) {
		t.Fatalf("%v, %v", again.Lost, err)
	}
	found, err := Union(testID, public, joined(c.Lines(0)), joined(lines))
	if err != nil || len(found.Superseded) != 2 || *headOf(t, found) != *headOf(t, c) {
		t.Errorf("%d superseded, %v", len(found.Superseded), err)
	}
	// A head that somebody has says what was set back, and no number is used twice.
	old, err := Union(testID, public, joined(lines[:5]))
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Behind(full); !errors.Is(err, ErrBehind) {
		t.Errorf("behind: %v", err)
	}
	e = old.Next(Begin, 0, false, full)
	if e.Kind != Setback || e.Number != 8 || !reflect.DeepEqual(e.Lost, []Range{{5, 7}}) ||
		len(e.Heads) != 1 || e.Heads[0].Size != 8 {
		t.Errorf("%+v", e)
	}
	if err := old.Append(sign(t, e)); err != nil {
		t.Fatal(err)
	}
	if all, err := Union(testID, public, joined(old.Lines(0)), joined(lines)); err != nil ||
		len(all.Superseded) > 0 || len(all.Lines(0)) != 9 {
		t.Errorf("%v", err)
	}
	if e := old.Next(Begin, 0, true); e.Kind != Setback || e.Segment != 2 {
		t.Errorf("a restored one goes on as if there were no other: %+v", e)
	}
	twice := *setback
	twice.Number = 7
	_, err = Union(testID, public, joined(c.Lines(0)[:5]), sign(t, setback), sign(t, &twice))
	if !errors.Is(err, ErrFork) {
		t.Errorf("two setbacks of a segment: %v", err)
	}
}

// Of two histories that went on apart, the one stands that a setback follows, whose author knew of
// both; each is found with all its lines.
func TestHistories(t *testing.T) {
	c, lines := chained(t, 4)
	public := testKey.Public().(ed25519.PublicKey)
	other, err := Union(testID, public, joined(lines))
	if err != nil {
		t.Fatal(err)
	}
	more(t, c, 3)
	e := other.Next(Order, 0, false)
	if err := other.Append(sign(t, e)); err != nil {
		t.Fatal(err)
	}
	both := [][]byte{joined(c.Lines(0)), joined(other.Lines(0))}
	if _, err := Union(testID, public, both...); !errors.Is(err, ErrFork) {
		t.Fatalf("%v", err)
	}
	all := Histories(testID, public, both...)
	if len(all) != 2 || !reflect.DeepEqual(all[0], c.Lines(0)) ||
		!reflect.DeepEqual(all[1], other.Lines(0)) {
		t.Fatalf("%d histories", len(all))
	}
	// The shorter one stands: what it shares with the other, then a setback that names the rest.
	shared, err := Union(testID, public, joined(lines))
	if err != nil {
		t.Fatal(err)
	}
	setback := shared.Next(Order, c.Last().Number+1, true)
	if setback.Kind != Setback || !reflect.DeepEqual(setback.Lost, []Range{{4, 6}}) {
		t.Fatalf("%+v", setback)
	}
	line := sign(t, setback)
	for _, copies := range [][][]byte{{both[0], both[1], line}, {line, both[1], both[0]}} {
		u, err := Union(testID, public, copies...)
		if err != nil || u.Last().Number != 7 || len(u.Lines(0)) != 5 || len(u.Superseded) != 4 ||
			len(u.Lost) > 0 {
			t.Errorf("%v", err)
		}
	}
}

// A file has one writer, takes each line durably, and is not replaced from a reading that is older
// than its last line.
func TestFile(t *testing.T) {
	_, lines := chained(t, 5)
	name := filepath.Join(t.TempDir(), "a.chain")
	f, err := OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(name); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	for _, line := range lines[:3] {
		if err := f.Append(line); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range [][]byte{nil, []byte("a\nb"), make([]byte, MostLine+1)} {
		if err := f.Append(bad); !errors.Is(err, ErrEntry) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
	old, err := f.Read()
	if err != nil || !bytes.Equal(old.Bytes, joined(lines[:3])) {
		t.Fatalf("%v", err)
	}
	if err := f.Append(lines[3]); err != nil {
		t.Fatal(err)
	}
	if err := f.Rewrite(old, lines[:3]); !errors.Is(err, ErrStale) {
		t.Errorf("from an older reading: %v", err)
	}
	now, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Rewrite(now, lines[:4]); err != nil {
		t.Fatal(err)
	}
	if err := f.Rewrite(now, lines[:4]); !errors.Is(err, ErrStale) {
		t.Errorf("twice from one reading: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(lines[4]); !errors.Is(err, ErrFile) {
		t.Errorf("a closed file: %v", err)
	}
	// What is torn by a kill costs nothing that was written whole, before or after.
	torn, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = torn.Write(framed(nil, lines[4])[:100])
		err = errors.Join(err, torn.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFile(name); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Append(lines[4]); err != nil {
		t.Fatal(err)
	}
	now, err = f.Read()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Union(testID, public, now.Bytes)
	if err != nil || c.Bad[0] != 1 || len(c.Lost) > 0 || len(c.Lines(0)) != 5 {
		t.Errorf("%v bad, %v lost, %v", c.Bad, c.Lost, err)
	}
}

// A write that fails is the last.
func TestFileFails(t *testing.T) {
	_, lines := chained(t, 2)
	f, err := OpenFile(filepath.Join(t.TempDir(), "a.chain"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	good := f.file
	if f.file, err = os.Open(f.name); err != nil { // to read only
		t.Fatal(err)
	}
	if err := f.Append(lines[0]); !errors.Is(err, ErrFile) {
		t.Errorf("%v", err)
	}
	_ = f.file.Close()
	f.file = good
	if err := f.Append(lines[0]); !errors.Is(err, ErrFile) {
		t.Errorf("after a failure: %v", err)
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none", "a")); !errors.Is(err, ErrFile) {
		t.Errorf("no folder: %v", err)
	}
}

// What says the same in other words is no entry, though the key has signed it.
func TestOneText(t *testing.T) {
	_, lines := chained(t, 2)
	text := string(lines[1][:bytes.LastIndexByte(lines[1], ' ')])
	for _, other := range []string{
		strings.Replace(text, `{"v":1`, `{ "v":1`, 1),
		strings.Replace(text, `"v":1`, `"V":1`, 1),
		strings.Replace(text, `"v":1`, `"v":1,"v":1`, 1),
		strings.Replace(text, `"v":1`, `"v":1,"other":1`, 1),
		strings.Replace(text, `"node":"a"`, `"node":"\u0061"`, 1),
		strings.Replace(text, `"node":"a",`, `"node":"a","session":0,`, 1),
		strings.Replace(text, `Z"`, `+00:00"`, 1),
	} {
		if other == text {
			t.Fatal("a case changes nothing")
		}
		signature := ed25519.Sign(testKey, signed([]byte(other)))
		line := base64.RawStdEncoding.AppendEncode([]byte(other+" "), signature)
		if e, err := Open(line, testID, public); !errors.Is(err, ErrEntry) {
			t.Errorf("%s: %+v, %v", other, e, err)
		}
	}
}
