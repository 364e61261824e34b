package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
)

const heavily = `name = "heavy"
parties = { count = 10 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "word", type = "text", missing = "drop", blank = ["-"] },
  { name = "age", type = "whole", range = [0, 100] },
]
query = [{ name = "words", kind = "heavy", column = "word" }]
`

// vocabulary makes this many words of up to 16 letters, all different.
func vocabulary(n int, random *rand.Rand) (words []string) {
	const first, second = "bcdfghjklmnprstvwz", "aeiou"
	known := map[string]bool{}
	for len(words) < n {
		word := ""
		for range 1 + random.IntN(5) {
			word += string(first[random.IntN(len(first))]) + string(second[random.IntN(len(second))])
			if random.IntN(2) == 0 {
				word += string(first[random.IntN(len(first))])
			}
		}
		if len(word) <= 16 && !known[word] {
			known[word] = true
			words = append(words, word)
		}
	}
	return words
}

// zipf draws this many rows of words, of which the k-th is drawn with a part like k^−1.1.
func zipf(words []string, rows int, random *rand.Rand) map[string]int {
	sums := make([]float64, len(words))
	sum := 0.0
	for k := range sums {
		sum += math.Pow(float64(k+1), -1.1)
		sums[k] = sum
	}
	counts := map[string]int{}
	for range rows {
		k, _ := slices.BinarySearch(sums, sum*random.Float64())
		counts[words[min(k, len(words)-1)]]++
	}
	return counts
}

// ranked returns words by how often they are there, the most frequent first.
func ranked(counts map[string]int) (words []string) {
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	return words
}

// wordSum returns the sum of the vectors of words, with central noise of a deviation in rows.
func wordSum(c *code, counts map[string]int, noise float64, random *rand.Rand) []float64 {
	sum := make([]float64, c.buckets*c.width())
	for i := range sum {
		sum[i] = noise * random.NormFloat64()
	}
	for word, n := range counts {
		bucket, _ := c.place(word)
		for i, x := range c.vector(word) {
			sum[bucket*c.width()+i] += float64(n) * x
		}
	}
	return sum
}

// frequentWords plans a query, and returns a reader of its sum with the noise of all its parties.
func frequentWords(t testing.TB, set ...string) (*Plan, *reader) {
	t.Helper()
	p := planOf(t, heavily, set...)
	a := &p.asks[0]
	noise := p.deviation(p.settled.Roster().Len()) / a.scale
	return p, &reader{newSearcher(a.code), noise, 1, p.job.Privacy.Delta}
}

// Of 10,000 rows with a word each, by Zipf's law with exponent 1.1, the 20 most frequent words of
// 100,000 come out, but for some whose rows noise hides: 0.85 of them at ε = 1 at least. All that
// come out are words that two rows have at least, and intervals hold the truth in 95 ± 2 % of a
// long run. A histogram of the whole vocabulary, were that known, would find the share that stands
// next to it: noise moves words past each other there too.
func TestHeavyRecall(t *testing.T) {
	const top = 20
	runs := suite.Size(1, 1, 20, 100)
	budgets := []float64{1}
	if suite.Long() {
		budgets = []float64{0.5, 1, 2, 4}
	}
	for _, epsilon := range budgets {
		_, r := frequentWords(t, fmt.Sprint("privacy.epsilon=", epsilon), "privacy.unit=record",
			"privacy.records=10000")
		random := rand.New(rand.NewPCG(11, 11))
		words := vocabulary(20_000, random)
		if suite.Long() {
			words = vocabulary(100_000, random)
		}
		recalled, came, right, held, all, known := 0, 0, 0, 0, 0, 0
		for range runs {
			counts := zipf(words, 10_000, random)
			best := ranked(counts)
			least := counts[best[top-1]]
			known += histogramRight(words, counts, best[:top], r.noise, random)
			found := r.words(wordSum(r.code, counts, r.noise, random))
			for i, w := range found {
				n := float64(counts[w.word])
				if n < 2 {
					t.Errorf("epsilon %v: %q comes out, and %v rows have it", epsilon, w.word, n)
				}
				if all++; math.Abs(w.rows-n) <= z95*w.deviation {
					held++
				}
				if i >= top {
					continue
				}
				if came++; n >= float64(least) {
					right++
				}
				if slices.Contains(best[:top], w.word) {
					recalled++
				}
			}
		}
		recall, precision := float64(recalled)/float64(top*runs), float64(right)/float64(max(1, came))
		hold := float64(held) / float64(max(1, all))
		t.Logf("epsilon %v: recall %.1f %%, precision %.1f %%, of the top %d; a histogram of all words "+
			"%.1f %%; %.1f words come out, and %.1f %% of %d intervals hold the truth", epsilon, 100*recall,
			100*precision, top, 100*float64(known)/float64(top*runs), float64(all)/float64(runs), 100*hold,
			all)
		least := map[float64]float64{0.5: 0.5, 1: 0.8, 2: 0.9, 4: 0.95}[epsilon]
		if !(recall >= least) || !(precision >= 0.85) || suite.Long() && !(hold >= 0.93 && hold <= 0.97) {
			t.Errorf("epsilon %v: recall %v, precision %v; %v", epsilon, recall, precision, hold)
		}
	}
}

// histogramRight counts the words of the best that are so in counts with noise on each, of words
// that some row has: noise alone makes none of others as frequent.
func histogramRight(words []string, counts map[string]int, best []string, noise float64,
	random *rand.Rand) (right int) {
	noisy := map[string]int{}
	for _, word := range words {
		if counts[word] == 0 {
			continue
		}
		noisy[word] = int(1000 * (float64(counts[word]) + noise*random.NormFloat64()))
	}
	for _, word := range ranked(noisy)[:len(best)] {
		if slices.Contains(best, word) {
			right++
		}
	}
	return right
}

// A word that one row has never comes out, among 10,000 of other words: not of the search, and not
// if a search that misses nothing would try it. That happens with a probability of δ/2 = 5e-6 over
// all words together, and to the word of the least part with one of some 1e-13.
func TestHeavySingle(t *testing.T) {
	_, r := frequentWords(t, "privacy.unit=record", "privacy.records=10001")
	random := rand.New(rand.NewPCG(12, 12))
	words := vocabulary(20_000, random)
	runs := suite.Size(10, 10, 200, 2000)
	searched := 0
	for run := range runs {
		counts := zipf(words, 10_000, random)
		single := fmt.Sprint("x", run) // which is in no vocabulary
		counts[single] = 1
		bucket, _ := r.place(single)
		sum := wordSum(r.code, counts, r.noise, random)[bucket*r.width():][:r.width()]
		for _, w := range r.bucketWords(bucket, sum) {
			if searched++; counts[w.word] < 2 {
				t.Errorf("%q comes out of %d rows", w.word, counts[w.word])
			}
		}
		tried := (&fit{numbers: sum, rest: sum}).with(single, r.vector(single))
		if tried.rows[0] >= r.least(single, tried.deviation(0, r.noise)) {
			t.Errorf("%q has %v rows by the noise", single, tried.rows[0])
		}
	}
	t.Logf("%d runs: a word of one row came out of none, and %d others did", runs, searched)
}

// The answer of real parties, each with its part of the noise, has the words that most have, in
// order, and not those of one; and those that are away widen the intervals by their rows.
func TestHeavyAnswers(t *testing.T) {
	p := planOf(t, heavily, "parties.count=40", "parties.drop_out=0.25", "privacy.epsilon=16",
		"query.0.top=3", "query.0.where=age < 50", "column.0.longest=8")
	texts := []string{"Grün", " grün", "flu", "Flu", "FLU", "a\tb  c", "A B C"}
	var vectors [][]float64
	schema := schemaOf(t, heavily+"# \n")
	schema.columns[0].Longest = 8
	for i := range 38 {
		text := texts[i%len(texts)]
		if i == 37 {
			text = "unique"
		}
		age := 20
		if i == 36 {
			age = 60
		}
		file := fmt.Sprintf("word,age\n\"%s\",%d\n", text, age)
		rows, _, err := schema.Read("rows", strings.NewReader(file), nil)
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, mustVector(p, rows))
	}
	a := p.ask(t, vectors, rand.NewChaCha8([32]byte{1}))[0]
	var labels []string
	for _, c := range a.Cells {
		labels = append(labels, c.Label)
		if !(c.Low <= c.Value && c.Value+2 <= c.High) {
			t.Errorf("%+v", c)
		}
	}
	slices.Sort(labels)
	if !slices.Equal(labels, []string{"a b c", "flu", "grün"}) || a.Unit != "rows" {
		t.Errorf("%+v", a)
	}
	text, err := json.Marshal(a)
	var again Answer
	if err != nil || json.Unmarshal(text, &again) != nil || len(again.Cells) != 3 ||
		again.Cells[0] != a.Cells[0] {
		t.Errorf("%s, %+v, %v", text, again, err)
	}
}

// Without noise the words of two rows come out with their counts, and of none there are lists
// without anything in them.
func TestHeavyExact(t *testing.T) {
	text := strings.Replace(heavily, `privacy = { noise = "discrete-gaussian", epsilon = 1.0 }`, "", 1)
	p := planOf(t, text, "parties.count=3", "parties.rows=4")
	rows, report, err := schemaOf(t, text).Read("rows", strings.NewReader(
		"word,age\nflu,1\nflu,2\n-,3\nonce,4\n"), nil)
	if err != nil || len(report.Findings) != 1 || report.Findings[0].What != missing {
		t.Fatal(report, err)
	}
	mean := mustVector(p, rows)
	answers, err := p.Answers(mean, 3)
	if err != nil || len(answers[0].Cells) != 1 && len(answers[0].Cells) != 2 {
		t.Fatalf("%+v, %v", answers, err)
	}
	if c := answers[0].Cells[0]; c.Label != "flu" || math.Abs(c.Value-6) > 0.5 {
		t.Errorf("%+v", c)
	}
	answers, err = p.Answers(make([]float64, p.Length()), 3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(answers[0])
	if err != nil || !strings.Contains(string(got), `"interval":[],"kind":"heavy","labels":[]`) {
		t.Errorf("%s, %v", got, err)
	}
	var again Answer
	if err := json.Unmarshal(got, &again); err != nil || len(again.Cells) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// With the party for the unit, a party that has one word in all its rows does not bring it out.
func TestHeavyParty(t *testing.T) {
	p := planOf(t, heavily, "parties.rows=50", "privacy.epsilon=20")
	rows, _, err := schemaOf(t, heavily).Read("rows", strings.NewReader("word,age\n"+
		strings.Repeat("flu,1\n", 50)), nil)
	if err != nil {
		t.Fatal(err)
	}
	vectors := make([][]float64, 10)
	for i := range vectors {
		vectors[i] = make([]float64, p.Length())
	}
	vectors[0] = mustVector(p, rows)
	random := rand.NewChaCha8([32]byte{2})
	for range suite.Size(1, 1, 20, 20) {
		if cells := p.ask(t, vectors, random)[0].Cells; len(cells) != 0 {
			t.Errorf("%+v", cells)
		}
	}
	for i := range vectors {
		vectors[i] = vectors[0]
	}
	if cells := p.ask(t, vectors, random)[0].Cells; len(cells) != 1 || cells[0].Label != "flu" {
		t.Errorf("%+v", cells)
	}
}

// What a row adds has norm 1 at most, whatever its text, next to other queries.
func TestHeavySensitivity(t *testing.T) {
	for _, set := range [][]string{{"parties.rows=3"},
		{"privacy.unit=record", "privacy.records=30"}} {
		p := planOf(t, strings.Replace(heavily, `column = "word" }`, `column = "word", share = 0.7 },
			{ name = "n", kind = "count" }`, 1), set...)
		for _, text := range []string{"flu", "", "g", "nineteen characters", "жук"} {
			own := &Rows{}
			for range p.job.Parties.Rows {
				if p.job.PerRecord() && own.Len() == 1 {
					break
				}
				own.words = []string{text}
				own.values = append(own.values, []float64{0, 1})
			}
			square := 0.0
			for _, x := range mustVector(p, own) {
				square += x * x
			}
			if math.Abs(square-1) > 1e-9 {
				t.Errorf("%v: %q adds a norm of %v", set, text, math.Sqrt(square))
			}
		}
	}
}

// Parts of what may follow add up to 1 at most, so that those of all words do.
func TestHeavyParts(t *testing.T) {
	seen := map[tail]bool{}
	var visit func(now tail)
	visit = func(now tail) {
		if seen[now] {
			return
		}
		seen[now] = true
		sum := 0.0
		for b := range 256 {
			if next, part, ok := now.follow(byte(b)); ok {
				sum += math.Exp(part)
				visit(next)
			}
		}
		if sum > 1+1e-9 || sum < 0.9 {
			t.Errorf("behind %+v parts add up to %v", now, sum)
		}
	}
	visit(tail{})
}

// Texts are compared as the job says: in small letters, with single spaces, and cut between
// characters.
func TestNormalized(t *testing.T) {
	for _, c := range []struct{ text, word, what string }{
		{"Flu", "flu", ""}, {"  Two\t ways\n", "two ways", ""}, {"ÄRZTE", "ärzte", ""},
		{"", "", missing}, {" \t", "", missing}, {"\xff", "", unknown}, {"a\x00b", "", unknown},
		{"a\u200db", "", unknown}, {"abcdefgh", "abcdefgh", ""}, {"abcdefghi", "abcdefgh", clipped},
		{"abcdefgä", "abcdefg", clipped}, {"abcdefg h", "abcdefg", clipped},
	} {
		if word, what := normalized(c.text, 8); word != c.word || what != c.what {
			t.Errorf("%q: %q %q, want %q %q", c.text, word, what, c.word, c.what)
		}
	}
}

// The code of a word is the same for all versions: parties of two could not add theirs up.
func TestHeavyCode(t *testing.T) {
	c := newCode("job", "query", 64, 16)
	bucket, start := c.place("grün")
	pattern := ""
	for _, x := range c.vector("grün")[:24] {
		pattern += map[bool]string{true: "+", false: "-"}[x > 0]
	}
	if got := fmt.Sprint(bucket, " ", start, " ", pattern); got != "32 13 +--+-----+--++-++-++++-+" {
		t.Errorf("%s", got)
	}
}

// Whatever a bucket holds, what is read of it are words in their form, found in enough rows.
func FuzzHeavy(f *testing.F) {
	c := newCode("job", "query", 16, 6)
	r := &reader{newSearcher(c), 1, 1, 1e-5}
	f.Add("flu", 100.0, []byte{0}, uint16(0))
	f.Add("grün", 1e9, []byte("noise of some kind"), uint16(3))
	f.Add("\xf0\x9f", math.Inf(1), []byte{255, 0, 128}, uint16(9))
	f.Fuzz(func(t *testing.T, word string, rows float64, noise []byte, at uint16) {
		numbers := make([]float64, c.width())
		for i := range numbers {
			if len(noise) > 0 {
				numbers[i] = float64(noise[i%len(noise)]) - 128
			}
		}
		bucket := int(at) % c.buckets
		if len(word) <= c.longest {
			bucket, _ = c.place(word)
			for i, x := range c.vector(word) {
				numbers[i] += rows * x
			}
		}
		for _, w := range r.bucketWords(bucket, numbers) {
			same, what := normalized(w.word, c.longest)
			if in, _ := c.place(w.word); same != w.word || what != "" || in != bucket ||
				!utf8.ValidString(w.word) || !(w.rows >= 1.5) || !(w.deviation >= 1) {
				t.Fatalf("%+v", w)
			}
		}
	})
}

// What is not for texts is refused where it stands.
func TestHeavyRefused(t *testing.T) {
	for _, set := range []string{"query.0.column=age", "column.0.longest=65", "query.0.bins=4"} {
		if _, err := job.Parse("job.toml", []byte(heavily), set); !errors.Is(err, job.ErrConfig) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
