//go:build unix

package node

import "syscall"

// mostFiles is how many files are counted with, however many a process may open.
const mostFiles = 1 << 20

// openFiles returns how many files this process may open, 0 if it is not known.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(uint64(limit.Cur), mostFiles))
}
