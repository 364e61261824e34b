package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// difference describes how two JSON values differ.
type difference struct {
	compared    int // values that both have
	differences []string
	added       []string // keys that only the new one has, which is no difference
}

func (d *difference) verdict() string {
	if len(d.differences) > 0 {
		return "DIFFERENT"
	}
	return "equal"
}

// shown is how many differences of a case are printed.
const shown = 10

func (d *difference) print(w io.Writer) {
	for i, text := range d.differences {
		if i == shown {
			fmt.Fprintf(w, "    and %d more\n", len(d.differences)-shown)
			break
		}
		fmt.Fprintln(w, "   ", text)
	}
	if d.added != nil {
		fmt.Fprintln(w, "    new keys:", d.added)
	}
}

func (d *difference) differ(path, format string, a ...any) {
	d.differences = append(d.differences, path+": "+fmt.Sprintf(format, a...))
}

// walk compares two values at a path.
func (d *difference) walk(path string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			d.differ(path, "%v was an object", after)
			return
		}
		d.walkObject(path, b, a)
	case []any:
		a, ok := after.([]any)
		if !ok {
			d.differ(path, "%v was a list", after)
			return
		}
		if len(a) != len(b) {
			d.differ(path, "%d entries, were %d", len(a), len(b))
		}
		for i := range min(len(a), len(b)) {
			d.walk(fmt.Sprintf("%s[%d]", path, i), b[i], a[i])
		}
	default:
		d.compared++
		switch after.(type) {
		case map[string]any, []any:
			d.differ(path, "%v, was %v", after, before)
			return
		}
		if before != after {
			d.differ(path, "%v, was %v", after, before)
		}
	}
}

func (d *difference) walkObject(path string, before, after map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if value, ok := after[key]; ok {
			d.walk(path+"."+key, before[key], value)
		} else {
			d.differ(path+"."+key, "is gone, was %v", before[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok && !slices.Contains(d.added, key) {
			d.added = append(d.added, key)
		}
	}
}
