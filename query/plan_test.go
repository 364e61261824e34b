package query

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
)

// Without noise answers are exact, and an interval of whole numbers is one of them.
func TestExact(t *testing.T) {
	p := planOf(t, read)
	const a = "age,sex,dose\n20,F,0.25\n30,M,0.75\n99,M,0.75\n40,?,\n18,F,1\n" // the last is a fifth
	const b = "age,sex,dose\n100,F,1\n"
	var vectors [][]float64
	for _, text := range []string{a, b} {
		rows, _, err := schemaOf(t, read).Read("a.csv", strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, mustVector(p, rows))
	}
	text, err := json.Marshal(p.ask(t, vectors, rand.NewChaCha8([32]byte{})))
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		Name, Kind              string
		Value, Interval, Labels any
		Spends                  *accounting.Claim
		Margins                 []struct{ Value []float64 }
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"5", "2.75", "[3 2]", "[[1 0] [0 1] [0 0]]", "[40]"} {
		value, _ := json.Marshal(got[i].Value)
		plain := strings.ReplaceAll(string(value), ",", " ")
		if plain != want && !(i == 1 && math.Abs(got[i].Value.(float64)-2.75) < 1e-5) {
			t.Errorf("%s is %s, want %s", got[i].Name, plain, want)
		}
		if got[i].Spends != nil {
			t.Errorf("%s spends %v", got[i].Name, got[i].Spends)
		}
	}
	if interval := got[0].Interval.([]any); interval[0] != 5.0 || interval[1] != 5.0 {
		t.Errorf("the count is in %v", interval)
	}
	if m := got[3].Margins; len(m) != 2 || m[0].Value[1] != 1 || m[1].Value[1] != 1 {
		t.Errorf("margins %+v", m)
	}
	spent, err := p.Spent()
	if err != nil || !math.IsInf(spent.Bare().Upper, 1) {
		t.Error(spent, err)
	}
}

// What a row adds to the vector has norm 1 at most, whatever it is: the whole batch is counted
// jointly, and so is all that a party brings.
func TestSensitivity(t *testing.T) {
	for _, set := range [][]string{{"parties.rows=7"},
		{"privacy.unit=record", "privacy.records=100", "query.0.share=0.4"}} {
		p := planOf(t, covered, set...)
		random := rand.New(rand.NewPCG(5, 5))
		most := 0.0
		norm := func(rows *Rows) float64 {
			square := 0.0
			for _, x := range mustVector(p, rows) {
				square += x * x
			}
			return math.Sqrt(square)
		}
		for range 5000 {
			x := 80 * random.Float64()
			if random.IntN(4) == 0 {
				x = float64(80 * random.IntN(2))
			}
			one := &Rows{}
			for range 8 {
				one.values = append(one.values, []float64{x, float64(random.IntN(2))})
			}
			if p.job.PerRecord() {
				one.values = one.values[:1]
			}
			most = max(most, norm(one))
		}
		if most > 1+1e-12 || most < 0.95 {
			t.Errorf("%v: a unit adds up to %v", set, most)
		}
	}
}

// All together spend what the job says; each by itself less, and the sum of those more.
func TestSpent(t *testing.T) {
	p := planOf(t, covered, "parties.rows=5")
	spent, err := p.Spent()
	if err != nil || spent.Bare().Upper > 1 || spent.Bare().Upper < 0.99 {
		t.Errorf("%v, %v", spent, err)
	}
	sum := 0.0
	for _, e := range p.Expected() {
		epsilon := e.Spends.Bare().Upper
		if e.Spends.Statement != spent.Statement || epsilon <= 0 || epsilon >= spent.Bare().Upper ||
			e.Margin <= 0 || math.Abs(e.Share-1./7) > 1e-9 {
			t.Errorf("%+v", e)
		}
		sum += epsilon
	}
	if sum <= spent.Bare().Upper {
		t.Errorf("queries by themselves spend %v, and together %v", sum, spent.Bare().Upper)
	}
	alone := planOf(t, covered, "parties.rows=5", "query.0.share=0.999")
	if all := alone.Expected()[0].Spends; all.Bare().Upper < 0.98 {
		t.Errorf("a query with all of the budget spends %v", all)
	}
}

// With parties missing intervals hold the truth of all parties, whatever those had, and stay within
// what can be.
func TestMissingParties(t *testing.T) {
	const parties, each = 20, 30
	p := planOf(t, covered, "parties.count=20", "parties.rows=30", "parties.drop_out=0.3",
		"privacy.epsilon=30")
	rows, dealt := manyRows(parties, each)
	for k := range 4 * each { // the last four have all that is extreme
		at := (parties-4)*each + k
		rows[at] = [2]float64{79.999, 0}
		dealt[at/each].values[at%each] = []float64{79.999, 0}
	}
	truth := truths(rows)
	var vectors [][]float64
	for _, own := range dealt[:parties-4] {
		vectors = append(vectors, mustVector(p, own))
	}
	held, all := 0, 0
	random := rand.NewChaCha8([32]byte{3})
	for range 100 {
		for _, a := range p.ask(t, vectors, random) {
			for i, c := range a.Cells {
				if all++; c.Low <= truth[a.Name][i] && truth[a.Name][i] <= c.High {
					held++
				}
			}
		}
	}
	if share := float64(held) / float64(all); share < 0.97 {
		t.Errorf("%.3f of the intervals hold the truth of all parties", share)
	}
}

// Tables add up, counts are not negative, quantiles ascend and are in their range, with much noise.
func TestConsistentAnswers(t *testing.T) {
	p := planOf(t, covered, "parties.rows=1", "parties.count=5")
	_, dealt := manyRows(5, 1)
	var vectors [][]float64
	for _, own := range dealt {
		vectors = append(vectors, mustVector(p, own))
	}
	for range 5 { // and of no rows at all
		vectors = append(vectors, make([]float64, p.Length()))
	}
	random := rand.NewChaCha8([32]byte{4})
	for run := range 100 {
		vectors := vectors[5*(run%2):][:5]
		for _, a := range p.ask(t, vectors, random) {
			last, sum, margins := math.Inf(-1), 0.0, [2]float64{}
			for _, c := range a.Cells {
				if c.Unknown != "" {
					if c.Low > 0 || c.High < 80 {
						t.Fatalf("%s: %+v", a.Name, c)
					}
					continue
				}
				if !(c.Low <= c.Value && c.Value <= c.High) || a.Kind != "sum" && c.Low < 0 {
					t.Fatalf("%s: %+v", a.Name, c)
				}
				if a.Kind == "quantiles" && (c.Value < last || c.High > 80) {
					t.Fatalf("%s: %+v", a.Name, a.Cells)
				}
				last = c.Value
				sum += c.Value
			}
			for i, m := range a.Margins {
				for _, c := range m {
					margins[i] += c.Value
				}
				if a.Kind == "crosstab" && math.Abs(margins[i]-sum) > 1e-6 {
					t.Fatalf("%s: the margins add up to %v, the cells to %v", a.Name, margins, sum)
				}
			}
		}
	}
}

// What is no plan's own is refused.
func TestRefused(t *testing.T) {
	j, err := job.Parse("x", []byte("name = \"a\"\nrounds = 1\nparties.count = 3\nmodel.length = 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	settled, err := j.Settle(job.Files{Roster: rosterOf(t, 3, "party")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(settled); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
	p := planOf(t, read)
	for _, c := range []struct{ length, parties int }{{p.Length() - 1, 2}, {p.Length(), 3},
		{p.Length(), 0}} {
		if _, err := p.Answers(make([]float64, c.length), c.parties); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Where noise hides a record, a row that is not there moves the sum by norm 1 at most, whatever
// parties.rows is: no row counts in its place. With 2 the epsilon of the job would be too small.
func TestRecordsBeyondRows(t *testing.T) {
	const signed = "name = \"signed\"\nparties = { count = 3, rows = 1 }\n" +
		"privacy = { unit = \"record\", records = 9, noise = \"discrete-gaussian\", epsilon = 1.0 }\n" +
		"column = [{ name = \"x\", type = \"number\", range = [-1.0, 1.0] }]\n" +
		"query = [{ name = \"sum\", kind = \"sum\", column = \"x\" }]\n"
	s := planOf(t, signed)
	with := mustVector(s, &Rows{values: [][]float64{{1}, {-1}}})
	without := mustVector(s, &Rows{values: [][]float64{{-1}}})
	if d := math.Abs(with[0] - without[0]); d > 1+1e-12 {
		t.Errorf("a record moves a sum by %v", d) // by 2, if one row of a party counts
	}
	for _, at := range []string{"1", "3", "8"} {
		p := planOf(t, covered, "privacy.unit=record", "privacy.records=9", "parties.rows="+at,
			"query.1.share=0.9")
		random := rand.New(rand.NewPCG(7, 7))
		most := 0.0
		for range 500 {
			all := &Rows{}
			for range 9 {
				row := []float64{80 * float64(random.IntN(2)), float64(random.IntN(3))}
				all.values = append(all.values, row)
			}
			with := mustVector(p, all)
			for left := range all.values {
				less := &Rows{values: slices.Delete(slices.Clone(all.values), left, left+1)}
				square := 0.0
				for i, x := range mustVector(p, less) {
					square += (x - with[i]) * (x - with[i])
				}
				most = max(most, math.Sqrt(square))
			}
			if err := p.Check("a.csv", all); err != nil {
				t.Fatal(err)
			}
			all.values = append(all.values, all.values[0])
			if err := p.Check("a.csv", all); !errors.Is(err, ErrRows) {
				t.Fatalf("more rows than records: %v", err)
			}
		}
		if most > 1+1e-12 || most < 0.9 {
			t.Errorf("with parties.rows = %s a record moves the vector by up to %v", at, most)
		}
	}
	// Noise that hides a party is for the first parties.rows, whatever there are more.
	p := planOf(t, covered, "parties.rows=2")
	two := &Rows{values: [][]float64{{1, 0}, {2, 1}}}
	three := &Rows{values: append(slices.Clone(two.values), []float64{3, 2})}
	if !slices.Equal(mustVector(p, two), mustVector(p, three)) || p.Check("a.csv", three) != nil {
		t.Error("of a party all rows count")
	}
}
