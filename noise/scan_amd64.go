//go:build amd64 && !purego

package noise

import "golang.org/x/sys/cpu"

// scanAVX2 takes what [binned] makes. n is a positive multiple of 8, size that of a
// bin.
//
//go:noescape
func scanAVX2(idx *uint32, raw *byte, n int, table *int32, size int)

// resolveAVX2 takes n outcomes, a positive multiple of 8.
//
//go:noescape
func resolveAVX2(idx *uint32, n int, slots *[maxSlots * columns]uint32, full uint32)

// tossAVX2 takes n samples, a positive multiple of 8.
//
//go:noescape
func tossAVX2(out *int64, grids *uint32, raw *byte, n int, plane uint32)

// scan is scanGeneric for a level of a table. len(idx) is a multiple of 8.
func scan(idx []uint32, raw []byte, l *level) {
	if cpu.X86.HasAVX2 && len(idx) > 0 && len(idx)%columns == 0 {
		_ = raw[4*len(idx)-1]
		scanAVX2(&idx[0], &raw[0], len(idx), &l.binned[0], len(l.binned)/bins-1)
		return
	}
	scanGeneric(idx, raw, l.sums)
}

func resolve(idx []uint32, slots *[maxSlots * columns]uint32, full uint32) {
	if cpu.X86.HasAVX2 && len(idx) > 0 && len(idx)%columns == 0 {
		resolveAVX2(&idx[0], len(idx), slots, full)
		return
	}
	resolveGeneric(idx, slots, full)
}

func toss(out []int64, grids []uint32, raw []byte, plane uint32) {
	if cpu.X86.HasAVX2 && len(out) > 0 && len(out)%columns == 0 {
		_, _ = grids[len(out)-1], raw[coins/8*len(out)-1]
		tossAVX2(&out[0], &grids[0], &raw[0], len(out), plane)
		return
	}
	tossGeneric(out, grids, raw, plane)
}
