package keyfile

import (
	"io/fs"
	"testing"
)

// The group may read a secret that root mounts for a process that is not root's; nobody else may
// read one, nor write it.
func TestPrivate(t *testing.T) {
	for mode := range fs.FileMode(0o1000) {
		mine, mounted := mode&0o077 == 0, mode&0o037 == 0
		if private(mode, false) != mine || private(mode, true) != mounted {
			t.Errorf("%03o: %v, mounted %v", mode, private(mode, false), private(mode, true))
		}
	}
}
