package masking

import "encoding/binary"

// Arithmetic on words that hold several lanes at once (Hacker's Delight §2-18):
// the highest bit of each lane is set aside, so that no carry or borrow leaves
// its lane, and is put in without carry afterwards. body has the lower bits of
// all lanes, top the highest. Bits in neither are passed over in k, and must be
// and stay zero in a.

// addLanes returns a + k, lane by lane.
func addLanes(a, k, body, top uint64) uint64 {
	return (a&body + k&body) ^ (a^k)&top
}

// subLanes returns a − k, lane by lane.
func subLanes(a, k, body, top uint64) uint64 {
	return ((a | top) - k&body) ^ top&^(a^k)
}

// addStreamGeneric adds the little-endian words of src, of which there are as
// many as dst has, to dst. Four words a turn spare most of the bounds checks.
func addStreamGeneric(dst []uint64, src []byte, body, top uint64) {
	for len(dst) >= 4 && len(src) >= 32 {
		d, s := (*[4]uint64)(dst), (*[32]byte)(src)
		d[0] = addLanes(d[0], binary.LittleEndian.Uint64(s[0:]), body, top)
		d[1] = addLanes(d[1], binary.LittleEndian.Uint64(s[8:]), body, top)
		d[2] = addLanes(d[2], binary.LittleEndian.Uint64(s[16:]), body, top)
		d[3] = addLanes(d[3], binary.LittleEndian.Uint64(s[24:]), body, top)
		dst, src = dst[4:], src[32:]
	}
	for i, a := range dst {
		dst[i] = addLanes(a, binary.LittleEndian.Uint64(src[8*i:]), body, top)
	}
}

// subStreamGeneric subtracts them.
func subStreamGeneric(dst []uint64, src []byte, body, top uint64) {
	for len(dst) >= 4 && len(src) >= 32 {
		d, s := (*[4]uint64)(dst), (*[32]byte)(src)
		d[0] = subLanes(d[0], binary.LittleEndian.Uint64(s[0:]), body, top)
		d[1] = subLanes(d[1], binary.LittleEndian.Uint64(s[8:]), body, top)
		d[2] = subLanes(d[2], binary.LittleEndian.Uint64(s[16:]), body, top)
		d[3] = subLanes(d[3], binary.LittleEndian.Uint64(s[24:]), body, top)
		dst, src = dst[4:], src[32:]
	}
	for i, a := range dst {
		dst[i] = subLanes(a, binary.LittleEndian.Uint64(src[8*i:]), body, top)
	}
}
