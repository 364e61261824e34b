package noise

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"
	"math/bits"
	"slices"
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
			outcomes[i], signs[i] = dumbStage(p.stages[i], r, size)
		}
		heads := make([][]int64, p.planes)
		for plane := range heads {
			heads[plane] = make([]int64, size)
			raw := make([]byte, coins/8*size)
			if _, err := io.ReadFull(r, raw); err != nil {
				panic(err)
			}
			for j, b := range raw { // four bytes a sample, and then one more
				if k := j / 4; j < 4*size {
					heads[plane][k] += int64(bits.OnesCount8(b))
				} else {
					heads[plane][j-4*size] += int64(bits.OnesCount8(b))
				}
			}
		}
		for j := range min(size, n-at) {
			x := p.offset
			switch p.how {
			case smoothed:
				v, shift := int64(outcomes[0][j]), p.finest
				for _, g := range p.grids {
					if v < int64(g.outcomes) {
						break
					}
					v -= int64(g.outcomes)
					shift += g.step
				}
				if x = v << shift; signs[0][j] {
					x = -x
				}
				for plane := range shift {
					x += (heads[plane][j] - coins/2) << plane
				}
			default:
				for i := range p.stages {
					x += int64(outcomes[i][j]) * p.weights[i]
				}
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

// dumbStage draws outcomes of a stage, with their signs.
func dumbStage(st *stage, r io.Reader, size int) ([]uint64, []bool) {
	slots := min(st.slots, size/columns)
	groups := (size + columns*st.share - 1) / (columns * st.share)
	words := make([][]uint32, len(st.levels))
	for d := range words {
		count := columns * slots * groups
		if d == 0 {
			count = size
		}
		raw := make([]byte, 4*count)
		if _, err := io.ReadFull(r, raw); err != nil {
			panic(err)
		}
		for j := range count {
			w := uint32(0)
			for b := 3; b >= 0; b-- {
				w = w<<8 | uint32(raw[4*j+b])
			}
			words[d] = append(words[d], w)
		}
	}
	used := make([]int, columns*groups)
	outcomes, signs := make([]uint64, size), make([]bool, size)
	for j := range size {
		signs[j] = words[0][j]&1 == 1
		group, column := j/(columns*st.share), j%columns
		d, w := 0, words[0][j]
		count := &used[columns*group+column]
		slot := (slots*group+min(*count, slots-1))*columns + column
		for {
			sums := st.levels[d].sums
			k := sort.Search(len(sums), func(k int) bool { return sums[k] > w>>1 })
			if k < len(sums) || d == len(st.levels)-1 {
				outcomes[j] = uint64(k)
				break
			}
			d++
			w = words[d][slot]
		}
		if d > 0 {
			*count++
		}
	}
	return outcomes, signs
}

// biased makes of random bytes words that are near the upper end, ones times in eight:
// the rarer tables are for those.
func biased(random io.Reader, ones uint64) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := random.Read(p)
		for i := 0; i+4 <= n; i += 4 {
			if uint64(p[i])%8 < ones {
				copy(p[i+1:i+4], "\xff\xff\xff")
			}
		}
		return n, err
	})
}

// TestSamplerAgainstDumb feeds both with the same bytes, biased so that the rarer
// tables are used often: bytes of one value make words at either end.
func TestSamplerAgainstDumb(t *testing.T) {
	tables := proofTables(t)
	rapid.Check(t, func(t *rapid.T) {
		tb := rapid.SampledFrom(tables).Draw(t, "table")
		n := rapid.IntRange(0, 600).Draw(t, "n")
		ones := rapid.Uint64Range(0, 8).Draw(t, "ones")
		stream := func() io.Reader { return biased(seeded(byte(n)), ones) }
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

// TestFewRows: where 64 rows would need more slots than there are, 16 share them; again
// against the dumb sampler.
func TestFewRows(t *testing.T) {
	st := &stage{levels: []*level{{residual: 1 << 17}}}
	st.chooseSlots()
	if each := st.chooseSlots(); st.share != fewRows || st.slots != maxSlots ||
		each.Cmp(collisionGoal) > 0 {
		t.Errorf("%d rows share %d slots at 2^%.1f", st.share, st.slots, log2(each))
	}
	if st.levels[0].residual = 1 << 16; st.chooseSlots().Cmp(collisionGoal) > 0 || st.share != rows {
		t.Errorf("%d rows share %d slots", st.share, st.slots)
	}
	l, err := Poisson(big.NewRat(100, 1))
	tb, err2 := NewTable(must(t, l, err))
	if err2 != nil {
		t.Fatal(err2)
	}
	narrow := *tb.cascade.stages[0]
	narrow.share, narrow.slots = fewRows, 3
	c := &cascade{how: plainSum, distance: new(big.Rat)}
	c.distance.Set(narrow.distance)
	c.add(&narrow, 1)
	stream := func() io.Reader { return biased(seeded(1), 4) }
	for _, n := range []int{8, 100, 512, 700} {
		var log bytes.Buffer
		got := make([]int64, n)
		if err := (&Table{cascade: c}).NewSampler(io.TeeReader(stream(), &log)).Fill(got); err != nil {
			t.Fatal(err)
		}
		if want := dumb(c, &log, n); !slices.Equal(got, want) || log.Len() != 0 {
			t.Errorf("%d samples differ, or %d bytes are left", n, log.Len())
		}
	}
}

func TestScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.Uint32Range(0, 1<<31-1)
		sums := rapid.SliceOfN(words, 0, 70).Draw(t, "sums")
		slices.Sort(sums)
		n := columns * rapid.IntRange(0, 11).Draw(t, "n")
		u := rapid.SliceOfN(words, n, n).Draw(t, "u")
		raw := make([]byte, 0, 4*n)
		for i := range u {
			switch {
			case len(sums) > 0 && i%3 == 0: // ties matter
				u[i] = sums[i%len(sums)]
			case i%7 == 0:
				u[i] = 1<<31 - 1
			}
			raw = binary.LittleEndian.AppendUint32(raw, u[i]<<1|uint32(i%2))
		}
		l := &level{sums: sums, binned: binned(sums)}
		a, b := make([]uint32, n+1), make([]uint32, n+1)
		a[n], b[n] = 77, 77
		scan(a[:n], raw, l)
		scanGeneric(b[:n], raw, sums)
		for i, x := range u {
			want := uint32(0)
			for _, th := range sums {
				if th <= x {
					want++
				}
			}
			if a[i] != want || b[i] != want {
				t.Fatalf("word %d: kernel %d, generic %d, want %d", i, a[i], b[i], want)
			}
		}
		if a[n] != 77 || b[n] != 77 {
			t.Fatal("wrote out of bounds")
		}
	})
}

func TestResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.Uint32Range(1, 20).Draw(t, "full")
		n := columns * rapid.IntRange(0, 20).Draw(t, "rows")
		idx := rapid.SliceOfN(rapid.Uint32Range(0, 21), n, n).Draw(t, "outcomes")
		var slots [maxSlots * columns]uint32
		for i := range slots {
			slots[i] = uint32(100 + i)
		}
		want := slices.Clone(idx)
		var used [columns]int
		for i, x := range idx {
			if c := i % columns; x >= full {
				want[i] = slots[min(used[c], maxSlots-1)*columns+c]
				used[c]++
			}
		}
		fast, slow := slices.Clone(idx), slices.Clone(idx)
		again := slots
		resolve(fast, &slots, full)
		resolveGeneric(slow, &again, full)
		if !slices.Equal(fast, want) || !slices.Equal(slow, want) {
			t.Fatalf("kernel %v, generic %v, want %v", fast, slow, want)
		}
	})
}

func TestToss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := columns * rapid.IntRange(0, 5).Draw(t, "n")
		plane := rapid.Uint32Range(0, 45).Draw(t, "plane")
		rng := seeded(rapid.Byte().Draw(t, "seed"))
		raw, grids := make([]byte, coins/8*n), make([]uint32, n)
		rng.Read(raw)
		fast := make([]int64, n)
		for i := range grids {
			grids[i] = uint32(rng.Uint64() % 46)
			fast[i] = int64(rng.Uint64()) >> 3
		}
		slow, want := slices.Clone(fast), slices.Clone(fast)
		for i := range want {
			heads := bits.OnesCount8(raw[4*n+i])
			for _, b := range raw[4*i : 4*i+4] {
				heads += bits.OnesCount8(b)
			}
			if plane < grids[i] {
				want[i] += int64(heads-20) * (1 << plane)
			}
		}
		toss(fast, grids, raw, plane)
		tossGeneric(slow, grids, raw, plane)
		if !slices.Equal(fast, want) || !slices.Equal(slow, want) {
			t.Fatalf("kernel %v, generic %v, want %v", fast, slow, want)
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
		"empty": {make: func() io.Reader { return bytes.NewReader(nil) }},
		"short": {make: func() io.Reader { return io.LimitReader(seeded(1), 3000) }},
		"failing": {make: func() io.Reader {
			return io.MultiReader(io.LimitReader(seeded(1), 5000), iotest.ErrReader(boom))
		}},
		"idle":     {make: func() io.Reader { return readerFunc(func([]byte) (int, error) { return 0, nil }) }},
		"negative": {make: func() io.Reader { return readerFunc(func([]byte) (int, error) { return -1, nil }) }},
		"long": {make: func() io.Reader {
			return readerFunc(func(p []byte) (int, error) { return len(p) + 1, nil })
		}},
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
	for _, c := range []struct {
		make  func() (Law, error)
		table bool // there is one
	}{
		{func() (Law, error) { return Skellam(huge) }, true},
		{func() (Law, error) { return Poisson(huge) }, false},
		{func() (Law, error) { return Polya(big.NewRat(1, 3), huge) }, false},
		{func() (Law, error) { return PolyaDifference(big.NewRat(1, 3), huge) }, true},
		{func() (Law, error) { return PolyaDifference(big.NewRat(999, 1000), huge) }, false},
		{func() (Law, error) { return PolyaDifference(huge, huge) }, false},
		{func() (Law, error) { return Polya(huge, big.NewRat(1, 1)) }, false},
	} {
		l, err := c.make()
		l = must(t, l, err)
		if _, err := NewTable(l); c.table && err != nil || !c.table && !errors.Is(err, ErrTooLarge) {
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

// Equal laws have one table, and others have others.
func TestTablesAreKept(t *testing.T) {
	table := func(l Law, err error) *Table {
		t.Helper()
		tb, err2 := NewTable(must(t, l, err))
		if err2 != nil {
			t.Fatal(err2)
		}
		return tb
	}
	half, third := big.NewRat(1, 2), big.NewRat(1, 3)
	all := map[*Table]bool{}
	for range 2 {
		all[table(DiscreteGaussian(half))] = true
		all[table(Skellam(half))] = true
		all[table(DiscreteLaplace(half))] = true
		all[table(DiscreteLaplace(third))] = true
		all[table(PolyaDifference(half, half))] = true
		all[table(PolyaDifference(third, half))] = true
	}
	if len(all) != 6 {
		t.Errorf("six laws have %d tables", len(all))
	}
}
