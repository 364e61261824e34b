package node

import "net"

// sendBuffer is how many bytes of an answer the kernel takes, of which Linux keeps room for
// twice as many, before its reader has had any.
const sendBuffer = 256 << 10

// boundedListener bounds what the kernel holds of answers that are not read. Left to itself
// it takes some megabytes of each, so that thousands of slow parties fill all the memory
// that it has for TCP, and every connection crawls; what the runner lets out at once
// (runner.Options.OutRoom) would then bound nothing.
type boundedListener struct{ net.Listener }

func (l boundedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // without it the connection works too
	}
	return c, err
}
