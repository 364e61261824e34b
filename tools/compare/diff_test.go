package main

import (
	"slices"
	"testing"
)

// What is left out does not count, and whatever else differs does.
func TestDifference(t *testing.T) {
	const before = `{"a": 1.50, "x_ms": 3, "drawn": 1, "rows": [{"labels": ["epsilon 8"], "v": 1},
		{"labels": ["clear"], "v": 2}]}`
	c := testCase{omit: []string{"drawn"}, drops: noisy}
	for after, want := range map[string][]string{
		before: nil,
		`{"a": 1.50, "x_ms": 4, "drawn": 2, "rows": [{"labels": ["clear"], "v": 2}], "b": 1}`: nil,
		`{"a": 1.5, "rows": [{"labels": ["clear"], "v": 2}]}`: {
			"[0].a: 1.5, was 1.50"},
		`{"a": 1.50, "rows": [{"labels": ["clear"], "v": 3}]}`: {
			"[0].rows[0].v: 3, was 2"},
		`{"a": 1.50, "rows": []}`: {
			"[0].rows: 0 entries, were 1"},
		`{"a": 1.50}`: {
			"[0].rows: is gone, was [map[labels:[clear] v:2]]"},
		`{"a": 1.50} {"a": 1}`: {
			": 2 entries, were 1", "[0].rows: is gone, was [map[labels:[clear] v:2]]"},
		`{"a": [], "rows": 2}`: {
			"[0].a: [], was 1.50", "[0].rows: 2 was a list"},
	} {
		var sides [2][]any
		for i, text := range []string{before, after} {
			values, err := objects([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			for k := range values {
				values[k] = c.reduce(values[k])
			}
			sides[i] = values
		}
		d := &difference{}
		d.walk("", sides[0], sides[1])
		if !slices.Equal(d.differences, want) {
			t.Errorf("%s: %q, want %q", after, d.differences, want)
		}
	}
	only := testCase{only: []string{"a"}}
	if object, _ := only.reduce(map[string]any{"a": 1, "b": 2}).(map[string]any); len(object) != 1 ||
		object["a"] != 1 {
		t.Errorf("%v", object)
	}
}
