package show

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// Where no line on a terminal shows how far a run is, standard error says it, every ten
// seconds and not before.
func TestHeartbeat(t *testing.T) {
	for _, c := range []struct {
		name       string
		live, json bool
		lines      int
	}{
		{"a file", false, false, 2},
		{"a file, as JSON", false, true, 2},
		{"a terminal", true, false, 0},
		{"a terminal, as JSON", true, true, 2},
	} {
		var out, errs bytes.Buffer
		h := NewHeartbeat(cli.Streams{Out: &out, Err: &errs, Live: c.live}, c.json, "hushsum test")
		start := h.last
		for second := range 25 {
			h.now = func() time.Time { return start.Add(time.Duration(second) * time.Second) }
			h.Beat("%d of 25", second)
		}
		lines := []string{"hushsum test: 10 of 25\n", "hushsum test: 20 of 25\n"}
		want := strings.Join(lines[:c.lines], "")
		if errs.String() != want || out.Len() != 0 {
			t.Errorf("%s: %q on standard error, %q on standard output", c.name, errs.String(), out.String())
		}
	}
}
