package oneshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// The setting of BenchmarkParty: 100,000 values, as many bits each as leave the
// modulus at 33, noise on, a committee of 40 of whom 10 may be faulty.
const benchLength = 100_000

var benchSizes = []struct{ n, bits int }{{30, 28}, {100, 26}, {1000, 23}, {10_000, 19}}

// BenchmarkParty is one party's whole part in a round at several numbers of parties. It
// reports the milliseconds of a party from the opening to its message ("party-ms"), the
// kilobytes that it sends ("up-kB"), the server's milliseconds to take the key off the sum
// ("server-ms") and to take in one submission ("server-add-ms"), and a member's
// milliseconds and kilobytes for each party ("member-ms", "member-kB"). Its namesake in
// package protocol has pairwise sums in the same setting:
//
//	go test ./oneshot ./protocol -p 1 -run NONE -bench Party -cpu 1
//
// A hundred of the n parties submit, as nothing of this depends on how many do; with
// -long all do.
func BenchmarkParty(b *testing.B) {
	for _, size := range benchSizes {
		for _, kem := range []KEM{KEMHybrid, KEMX25519} {
			name := map[KEM]string{KEMHybrid: "hybrid", KEMX25519: "x25519"}[kem]
			b.Run(fmt.Sprintf("n=%d/%s", size.n, name),
				func(b *testing.B) { benchmarkParty(b, size.n, size.bits, kem, false) })
		}
		b.Run(fmt.Sprintf("n=%d/covered", size.n),
			func(b *testing.B) { benchmarkParty(b, size.n, size.bits, KEMHybrid, true) })
	}
}

func benchmarkParty(b *testing.B, n, bits int, kem KEM, covered bool) {
	const atLeast = 20
	w := newWorld(n, 40, Terms{Length: benchLength, Bits: bits, MinSurvivors: atLeast, Colluders: 2,
		Faults: 10,
		Noise:  gaussian(10, atLeast-2), KEM: kem, Covered: covered})
	if got := must(w.config.Parameters()).ModulusBits; got != 33 {
		b.Fatalf("a modulus of %d bits", got)
	}
	if err := w.begin(nil); err != nil {
		b.Fatal(err)
	}
	count := min(n, 100)
	if suite.Longest() {
		count = n
	}
	values := w.values(0)
	var add, check time.Duration
	var kept [][]byte
	for i := range count {
		message := must(w.party(i).Submit(w.opening, []byte("model"), values))
		if covered {
			kept = append(kept, message)
		}
		start := time.Now()
		if err := w.server.Receive(message); err != nil {
			b.Fatal(err)
		}
		add += time.Since(start)
		if w.server.Waiting() == DefaultBatch || i == count-1 {
			envelopes := must(w.server.Batch())
			for _, e := range envelopes {
				start := time.Now()
				answer := must(w.members[e.To].Receive(e.Message))
				check += time.Since(start)
				if err := w.server.Receive(answer); err != nil {
					b.Fatal(err)
				}
			}
			start := time.Now()
			settled := must(w.server.Settle())
			add += time.Since(start)
			for _, m := range w.members {
				must(m.Receive(settled))
			}
		}
	}
	for step, next := range []func() ([]byte, error){w.server.Close, w.server.Certificate} {
		if err := w.ask(step, must(next()), nil); err != nil {
			b.Fatal(err)
		}
	}
	unlock := time.Duration(1 << 62)
	open := w.server.open
	for range 3 {
		w.server.open = open
		open.key = nil
		start := time.Now()
		if err := w.server.unlock(); err != nil {
			b.Fatal(err)
		}
		if covered && open.uncovered.Len() == 0 {
			uncovering := time.Now()
			for _, message := range kept {
				if err := w.server.Uncover(message); err != nil {
					b.Fatal(err)
				}
			}
			add += time.Since(uncovering)
			start = start.Add(time.Since(uncovering))
		}
		must(w.server.Sum())
		unlock = min(unlock, time.Since(start))
	}
	up := 0
	for i := 0; b.Loop(); i++ {
		party := must(NewParty(w.config, w.keys[i%n], nil))
		up = len(must(party.Submit(w.opening, []byte("model"), values)))
	}
	p := must(w.config.Parameters())
	b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "party-ms")
	b.ReportMetric(float64(up)/1e3, "up-kB")
	b.ReportMetric(unlock.Seconds()*1e3, "server-ms")
	b.ReportMetric(add.Seconds()*1e3/float64(count), "server-add-ms")
	b.ReportMetric(check.Seconds()*1e3/float64(count*40), "member-ms")
	b.ReportMetric(float64(p.MemberDown)/1e3, "member-kB")
	b.ReportMetric(0, "ns/op")
}
