package shamir

import (
	"encoding/binary"
	"io"
)

// A BytesShare is one holder's part of a 32-byte string: its shares of the
// string's first and second half.
type BytesShare struct {
	Index uint32
	Value [64]byte
}

// SplitBytes shares any 32 bytes, which need not be a canonical scalar. The
// first and the second 16 bytes, as little-endian integers below 2^128, are
// two secrets that [Split] shares with independent polynomials; every string
// has exactly one such pair, so nothing is lost or favoured. Use [Split] for
// keys that may be drawn as scalars in the first place: its shares are half as
// long.
//
// Errors: as Split, without ErrNonCanonical.
func SplitBytes(
	random io.Reader, data [32]byte, threshold int, indices []uint32,
) ([]BytesShare, error) {
	var low, high Secret
	copy(low[:], data[:16])
	copy(high[:], data[16:])
	defer clear(low[:])
	defer clear(high[:])
	first, err := Split(random, low, threshold, indices)
	if err != nil {
		return nil, err
	}
	second, err := Split(random, high, threshold, indices)
	if err != nil {
		return nil, err
	}
	shares := make([]BytesShare, len(indices))
	for i := range shares {
		shares[i].Index = indices[i]
		copy(shares[i].Value[:32], first[i].Value[:])
		copy(shares[i].Value[32:], second[i].Value[:])
	}
	return shares, nil
}

// CombineBytes rebuilds 32 bytes from at least threshold of the shares that
// SplitBytes made. Shares beyond the threshold are compared with the others.
//
// Errors: as [Combine], and ErrNotBytes if the shares do not come from SplitBytes.
func CombineBytes(threshold int, shares []BytesShare) ([32]byte, error) {
	first := make([]Share, len(shares))
	second := make([]Share, len(shares))
	defer clear(first)
	defer clear(second)
	for i, s := range shares {
		first[i] = Share{s.Index, [32]byte(s.Value[:32])}
		second[i] = Share{s.Index, [32]byte(s.Value[32:])}
	}
	low, err := Combine(threshold, first)
	if err != nil {
		return [32]byte{}, err
	}
	high, err := Combine(threshold, second)
	if err != nil {
		return [32]byte{}, err
	}
	var above uint64 // anything at or above 2^128
	for _, s := range []*Secret{&low, &high} {
		above |= binary.LittleEndian.Uint64(s[16:]) | binary.LittleEndian.Uint64(s[24:])
	}
	if above != 0 {
		return [32]byte{}, ErrNotBytes
	}
	var data [32]byte
	copy(data[:16], low[:])
	copy(data[16:], high[:])
	return data, nil
}
