package ring

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Errors of packed coefficients.
var (
	// ErrLength: there are fewer or more bytes than the coefficients take.
	ErrLength = errors.New("ring: packed coefficients have the wrong size")
	// ErrCanonical: a coefficient is q or more, or padding bits are not zero.
	ErrCanonical = errors.New("ring: packed coefficients are not canonical")
)

// PackedSize returns the bytes of n packed coefficients.
func (r *Ring) PackedSize(n int) int { return (n*r.bits + 7) / 8 }

// AppendPacked appends the coefficients, ⌈log₂ q⌉ bits each: coefficient k takes
// bits k·b to (k+1)·b − 1 of a string that fills each byte from its lowest bit,
// with zero bits at the end.
func (r *Ring) AppendPacked(b []byte, c []uint64) []byte {
	at, size := len(b), r.PackedSize(len(c))
	b = slices.Grow(b, size)[:at+size]
	out := b[at:]
	var pending uint64
	n := 0
	for _, x := range c {
		pending |= x << n
		n += r.bits
		if n >= 64 {
			binary.LittleEndian.PutUint64(out, pending)
			out = out[8:]
			n -= 64
			pending = x >> (r.bits - n) // 0 for n = 0, since x < 2^bits
		}
	}
	for i := range out {
		out[i] = byte(pending >> (8 * i))
	}
	return b
}

// CheckPacked returns nil if AppendPacked makes b of n coefficients, each
// below q. It fails with [ErrLength] or [ErrCanonical].
func (r *Ring) CheckPacked(b []byte, n int) error {
	if len(b) != r.PackedSize(n) {
		return ErrLength
	}
	if used := n * r.bits % 8; used != 0 && b[len(b)-1]>>used != 0 {
		return ErrCanonical
	}
	k, bad := fast.checkPacked(r, b, n)
	var block [64]uint64
	for ; k < n; k += len(block) {
		for _, x := range r.block(&block, b, k, n) {
			bad |= r.q - 1 - x // the highest bit is set if x is q or more
		}
	}
	if bad>>63 != 0 {
		return ErrCanonical
	}
	return nil
}

// AddPacked adds the packed coefficients to dst, modulo q. b must have passed
// CheckPacked for len(dst).
func (r *Ring) AddPacked(dst []uint64, b []byte) {
	var block [64]uint64
	for k := fast.addPacked(r, dst, b); k < len(dst); k += len(block) {
		sums := dst[k:]
		for i, x := range r.block(&block, b, k, len(dst)) {
			sums[i] = r.once(sums[i] + x)
		}
	}
}

// block reads coefficients k to k + 63 of n, as far as there are any. As eight coefficients fill
// whole bytes, each block begins with one, for k a multiple of eight. A coefficient of 50 bits at
// most lies within the eight bytes that begin with its first.
func (r *Ring) block(out *[64]uint64, b []byte, k, n int) []uint64 {
	b = b[k*r.bits/8:]
	count := min(64, n-k)
	var padded [8*MaxModulusBits + 8]byte
	if len(b) < 8*r.bits+8 {
		copy(padded[:], b)
		b = padded[:]
	}
	b = b[:8*r.bits+8]
	mask := uint64(1)<<r.bits - 1
	at := 0
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(b[at>>3:]) >> (at & 7) & mask
		at += r.bits
	}
	return out[:count]
}
