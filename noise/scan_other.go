//go:build !amd64 || purego

package noise

// scan is scanGeneric for a level of a table.
func scan(idx []uint32, raw []byte, l *level) { scanGeneric(idx, raw, l.sums) }

func resolve(idx []uint32, slots *[maxSlots * columns]uint32, full uint32) {
	resolveGeneric(idx, slots, full)
}

func toss(out []int64, grids []uint32, raw []byte, plane uint32) {
	tossGeneric(out, grids, raw, plane)
}
