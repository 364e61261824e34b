package query

import (
	"cmp"
	"math"
	"slices"
)

// This file reads the most frequent words from a noisy sum of their vectors. In each bucket it
// first finds the word that stands out most, subtracts its part of the sum, and searches the rest
// again, until no word stands out.
//
// # When a word comes out
//
// The estimate of a word that h rows have is normal, of mean h and of the deviation d that noise
// leaves it. It comes out if the estimate is at least
//
//	u + d·√(2·(ln 1/π + ln 1/δ)),
//
// where u is how many rows one unit may have (1, or a party's parties.rows), δ is the job's, and π
// is the part of the word in a fixed law over all words (code.part), whose parts add up to 1 at
// most. A word that one unit alone has, or nobody, has h ≤ u, and is as far off with a probability
// of at most π·δ/2, by the bound exp(−x²/2)/2 of a normal tail. The sum over all words there may be
// is at most δ/2: with probability 1 − δ/2 no word comes out that fewer than two units have. Other
// words of the bucket count in d, by what they leave of its numbers, as if that was noise.

// wordRows is a word that was found.
type wordRows struct {
	word      string
	rows      float64
	deviation float64 // of rows
}

// reader reads the words of buckets.
type reader struct {
	*searcher
	noise float64 // deviation of each number, in rows
	unit  float64 // most rows of one unit
	delta float64
}

// least returns how many rows a word must be found to have, where that has a deviation.
func (r *reader) least(word string, deviation float64) float64 {
	part, ok := r.part(word)
	if !ok {
		return math.Inf(1)
	}
	// Without noise deviations may be next to nothing, and half of a row is nobody's.
	return r.unit + max(0.5, deviation*math.Sqrt(-2*(part+math.Log(r.delta))))
}

// words reads all that come out of a vector of all buckets, the most frequent first.
func (r *reader) words(numbers []float64) (out []wordRows) {
	for bucket := range r.buckets {
		out = append(out, r.bucketWords(bucket, numbers[bucket*r.width():][:r.width()])...)
	}
	slices.SortFunc(out, func(a, b wordRows) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(a.word, b.word))
	})
	return out
}

// mostWords is how many words of a bucket come out at most.
const mostWords = 16

// bucketWords reads those of a bucket.
func (r *reader) bucketWords(bucket int, numbers []float64) (out []wordRows) {
	found := &fit{numbers: numbers, rest: numbers}
	for len(found.words) < mostWords {
		next := r.further(bucket, found)
		if next == nil {
			break
		}
		found = next
	}
	for i, word := range found.words {
		// Those that were found later may have taken rows from it.
		if deviation := found.deviation(i, r.noise); found.rows[i] >= r.least(word, deviation) {
			out = append(out, wordRows{word, found.rows[i], deviation})
		}
	}
	return out
}

// The search is for a word of at least soughtRows rows, in deviations of noise, or of more if the
// bucket has more; the numbers searched have noise of at least the share leastInRows of these
// rows.
const (
	soughtRows  = 12
	leastInRows = 0.05
)

// further looks for one more word, and returns all with it; nil if there is none.
func (r *reader) further(bucket int, found *fit) *fit {
	n := float64(len(found.rest))
	more := dot(found.rest, found.rest) - n*r.noise*r.noise
	rows := max(1, soughtRows*r.noise, math.Sqrt(max(0, more)))
	for _, word := range r.search(bucket, found.rest, rows, max(r.noise, leastInRows*rows)) {
		in, _ := r.place(word)
		same, what := normalized(word, r.longest)
		if in != bucket || same != word || what != "" || slices.Contains(found.words, word) {
			continue
		}
		next := found.with(word, r.vector(word))
		if next == nil {
			continue
		}
		last := len(found.words)
		deviation := next.deviation(last, r.noise)
		if next.rows[last] >= r.least(word, deviation) && next.checked(last, r.noise) {
			return next
		}
	}
	return nil
}

// fit holds words of a bucket, and how many rows have each, by least squares.
type fit struct {
	words   []string
	vectors [][]float64
	rows    []float64
	inverse [][]float64 // of the products of the vectors
	numbers []float64   // of the bucket
	rest    []float64   // that no word explains
}

// with returns a fit with one more word; nil if its vector is nearly one of the others together.
func (f *fit) with(word string, vector []float64) *fit {
	g := &fit{numbers: f.numbers, rest: slices.Clone(f.numbers)}
	g.words = append(slices.Clone(f.words), word)
	g.vectors = append(slices.Clone(f.vectors), vector)
	n := len(g.words)
	products, sums := make([][]float64, n), make([]float64, n)
	for i, v := range g.vectors {
		sums[i] = dot(v, g.numbers)
		for _, w := range g.vectors {
			products[i] = append(products[i], dot(v, w))
		}
	}
	const apart = 0.01 // the part of a vector that no others have, in squares
	if g.inverse = inverse(products, apart); g.inverse == nil {
		return nil
	}
	for i, v := range g.vectors {
		g.rows = append(g.rows, dot(g.inverse[i], sums))
		for k, x := range v {
			g.rest[k] -= g.rows[i] * x
		}
	}
	return g
}

// each is the deviation of a number of the bucket: that of noise, or more where words are left.
func (f *fit) each(noise float64) float64 {
	return max(noise, math.Sqrt(dot(f.rest, f.rest)/float64(len(f.rest)-len(f.words))))
}

// deviation is that of a word's rows.
func (f *fit) deviation(i int, noise float64) float64 {
	return f.each(noise) * math.Sqrt(f.inverse[i][i])
}

// checked reports whether the signs that follow from the whole of a word have as many rows as all
// of them, but for 3 deviations. Those of its first bytes are also of other words that begin alike.
func (f *fit) checked(i int, noise float64) bool {
	const most = 3
	from := signs * len(f.words[i])
	v := f.vectors[i][from:]
	square := dot(v, v)
	return dot(v, f.rest[from:])/square >= -most*f.each(noise)/math.Sqrt(square)
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// heavy has the most frequent words, and how many rows have each.
func (s *sum) heavy(a *ask, numbers []float64, deviation float64) []Cell {
	r := &reader{newSearcher(a.code), deviation, 1, s.plan.job.Privacy.Delta}
	if !s.plan.job.PerRecord() {
		r.unit = float64(s.plan.job.Parties.Rows)
	}
	cells := []Cell{}
	words := r.words(numbers)
	for _, w := range words[:min(len(words), a.Top)] {
		c := s.count(w.rows, w.rows, z95*w.deviation)
		c.Label = w.word
		cells = append(cells, c)
	}
	return cells
}
