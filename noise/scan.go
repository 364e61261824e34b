package noise

import (
	"encoding/binary"
	"math/bits"
)

// scanGeneric sets idx[i] to the number of thresholds that the i-th word of raw
// reaches (threshold ≤ word). A word is four bytes, little-endian, less the lowest
// bit. Every threshold is compared with every word: no branch and no address depends
// on a word.
func scanGeneric(idx []uint32, raw []byte, sums []uint32) {
	n := uint32(len(sums))
	raw = raw[:4*len(idx)]
	for ; len(idx) >= 4; raw, idx = raw[16:], idx[4:] {
		x0 := binary.LittleEndian.Uint32(raw) >> 1
		x1 := binary.LittleEndian.Uint32(raw[4:]) >> 1
		x2 := binary.LittleEndian.Uint32(raw[8:]) >> 1
		x3 := binary.LittleEndian.Uint32(raw[12:]) >> 1
		c0, c1, c2, c3 := n, n, n, n
		for _, t := range sums {
			// The top bit of x − t is the borrow: set if x < t.
			c0 -= (x0 - t) >> 31
			c1 -= (x1 - t) >> 31
			c2 -= (x2 - t) >> 31
			c3 -= (x3 - t) >> 31
		}
		idx[0], idx[1], idx[2], idx[3] = c0, c1, c2, c3
	}
}

// bins is how many parts of a table the kernel searches, and how many words a
// register of it holds.
const bins = 8

// binned lays the thresholds out for the kernel, which counts those that a word exceeds. First
// come the last ones of the first seven of eight bins of as many thresholds each, so that seven
// comparisons find the bin; then, for each place in a bin, the thresholds of all bins side by
// side, from which a permutation of registers picks that of the word's bin. No word exceeds the
// values that fill the last bins.
func binned(sums []uint32) []int32 {
	const never = 1<<31 - 1
	size := max(1, (len(sums)+bins-1)/bins)
	at := func(bin, place int) int32 {
		if i := bin*size + place; i < len(sums) {
			return int32(sums[i]) - 1
		}
		return never
	}
	table := make([]int32, bins+bins*size)
	for bin := range bins {
		table[bin] = never
		if bin < bins-1 {
			table[bin] = at(bin, size-1)
		}
		for place := range size {
			table[bins+bins*place+bin] = at(bin, place)
		}
	}
	return table
}

// resolveGeneric replaces the outcomes in idx that are full or more, the columns
// next to each other in rows, by those in the column's slots, the first by the first
// and those after the last by the last. It writes to slots.
func resolveGeneric(idx []uint32, slots *[maxSlots * columns]uint32, full uint32) {
	for ; len(idx) >= columns; idx = idx[columns:] {
		for c, x := range idx[:columns] {
			need := beyond(x, full)
			idx[c] = x ^ (x^slots[c])&need
			for at := c; at < (maxSlots-1)*columns; at += columns {
				slots[at] ^= (slots[at] ^ slots[at+columns]) & need
			}
		}
	}
}

// beyond is all ones if x ≥ full and zero otherwise, for x and full below 2^31.
func beyond(x, full uint32) uint32 { return ^uint32(int32(x-full) >> 31) }

// tossGeneric adds 2^plane·(heads − 20) to each sample whose grid is coarser than the
// plane, heads being the ones among 40 bits: four bytes of each sample, and then one of
// each.
func tossGeneric(out []int64, grids []uint32, raw []byte, plane uint32) {
	last := raw[4*len(out):]
	grids, last = grids[:len(out)], last[:len(out)]
	for i := range out {
		// Not OnesCount8, which looks bytes up in memory.
		heads := bits.OnesCount32(binary.LittleEndian.Uint32(raw[4*i:])) +
			bits.OnesCount32(uint32(last[i]))
		in := int64(int32(plane)-int32(grids[i])) >> 63 // all ones if plane < grid
		out[i] += int64(heads-coins/2) << (plane & 63) & in
	}
}
