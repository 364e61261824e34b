package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// Of a large run is said first what its sums take; of a small one nothing.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		parties int
		says    string
	}{
		{100, ""},
		{5000, "the private sums of 5,000 parties take some "},
	} {
		s := &run{
			job:      (&job.Job{Rounds: 2}).WithDefaults(),
			world:    simulation.World{Rows: simulation.Rows{Parties: make([]*learning.Dataset, c.parties)}},
			layout:   masking.Layout{{Length: 100, Bits: 20}, {Length: 1, Bits: 15}},
			recovery: &protocol.Recovery{},
		}
		var errs bytes.Buffer
		if err := s.tellEstimate(cli.Streams{Out: &errs, Err: &errs}); err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(errs.String()), " ")
		if c.says == "" && words != "" || !strings.Contains(words, c.says) {
			t.Errorf("%d parties: %q", c.parties, errs.String())
		}
		clitest.Message(t, errs.String())
		if c.says == "" {
			continue
		}
		// 25 million pairs of 4.1 kB, and of 20 microseconds at the very least.
		e, err := s.estimate()
		if err != nil || e.time < time.Minute || e.bytes < 1e11 || e.bytes > 1.1e11 {
			t.Errorf("%d parties: %v, %.3g bytes, %v", c.parties, e.time, e.bytes, err)
		}
	}
}

func TestRough(t *testing.T) {
	for d, want := range map[time.Duration]string{
		45 * time.Second: "45 seconds", 150 * time.Second: "2 minutes", 3 * time.Hour: "3 hours",
	} {
		if got := roughTime(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[float64]string{2.5e8: "250 MB", 1.024e11: "102.4 GB"} {
		if got := roughBytes(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}
