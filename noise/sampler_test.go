package noise

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"sort"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// dumb samples a cascade from the same bytes as a Sampler, one sample at a time, with
// branches and binary search.
func dumb(p *cascade, r io.Reader, n int) []int64 {
	out := make([]int64, n)
	for at := 0; at < n; at += block {
		size := min(block, (n-at+columns-1)/columns*columns)
		outcomes, signs := make([][]uint64, len(p.stages)), make([][]bool, len(p.stages))
		for i := len(p.stages) - 1; i >= 0; i-- {
			st := p.stages[i]
			words := make([][]uint64, len(st.levels))
			for d := range words {
				count := columns * st.slots
				if d == 0 {
					count = size
				}
				raw := make([]byte, 8*count)
				if _, err := io.ReadFull(r, raw); err != nil {
					panic(err)
				}
				for j := range count {
					w := uint64(0)
					for b := 7; b >= 0; b-- {
						w = w<<8 | uint64(raw[8*j+b])
					}
					words[d] = append(words[d], w)
				}
			}
			used := make([]int, columns)
			outcomes[i], signs[i] = make([]uint64, size), make([]bool, size)
			for j := range size {
				signs[i][j] = words[0][j]&1 == 1
				d, w := 0, words[0][j]
				slot := min(used[j%columns], st.slots-1)*columns + j%columns
				for {
					sums := st.levels[d].sums
					k := sort.Search(len(sums), func(k int) bool { return sums[k] > w>>1 })
					if k < len(sums) || d == len(st.levels)-1 {
						outcomes[i][j] = uint64(k)
						break
					}
					d++
					w = words[d][slot]
				}
				if d > 0 {
					used[j%columns]++
				}
			}
		}
		for j := range min(size, n-at) {
			x := p.offset
			for i := range p.stages {
				v := int64(outcomes[i][j]) * p.weights[i]
				if p.how == signedSum && signs[i][j] {
					v = -v
				}
				x += v
			}
			if p.how == signedDigits {
				if outcomes[0][j] == 0 {
					x = 0
				}
				if signs[0][j] {
					x = -x
				}
			}
			out[at+j] = x
		}
	}
	return out
}

// TestSamplerAgainstDumb feeds both with the same bytes, biased so that the rarer
// tables are used often: bytes of one value make words at either end.
func TestSamplerAgainstDumb(t *testing.T) {
	tables := proofTables(t)
	rapid.Check(t, func(t *rapid.T) {
		tb := rapid.SampledFrom(tables).Draw(t, "table")
		n := rapid.IntRange(0, 600).Draw(t, "n")
		ones := rapid.Uint64Range(0, 8).Draw(t, "ones")
		stream := func() io.Reader {
			rng := seeded(byte(n))
			return readerFunc(func(p []byte) (int, error) {
				rng.Read(p)
				for i := 0; i+8 <= len(p); i += 8 {
					if uint64(p[i])%8 < ones {
						copy(p[i+1:i+8], "\xff\xff\xff\xff\xff\xff\xff")
					}
				}
				return len(p), nil
			})
		}
		// Read in the pieces that the sampler asks for: a fixed byte string.
		var log bytes.Buffer
		got := make([]int64, n)
		if err := tb.NewSampler(io.TeeReader(stream(), &log)).Fill(got); err != nil {
			t.Fatal(err)
		}
		want := dumb(tb.cascade, &log, n)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%v: sample %d of %d is %d, want %d", tb.Law(), i, n, got[i], want[i])
			}
		}
		if log.Len() != 0 {
			t.Fatalf("%d bytes read and not used", log.Len())
		}
	})
}

func TestScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.Uint64Range(0, 1<<63-1)
		table := rapid.SliceOfN(words, 0, 70).Draw(t, "table")
		sort.Slice(table, func(i, j int) bool { return table[i] < table[j] })
		n := columns * rapid.IntRange(0, 5).Draw(t, "n")
		u := rapid.SliceOfN(words, n, n).Draw(t, "u")
		for i := range u { // ties matter
			if len(table) > 0 && i%3 == 0 {
				u[i] = table[i%len(table)]
			}
		}
		a, b := make([]uint64, n), make([]uint64, n)
		scan(a, u, table)
		scanGeneric(b, u, table)
		for i, x := range u {
			want := uint64(0)
			for _, th := range table {
				if th <= x {
					want++
				}
			}
			if a[i] != want || b[i] != want {
				t.Fatalf("word %d: kernel %d, generic %d, want %d", i, a[i], b[i], want)
			}
		}
	})
}

// samplersFrom builds one of each path over r.
func samplersFrom(t *testing.T, r io.Reader) map[string]filler {
	g, err := DiscreteGaussian(big.NewRat(2000, 3))
	g = must(t, g, err)
	l, err := DiscreteLaplace(big.NewRat(50, 1))
	l = must(t, l, err)
	sk, err := Skellam(big.NewRat(50, 1))
	sk = must(t, sk, err)
	m := map[string]filler{}
	for name, law := range map[string]Law{"gaussian": g, "laplace": l, "skellam": sk} {
		tb, err := NewTable(law)
		if err != nil {
			t.Fatal(err)
		}
		m["table "+name] = tb.NewSampler(r)
		if m["exact "+name], err = NewExact(law, r); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestBadRandomness: a source that is empty, ends early, fails, gives nothing, lies
// about its counts or repeats itself makes an error and a cleared slice.
func TestBadRandomness(t *testing.T) {
	boom := errors.New("boom")
	repeat := func(b byte) io.Reader {
		return readerFunc(func(p []byte) (int, error) {
			for i := range p {
				p[i] = b
			}
			return len(p), nil
		})
	}
	for name, c := range map[string]struct {
		make  func() io.Reader
		exact bool // an error is due from the exact path only
	}{
		"empty":    {make: func() io.Reader { return bytes.NewReader(nil) }},
		"short":    {make: func() io.Reader { return io.LimitReader(seeded(1), 3000) }},
		"failing":  {make: func() io.Reader { return io.MultiReader(io.LimitReader(seeded(1), 5000), iotest.ErrReader(boom)) }},
		"idle":     {make: func() io.Reader { return readerFunc(func([]byte) (int, error) { return 0, nil }) }},
		"negative": {make: func() io.Reader { return readerFunc(func([]byte) (int, error) { return -1, nil }) }},
		"long":     {make: func() io.Reader { return readerFunc(func(p []byte) (int, error) { return len(p) + 1, nil }) }},
		"expanded": {make: func() io.Reader { return Expand(io.LimitReader(seeded(1), 40)) }},
		"zeros":    {make: func() io.Reader { return repeat(0) }, exact: true},
		"ones":     {make: func() io.Reader { return repeat(0xff) }, exact: true},
	} {
		for path := range samplersFrom(t, nil) {
			if c.exact && path != "exact gaussian" && path != "exact laplace" {
				continue
			}
			f := samplersFrom(t, c.make())[path]
			dst := make([]int64, 100000)
			for i := range dst {
				dst[i] = 77
			}
			err := f.Fill(dst)
			if c.exact && err == nil {
				continue // a stuck source may look like a lucky one
			}
			if !errors.Is(err, ErrRandom) {
				t.Errorf("%s, %s: %v", path, name, err)
			}
			if name == "failing" && !errors.Is(err, boom) {
				t.Errorf("%s: the cause is lost: %v", path, err)
			}
			for _, x := range dst {
				if x != 0 {
					t.Errorf("%s, %s: output left after an error", path, name)
					break
				}
			}
		}
	}
	// Readers that give few bytes at a time are fine, and change nothing.
	for path := range samplersFrom(t, nil) {
		a, b := make([]int64, 500), make([]int64, 500)
		if err := samplersFrom(t, seeded(9))[path].Fill(a); err != nil {
			t.Fatal(err)
		}
		halting := iotest.HalfReader(iotest.OneByteReader(seeded(9)))
		if err := samplersFrom(t, halting)[path].Fill(b); err != nil {
			t.Fatal(err)
		}
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("%s: a slow reader changes the samples", path)
			}
		}
	}
}

func TestUnusableSamplers(t *testing.T) {
	dst := []int64{1, 2, 3}
	for name, f := range map[string]filler{
		"zero Sampler": &Sampler{}, "zero Exact": &Exact{}, "nil Sampler": (*Sampler)(nil),
		"nil Exact": (*Exact)(nil),
	} {
		copy(dst, []int64{1, 2, 3})
		if err := f.Fill(dst); !errors.Is(err, ErrConfig) || dst[0]|dst[1]|dst[2] != 0 {
			t.Errorf("%s: %v %v", name, err, dst)
		}
	}
	var none *Table
	for _, tb := range []*Table{none, {}} {
		n, b := tb.Work()
		if s := tb.NewSampler(nil); s.Distance() != 1 || s.Law().family != 0 || tb.Bound() != 0 ||
			n+b != 0 || !errors.Is(s.Fill(dst), ErrConfig) {
			t.Error("a Table out of nowhere is of use")
		}
	}
	new(Exact).Erase()
	if ok, err := new(Source).Bernoulli(big.NewRat(1, 1)); err != nil || !ok {
		t.Errorf("zero Source: %v %v", ok, err)
	}
	if _, err := NewTable(Law{}); !errors.Is(err, ErrConfig) {
		t.Errorf("NewTable: %v", err)
	}
	if _, err := NewExact(Law{}, nil); !errors.Is(err, ErrConfig) {
		t.Errorf("NewExact: %v", err)
	}
	huge := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 38))
	for _, f := range []func() (Law, error){
		func() (Law, error) { return Skellam(huge) },
		func() (Law, error) { return Poisson(huge) },
		func() (Law, error) { return Polya(big.NewRat(1, 3), huge) },
		func() (Law, error) { return PolyaDifference(big.NewRat(1, 3), huge) },
		func() (Law, error) { return PolyaDifference(huge, huge) },
		func() (Law, error) { return Polya(huge, big.NewRat(1, 1)) },
	} {
		l, err := f()
		l = must(t, l, err)
		if _, err := NewTable(l); !errors.Is(err, ErrTooLarge) {
			t.Errorf("NewTable(%v): %v", l, err)
		}
		if _, err := NewExact(l, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("NewExact(%v): %v", l, err)
		}
	}
	// Nothing to fill needs no randomness.
	for path, f := range samplersFrom(t, bytes.NewReader(nil)) {
		if err := f.Fill(nil); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestErased: a Sampler keeps nothing of what it drew.
func TestErased(t *testing.T) {
	g, err := DiscreteGaussian(big.NewRat(100, 1))
	tb, err2 := NewTable(must(t, g, err))
	if err2 != nil {
		t.Fatal(err2)
	}
	s := tb.NewSampler(nil)
	if err := s.Fill(make([]int64, 1000)); err != nil {
		t.Fatal(err)
	}
	if *s != (Sampler{table: tb, random: s.random}) {
		t.Error("scratch space not erased")
	}
	src := NewSource(seeded(1))
	if _, err := src.uint64(); err != nil {
		t.Fatal(err)
	}
	if src.Erase(); *src != (Source{random: src.random}) {
		t.Error("Source not erased")
	}
}

// TestExpand: an expanded stream is reproducible, looks at no more of its seed than it
// needs, has a fresh key per block and the bit balance of random bytes
// (5 standard errors, false alarm 6e-7).
func TestExpand(t *testing.T) {
	read := func(chunk int) []byte {
		r, out := Expand(seeded(4)), make([]byte, 3*expandBlock)
		for n := 0; n < len(out); {
			m, err := r.Read(out[n:min(len(out), n+chunk)])
			if err != nil {
				t.Fatal(err)
			}
			n += m
		}
		return out
	}
	a, b := read(1<<20), read(999)
	if !bytes.Equal(a, b) {
		t.Error("the stream depends on the sizes of the reads")
	}
	if bytes.Equal(a[:32], a[expandBlock:expandBlock+32]) {
		t.Error("two blocks are equal")
	}
	ones := 0
	for _, x := range a {
		for ; x > 0; x &= x - 1 {
			ones++
		}
	}
	if n := float64(8 * len(a)); math.Abs(float64(ones)-n/2) > 5*math.Sqrt(n)/2 {
		t.Errorf("%d ones of %g bits", ones, n)
	}
	r := Expand(io.LimitReader(seeded(4), 32))
	got := make([]byte, expandBlock)
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, a[:expandBlock]) {
		t.Errorf("one block of 32 bytes of seed: %v", err)
	}
	for range 2 {
		if _, err := r.Read(got); !errors.Is(err, ErrRandom) {
			t.Errorf("beyond the seed: %v", err)
		}
	}
	if n, err := Expand(nil).Read(nil); n != 0 || err != nil {
		t.Errorf("empty read: %d %v", n, err)
	}
}
