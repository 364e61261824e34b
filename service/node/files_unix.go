//go:build unix

package node

import (
	"os"
	"syscall"
)

// mostFiles is the largest number of files that is assumed, however many a process may open.
const mostFiles = 1 << 20

// openFiles returns how many files this process may open, 0 if it is not known.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), mostFiles))
}

// usedFiles returns how many files this process has open, 0 if it is not known.
func usedFiles() int {
	for _, folder := range []string{"/proc/self/fd", "/dev/fd"} {
		if open, err := os.ReadDir(folder); err == nil {
			return len(open) - 1 // the folder itself
		}
	}
	return 0
}

// diskOf returns the free and the total bytes of a folder's disk, 0 if not known.
func diskOf(folder string) (free, size uint64) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, 0
	}
	return uint64(s.Bavail) * uint64(s.Bsize), uint64(s.Blocks) * uint64(s.Bsize)
}
