//go:build amd64 && !purego

package noise

import "golang.org/x/sys/cpu"

//go:noescape
func scanAVX2(idx, u *uint64, n int, table *uint64, k int)

func scan(idx, u, table []uint64) {
	if cpu.X86.HasAVX2 && len(u) > 0 && len(u)%columns == 0 && len(table) > 0 {
		_ = idx[len(u)-1]
		scanAVX2(&idx[0], &u[0], len(u), &table[0], len(table))
		return
	}
	scanGeneric(idx, u, table)
}
