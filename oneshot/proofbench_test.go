package oneshot

import (
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
)

// BenchmarkProof is a party's submission and the server's check of it, without a bound and with
// one, of 10^5 values and 10^6, at several numbers of parties, and a committee of 40 of whom 10
// may be faulty; noise is as long as the bound on the sum of 18. It reports milliseconds of
// processors, whatever else they do: those of a party from the opening to its message ("party-ms"),
// those of the server to take it in ("server-ms"), and to take in each of 16 that it has checked
// together ("batch-ms"; normproof's benchmark has a batch of 64 of which one does not hold, and
// TestProofRound whole rounds), the message's and the
// proof's kilobytes ("up-kB", "proof-kB"), a member's milliseconds for each party ("member-ms")
// and the bits of a coefficient ("bits"):
//
//	go test ./oneshot -run NONE -bench Proof -cpu 1
//
// Few of the parties submit, as nothing of this depends on how many do.
func BenchmarkProof(b *testing.B) {
	for _, size := range []struct {
		name      string
		length, n int
	}{
		{"d=1e5", 100_000, 100}, {"d=1e5", 100_000, 1000}, {"d=1e5", 100_000, 10_000},
		{"d=1e6", 1_000_000, 100},
	} {
		for kind, norm := range map[string]int64{"plain": 0, "bounded": 1 << 16} {
			b.Run(fmt.Sprintf("%s/n=%d/%s", size.name, size.n, kind),
				func(b *testing.B) { benchmarkProof(b, size.length, size.n, norm) })
		}
	}
}

// proofWorld is a round that is open to parties, and values for each of them.
func proofWorld(tb testing.TB, length, n int, norm int64) (*world, []int64) {
	const atLeast, colluders = 20, 2
	w := newWorld(n, 40, Terms{Length: length, Bits: 17, MinSurvivors: atLeast, Colluders: colluders,
		Faults: 10, Noise: gaussian((1<<16)/(atLeast-colluders), atLeast-colluders), Norm: norm})
	if err := w.begin(nil); err != nil {
		tb.Fatal(err)
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	values := make([]int64, length)
	for i := range values {
		values[i] = random.Int64N(61) - 30 // of a norm of 17,600 or so, with 10^6 of them
	}
	return w, values
}

func benchmarkProof(b *testing.B, length, n int, norm int64) {
	const together = 16
	w, values := proofWorld(b, length, n, norm)
	c := w.server.config
	if c.scheme != nil { // made once, by whoever is first
		must(w.party(0).Submit(w.opening, []byte("model"), values))
	}
	submit := func(i int) []byte {
		p := must(NewParty(w.config, w.keys[i], nil))
		return must(p.Submit(w.opening, []byte("model"), values))
	}
	receive := func(i int, message []byte) {
		w.server.open.received.Remove(i) // as often as the benchmark asks for
		if err := w.server.Receive(message); err != nil {
			b.Fatal(err)
		}
	}
	var making, checking time.Duration
	messages := make([][]byte, together)
	count := 0
	for b.Loop() {
		i := count % together
		start := suite.Processor()
		messages[i] = submit(i)
		middle := suite.Processor()
		receive(i, messages[i])
		making, checking = making+middle-start, checking+suite.Processor()-middle
		w.server.open.waiting = nil
		count++
	}
	for i := range messages {
		if messages[i] == nil {
			messages[i] = submit(i)
		}
		w.server.open.received.Remove(i)
	}
	w.server.open.waiting = nil
	start := suite.Processor()
	w.server.Check(messages)
	for i, message := range messages {
		receive(i, message)
	}
	batch := suite.Processor() - start
	envelope := must(w.server.Batch())[0]
	start = suite.Processor()
	must(w.members[envelope.To].Receive(envelope.Message))
	member := suite.Processor() - start
	each := 1e3 / float64(count)
	b.ReportMetric(making.Seconds()*each, "party-ms")
	b.ReportMetric(checking.Seconds()*each, "server-ms")
	b.ReportMetric(batch.Seconds()*1e3/together, "batch-ms")
	b.ReportMetric(float64(len(messages[0]))/1e3, "up-kB")
	b.ReportMetric(float64(c.proofSize())/1e3, "proof-kB")
	b.ReportMetric(member.Seconds()*1e3/float64(len(w.server.open.flight)), "member-ms")
	b.ReportMetric(float64(c.ModulusBits), "bits")
	b.ReportMetric(0, "ns/op")
}
