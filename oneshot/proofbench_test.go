package oneshot

import (
	mathrand "math/rand/v2"
	"testing"
	"time"
)

// BenchmarkProof is a party's submission and the server's check of it, without a bound and with
// one, of 10^5 values and 10^6, 100 parties and a committee of 40 of whom 10 may be faulty; noise
// is as long as the bound on the sum of 18. It reports a party's milliseconds from the opening to
// its message ("party-ms") and those of the server to take it in ("server-ms"), the message's and
// the proof's kilobytes ("up-kB", "proof-kB"), a member's milliseconds for each party
// ("member-ms") and the bits of a coefficient ("bits"):
//
//	go test ./oneshot -run NONE -bench Proof -cpu 1
func BenchmarkProof(b *testing.B) {
	for name, length := range map[string]int{"d=1e5": 100_000, "d=1e6": 1_000_000} {
		for kind, norm := range map[string]int64{"plain": 0, "bounded": 1 << 16} {
			b.Run(name+"/"+kind, func(b *testing.B) { benchmarkProof(b, length, norm) })
		}
	}
}

func benchmarkProof(b *testing.B, length int, norm int64) {
	const n, atLeast, colluders = 100, 20, 2
	w := newWorld(n, 40, Terms{Length: length, Bits: 17, MinSurvivors: atLeast, Colluders: colluders,
		Faults: 10, Noise: gaussian((1<<16)/(atLeast-colluders), atLeast-colluders), Norm: norm})
	if err := w.begin(nil); err != nil {
		b.Fatal(err)
	}
	random := mathrand.New(mathrand.NewPCG(1, 2))
	values := make([]int64, length)
	for i := range values {
		values[i] = random.Int64N(61) - 30 // of a norm of 17,600 or so, with 10^6 of them
	}
	c := w.server.config
	if c.scheme != nil { // made once, by whoever is first
		must(w.party(0).Submit(w.opening, []byte("model"), values))
	}
	var making, checking time.Duration
	up, count := 0, 0
	for b.Loop() {
		start := time.Now()
		p := must(NewParty(w.config, w.keys[count%n], nil))
		message := must(p.Submit(w.opening, []byte("model"), values))
		middle := time.Now()
		w.server.open.received.Remove(count % n) // as often as the benchmark asks for
		if err := w.server.Receive(message); err != nil {
			b.Fatal(err)
		}
		making, checking = making+middle.Sub(start), checking+time.Since(middle)
		up = len(message)
		if count++; len(w.server.open.waiting) > 1 {
			w.server.open.waiting = w.server.open.waiting[:1]
		}
	}
	envelope := must(w.server.Batch())[0]
	start := time.Now()
	must(w.members[envelope.To].Receive(envelope.Message))
	member := time.Since(start)
	each := 1e3 / float64(count)
	b.ReportMetric(making.Seconds()*each, "party-ms")
	b.ReportMetric(checking.Seconds()*each, "server-ms")
	b.ReportMetric(float64(up)/1e3, "up-kB")
	b.ReportMetric(float64(c.proofSize())/1e3, "proof-kB")
	b.ReportMetric(member.Seconds()*1e3/float64(len(w.server.open.flight)), "member-ms")
	b.ReportMetric(float64(c.ModulusBits), "bits")
	b.ReportMetric(0, "ns/op")
}
