//go:build amd64 && !purego

package masking

import "golang.org/x/sys/cpu"

// turn is how many words one turn of the assembly loop takes.
const turn = 16

//go:noescape
func addStreamAVX2(dst *uint64, src *byte, n int, body, top uint64)

//go:noescape
func subStreamAVX2(dst *uint64, src *byte, n int, body, top uint64)

// top32 is the top of words with two slots of 32 bits, the only rings but bytes,
// 16 and 64 bits that the machine adds in one instruction, and the most common.
const top32 = 1<<63 | 1<<31

//go:noescape
func addStream32AVX2(dst *uint64, src *byte, n int)

//go:noescape
func subStream32AVX2(dst *uint64, src *byte, n int)

func addStream(dst []uint64, src []byte, body, top uint64) {
	src = src[:8*len(dst)]
	if n := len(dst) &^ (turn - 1); n > 0 && cpu.X86.HasAVX2 {
		if top == top32 {
			addStream32AVX2(&dst[0], &src[0], n)
		} else {
			addStreamAVX2(&dst[0], &src[0], n, body, top)
		}
		dst, src = dst[n:], src[8*n:]
	}
	addStreamGeneric(dst, src, body, top)
}

func subStream(dst []uint64, src []byte, body, top uint64) {
	src = src[:8*len(dst)]
	if n := len(dst) &^ (turn - 1); n > 0 && cpu.X86.HasAVX2 {
		if top == top32 {
			subStream32AVX2(&dst[0], &src[0], n)
		} else {
			subStreamAVX2(&dst[0], &src[0], n, body, top)
		}
		dst, src = dst[n:], src[8*n:]
	}
	subStreamGeneric(dst, src, body, top)
}
