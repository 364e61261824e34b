package door

import (
	"bytes"
	"sync/atomic"
)

// counted reads bytes and counts them.
type counted struct {
	*bytes.Reader
	count *atomic.Int64
}

func newCounted(b []byte, count *atomic.Int64) *counted {
	return &counted{bytes.NewReader(b), count}
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count.Add(int64(n))
	return n, err
}
