//go:build !unix

package serve

import "net"

// listenPrivately listens at a Unix socket, which is as private as its folder: the system has no
// modes.
func listenPrivately(path string) (net.Listener, error) { return net.Listen("unix", path) }
