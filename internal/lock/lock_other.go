//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package lock

import (
	"io"
	"os"
	"path/filepath"
	"sync"
)

// owned has the names that this process has locked.
var owned sync.Map

// owner gives its name free when it is closed.
type owner struct {
	*os.File
	name string
}

func (o *owner) Close() error {
	owned.CompareAndDelete(o.name, o)
	return o.File.Close()
}

// lockFile notes the name of an open file as owned by this process.
func lockFile(f *os.File) (io.Closer, error) {
	name, err := filepath.Abs(f.Name())
	if err != nil {
		return nil, err
	}
	o := &owner{f, name}
	if _, taken := owned.LoadOrStore(name, o); taken {
		return nil, ErrHeld
	}
	return o, nil
}
