//go:build amd64 && !purego

package masking

import "golang.org/x/sys/cpu"

// turn is how many words one turn of the assembly loop takes.
const turn = 16

//go:noescape
func addStreamAVX2(dst *uint64, src *byte, n int, body, top uint64)

//go:noescape
func subStreamAVX2(dst *uint64, src *byte, n int, body, top uint64)

func addStream(dst []uint64, src []byte, body, top uint64) {
	src = src[:8*len(dst)]
	if n := len(dst) &^ (turn - 1); n > 0 && cpu.X86.HasAVX2 {
		addStreamAVX2(&dst[0], &src[0], n, body, top)
		dst, src = dst[n:], src[8*n:]
	}
	addStreamGeneric(dst, src, body, top)
}

func subStream(dst []uint64, src []byte, body, top uint64) {
	src = src[:8*len(dst)]
	if n := len(dst) &^ (turn - 1); n > 0 && cpu.X86.HasAVX2 {
		subStreamAVX2(&dst[0], &src[0], n, body, top)
		dst, src = dst[n:], src[8*n:]
	}
	subStreamGeneric(dst, src, body, top)
}
