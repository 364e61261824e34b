package masking

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkMask adds masks to a million coordinates and reports their speed as a share of the
// standard library's AES-128-CTR keystream over the same bytes ("of-keystream"), both measured
// in turns within the same run: ratios of medians. HUSHSUM_CPU chooses the path.
func BenchmarkMask(b *testing.B) {
	for _, c := range []struct {
		bits  int
		name  string
		masks int
		add   func(v *Vector, seed *Seed) // one mask in another way
	}{
		{16, "", 1, (*Vector).AddMask}, {20, "", 1, (*Vector).AddMask},
		{32, "", 1, (*Vector).AddMask}, {32, "/masks=8", 8, nil}, {64, "", 1, (*Vector).AddMask},
		{32, "/portable", 1, func(v *Vector, seed *Seed) {
			v.stream(seed, 0, len(v.words), addStream)
		}},
		{32, "/portable-loop", 1, func(v *Vector, seed *Seed) {
			v.stream(seed, 0, len(v.words), addStreamGeneric)
		}},
	} {
		b.Run(fmt.Sprintf("bits=%d%s", c.bits, c.name), func(b *testing.B) {
			v, err := NewVector(Layout{{Length: 1_000_000, Bits: c.bits}})
			if err != nil {
				b.Fatal(err)
			}
			seed := &Seed{1}
			size := 8 * len(v.words) * c.masks
			key, err := aes.NewCipher(seed[:16])
			if err != nil {
				b.Fatal(err)
			}
			stream := cipher.NewCTR(key, make([]byte, 16))
			block := new([blockSize]byte)
			together := NewMasks(v)
			var masking, keystream []time.Duration
			for b.Loop() {
				start := time.Now()
				if c.add != nil {
					c.add(v, seed)
				} else {
					for range c.masks {
						together.Add(seed)
					}
					together.Apply()
				}
				middle := time.Now()
				for n := size; n > 0; n -= len(block) {
					stream.XORKeyStream(block[:min(n, len(block))], zeros[:min(n, len(block))])
				}
				masking = append(masking, middle.Sub(start))
				keystream = append(keystream, time.Since(middle))
			}
			slices.Sort(masking)
			slices.Sort(keystream)
			mask, raw := masking[b.N/2].Seconds(), keystream[b.N/2].Seconds()
			b.ReportMetric(raw/mask, "of-keystream")
			b.ReportMetric(float64(size)/mask/1e9, "mask-GB/s")
			b.ReportMetric(float64(size)/raw/1e9, "keystream-GB/s")
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}
