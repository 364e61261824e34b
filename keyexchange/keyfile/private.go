package keyfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// ErrExposed: others of the machine may read a file that has a secret.
var ErrExposed = errors.New("keyfile: others may read a file that contains a secret")

// Private fails with [ErrExposed] if a file may be read or written by others than its owner, on
// systems that have such permissions. The group may read a file of root's where this process is
// not root's: Kubernetes mounts secrets so.
func Private(name string) error {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if private(info.Mode().Perm(), ownedByRoot(info) && os.Geteuid() > 0) {
		return nil
	}
	return fmt.Errorf("%w: chmod 600 %s", ErrExposed, name)
}

func private(mode fs.FileMode, mounted bool) bool {
	return mode&0o077 == 0 || mounted && mode&0o037 == 0
}
