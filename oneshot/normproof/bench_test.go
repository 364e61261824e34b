package normproof

import (
	"errors"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/suite"
)

// BenchmarkProof makes and checks a proof of 10^5 values and 10^6, with a committee of 40 of whom
// 10 may lie. It reports milliseconds of processors, whatever else they do: party-ms, server-ms for
// one proof by itself and by nobody's coins, batch-ms for each proof of a batch of 64, bad-ms for
// what a batch takes in addition if the points of one of its proofs do not add up, so that it is
// looked for by halves, and the proof's proof-kB:
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
			n.prove(b, s, 1) // points are made once
			wrong := wrongPoint(b, s, n)
			var party, server, batch, bad time.Duration
			for b.Loop() {
				var d *Dealing
				var proof []byte
				party += taken(func() { d, proof = n.prove(b, s, 1) })
				server += taken(func() {
					if err := s.Verify(n.statement, d, proof); err != nil {
						b.Fatal(err)
					}
				})
				claims := make([]*Claim, 64)
				for i := range claims {
					claims[i] = &Claim{n.statement, d, proof}
				}
				check := func(bad int) time.Duration {
					return taken(func() {
						errs := s.VerifyAll(len(claims), func(i int) *Claim { return claims[i] })
						for i, err := range errs {
							if errors.Is(err, ErrProof) != (i == bad) {
								b.Fatal(i, err)
							}
						}
					})
				}
				alone := check(-1)
				claims[37] = wrong
				batch, bad = batch+alone, bad+check(37)-alone
			}
			each := 1e3 / float64(b.N)
			b.ReportMetric(party.Seconds()*each, "party-ms")
			b.ReportMetric(server.Seconds()*each, "server-ms")
			b.ReportMetric(batch.Seconds()*each/64, "batch-ms")
			b.ReportMetric(bad.Seconds()*each, "bad-ms")
			b.ReportMetric(float64(s.Size())/1e3, "proof-kB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// taken returns how long processors work on something.
func taken(work func()) time.Duration {
	start := suite.Processor()
	work()
	return suite.Processor() - start
}

// wrongPoint returns a claim of which all holds but what is equations between points.
func wrongPoint(tb testing.TB, s *Scheme, n *instance) *Claim {
	c := new(cheat)
	d, _ := c.prove(tb, s, n)
	p := &c.proof
	p.blinds[ofMask].Add(p.blinds[ofMask], small(1))
	p.restEncoded = nil
	s.encodeRest(p)
	h5 := hash(labels.OneshotProofEnd, c.h4[:], p.firstsEncoded)
	for i := range p.folded {
		low, high := p.responses[i], p.responses[s.Degree/2+i]
		p.folded[i].MultiplyAdd(folding(p, &h5), high, low)
	}
	claim := &Claim{n.statement, d, s.append(nil, p)}
	if _, err := s.relate(claim.Statement, d, claim.Proof, nil); err != nil {
		tb.Error("scalars fail:", err)
	}
	return claim
}
