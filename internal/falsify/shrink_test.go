package falsify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// most tries of a shrinking: settling is slow.
const mostTries = 120

// shrunk makes a job that fails smaller for as long as it fails: without a field, without a table,
// with a smaller number.
func shrunk(x *tried, fails func(y *tried) bool) *tried {
	tries := 0
	better := func(d draft) bool {
		if tries++; tries > mostTries {
			return false
		}
		y := try(x.name, d)
		if y.settled == nil || !fails(y) {
			return false
		}
		x = y
		return true
	}
	for again := true; again && tries < mostTries; {
		again = false
		for i := len(x.draft.set) - 1; i >= 0 && i < len(x.draft.set); i-- {
			d := x.draft
			d.set = slices.Delete(slices.Clone(d.set), i, i+1)
			again = better(d) || again
		}
		for i := len(x.draft.lists) - 1; i >= 0 && i < len(x.draft.lists); i-- {
			d := x.draft
			d.lists = slices.Delete(slices.Clone(d.lists), i, i+1)
			again = better(d) || again
		}
	}
	for i := range x.draft.set {
		path, value, _ := strings.Cut(x.draft.set[i], "=")
		n, err := strconv.Atoi(value)
		for err == nil && n > 1 {
			d := x.draft
			d.put(path, n/2)
			if !better(d) {
				break
			}
			n /= 2
		}
	}
	return x
}

// kept are the jobs of testdata, each of which an oracle once refuted. They are settled once, like
// the jobs of seeds.
var kept = sync.OnceValues(func() (out []*tried, err error) {
	names, err := filepath.Glob("testdata/*.job")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		lists, set, found := strings.Cut(string(text), "-- set --\n")
		if !found {
			return nil, fmt.Errorf("%s has no line -- set --", name)
		}
		out = append(out, try(name, draft{[]string{lists}, strings.Split(strings.TrimSpace(set), "\n")}))
	}
	return out, nil
})
