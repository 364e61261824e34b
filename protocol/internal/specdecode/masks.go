package specdecode

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/big"
)

// mask expands a seed (§8.2): one value per coordinate of every segment.
func mask(layout []segment, seed []byte) [][]uint64 {
	block, err := aes.NewCipher(seed[:16])
	if err != nil {
		panic(err)
	}
	out := make([][]uint64, len(layout))
	for i, s := range layout {
		counter := append(append([]byte{}, seed[16:28]...), 0, 0, 0, 0)
		index := u32(i)
		for j := range index {
			counter[8+j] ^= index[j]
		}
		lanes := 64 / s.Bits
		stream := make([]byte, (s.Length+lanes-1)/lanes*8)
		cipher.NewCTR(block, counter).XORKeyStream(stream, stream)
		for k := range s.Length {
			word := binary.LittleEndian.Uint64(stream[k/lanes*8:])
			out[i] = append(out[i], word>>(k%lanes*s.Bits)&low(s.Bits))
		}
	}
	return out
}

func low(bits int) uint64 { return ^uint64(0) >> (64 - bits) }

// add adds the values of y to x, or subtracts them, in each segment's ring.
func add(layout []segment, x, y [][]uint64, negative bool) {
	for i, s := range layout {
		for k := range x[i] {
			v := y[i][k]
			if negative {
				v = -v
			}
			x[i][k] = (x[i][k] + v) & low(s.Bits)
		}
	}
}

func zero(layout []segment) [][]uint64 {
	out := make([][]uint64, len(layout))
	for i, s := range layout {
		out[i] = make([]uint64, s.Length)
	}
	return out
}

func packedSize(layout []segment) int {
	size := 0
	for _, s := range layout {
		size += (s.Length*s.Bits + 7) / 8
	}
	return size
}

// unpack reads a packed vector (§8.3): each segment is one little-endian number.
func unpack(layout []segment, b []byte) ([][]uint64, error) {
	out := make([][]uint64, len(layout))
	for i, s := range layout {
		size := (s.Length*s.Bits + 7) / 8
		number := new(big.Int).SetBytes(reversed(b[:size]))
		b = b[size:]
		if number.BitLen() > s.Length*s.Bits {
			return nil, fail("padding of segment %d", i)
		}
		ring := new(big.Int).SetUint64(low(s.Bits))
		for range s.Length {
			out[i] = append(out[i], new(big.Int).And(number, ring).Uint64())
			number.Rsh(number, uint(s.Bits))
		}
	}
	return out, nil
}
