package node_test

import (
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// childNATS is an operator's NATS, in a process of its own.
func childNATS() {
	folder := os.Getenv("HUSHSUM_TEST_FOLDER")
	options := &server.Options{
		JetStream:  true,
		StoreDir:   filepath.Join(folder, "nats"),
		SyncAlways: true,
		NoLog:      true,
		NoSigs:     true,
	}
	var at string
	child(find(folder, "nats-address", &at))
	to, err := net.ResolveTCPAddr("tcp", at)
	child(err)
	options.Host, options.Port = to.IP.String(), to.Port
	s, err := server.NewServer(options)
	child(err)
	s.Start()
	s.WaitForShutdown()
}

// childClock is the clock of a child: it is off by what a file of the child's says.
func childClock(folder, name string) func() time.Time {
	return func() time.Time {
		var off time.Duration
		_ = find(folder, "clock-"+name, &off) // mostly there is none
		return time.Now().Add(off)
	}
}
