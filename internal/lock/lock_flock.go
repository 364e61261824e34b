//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// locked is a file that is locked.
type locked struct{ *os.File }

// Close ends the lock, then closes the file. Closing alone leaves the lock to copies of the
// descriptor: a process that another goroutine starts at this moment has one until it executes
// its program.
func (l locked) Close() error {
	err := flock(l.File, unix.LOCK_UN)
	if errors.Is(err, os.ErrClosed) { // as the next line says
		err = nil
	}
	return errors.Join(err, l.File.Close())
}

// lockFile locks an open file until what it returns is closed.
func lockFile(f *os.File) (io.Closer, error) {
	err := flock(f, unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, ErrHeld
	case err != nil:
		return nil, err
	}
	return locked{f}, nil
}

// flock calls the system's flock, again where a signal interrupts it.
func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(descriptor uintptr) {
		for {
			failed = unix.Flock(int(descriptor), how)
			if !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("flock", failed)
}
