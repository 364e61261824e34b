package masking

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// longLayouts are layouts with lengths around the edges of pieces.
func longLayouts(yield func(Layout) bool) {
	for _, bits := range []int{1, 7, 16, 20, 31, 32, 33, 63, 64} {
		n := 64 / bits * pieceWords
		for _, length := range []int{n - 1, n, n + 1, 2*n + 13} {
			if !yield(Layout{{5, 65 - bits}, {length, bits}, {1, 3}}) {
				return
			}
		}
	}
}

// WriteTo writes the bytes that AppendPacked appends, and an Intake takes them in
// pieces of any size.
func TestStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	try := func(layout Layout) {
		v := mustVector(t, layout, randomValues(rng, layout)...)
		packed := v.AppendPacked(nil)
		var out bytes.Buffer
		if n, err := v.WriteTo(&out); err != nil || n != int64(len(packed)) ||
			!bytes.Equal(out.Bytes(), packed) {
			t.Fatalf("%v: WriteTo wrote %d bytes, %v", layout, n, err)
		}
		intake, err := NewIntake(layout)
		if err != nil {
			t.Fatal(err)
		}
		sum := mustVector(t, layout, randomValues(rng, layout)...)
		want := sum.Clone()
		for _, chunk := range []int{len(packed), 1 + rng.IntN(len(packed)), 1 + rng.IntN(100)} {
			for rest := packed; len(rest) > 0; {
				n, err := intake.Write(rest[:min(chunk, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := intake.AddTo(sum); err != nil {
				t.Fatal(err)
			}
			if err := want.Add(v); err != nil {
				t.Fatal(err)
			}
			if !equalValues(sum.Values(), want.Values()) {
				t.Fatalf("%v in pieces of %d bytes: the sum differs", layout, chunk)
			}
		}
	}
	for layout := range layouts {
		if layout[0].Length < 2000 {
			try(layout)
		}
	}
	for layout := range longLayouts {
		try(layout)
	}
}

// What breaks off, goes on too long or has padding that is not zero changes no sum,
// and the next vector is taken as if it had not been.
func TestIntakeRefuses(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 2))
	layout := Layout{{9000, 20}, {3, 3}, {40000, 13}}
	v := mustVector(t, layout, randomValues(rng, layout)...)
	packed := v.AppendPacked(nil)
	sum := mustVector(t, layout, randomValues(rng, layout)...)
	before := sum.Clone()
	intake, err := NewIntake(layout)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	dirty := bytes.Clone(packed)
	dirty[22500+1] |= 0x80 // the second segment is 9 bits long
	for name, c := range map[string]struct {
		stream io.Reader
		copied error // what copying says
		added  error
	}{
		"breaks off": {io.MultiReader(bytes.NewReader(packed[:70000]), iotest.ErrReader(broken)), broken,
			ErrPackedSize},
		"ends early": {bytes.NewReader(packed[:len(packed)-1]), nil, ErrPackedSize},
		"nothing":    {bytes.NewReader(nil), nil, ErrPackedSize},
		"too long": {io.MultiReader(bytes.NewReader(packed), bytes.NewReader([]byte{0})), ErrPackedSize,
			ErrPackedSize},
		"padding is set": {bytes.NewReader(dirty), ErrPadding, ErrPadding},
	} {
		if _, err := io.Copy(struct{ io.Writer }{intake}, c.stream); !errors.Is(err, c.copied) {
			t.Errorf("%s: copying: %v", name, err)
		}
		if err := intake.AddTo(sum); !errors.Is(err, c.added) {
			t.Errorf("%s: adding: %v", name, err)
		}
		if !equalValues(sum.Values(), before.Values()) {
			t.Fatalf("%s: the sum changed", name)
		}
		intake.Reset()
	}
	// A vector that is late is not lost: AddTo says what is missing.
	half := len(packed) / 2
	if _, err := intake.Write(packed[:half]); err != nil {
		t.Fatal(err)
	}
	if err := intake.AddTo(sum); !errors.Is(err, ErrPackedSize) {
		t.Errorf("half a vector: %v", err)
	}
	if _, err := intake.Write(packed[half:]); err != nil {
		t.Fatal(err)
	}
	other := mustVector(t, Layout{{1, 1}}, []uint64{1})
	if err := intake.AddTo(other); !errors.Is(err, ErrLayoutMismatch) || other.Values()[0][0] != 1 {
		t.Errorf("another layout: %v", err)
	}
	if err := intake.AddTo(sum); err != nil {
		t.Fatal(err)
	}
	if err := before.Add(v); err != nil || !equalValues(sum.Values(), before.Values()) {
		t.Errorf("the sum is wrong: %v", err)
	}
	if err := intake.AddTo(sum); !errors.Is(err, ErrPackedSize) {
		t.Errorf("a vector is added twice: %v", err)
	}
	if _, err := NewIntake(nil); !errors.Is(err, ErrLayout) {
		t.Errorf("NewIntake: %v", err)
	}
}

// A writer that fails leaves the vector as it was.
func TestWriteToFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 3))
	layout := Layout{{100000, 17}}
	v := mustVector(t, layout, randomValues(rng, layout)...)
	before := v.Clone()
	full := errors.New("full")
	for _, w := range []io.Writer{&brokenWriter{left: 50000, err: full}, &brokenWriter{left: 50000}} {
		n, err := v.WriteTo(w)
		if n != 50000 || !errors.Is(err, full) && !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if !equalValues(v.Values(), before.Values()) {
			t.Error("the vector changed")
		}
	}
}

// brokenWriter takes this many bytes, and then fails.
type brokenWriter struct {
	left int
	err  error
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	if w.left -= n; n < len(b) {
		return n, w.err
	}
	return n, nil
}

// Load and Store at any place agree with Values and Set.
func TestLoadStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits, length := rapid.IntRange(1, 64).Draw(t, "bits"), rapid.IntRange(1, 200).Draw(t, "length")
		layout := Layout{{2, 5}, {length, bits}, {2, 64}}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		values := randomValues(rng, layout)
		v, err := FromValues(layout, values...)
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, length).Draw(t, "from")
		n := rapid.IntRange(0, length-from).Draw(t, "n")
		got := make([]uint64, n)
		if err := v.Load(got, 1, from); err != nil ||
			!equalValues([][]uint64{got}, [][]uint64{values[1][from : from+n]}) {
			t.Fatalf("Load: %v", err)
		}
		fresh := randomValues(rng, Layout{{length, bits}})[0][:n]
		copy(values[1][from:], fresh)
		if err := v.Store(1, from, fresh); err != nil {
			t.Fatal(err)
		}
		if !equalValues(v.Values(), values) {
			t.Fatalf("Store of %d at %d is wrong", n, from)
		}
		for _, c := range [][3]int{{-1, 0, 0}, {3, 0, 0}, {1, -1, 1}, {1, length + 1, 0},
			{1, from, length - from + 1}} {
			if err := v.Load(make([]uint64, c[2]), c[0], c[1]); !errors.Is(err, ErrLength) {
				t.Fatalf("Load %v: %v", c, err)
			}
			if err := v.Store(c[0], c[1], make([]uint64, c[2])); !errors.Is(err, ErrLength) {
				t.Fatalf("Store %v: %v", c, err)
			}
		}
		if !equalValues(v.Values(), values) {
			t.Fatal("what is refused changes the vector")
		}
		if n > 0 && bits < 64 {
			fresh[rng.IntN(n)] |= 1 << bits
			if err := v.Store(1, from, fresh); !errors.Is(err, ErrRange) {
				t.Fatalf("a value too large: %v", err)
			}
			for _, w := range v.words {
				if w != 0 {
					t.Fatal("a part is left of what was refused")
				}
			}
		}
	})
}
