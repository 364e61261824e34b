package normproof

import (
	"errors"
	"testing"
	"time"
)

// BenchmarkProof makes and checks a proof of 10^5 values and 10^6, with a committee of 40 of whom
// 10 may lie. It reports party-ms, server-ms, the same of each proof of a batch of 64 (batch-ms),
// and the proof's proof-kB:
//
//	go test ./oneshot/normproof -run NONE -bench Proof -cpu 1,2
func BenchmarkProof(b *testing.B) {
	for name, length := range map[string]int{"d=1e5": 100_016, "d=1e6": 1_000_016} {
		b.Run(name, func(b *testing.B) {
			s, err := New(Parameters{
				Degree: 2048, Modulus: 0x1fffffff9001, Length: length, Bound: 1 << 40,
				KeyBound: 319 * 319, PerPolynomial: 10, Threshold: 20, LaneBits: 19,
			})
			if err != nil {
				b.Fatal(err)
			}
			n := newInstance(s, 1, 1<<19)
			var party, server, batch time.Duration
			for b.Loop() {
				start := time.Now()
				d, proof := n.prove(b, s, 1)
				middle := time.Now()
				if err := s.Verify(n.statement, d, proof); err != nil {
					b.Fatal(err)
				}
				party, server = party+middle.Sub(start), server+time.Since(middle)
				start = time.Now()
				errs := s.VerifyAll(64, func(int) *Claim { return &Claim{n.statement, d, proof} })
				if err := errors.Join(errs...); err != nil {
					b.Fatal(err)
				}
				batch += time.Since(start)
			}
			each := 1e3 / float64(b.N)
			b.ReportMetric(party.Seconds()*each, "party-ms")
			b.ReportMetric(server.Seconds()*each, "server-ms")
			b.ReportMetric(batch.Seconds()*each/64, "batch-ms")
			b.ReportMetric(float64(s.Size())/1e3, "proof-kB")
		})
	}
}
