//go:build !unix

package node

// openFiles returns how many files this process may open, 0 if it is not known.
func openFiles() int { return 0 }

// usedFiles returns how many files this process has open, 0 if it is not known.
func usedFiles() int { return 0 }

// diskOf returns the free and the total bytes of a folder's disk, 0 if not known.
func diskOf(string) (free, size uint64) { return 0, 0 }
