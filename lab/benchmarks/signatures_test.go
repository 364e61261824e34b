package benchmarks

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"testing"
	"time"

	"filippo.io/edwards25519"
)

// BenchmarkSignatures checks the signatures of n keys one by one, as parties do in set-up, and in a
// batch by the equation with the cofactor, which SPEC.md §2.3 does not allow. It reports
// microseconds for a signature and the ratio ("×"), the least of many turns each.
func BenchmarkSignatures(b *testing.B) {
	for _, n := range []int{10, 40, 100, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			all := make([]signed, n)
			for i := range all {
				public, private, err := ed25519.GenerateKey(nil)
				if err != nil {
					b.Fatal(err)
				}
				message := fmt.Appendf(nil, "%0120d", i)
				all[i] = signed{public, message, ed25519.Sign(private, message)}
			}
			if !batch(all) {
				b.Fatal("a batch of true signatures is refused")
			}
			all[n-1].message[0] ^= 1
			if batch(all) {
				b.Fatal("a batch with a false signature is taken")
			}
			all[n-1].message[0] ^= 1
			one, together := time.Duration(1<<62), time.Duration(1<<62)
			for b.Loop() {
				for range max(3, 10_000/n) {
					start := time.Now()
					for _, s := range all[:10] {
						if !ed25519.Verify(s.key, s.message, s.signature) {
							b.Fatal("a true signature is refused")
						}
					}
					middle := time.Now()
					batch(all)
					one = min(one, middle.Sub(start))
					together = min(together, time.Since(middle))
				}
			}
			single, batched := one.Seconds()*1e6/10, together.Seconds()*1e6/float64(n)
			b.ReportMetric(single, "µs-single")
			b.ReportMetric(batched, "µs-batch")
			b.ReportMetric(single/batched, "×")
			b.ReportMetric(0, "ns/op")
		})
	}
}

type signed struct {
	key       ed25519.PublicKey
	message   []byte
	signature []byte
}

// batch checks Σ z_i·(S_i·B − R_i − h_i·A_i) = 0 times the cofactor, for random z_i of 128 bits.
func batch(all []signed) bool {
	scalars := make([]*edwards25519.Scalar, 0, 2*len(all)+1)
	points := make([]*edwards25519.Point, 0, 2*len(all)+1)
	base := edwards25519.NewScalar()
	for _, s := range all {
		nonce, err1 := new(edwards25519.Point).SetBytes(s.signature[:32])
		key, err2 := new(edwards25519.Point).SetBytes(s.key)
		response, err3 := edwards25519.NewScalar().SetCanonicalBytes(s.signature[32:])
		if err1 != nil || err2 != nil || err3 != nil {
			return false
		}
		h := sha512.New()
		h.Write(s.signature[:32])
		h.Write(s.key)
		h.Write(s.message)
		var weight [32]byte
		_, _ = rand.Read(weight[:16])
		z, _ := edwards25519.NewScalar().SetCanonicalBytes(weight[:])
		challenge, _ := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
		base.MultiplyAdd(z, response, base)
		scalars = append(scalars, z, challenge.Multiply(challenge, z))
		points = append(points, nonce, key)
	}
	scalars = append(scalars, base.Negate(base))
	points = append(points, edwards25519.NewGeneratorPoint())
	sum := new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points)
	return sum.MultByCofactor(sum).Equal(edwards25519.NewIdentityPoint()) == 1
}
