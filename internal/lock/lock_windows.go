package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile locks an open file; the lock ends with it.
func lockFile(f *os.File) (io.Closer, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return nil, ErrHeld
	}
	return nil, os.NewSyscallError("LockFileEx", err)
}
