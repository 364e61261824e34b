//go:build !amd64 || purego

package normproof

func (b buckets) add(bytes []byte, values [][2]uint64, both bool) {
	b.addPortable(bytes, values, both)
}
