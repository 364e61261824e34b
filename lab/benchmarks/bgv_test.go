package benchmarks

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot"
)

// The setting of BenchmarkUpload: 1,000 parties with 100,000 values of 23 bits each.
const (
	uploadParties = 1000
	uploadLength  = 100_000
	uploadBits    = 23
)

// BenchmarkUpload measures what a party sends for each bit of its input ("bytes-per-bit"), and
// takes for it ("party-ms"), by package oneshot and by lattigo's BGV under a public key,
// with the smallest modulus by which the sum of all parties comes out right. What BGV
// would need besides, a committee that shares the key and noise that protects the sum,
// is left out. lattigo writes 8 bytes for each coefficient; "packed" counts the bits of
// the modulus.
func BenchmarkUpload(b *testing.B) {
	const bits = float64(uploadLength * uploadBits)
	for _, c := range []struct {
		name string
		kem  oneshot.KEM
	}{{"oneshot/hybrid", oneshot.KEMHybrid}, {"oneshot/x25519", oneshot.KEMX25519}} {
		b.Run(c.name, func(b *testing.B) {
			law, err := noise.DiscreteGaussian(big.NewRat(100*18, 1))
			if err != nil {
				b.Fatal(err)
			}
			terms := oneshot.Terms{Length: uploadLength, Bits: uploadBits, MinSurvivors: 20, Colluders: 2,
				Faults: 10, Noise: law, KEM: c.kem}
			var f oneshot.Figures
			for b.Loop() {
				if f, err = oneshot.Parameters(uploadParties, 40, terms); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(f.Up)/bits, "bytes-per-bit")
			b.ReportMetric(float64(f.ModulusBits), "modulus-bits")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("lattigo-bgv", func(b *testing.B) {
		for logQ := 40; ; logQ++ {
			size, slots, took, right := sumBGV(b, logQ)
			if !right {
				continue
			}
			for b.Loop() { // nothing is left to repeat
			}
			count := (uploadLength + slots - 1) / slots
			b.ReportMetric(float64(count*size)/bits, "bytes-per-bit")
			b.ReportMetric(float64(count*slots*2*logQ)/8/bits, "packed-bytes-per-bit")
			b.ReportMetric(float64(logQ), "modulus-bits")
			b.ReportMetric(took.Seconds()*1e3*float64(count), "party-ms")
			b.ReportMetric(0, "ns/op")
			return
		}
	})
}

// sumBGV adds one ciphertext of each party and reports whether the sum is right. size and
// took are those of one ciphertext, and slots its values.
func sumBGV(b *testing.B, logQ int) (size, slots int, took time.Duration, right bool) {
	params, err := bgv.NewParametersFromLiteral(bgv.ParametersLiteral{
		LogN:             12,
		LogQ:             []int{logQ},
		PlaintextModulus: plaintextModulus(),
	})
	if err != nil {
		b.Fatal(err)
	}
	secret, public := rlwe.NewKeyGenerator(params).GenKeyPairNew()
	encoder, encryptor := bgv.NewEncoder(params), rlwe.NewEncryptor(params, public)
	evaluator := bgv.NewEvaluator(params, nil)
	slots = params.MaxSlots()
	random := rand.New(rand.NewPCG(1, 2))
	want, values := make([]int64, slots), make([]int64, slots)
	var sum *rlwe.Ciphertext
	for range uploadParties {
		for i := range values {
			values[i] = random.Int64N(1<<uploadBits) - 1<<(uploadBits-1)
			want[i] += values[i]
		}
		start := time.Now()
		plain := bgv.NewPlaintext(params, params.MaxLevel())
		if err := encoder.Encode(values, plain); err != nil {
			b.Fatal(err)
		}
		ciphertext, err := encryptor.EncryptNew(plain)
		if err != nil {
			b.Fatal(err)
		}
		took += time.Since(start) / uploadParties
		if sum == nil {
			size = ciphertext.BinarySize()
			sum = ciphertext
		} else if err := evaluator.Add(sum, ciphertext, sum); err != nil {
			b.Fatal(err)
		}
	}
	got := make([]int64, slots)
	if err := encoder.Decode(rlwe.NewDecryptor(params, secret).DecryptNew(sum), got); err != nil {
		b.Fatal(err)
	}
	for i := range got {
		if got[i] != want[i] {
			return 0, slots, 0, false
		}
	}
	return size, slots, took, true
}

// plaintextModulus is the smallest prime above the range of the sums that is 1 modulo
// 2^13, for degree 2^12.
func plaintextModulus() uint64 {
	t := uint64(uploadParties)<<uploadBits>>13<<13 + 1<<13 + 1
	for !new(big.Int).SetUint64(t).ProbablyPrime(0) {
		t += 1 << 13
	}
	return t
}

// TestPlaintextModulus: sums fit.
func TestPlaintextModulus(t *testing.T) {
	if q := plaintextModulus(); q <= uploadParties<<uploadBits || q%(1<<13) != 1 {
		t.Error(q)
	}
}
