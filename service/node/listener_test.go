package node

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// What a party does not read stays with the server, but for a bounded part; without the
// bound the kernel takes megabytes.
func TestBoundedListener(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("how much a kernel takes differs")
	}
	taken := func(bound bool) int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if bound {
			l = boundedListener{l}
		}
		reader, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		// Little goes to the reader's side, whose kernel is another's.
		if err := reader.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Write(make([]byte, 64<<20))
		if err == nil {
			t.Fatal("64 MB are written to somebody who does not read")
		}
		return n
	}
	with, without := taken(true), taken(false)
	t.Logf("%d kB are taken with the bound, %d without", with>>10, without>>10)
	if with > 1<<20 {
		t.Errorf("%d kB are taken with the bound", with>>10)
	}
	if without < 2*with {
		t.Skip("this kernel takes little of any connection")
	}
}
