package benchmarks

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cloudflare/circl/group"
	"github.com/cloudflare/circl/secretsharing"
	vault "github.com/hashicorp/vault/shamir"
	"github.com/hushsum/hushsum/shamir"
)

// ourSecrets is how many secrets one run splits and combines. The peers take
// every secret alone, so that a few of them show what one costs.
const ourSecrets = 1000

// A library splits and combines a number of secrets of 32 bytes and returns what
// each took.
type library struct {
	name    string
	secrets int
	most    int // holders that it can serve, 0 for any number
	run     func(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration)
}

// libraries has hushsum first: the others are compared with it.
var libraries = []library{
	{"hushsum", ourSecrets, 0, hushsum},
	{"hushsum-alone", 5, 0, alone},
	{"circl-ristretto255", 2, 0, circl(group.Ristretto255)},
	{"circl-p256", 2, 0, circl(group.P256)},
	{"vault", 5, 255, vaults},
}

// BenchmarkSharing compares package shamir with its peers on secrets of 32 bytes
// that are split among one set of holders and combined from as many shares as the
// threshold: nanoseconds per secret, and how many times ours that is. Of several
// runs (-benchtime 3x) the fastest counts, since the machine may have other work.
// "hushsum-alone" is ours as the peers are used, a secret at a time. vault has a
// field of 256 elements, and so at most 255 holders.
func BenchmarkSharing(b *testing.B) {
	for _, size := range []struct{ threshold, holders int }{{51, 100}, {501, 1000}} {
		b.Run(fmt.Sprintf("%d-of-%d", size.threshold, size.holders), func(b *testing.B) {
			best := make([][2]float64, len(libraries)) // nanoseconds to split, to combine
			for b.Loop() {
				for i, l := range libraries {
					if l.most != 0 && size.holders > l.most {
						continue
					}
					split, combine := l.run(b, size.threshold, size.holders, l.secrets)
					for k, took := range []time.Duration{split, combine} {
						if ns := float64(took) / float64(l.secrets); best[i][k] == 0 || ns < best[i][k] {
							best[i][k] = ns
						}
					}
				}
			}
			for k, what := range []string{"split", "combine"} {
				for i, l := range libraries {
					if best[i][k] == 0 {
						continue
					}
					b.ReportMetric(best[i][k], l.name+"-"+what+"-ns/secret")
					if i > 0 {
						b.ReportMetric(best[i][k]/best[0][k], l.name+"-"+what+"-×")
					}
				}
			}
			b.ReportMetric(0, "ns/op") // of all libraries together: says nothing
		})
	}
}

// hushsum combines all secrets with one Combiner, and counts the making of it.
func hushsum(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration) {
	indices := make([]uint32, holders)
	for i := range indices {
		indices[i] = uint32(i + 1)
	}
	originals := make([]shamir.Secret, secrets)
	shares := make([][]shamir.Share, secrets)
	for i := range originals {
		var err error
		if originals[i], err = shamir.GenerateSecret(nil); err != nil {
			b.Fatal(err)
		}
	}
	start := time.Now()
	for i := range originals {
		all, err := shamir.Split(nil, originals[i], threshold, indices)
		if err != nil {
			b.Fatal(err)
		}
		shares[i] = all[:threshold:threshold]
	}
	split = time.Since(start)

	start = time.Now()
	combiner, err := shamir.NewCombiner(threshold, indices[:threshold])
	if err != nil {
		b.Fatal(err)
	}
	for i := range originals {
		if again, err := combiner.Combine(shares[i]); err != nil || again != originals[i] {
			b.Fatal("hushsum: another secret")
		}
	}
	return split, time.Since(start)
}

// alone is hushsum without a Combiner.
func alone(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration) {
	indices := make([]uint32, holders)
	for i := range indices {
		indices[i] = uint32(i + 1)
	}
	for range secrets {
		secret, err := shamir.GenerateSecret(nil)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		shares, err := shamir.Split(nil, secret, threshold, indices)
		split += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		again, err := shamir.Combine(threshold, shares[:threshold])
		combine += time.Since(start)
		if err != nil || again != secret {
			b.Fatal("hushsum: another secret")
		}
	}
	return split, combine
}

// circl shares scalars of a group. Its t is the number of parties that may be
// corrupted: one less than the threshold.
func circl(
	g group.Group,
) func(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration) {
	return func(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration) {
		t := uint(threshold - 1)
		for range secrets {
			secret := g.RandomScalar(rand.Reader)
			start := time.Now()
			shares := secretsharing.New(rand.Reader, t, secret).Share(uint(holders))
			split += time.Since(start)

			start = time.Now()
			again, err := secretsharing.Recover(t, shares[:threshold])
			combine += time.Since(start)
			if err != nil || !again.IsEqual(secret) {
				b.Fatal("circl: another secret")
			}
		}
		return split, combine
	}
}

// vaults shares bytes, each by a polynomial of its own.
func vaults(b *testing.B, threshold, holders, secrets int) (split, combine time.Duration) {
	for range secrets {
		secret := make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		shares, err := vault.Split(secret, holders, threshold)
		split += time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		again, err := vault.Combine(shares[:threshold])
		combine += time.Since(start)
		if err != nil || !bytes.Equal(again, secret) {
			b.Fatal("vault: another secret")
		}
	}
	return split, combine
}
