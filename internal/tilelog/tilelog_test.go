package tilelog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
)

var update = flag.Bool("update", false, "write testdata anew")

const origin = "sums.example.org/log"

var testKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, 32))

func signerOf(t testing.TB) *Signer {
	t.Helper()
	s, err := NewSigner(origin, testKey)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leafOf makes leaf number n of a test.
func leafOf(t testing.TB, n int) []byte {
	t.Helper()
	l := &Leaf{Day: "2026-01-02", Key: chain.HashOf(fmt.Append(nil, n%7))}
	switch n % 5 {
	case 0:
		l.Kind, l.Job = Birth, chain.HashOf([]byte("job"))
		l.People = People([]byte("secret"), [32]byte{1}, [32]byte{})
	case 1:
		l.Kind, l.Size, l.Root = Head, uint64(n), chain.HashOf(fmt.Append(nil, n))
	default:
		l.Kind = []Kind{End, Forget, Certificate}[n%5-2]
	}
	b, err := l.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// grow appends leaves up to a size.
func grow(t testing.TB, l *Log, size int) {
	t.Helper()
	for n := int(l.Size()); n < size; n++ {
		if err := l.Append(leafOf(t, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// A log is read as it was published, at whichever sizes that was before.
func TestPublish(t *testing.T) {
	l, folder, s := new(Log), t.TempDir(), signerOf(t)
	for _, size := range []int{0, 1, 2, 255, 256, 257, 600, 1000} {
		grow(t, l, size)
		for range 2 {
			if err := l.Publish(folder, s); err != nil {
				t.Fatal(err)
			}
		}
		if size == 0 {
			continue
		}
		again, key, err := Open(folder, "")
		if err != nil || key != s.Public() || !reflect.DeepEqual(again.leaves, l.leaves) {
			t.Fatalf("%d leaves: %v", size, err)
		}
	}
	for n := range 1000 {
		leaf, err := ParseLeaf(l.Leaf(int64(n)))
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := leaf.MarshalText(); !bytes.Equal(again, leafOf(t, n)) {
			t.Errorf("%s", again)
		}
	}
}

// What was published is never contradicted.
func TestHistory(t *testing.T) {
	l, folder, s := new(Log), t.TempDir(), signerOf(t)
	grow(t, l, 300)
	if err := l.Publish(folder, s); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(folder, fileCheckpoint))
	if err != nil {
		t.Fatal(err)
	}
	short, other := new(Log), new(Log)
	grow(t, short, 299)
	if err := other.Append(leafOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	grow(t, other, 400)
	for _, l := range []*Log{short, other} {
		if err := l.Publish(folder, s); !errors.Is(err, ErrHistory) {
			t.Error(err)
		}
	}
	after, err := os.ReadFile(filepath.Join(folder, fileCheckpoint))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the checkpoint is another: %v", err)
	}
}

// A flipped bit of any file but tiles, which follow from the entries, is found.
func TestFlips(t *testing.T) {
	l, folder, s := new(Log), t.TempDir(), signerOf(t)
	grow(t, l, 9)
	if err := l.Publish(folder, s); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "tile/0") || path == fileKey {
			return err
		}
		file := filepath.Join(folder, path)
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := len(b)
		if path == fileCheckpoint { // the last digits of base64 may stand for no bits
			text -= 3
		}
		for i := range text {
			b[i] ^= 1
			if err := os.WriteFile(file, b, 0o600); err != nil {
				return err
			}
			if _, _, err := Open(folder, s.Public()); err == nil {
				t.Errorf("byte %d of %s", i, path)
			}
			b[i] ^= 1
		}
		return os.WriteFile(file, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(folder, s.Public()); err != nil {
		t.Error(err)
	}
}

// A witness's line verifies for its checkpoint alone, and the log's own signature as before.
func TestWitness(t *testing.T) {
	l, s := new(Log), signerOf(t)
	grow(t, l, 3)
	b, err := l.checkpoint(s)
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, 32))
	w, err := NewWitness("party-3", key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line, err := w.Cosign(b, key, now)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := w.Check(b, line); err != nil || !at.Equal(now) {
		t.Error(at, err)
	}
	both := append(bytes.Clone(b), line...)
	if tree, err := OpenCheckpoint(both, s.Public()); err != nil || tree.N != 3 {
		t.Error(tree, err)
	}
	other, err := NewWitness("party-4", key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if n := Cosigners(both, w, other); n != 1 {
		t.Errorf("%d cosigners", n)
	}
	grow(t, l, 4)
	next, err := l.checkpoint(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		if _, err := w.Check(b, line[:i]+"!"+line[i+1:]); !errors.Is(err, ErrCosignature) &&
			i < len(line)-1 {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	if _, err := w.Check(next, line); !errors.Is(err, ErrCosignature) {
		t.Error(err)
	}
}

// A follower accepts what continues the log, at any sizes, and refuses what does not; a witness's
// line is added to the checkpoint of its own once.
func TestFollow(t *testing.T) {
	l, folder, s := new(Log), t.TempDir(), signerOf(t)
	read := func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	}
	checkpoint := func() []byte {
		t.Helper()
		if err := l.Publish(folder, s); err != nil {
			t.Fatal(err)
		}
		b, err := read(fileCheckpoint)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	seen := &Seen{Key: s.Public()}
	for _, size := range []int{1, 2, 200, 256, 300, 600, 1000} {
		grow(t, l, size)
		b := checkpoint()
		for range 2 {
			if err := seen.Follow(b, read); err != nil || seen.Size() != int64(size) {
				t.Fatalf("%d leaves: %v", size, err)
			}
		}
		text, err := seen.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		seen = new(Seen)
		if err := seen.UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{4}, 32))
	w, err := NewWitness("party-3", key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseWitness(w.Public()); err != nil || again.Public() != w.Public() {
		t.Error(err)
	}
	line, err := w.Cosign(checkpoint(), key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := AddCosignature(folder, w, line); err != nil {
			t.Fatal(err)
		}
	}
	if b := checkpoint(); Cosigners(b, w) != 1 || bytes.Count(b, []byte("party-3")) != 1 {
		t.Errorf("%s", b)
	}
	if err := seen.Follow(checkpoint(), read); err != nil {
		t.Error(err)
	}
	grow(t, l, 1001)
	checkpoint()
	if err := AddCosignature(folder, w, line); !errors.Is(err, ErrCosignature) {
		t.Errorf("of another checkpoint: %v", err)
	}
	short, other := new(Log), new(Log)
	grow(t, short, 999)
	if err := other.Append(leafOf(t, 1)); err != nil {
		t.Fatal(err)
	}
	grow(t, other, 1100)
	for _, l := range []*Log{short, other} {
		folder = t.TempDir()
		if err := l.Publish(folder, s); err != nil {
			t.Fatal(err)
		}
		b, err := read(fileCheckpoint)
		if err != nil {
			t.Fatal(err)
		}
		if err := seen.Follow(b, read); !errors.Is(err, ErrHistory) || seen.Size() != 1000 {
			t.Error(err)
		}
	}
}

// Leaves and checkpoints have the bytes that they had when testdata was written.
func TestVectors(t *testing.T) {
	l := new(Log)
	grow(t, l, 5)
	b, err := l.checkpoint(signerOf(t))
	if err != nil {
		t.Fatal(err)
	}
	got := struct {
		Leaves          []string
		Checkpoint, Key string
	}{Checkpoint: string(b), Key: signerOf(t).Public()}
	for _, leaf := range l.leaves {
		got.Leaves = append(got.Leaves, string(leaf))
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	name := filepath.Join("testdata", "vectors.json")
	if *update {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || !bytes.Equal(text, want) {
		t.Errorf("%v: %s", err, text)
	}
}

// A leaf has one text, and nothing else parses.
func FuzzParseLeaf(f *testing.F) {
	for n := range 5 {
		f.Add(leafOf(f, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLeaf(b)
		if err != nil {
			if l != nil || !errors.Is(err, ErrLeaf) {
				t.Fatal(err)
			}
			return
		}
		if again, err := l.MarshalText(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q is %q again, %v", b, again, err)
		}
	})
}
