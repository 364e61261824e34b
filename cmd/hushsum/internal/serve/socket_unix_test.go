//go:build unix

package serve

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// There is no moment in which others could connect to the sidecar's socket, whatever the
// user's mask lets new files be.
func TestSocketIsPrivate(t *testing.T) {
	folder, err := os.MkdirTemp("", "hs") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "s")
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if info, err := os.Lstat(path); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("the socket has mode %v", info.Mode())
				return
			}
		}
	})
	for range 100 {
		listener, err := listenPrivately(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket has mode %v, %v", info.Mode(), err)
		}
		if mask := syscall.Umask(0); mask != 0 {
			t.Errorf("the mask is left at %o", mask)
		}
		if second, err := listenPrivately(path); err == nil {
			_ = second.Close()
			t.Error("a socket in use is replaced")
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	wait.Wait()
}
