package oneshot

import "github.com/hushsum/hushsum/internal/labels"

// A party signs the root of a tree over its leaves, one for each member of the
// committee by its index, so that a member checks its own with ⌈log₂ C⌉ hashes. Places
// without a leaf, of members that have no key in the round and beyond the
// committee, hold zeros.

// tree returns all levels, leaves first and the root last.
func tree(leaves [][32]byte, depth int) [][][32]byte {
	level := make([][32]byte, 1<<depth)
	copy(level, leaves)
	levels := [][][32]byte{level}
	for len(level) > 1 {
		up := make([][32]byte, len(level)/2)
		for i := range up {
			up[i] = node(&level[2*i], &level[2*i+1])
		}
		level = up
		levels = append(levels, level)
	}
	return levels
}

func node(left, right *[32]byte) [32]byte { return hash(labels.OneshotNode, left[:], right[:]) }

// path returns the siblings of a leaf on the way to the root.
func path(levels [][][32]byte, at int) [][32]byte {
	var out [][32]byte
	for _, level := range levels[:len(levels)-1] {
		out = append(out, level[at^1])
		at /= 2
	}
	return out
}

// rootOf returns the root that a leaf and its path give.
func rootOf(leaf [32]byte, at int, path [][32]byte) [32]byte {
	for i := range path {
		if at%2 == 0 {
			leaf = node(&leaf, &path[i])
		} else {
			leaf = node(&path[i], &leaf)
		}
		at /= 2
	}
	return leaf
}
