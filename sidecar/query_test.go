package sidecar

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

const askingJob = `name = "a"
parties = { count = 3, rows = 10 }
column = [{ name = "age", type = "whole", range = [0, 100] }]
query = [{ name = "old", kind = "count", where = "age >= 60" }, { name = "age", kind = "mean", column = "age" }]
`

// answeredQuery is an answer as programs read it.
type answeredQuery struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

func answersOf(t *testing.T, result map[string]any) []answeredQuery {
	t.Helper()
	text, err := json.Marshal(result["answers"])
	if err != nil {
		t.Fatal(err)
	}
	var all []answeredQuery
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// Queries are asked of one table, which is dealt, or of one of each party, with the same answers;
// and by vectors and their mean, as a networked job carries them.
func TestQueryCalls(t *testing.T) {
	c := start(t)
	tables := [][]byte{[]byte("age\n70\n30\n"), []byte("age\n61\n"), []byte("age\n20\n90\n10\n")}
	whole := []byte("age\n70\n30\n61\n20\n90\n10\n")
	check := func(result map[string]any) {
		t.Helper()
		all := answersOf(t, result)
		if len(all) != 2 || all[0].Value != 3 || math.Abs(all[1].Value-281./6) > 1e-4 ||
			result["spent"] != nil || result["parties"] != 3.0 || result["present"] != 3.0 {
			t.Errorf("%v", result)
		}
	}
	one, _ := c.call("query.ask", map[string]any{"deal": true, "files": []string{"rows"}},
		[]byte(askingJob), whole)
	check(one)
	each, _ := c.call("query.ask", map[string]any{"files": []string{"1", "2", "3"}},
		append([][]byte{[]byte(askingJob)}, tables...)...)
	check(each)

	settled, _ := c.settleJob(3, askingJob)
	mean := make([]float64, 3)
	for i, table := range tables {
		_, blobs := c.call("query.vector", map[string]any{"settled": settled["settled"]}, table)
		vector, err := floats[float64](blobs[0])
		if err != nil || len(vector) != 3 {
			t.Fatal(i, vector, err)
		}
		for k, x := range vector {
			mean[k] += x / 3
		}
	}
	read, _ := c.call("query.answers", map[string]any{"settled": settled["settled"], "parties": 3},
		floatBlob(mean))
	check(read)

	const noisy = "privacy = { noise = \"discrete-gaussian\", epsilon = 1.0 }\n"
	plan, _ := c.call("query.plan", nil, []byte(askingJob+noisy))
	spent, _ := plan["spent"].(map[string]any)
	words, _ := spent["words"].(string)
	claim, _ := spent["claim"].(map[string]any)
	if e, ok := claim["epsilon"].(float64); !ok || !(e > 0.9 && e <= 1) ||
		!strings.HasSuffix(words,
			"at delta 1e-05 for each party, against a server that cheats; assumes instant") {
		t.Errorf("a plan that spends %v", plan["spent"])
	}
}

// What is refused names what is wrong, and no value of a row.
func TestQueryRefusals(t *testing.T) {
	c := start(t)
	type with = map[string]any
	blobs := func(text string, tables ...string) (all [][]byte) {
		all = append(all, []byte(text))
		for _, table := range tables {
			all = append(all, []byte(table))
		}
		return all
	}
	deal := with{"files": []string{"1"}, "deal": true}
	for name, one := range map[string]struct {
		with  with
		blobs [][]byte
		kind  string
		field string
	}{
		"no table":       {with{"files": []string{}}, blobs(askingJob), "request", ""},
		"a name too few": {with{"files": []string{}}, blobs(askingJob, ""), "request", ""},
		"two of three": {with{"files": []string{"1", "2"}},
			blobs(askingJob, "age\n1\n", "age\n1\n"), "request", ""},
		"no such column":   {deal, blobs(askingJob, "years\n1\n"), "rows", "age"},
		"an unknown value": {deal, blobs(askingJob, "age\nsecret\n"), "rows", "age"},
		"no queries":       {deal, blobs(vectorJob, "age\n1\n"), "config", "query"},
	} {
		a := c.try("query.ask", one.with, one.blobs...)
		if a.Error == nil || a.Error.Kind != one.kind || one.field != "" && a.Error.Field != one.field {
			t.Errorf("%s: %+v", name, a.Error)
		}
	}
}
