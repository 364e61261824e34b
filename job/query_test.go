package job

import (
	"crypto/ed25519"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

const asked = `name = "heart"
parties = { count = 4, rows = 3 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
column = [
  { name = "age", type = "whole", unit = "years", range = [18, 100] },
  { name = "sex", type = "category", categories = ["F", "M", ">50 K"], missing = "category" },
  { name = "visits", type = "whole", range = [0, 4] },
]
query = [
  { name = "a", kind = "count", where = "age >= 65 and sex != missing", share = 0.5 },
  { name = "b", kind = "sum", column = "age" },
  { name = "c", kind = "mean", column = "age" },
  { name = "d", kind = "variance", column = "age" },
  { name = "e", kind = "histogram", column = "visits" },
  { name = "f", kind = "crosstab", column = "age", by = "sex" },
  { name = "g", kind = "quantiles", column = "visits" },
]
`

// The settled job has the length of the vector of all queries, one round, and a clip of 1.
func TestQueriesSettle(t *testing.T) {
	var members []keyexchange.Entry
	for i := range 4 {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(i + 1)
		members = append(members, keyexchange.Entry{Name: string(rune('a' + i)),
			Key: ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	j := parse(t, asked)
	s, err := j.Settle(Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	full := s.Job()
	want := 1 + 1 + 2 + 3 + 5 + 10*4 + (2*8 - 1) // by themselves
	for _, together := range full.Together() {
		want += len(together.Strategy.Counts)
		for _, i := range together.Queries {
			want -= []int{1, 1, 2, 3, 5, 10 * 4, 2*8 - 1}[i]
		}
	}
	if s.Length() != want || s.Rounds() != 1 || full.Privacy.Clip != 1 || full.Privacy.Bits != 48 {
		t.Errorf("length %d, want %d; %d rounds, clip %v, %d bits", s.Length(), want, s.Rounds(),
			full.Privacy.Clip, full.Privacy.Bits)
	}
	shares := 0.0
	for _, q := range full.Query {
		shares += q.Share
	}
	if math.Abs(shares-1) > 1e-12 || full.Query[0].Share != 0.5 || full.Query[5].Bins != 10 ||
		!slices.Equal(full.Query[6].At, []float64{0.25, 0.5, 0.75}) {
		t.Errorf("%+v", full.Query)
	}
	text := strings.Join(s.Explain(), " ")
	for _, says := range []string{"answer 7 queries about rows of their own", "a (count)",
		"of at least 4 of the 4 parties", "at most epsilon 1 at delta 1e-05 for each party",
		"Of a party 3 rows count at most"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in %q", says, text)
		}
	}
	if strings.Contains(text, "vectors") {
		t.Errorf("it speaks of vectors: %s", text)
	}
	// A job that says what another leaves to its columns is another declaration of the same sum.
	said := parse(t, strings.Replace(asked, `"visits" },
  { name = "f"`, `"visits", bins = 5 },
  { name = "f"`, 1))
	if said.Digest() != j.Digest() {
		t.Error("a value that is worked out is not in the digest")
	}
}

// Conditions are read as they are written, and hold of the values that they should.
func TestConditions(t *testing.T) {
	j := parse(t, asked)
	nan := math.NaN()
	for _, c := range []struct {
		where  string
		values []float64 // of each condition one for which it holds
		not    []float64
	}{
		{"age = 20", []float64{20}, []float64{21}},
		{"age!=20", []float64{21}, []float64{20}},
		{"age<20.5 and age <= 20", []float64{20, 20}, []float64{20.5, 20.5}},
		{"  age>  20 and age >=20", []float64{21, 20}, []float64{20, 19}},
		{"sex = '>50 K' and sex != F", []float64{2, 1}, []float64{1, 0}},
		{"sex = missing", []float64{3}, []float64{0}},
	} {
		all, err := j.Conditions(&Query{Where: c.where})
		if err != nil || len(all) != len(c.values) {
			t.Errorf("%q: %v, %v", c.where, all, err)
			continue
		}
		for i := range all {
			if !all[i].Holds(c.values[i]) || all[i].Holds(c.not[i]) || all[i].Holds(nan) {
				t.Errorf("%q: %+v", c.where, all[i])
			}
		}
	}
	for where, want := range map[string]string{
		"age >= 3 or age < 2": "or is not supported", "age >= 3 age < 2": `before "age < 2"`, "age ~ 3": "none of =", "": "",
		"weight > 2": `no column "weight"`, "sex = '>50 K": "not closed", "age >": "no value",
		"sex = X": `"X" is not a category`, "sex > F": "compared by = and !=", "age > x": "is not a number",
		"age > nan": "is not a number",
	} {
		_, err := j.Conditions(&Query{Where: where})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", where, err, want)
		}
	}
}

// A range the wrong way round is told apart from one that is not there; one in which quotients and
// squares underflow is refused.
func TestRangeOrder(t *testing.T) {
	for written, want := range map[string]string{
		", range = [0, 5e-324]":   "is not to be divided",
		", range = [0.0, 1e-161]": "is not to be divided",
		", range = [100, 18]":     "the first number is not below the second",
		"":                        "noise hides only what is bounded",
	} {
		j, err := Parse("x.toml", []byte("name = \"x\"\nparties.count = 3\n"+
			"column = [{ name = \"age\", type = \"number\""+written+" }]\n"+
			"query = [{ name = \"a\", kind = \"mean\", column = \"age\" }]\n"))
		if err == nil {
			err = j.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", written, err, want)
		}
	}
}

// Shares of about 1 together are of 1: a row is not to add more than noise is for.
func TestSharesOfAboutOne(t *testing.T) {
	j, err := Parse("x.toml", []byte("name = \"x\"\nparties.count = 3\nprivacy = { noise = "+
		"\"discrete-gaussian\", epsilon = 1.0 }\ncolumn = [{ name = \"x\", type = \"number\", "+
		"range = [0, 1] }]\nquery = [{ name = \"a\", kind = \"sum\", column = \"x\", share = 0.5 },"+
		"{ name = \"b\", kind = \"mean\", column = \"x\", share = 0.5000000009 }]\n"))
	if err == nil {
		err = j.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		j = j.WithDefaults()
		if sum := j.Query[0].Share + j.Query[1].Share; sum > 1+1e-15 {
			t.Errorf("shares of %v", sum)
		}
	}
}
