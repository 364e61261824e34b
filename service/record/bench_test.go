package record_test

import (
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/record"
)

// BenchmarkDecide measures a decision with a state of 100 kB, synced to the disk in JetStream and
// in the node's own file.
func BenchmarkDecide(b *testing.B) {
	e, err := record.StartEmbedded(b.Context(), record.EmbeddedOptions{Folder: b.TempDir(), Name: "n"})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	r, err := record.Open(b.Context(), e.JS, 1, record.NewKeys(flipKey))
	if err == nil {
		err = r.KeepIn(b.TempDir())
	}
	if err == nil {
		d := record.Definition{ID: id, Text: []byte("text"), Created: time.Now().UTC()}
		err = r.Create(b.Context(), d, nil, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	h, err := r.Claim(b.Context(), id, "a")
	if err != nil {
		b.Fatal(err)
	}
	state := make([]byte, 100_000)
	for b.Loop() {
		if err := h.Decide(b.Context(), state); err != nil {
			b.Fatal(err)
		}
	}
	if c, err := r.Chain(b.Context(), id); err == nil {
		total := 0
		for _, line := range c.Lines(1) {
			total += len(line)
		}
		b.ReportMetric(float64(total)/float64(len(c.Lines(1))), "line-B")
	}
}
