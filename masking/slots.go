package masking

import "encoding/binary"

// Arithmetic on words that hold several slots at once (Hacker's Delight §2-18):
// the highest bit of each slot is set aside, so that no carry or borrow leaves
// its slot, and is put in without carry afterwards. body has the lower bits of
// all slots, top the highest. Bits in neither are passed over in k, and must be
// and stay zero in a.

// addSlots returns a + k, slot by slot.
func addSlots(a, k, body, top uint64) uint64 {
	return (a&body + k&body) ^ (a^k)&top
}

// subSlots returns a − k, slot by slot.
func subSlots(a, k, body, top uint64) uint64 {
	return ((a | top) - k&body) ^ top&^(a^k)
}

// addStreamGeneric adds the little-endian words of src, of which there are as
// many as dst has, to dst. Four words a turn spare most of the bounds checks.
func addStreamGeneric(dst []uint64, src []byte, body, top uint64) {
	for len(dst) >= 4 && len(src) >= 32 {
		d, s := (*[4]uint64)(dst), (*[32]byte)(src)
		d[0] = addSlots(d[0], binary.LittleEndian.Uint64(s[0:]), body, top)
		d[1] = addSlots(d[1], binary.LittleEndian.Uint64(s[8:]), body, top)
		d[2] = addSlots(d[2], binary.LittleEndian.Uint64(s[16:]), body, top)
		d[3] = addSlots(d[3], binary.LittleEndian.Uint64(s[24:]), body, top)
		dst, src = dst[4:], src[32:]
	}
	for i, a := range dst {
		dst[i] = addSlots(a, binary.LittleEndian.Uint64(src[8*i:]), body, top)
	}
}

// subStreamGeneric subtracts them.
func subStreamGeneric(dst []uint64, src []byte, body, top uint64) {
	for len(dst) >= 4 && len(src) >= 32 {
		d, s := (*[4]uint64)(dst), (*[32]byte)(src)
		d[0] = subSlots(d[0], binary.LittleEndian.Uint64(s[0:]), body, top)
		d[1] = subSlots(d[1], binary.LittleEndian.Uint64(s[8:]), body, top)
		d[2] = subSlots(d[2], binary.LittleEndian.Uint64(s[16:]), body, top)
		d[3] = subSlots(d[3], binary.LittleEndian.Uint64(s[24:]), body, top)
		dst, src = dst[4:], src[32:]
	}
	for i, a := range dst {
		dst[i] = subSlots(a, binary.LittleEndian.Uint64(src[8*i:]), body, top)
	}
}
