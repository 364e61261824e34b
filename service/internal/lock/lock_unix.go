//go:build unix

package lock

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file for this process; the lock ends with it.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
