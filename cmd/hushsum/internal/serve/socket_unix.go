//go:build unix

package serve

import (
	"net"
	"syscall"
)

// listenPrivately listens at a Unix socket that only this user can open, from the moment it exists:
// with a mode that is set later there is a moment in which others can connect. The mask applies to
// the whole process, which makes no other file at that time.
func listenPrivately(path string) (net.Listener, error) {
	defer syscall.Umask(syscall.Umask(0o177))
	return net.Listen("unix", path)
}
