package job

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Digests are the same in every release and language: these are from Python's hashlib, over the
// canonical JSON.
func TestDigests(t *testing.T) {
	for text, want := range map[string]string{
		first: "18274336c6708dc869fdcd90ceefad59956c90c6a1ed22defc4cf0a6e28d4381",
		`name = "mean"
rounds = 3
model.length = 5000
parties = { count = 5, drop_out = 0.2, colluders = 1 }
sum.classical = true
`: "e7df23c6c29ef1fc47f5e3ebb54098e4b678e6fb06c582a5aa9fce85b759c8ba",
	} {
		j := parse(t, text)
		digest := j.Digest()
		if got := hex.EncodeToString(digest[:]); got != want {
			t.Errorf("%s, want %s, of\n%q", got, want, j.Canonical())
		}
	}
}

// A job too long for a greeting is told apart table by table, from a short job and from another
// long one: what is said to differ does.
func TestGreetingsOfLongJobs(t *testing.T) {
	long := func(change string) *Job {
		var queries strings.Builder
		for k := range 400 {
			fmt.Fprintf(&queries, "  { name = \"q%d\", kind = \"count\", where = \"age >= %d\" },\n", k,
				k%80+18)
		}
		text := strings.Replace(asked, "query = [\n", "query = [\n"+queries.String(), 1)
		for was, is := range map[string]string{"rows": "rows = 3", "age": "age >= 97", "unit": "years"} {
			if was == change {
				text = strings.Replace(text, is, is[:len(is)-1]+"9", 1)
			}
		}
		return parse(t, text)
	}
	const most = 32 << 10
	whole := long("")
	said := whole.Greeting(most)
	if size := len(strings.Join(said, "")); size > 1<<10 || len(linesOf(whole.declared(), "")) < 1000 {
		t.Fatalf("%d lines are greeted with %d bytes", len(linesOf(whole.declared(), "")), size)
	}
	if err := long("").Compare(said); err != nil {
		t.Errorf("the same job: %v", err)
	}
	for change, field := range map[string]string{"rows": "parties", "age": "query", "unit": "column"} {
		for _, pair := range [][2]*Job{{long(change), whole}, {whole, long(change)}} {
			var differs *DifferenceError
			if err := pair[0].Compare(pair[1].Greeting(most)); !errors.As(err, &differs) ||
				differs.Field != field || differs.Ours == differs.Theirs {
				t.Errorf("another %s: %v", field, err)
			}
		}
	}
	short := parse(t, asked) // with fewer answers, and so a shorter model
	var differs *DifferenceError
	if err := short.Compare(said); !errors.As(err, &differs) || differs.Field != "model" {
		t.Errorf("a long job greets a short one: %v", err)
	}
	if err := whole.Compare(short.Greeting(most)); !errors.As(err, &differs) ||
		differs.Field != "model.length" {
		t.Errorf("a short job greets a long one: %v", err)
	}
}
