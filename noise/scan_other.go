//go:build !amd64 || purego

package noise

func scan(idx, u, table []uint64) { scanGeneric(idx, u, table) }
