package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// This file has the Merkle hash tree of RFC 9162 §2.1 over the ciphertexts that a
// party makes in set-up, so that it signs all of them once and each peer can check
// its own alone.

// leafHash is the hash of a ciphertext for a party.
func leafHash(to int, ciphertext []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte{0})
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(to)))
	h.Write(ciphertext)
	return [32]byte(h.Sum(nil))
}

func nodeHash(left, right [32]byte) [32]byte {
	var b [65]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[33:], right[:])
	return sha256.Sum256(b[:])
}

// leftOf returns how many of n > 1 leaves are on the left of the root: the largest
// power of two below n.
func leftOf(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

// treeRoot returns the root over leaves (RFC 9162 §2.1.1).
func treeRoot(leaves [][32]byte) [32]byte {
	switch n := len(leaves); n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	default:
		k := leftOf(n)
		return nodeHash(treeRoot(leaves[:k]), treeRoot(leaves[k:]))
	}
}

// treePaths returns the root over one leaf or more and, for each leaf, the nodes
// that lead from it to the root, upwards (RFC 9162 §2.1.3.1).
func treePaths(leaves [][32]byte) (root [32]byte, paths [][][32]byte) {
	n := len(leaves)
	if n == 1 {
		return leaves[0], make([][][32]byte, 1)
	}
	k := leftOf(n)
	left, paths := treePaths(leaves[:k])
	right, more := treePaths(leaves[k:])
	for i := range paths {
		paths[i] = append(paths[i], right)
	}
	for i := range more {
		paths = append(paths, append(more[i], left))
	}
	return nodeHash(left, right), paths
}

// pathLength returns the length of the path of leaf i of n.
func pathLength(i, n int) int {
	length := 0
	for n > 1 {
		k := leftOf(n)
		if i < k {
			n = k
		} else {
			i, n = i-k, n-k
		}
		length++
	}
	return length
}

// climb returns the root that a path leads to from leaf i of n. The path has the
// length of [pathLength].
func climb(leaf [32]byte, i, n int, path [][32]byte) [32]byte {
	if n <= 1 {
		return leaf
	}
	k, last := leftOf(n), len(path)-1
	if i < k {
		return nodeHash(climb(leaf, i, k, path[:last]), path[last])
	}
	return nodeHash(path[last], climb(leaf, i-k, n-k, path[:last]))
}
