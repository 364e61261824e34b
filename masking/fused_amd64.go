//go:build amd64 && !purego

package masking

import (
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C ../tools ./masks -out ../masking/fused_amd64.s

// A kernel makes keystream for a number of turns and applies it to as much of dst. first is the
// first counter block, but with the number in its last four bytes in little-endian order, a
// multiple of the blocks of a turn; low and high are body and top of addSlots. Command masks says
// why its time does not depend on secrets.
type kernel func(dst *uint64, turns int, keys, first *byte, low, high uint64)

// A path is a way of making masks, by instructions that not every processor has.
type path struct {
	name     string
	has      func() bool
	words    int // of a turn
	add, sub kernel
	add32    kernel // of slots of 32 bits, which the machine adds in one instruction
	sub32    kernel
}

// paths are in the order of their speed.
var paths = []*path{
	{"avx512", func() bool {
		return hasWide() && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW
	}, 64, addMaskAVX512, subMaskAVX512, add32MaskAVX512, sub32MaskAVX512},
	{"avx2", hasWide, 32, addMaskAVX2, subMaskAVX2, add32MaskAVX2, sub32MaskAVX2},
	{"aesni", hasAES, 16, addMaskAESNI, subMaskAESNI, add32MaskAESNI, sub32MaskAESNI},
}

func hasAES() bool  { return cpu.X86.HasAES && cpu.X86.HasAVX2 }
func hasWide() bool { return hasAES() && hasVAES() }

// fused is the path in use, or nil for the portable code.
var fused = choose(os.Getenv("HUSHSUM_CPU"))

// choose returns the fastest path that the processor has, from the one of the given name on, or
// nil for "portable": tests and benchmarks compare them. All make the same masks, in constant time.
func choose(name string) *path {
	if name == "portable" {
		return nil
	}
	from := 0
	for i, p := range paths {
		if p.name == name {
			from = i
		}
	}
	for _, p := range paths[from:] {
		if p.has() {
			return p
		}
	}
	return nil
}

// A batch is room for masks that are expanded together. All of it is secret.
type batch struct {
	keys  [batchMasks][11 * 16]byte
	first [batchMasks][16]byte
	tail  [64]uint64
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// fuse applies masks to a part of the vector if the processor has a path for them, or else reports
// false.
func (v *Vector) fuse(masks []mask, from, to int) bool {
	return fused != nil && fused.apply(v, masks, from, to)
}

func (p *path) apply(v *Vector, masks []mask, from, to int) bool {
	b := batches.Get().(*batch)
	used := min(len(masks), batchMasks)
	for len(masks) > 0 {
		some := masks[:min(len(masks), batchMasks)]
		masks = masks[len(some):]
		for i := range some {
			expandKey(&b.keys[i][0], &some[i].seed[0])
		}
		for s := range v.slices(from, to) {
			for i := range some {
				first := b.first[i][:12]
				copy(first, some[i].seed[16:])
				binary.BigEndian.PutUint32(first[8:], binary.BigEndian.Uint32(first[8:])^s.number)
			}
			p.segment(b, s, some)
		}
	}
	clear(b.keys[:used])
	clear(b.first[:used])
	clear(b.tail[:])
	batches.Put(b)
	return true
}

// segment applies masks to words of a segment, window by window.
func (p *path) segment(b *batch, s slice, masks []mask) {
	words := s.words
	high, low := s.masks()
	add, sub := p.add, p.sub
	if high == top32 {
		add, sub = p.add32, p.sub32
	}
	run := func(dst *uint64, turns, from int) {
		for i := range masks {
			binary.LittleEndian.PutUint32(b.first[i][12:], uint32((s.first+from)/2)) // two words a block
			if masks[i].subtract {
				sub(dst, turns, &b.keys[i][0], &b.first[i][0], low, high)
			} else {
				add(dst, turns, &b.keys[i][0], &b.first[i][0], low, high)
			}
		}
	}
	whole := len(words) / p.words * p.words
	for from := 0; from < whole; from += windowWords {
		run(&words[from], min(windowWords, whole-from)/p.words, from)
	}
	if rest := words[whole:]; len(rest) > 0 { // where a whole turn has room
		tail := b.tail[:p.words]
		clear(tail[copy(tail, rest):])
		run(&tail[0], 1, whole)
		copy(rest, tail)
	}
	s.end()
}

func hasVAES() bool

// expandKey writes the eleven round keys of AES-128 for the key that seed begins with.
//
//go:noescape
func expandKey(keys, seed *byte)

//go:noescape
func addMaskAVX512(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func subMaskAVX512(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func add32MaskAVX512(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func sub32MaskAVX512(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func addMaskAVX2(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func subMaskAVX2(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func add32MaskAVX2(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func sub32MaskAVX2(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func addMaskAESNI(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func subMaskAESNI(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func add32MaskAESNI(dst *uint64, turns int, keys, first *byte, low, high uint64)

//go:noescape
func sub32MaskAESNI(dst *uint64, turns int, keys, first *byte, low, high uint64)
