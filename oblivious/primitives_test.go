package oblivious

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/internal/labels"
)

// reference is multiplication in GF(2^128), bit by bit on big integers.
func referenceMul(a, b element) element {
	value := func(e element) *big.Int {
		x := new(big.Int).SetUint64(e[1])
		return x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(e[0]))
	}
	p, x := new(big.Int), value(a)
	for k := range 128 {
		if b.bit(k) == 1 {
			p.Xor(p, new(big.Int).Lsh(x, uint(k)))
		}
	}
	modulus := new(big.Int).SetBit(big.NewInt(0x87), 128, 1)
	for k := 255; k >= 128; k-- {
		if p.Bit(k) == 1 {
			p.Xor(p, new(big.Int).Lsh(modulus, uint(k-128)))
		}
	}
	low := new(big.Int).And(p, new(big.Int).SetUint64(^uint64(0)))
	return element{low.Uint64(), new(big.Int).Rsh(p, 64).Uint64()}
}

func TestField(t *testing.T) {
	draw := func(r *rapid.T, label string) element {
		return element{rapid.Uint64().Draw(r, label), rapid.Uint64().Draw(r, label)}
	}
	rapid.Check(t, func(r *rapid.T) {
		a, b := draw(r, "a"), draw(r, "b")
		if got, want := newMultiplier(a).mul(b), referenceMul(a, b); got != want {
			r.Fatalf("%x·%x = %x, want %x", a, b, got, want)
		}
		if elementOf(a.bytes()) != a {
			r.Fatal("bytes do not come back")
		}
	})
}

// The hash is linear and its last block goes in as it is.
func TestHashLinear(t *testing.T) {
	random := seeded(1)
	for blocks := 1; blocks < 5; blocks++ {
		key, _ := draw(random, blockSize)
		x, _ := draw(random, blocks*blockSize)
		y, _ := draw(random, blocks*blockSize)
		z := make([]byte, len(x))
		for k := range z {
			z[k] = x[k] ^ y[k]
		}
		m := newMultiplier(elementOf(key))
		if m.hash(z) != m.hash(x).add(m.hash(y)) {
			t.Fatal("not linear")
		}
		clear(x[:len(x)-blockSize])
		if m.hash(x) != elementOf(x[len(x)-blockSize:]) {
			t.Fatal("the padding does not go in as it is")
		}
	}
}

// basePair runs the base transfers between two honest sides.
func basePair(t testing.TB, seed byte) (*extSender, *extReceiver) {
	t.Helper()
	random, context := seeded(seed), [32]byte{seed}
	receiver, err := newBaseReceiver(context, random)
	if err != nil {
		t.Fatal(err)
	}
	sender, err := newBaseSender(random)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := receiver.keys(context, sender.message[:])
	if err != nil {
		t.Fatal(err)
	}
	both, err := sender.keys(context, receiver.r[:])
	if err != nil {
		t.Fatal(err)
	}
	return &extSender{receiver.choices, chosen}, &extReceiver{both}
}

func TestBaseTransfer(t *testing.T) {
	sender, receiver := basePair(t, 2)
	seen := map[[32]byte]bool{}
	for k := range kappa {
		c := sender.delta.bit(k)
		if sender.seeds[k] != receiver.seeds[c][k] {
			t.Fatalf("transfer %d: the chosen key differs", k)
		}
		if sender.seeds[k] == receiver.seeds[1-c][k] {
			t.Fatalf("transfer %d: both keys are the same", k)
		}
		for c := range 2 {
			if seen[receiver.seeds[c][k]] {
				t.Fatal("a key occurs twice")
			}
			seen[receiver.seeds[c][k]] = true
		}
	}
}

func TestBaseTransferRefuses(t *testing.T) {
	random := seeded(3)
	receiver, _ := newBaseReceiver([32]byte{}, random)
	sender, _ := newBaseSender(random)
	for _, bad := range [][]byte{make([]byte, 32), bytes.Repeat([]byte{0xff}, 32), {1, 31: 0}} {
		if _, err := receiver.keys([32]byte{}, bad); !errors.Is(err, ErrEncoding) {
			t.Errorf("B = %x: %v", bad, err)
		}
		r := bytes.Clone(receiver.r[:])
		copy(r[len(r)-32:], bad)
		if _, err := sender.keys([32]byte{}, r); !errors.Is(err, ErrEncoding) {
			t.Errorf("r = %x: %v", bad, err)
		}
	}
}

func TestExtension(t *testing.T) {
	sender, receiver := basePair(t, 4)
	for _, count := range []int{1, 7, 127, 128, 129, 1000} {
		context := [32]byte{byte(count)}
		message, choices, pads, err := receiver.choose(context, count, seeded(byte(count)))
		if err != nil || len(message) != choiceSize(count) {
			t.Fatal(err)
		}
		zero, one, err := sender.pads(context, count, message)
		if err != nil {
			t.Fatal(err)
		}
		ones := 0
		for j := range count {
			both := [2]uint64{zero[j], one[j]}
			c := choices[j>>3] >> (j & 7) & 1
			ones += int(c)
			if both[c] != pads[j] || both[1-c] == pads[j] {
				t.Fatalf("%d transfers: pads of %d do not fit choice %d", count, j, c)
			}
		}
		if count == 1000 && (ones < 400 || ones > 600) { // 6.3σ
			t.Errorf("%d ones of 1000 choices", ones)
		}
		sender.ratchet()
		receiver.ratchet()
	}
}

// A receiver that sends inconsistent columns is caught, except with the
// probability of guessing the bits of Δ that matter.
func TestExtensionCheck(t *testing.T) {
	const count = 200
	sender, receiver := basePair(t, 5)
	message, choices, _, err := receiver.choose([32]byte{}, count, seeded(6))
	if err != nil {
		t.Fatal(err)
	}
	size := columnSize(count)
	// One wrong bit in column i says that x differs there: it matters if Δ_i = 1.
	for i := range kappa {
		bad := bytes.Clone(message)
		bad[i*size] ^= 1
		// The cheater's proof is the one that fits Δ_i = 0; since the key of the
		// hash follows from the columns, it has to be made anew.
		redo(receiver, bad, choices)
		_, _, err := sender.pads([32]byte{}, count, bad)
		if want := sender.delta.bit(i) == 1; errors.Is(err, ErrCheck) != want {
			t.Fatalf("column %d, Δ_i = %d: %v", i, sender.delta.bit(i), err)
		}
	}
	// In all columns at once it needs all of Δ.
	bad := bytes.Clone(message)
	for i := range kappa {
		bad[i*size+i/8] ^= 1 << (i % 8)
	}
	redo(receiver, bad, choices)
	if _, _, err := sender.pads([32]byte{}, count, bad); !errors.Is(err, ErrCheck) {
		t.Fatal("inconsistent choices pass:", err)
	}
	// Any change of the proof is seen, and so is another context.
	for k := kappa * size; k < len(message); k++ {
		bad := bytes.Clone(message)
		bad[k] ^= 0x10
		if _, _, err := sender.pads([32]byte{}, count, bad); !errors.Is(err, ErrCheck) {
			t.Fatalf("byte %d: %v", k, err)
		}
	}
	if _, _, err := sender.pads([32]byte{1}, count, message); !errors.Is(err, ErrCheck) {
		t.Fatal("another context passes:", err)
	}
}

// redo replaces the proof of a choice message by the one that fits its columns and
// the given choices.
func redo(e *extReceiver, message, choices []byte) {
	size := len(choices)
	hash := checkKey([32]byte{}, message[:kappa*size])
	var all []byte
	for i := range kappa {
		t := make([]byte, size)
		stream(t, &e.seeds[0][i])
		all = append(all, hash.hash(t).bytes()...)
	}
	proof := digest(labels.ObliviousProof, make([]byte, 32), all)
	copy(message[kappa*size:], append(hash.hash(choices).bytes(), proof[:]...))
}
