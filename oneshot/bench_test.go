package oneshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// The setting of BenchmarkParty: 100,000 values, as many bits each as leave the
// modulus at 33, noise on, a committee of 40 of whom 10 may be faulty.
const benchLength = 100_000

var benchSizes = []struct{ n, bits int }{{30, 28}, {100, 26}, {1000, 23}, {10_000, 19}}

// BenchmarkParty is one party's whole part in a round, beside that of the pairwise
// protocol, at several numbers of parties. It reports the milliseconds of a party from
// the opening to its message ("party-ms"), the kilobytes that it sends ("up-kB"), the
// server's milliseconds to take the key off the sum ("server-ms") and to take in one
// submission ("server-add-ms"), and a member's milliseconds and kilobytes for each
// party ("member-ms", "member-kB").
//
// A hundred of the n parties submit, as nothing of this depends on how many do; with
// -long all do. For pairwise sums the whole session is run: on a complete graph for 30
// and 100 parties, on a sparse one, which does not hold off a cheating server, for
// 1,000; with -long also for 10,000. There 5 % drop out, "party-ms" is a round
// without set-up, of which "setup-ms" is for itself, and "server-ms" is all that the
// server does after the submissions.
func BenchmarkParty(b *testing.B) {
	for _, size := range benchSizes {
		for _, kem := range []KEM{KEMHybrid, KEMX25519} {
			b.Run(fmt.Sprintf("n=%d/%v", size.n, kem),
				func(b *testing.B) { benchmarkParty(b, size.n, size.bits, kem, false) })
		}
		b.Run(fmt.Sprintf("n=%d/covered", size.n),
			func(b *testing.B) { benchmarkParty(b, size.n, size.bits, KEMHybrid, true) })
		b.Run(fmt.Sprintf("n=%d/pairwise", size.n), func(b *testing.B) { benchmarkPairwise(b, size.n) })
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
	if *long {
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

func benchmarkPairwise(b *testing.B, n int) {
	if n > 1000 && !*long {
		b.Skip("10,000 clients in one process: run with -long")
	}
	roster, signers := people("party", n)
	config := &protocol.Config{Label: "benchmark", Roster: roster,
		Layout:   masking.Layout{{Length: benchLength, Bits: 33}},
		Recovery: &protocol.Recovery{}, Colluders: 2}
	if n >= 1000 {
		p, err := protocol.Parameters(n, 0.05, 0.05, 40+60, 30, protocol.SemiMaliciousServer)
		if err != nil {
			b.Fatal(err)
		}
		config.Recovery = &protocol.Recovery{Adversary: protocol.SemiMaliciousServer,
			Degree:    p.Neighbours,
			Threshold: p.Threshold}
		config.Colluders = p.CorruptNeighbours
	}
	in := [][]uint64{make([]uint64, benchLength)}
	var setUp, client, server, unmask time.Duration
	up, rounds := 0, 0
	for b.Loop() {
		rounds++
		s := must(protocol.NewServer(config))
		var clients []*protocol.Client
		start := time.Now()
		for _, signer := range signers {
			c := must(protocol.NewClient(config, signer, nil))
			clients = append(clients, c)
			message := c.Announce()
			if err := s.Receive(c.Party(), message); err != nil {
				b.Fatal(err)
			}
		}
		exchange := func(envelopes []protocol.Envelope, except func(i int) bool) {
			for _, e := range envelopes {
				if except(e.To) {
					continue
				}
				start := time.Now()
				answer := must(clients[e.To].Receive(e.Message))
				client += time.Since(start)
				if answer == nil {
					continue
				}
				if e.To == 0 {
					up += len(answer)
				}
				start = time.Now()
				if err := s.Receive(e.To, answer); err != nil {
					b.Fatal(err)
				}
				server += time.Since(start)
			}
		}
		nobody := func(int) bool { return false }
		exchange(must(s.Keys()), nobody)
		exchange(must(s.Members()), nobody)
		setUp += time.Since(start)
		client, up = 0, 0
		gone := func(i int) bool { return i%20 == 19 }
		for _, e := range must(s.Begin(nil)) {
			start := time.Now()
			must(clients[e.To].Receive(e.Message))
			if gone(e.To) {
				continue
			}
			message := must(clients[e.To].Submit(nil, in...))
			client += time.Since(start)
			if e.To == 0 {
				up += len(message)
			}
			if err := s.Receive(e.To, message); err != nil {
				b.Fatal(err)
			}
		}
		server = 0
		timed := func(next func() ([]protocol.Envelope, error)) []protocol.Envelope {
			start := time.Now()
			defer func() { server += time.Since(start) }()
			return must(next())
		}
		exchange(timed(s.Survivors), gone)
		exchange(timed(s.Certificate), gone)
		start = time.Now()
		must(s.Sum())
		unmask += server + time.Since(start)
	}
	each := float64(rounds * n)
	b.ReportMetric(client.Seconds()*1e3/float64(n-n/20), "party-ms")
	b.ReportMetric(setUp.Seconds()*1e3/each, "setup-ms")
	b.ReportMetric(float64(up)/1e3, "up-kB")
	b.ReportMetric(unmask.Seconds()*1e3/float64(rounds), "server-ms")
	b.ReportMetric(0, "ns/op")
}
