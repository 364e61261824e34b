//go:build amd64 && !purego

package normproof

// add is [buckets.addPortable], but always adds both values, at once by instructions that every
// processor of amd64 has.
func (b buckets) add(bytes []byte, values [][2]uint64, _ bool) {
	if len(values) == 0 {
		return
	}
	bytes = bytes[:len(values)*len(b)]
	for g := 0; g < len(b); g += 4 {
		addFour((*[4][256][2]uint64)(b[g:]), &bytes[g], len(b), &values[0], len(values))
	}
}

// addFour adds n values to buckets of four groups, whose bytes of each column begin so many after
// those of the one before.
//
//go:noescape
func addFour(groups *[4][256][2]uint64, bytes *byte, stride int, values *[2]uint64, n int)
