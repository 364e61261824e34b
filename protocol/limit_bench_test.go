package protocol

import (
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/masking"
)

// BenchmarkLimit is a round of one party ("client-ms") and the server's end of one ("server-ms"),
// next to the time in which the processor makes and adds as many bytes of mask in its cache
// ("client-limit-ms", "server-limit-ms"): what is left for all else, signatures and shares and
// memory, is the distance from them. A complete graph and a cheating server with 2 colluders, 32
// bits a coordinate, 5 % of the parties gone before they submit; one party's part is real, as in
// BenchmarkClient1000, and so is the end of the round, as in BenchmarkServer1000. The figure of
// BENCHMARKS.md is drawn from it by cmd/hushsum/internal/chart:
//
//	go test ./protocol -run NONE -bench Limit -cpu 1 -benchtime 3x
func BenchmarkLimit(b *testing.B) {
	for _, size := range []struct{ n, d int }{
		{100, 1000}, {100, 10_000}, {100, 100_000}, {100, 1_000_000}, {100, 10_000_000},
		{10, 100_000}, {30, 100_000}, {300, 100_000}, {1000, 100_000},
	} {
		b.Run(fmt.Sprintf("n=%d/d=%d", size.n, size.d), func(b *testing.B) {
			benchmarkLimit(b, size.n, size.d)
		})
	}
}

func benchmarkLimit(b *testing.B, n, d int) {
	signers, roster := parties(b, n)
	config := &Config{Roster: roster, Layout: masking.Layout{{Length: d, Bits: 32}},
		Recovery: &Recovery{}, Colluders: 2}
	client, _ := oneOfMany(b, config)
	server := serverAtReveal(b, config)
	open := server.open
	in, _ := inputs(1, config.Layout, 1)
	var party, end, partyLimit, endLimit time.Duration
	for round := uint64(1); b.Loop(); round++ {
		messages, _, _ := roundOfOthers(b, client, signers, round)
		start := time.Now()
		roundOfOne(b, client, messages, in[0])
		party += time.Since(start)
		partyLimit += inCache(b, 4*d*n) // of n−1 others, and the party's own
		start = time.Now()
		server.open = open
		if _, err := server.Sum(); err != nil {
			b.Fatal(err)
		}
		end += time.Since(start)
		endLimit += inCache(b, 4*d*open.masks())
	}
	for _, m := range []struct {
		took time.Duration
		unit string
	}{{party, "client-ms"}, {partyLimit, "client-limit-ms"}, {end, "server-ms"},
		{endLimit, "server-limit-ms"}} {
		b.ReportMetric(m.took.Seconds()*1e3/float64(b.N), m.unit)
	}
	b.ReportMetric(0, "ns/op")
}

// inCache is how long it takes to make this many bytes of mask and add them to 16 kB.
func inCache(b *testing.B, bytes int) time.Duration {
	const length, together = 4096, 32
	v, err := masking.NewVector(masking.Layout{{Length: length, Bits: 32}})
	if err != nil {
		b.Fatal(err)
	}
	masks, seed := masking.NewMasks(v), &masking.Seed{1}
	turns := min(bytes/(4*length*together)+1, 1000) // and the rest by proportion
	start := time.Now()
	for range turns {
		for range together {
			masks.Add(seed)
		}
		masks.Apply()
	}
	made := float64(turns * 4 * length * together)
	return time.Duration(float64(time.Since(start)) * float64(bytes) / made)
}
