//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks an open file; the lock ends with it.
func lockFile(f *os.File) (io.Closer, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return nil, ErrHeld
		case !errors.Is(err, unix.EINTR):
			return nil, os.NewSyscallError("flock", err)
		}
	}
}
