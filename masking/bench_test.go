package masking

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"testing"
	"time"
)

// BenchmarkMask adds a mask to a million coordinates and reports its speed as a
// share of the machine's own AES-128-CTR keystream over the same bytes
// ("of-keystream"), both measured in turns within the same run.
func BenchmarkMask(b *testing.B) {
	for _, c := range []struct {
		bits int
		name string
		add  func([]uint64, []byte, uint64, uint64)
	}{
		{16, "", addStream}, {20, "", addStream}, {32, "", addStream},
		{32, "/portable", addStreamGeneric}, {64, "", addStream},
	} {
		bits := c.bits
		b.Run(fmt.Sprintf("bits=%d%s", bits, c.name), func(b *testing.B) {
			v, err := NewVector(Layout{{Length: 1_000_000, Bits: bits}})
			if err != nil {
				b.Fatal(err)
			}
			seed := &Seed{1}
			size := 8 * len(v.words)
			b.ReportAllocs()
			key, err := aes.NewCipher(seed[:16])
			if err != nil {
				b.Fatal(err)
			}
			stream := cipher.NewCTR(key, make([]byte, 16))
			block := new([blockSize]byte)
			var masking, keystream time.Duration
			for b.Loop() {
				start := time.Now()
				v.mask(seed, c.add)
				middle := time.Now()
				for n := size; n > 0; n -= len(block) {
					stream.XORKeyStream(block[:min(n, len(block))], zeros[:min(n, len(block))])
				}
				masking += middle.Sub(start)
				keystream += time.Since(middle)
			}
			b.ReportMetric(float64(keystream)/float64(masking), "of-keystream")
			b.ReportMetric(float64(size)*float64(b.N)/masking.Seconds()/1e9, "mask-GB/s")
			b.ReportMetric(float64(size)*float64(b.N)/keystream.Seconds()/1e9, "keystream-GB/s")
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}
