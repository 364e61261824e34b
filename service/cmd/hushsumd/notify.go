package main

import (
	"fmt"
	"net"
	"os"
)

// started tells systemd that the program has started, if a unit of Type=notify waits for that.
func started() error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	to, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer to.Close()
	if _, err := to.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return nil
}
