package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// locked is a file that is locked.
type locked struct{ *os.File }

// Close ends the lock, then closes the file. If a file is only closed, the system ends its lock
// when it has time for that.
func (l locked) Close() error {
	err := windows.UnlockFileEx(windows.Handle(l.Fd()), 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_INVALID_HANDLE) { // closed, as the next line says
		err = nil
	}
	return errors.Join(os.NewSyscallError("UnlockFileEx", err), l.File.Close())
}

// lockFile locks an open file until what it returns is closed.
func lockFile(f *os.File) (io.Closer, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return locked{f}, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return nil, ErrHeld
	}
	return nil, os.NewSyscallError("LockFileEx", err)
}
