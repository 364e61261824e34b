package oneshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
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
// -long all do. For pairwise sums "party-ms" is a round after set-up, of which "setup-ms"
// is for itself, and "server-ms" is what the server does after the submissions, with 5 %
// who drop out before they submit: see pairwiseCost for what of it is measured.
func BenchmarkParty(b *testing.B) {
	for _, size := range benchSizes {
		for _, kem := range []KEM{KEMHybrid, KEMX25519} {
			name := map[KEM]string{KEMHybrid: "hybrid", KEMX25519: "x25519"}[kem]
			b.Run(fmt.Sprintf("n=%d/%s", size.n, name),
				func(b *testing.B) { benchmarkParty(b, size.n, size.bits, kem, false) })
		}
		b.Run(fmt.Sprintf("n=%d/covered", size.n),
			func(b *testing.B) { benchmarkParty(b, size.n, size.bits, KEMHybrid, true) })
		b.Run(fmt.Sprintf("n=%d/pairwise", size.n),
			func(b *testing.B) { benchmarkPairwise(b, size.n, false) })
		if size.n >= 1000 { // below there is no sparse graph for these fractions
			b.Run(fmt.Sprintf("n=%d/sparse", size.n),
				func(b *testing.B) { benchmarkPairwise(b, size.n, true) })
		}
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

// A pairwise is what a session costs: one party's set-up and round, and the server's work
// after the submissions, in milliseconds; and what the party sends in the round, in
// kilobytes.
type pairwise struct{ setUp, party, server, up float64 }

// pairwiseCosts are the sessions that were run, by their parties.
var pairwiseCosts = make(map[int]pairwise)

// pairwiseCost is that of n parties on a complete graph, for a cheating server, or on a
// sparse one, for one that cheats after set-up only. Complete graphs of 30, 100 and 200
// parties are run whole, the first and the last wherever the rest is scaled, which scaled
// reports: a party's cost is a line in the number of its neighbours, through those two, and
// the server's is proportional to the masks that it takes off.
func pairwiseCost(b *testing.B, n int, sparse bool) (cost pairwise, scaled bool) {
	run := func(n int) pairwise {
		if _, found := pairwiseCosts[n]; !found {
			pairwiseCosts[n] = runPairwise(b, n)
		}
		return pairwiseCosts[n]
	}
	const few, many = 30, 200
	if !sparse && n <= many {
		return run(n), false
	}
	neighbours := n - 1
	if sparse {
		p, err := protocol.Parameters(n, 0.05, 0.05, 40+60, 30, protocol.SemiMaliciousServer)
		if err != nil {
			b.Fatal(err)
		}
		neighbours = p.Neighbours
	}
	small, large := run(few), run(many)
	line := func(at func(pairwise) float64) float64 {
		slope := (at(large) - at(small)) / (many - few)
		return at(small) + slope*float64(neighbours-(few-1))
	}
	return pairwise{
		setUp:  line(func(c pairwise) float64 { return c.setUp }),
		party:  line(func(c pairwise) float64 { return c.party }),
		up:     line(func(c pairwise) float64 { return c.up }),
		server: large.server * masksOf(n, neighbours) / masksOf(many, many-1),
	}, true
}

// masksOf is how many masks the server takes off: one of each survivor's own, and one for
// each of its neighbours that is gone.
func masksOf(n, neighbours int) float64 {
	survivors := float64(n - n/20)
	return survivors * (1 + float64(neighbours)/20)
}

func benchmarkPairwise(b *testing.B, n int, sparse bool) {
	var cost pairwise
	var scaled bool
	for b.Loop() {
		cost, scaled = pairwiseCost(b, n, sparse)
	}
	b.ReportMetric(cost.party, "party-ms")
	b.ReportMetric(cost.setUp, "setup-ms")
	b.ReportMetric(cost.up, "up-kB")
	b.ReportMetric(cost.server, "server-ms")
	if scaled {
		b.ReportMetric(1, "scaled")
	}
	b.ReportMetric(0, "ns/op")
}

// runPairwise runs a session of one round with all parties on a complete graph, 5 % of whom
// drop out before they submit.
func runPairwise(b *testing.B, n int) pairwise {
	roster, signers := people("party", n)
	config := &protocol.Config{Label: "benchmark", Roster: roster,
		Layout:   masking.Layout{{Length: benchLength, Bits: 33}},
		Recovery: &protocol.Recovery{}, Colluders: 2}
	table := must(noise.NewTable(gaussian(10, 1)))
	share := make([]int64, benchLength)
	in := [][]uint64{make([]uint64, benchLength)}
	var setUp, client, server time.Duration
	up := 0
	s := must(protocol.NewServer(config))
	var clients []*protocol.Client
	start := time.Now()
	for _, signer := range signers {
		c := must(protocol.NewClient(config, signer, nil))
		clients = append(clients, c)
		if err := s.Receive(c.Party(), c.Announce()); err != nil {
			b.Fatal(err)
		}
	}
	setUp = time.Since(start)
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
	setUp += client
	client, up = 0, 0
	gone := func(i int) bool { return i%20 == 19 }
	for _, e := range must(s.Begin(nil)) {
		start := time.Now()
		must(clients[e.To].Receive(e.Message))
		if gone(e.To) {
			continue
		}
		if err := table.NewSampler(nil).Fill(share); err != nil {
			b.Fatal(err)
		}
		for i, x := range share {
			in[0][i] = uint64(x) & (1<<33 - 1)
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
	server += time.Since(start)
	return pairwise{
		setUp:  setUp.Seconds() * 1e3 / float64(n),
		party:  client.Seconds() * 1e3 / float64(n-n/20),
		server: server.Seconds() * 1e3,
		up:     float64(up) / 1e3,
	}
}
