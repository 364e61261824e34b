package link

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/hushsum/hushsum/protocol"
)

// What is long goes over a link in pieces, and is nowhere held as one slice: models are
// read into numbers, submissions into files.

// pieceSize is the longest body of a frame that a driver sends.
const pieceSize = 1 << 20

// MaxFrame is the longest frame, in bytes: a piece with its kind, in a frame of kind part. Both
// sides of a link receive none that is longer: what a peer says of a length takes no more memory.
const MaxFrame = 2 + pieceSize

// pieceWriter sends what is written to it as one body of a kind: as a frame of that kind
// if it is short, else in pieces before it.
type pieceWriter struct {
	send  func(frame []byte) error
	frame []byte // KindPart, the kind, and what has not been sent
}

// Write sends what fills a piece.
func (w *pieceWriter) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if len(w.frame) == 2+pieceSize {
			if err := w.send(w.frame); err != nil {
				return written, err
			}
			w.frame = w.frame[:2]
		}
		n := min(len(b), 2+pieceSize-len(w.frame))
		if need := len(w.frame) + n; need > cap(w.frame) { // twice as much, not a quarter more
			room := min(max(need, 2*cap(w.frame)), 2+pieceSize)
			w.frame = append(make([]byte, 0, room), w.frame...)
		}
		w.frame = append(w.frame, b[:n]...)
		b, written = b[n:], written+n
	}
	return written, nil
}

// Close sends the last frame.
func (w *pieceWriter) Close() error { return w.send(w.frame[1:]) }

// SendBody sends a body of any length.
func SendBody(kind byte, body io.WriterTo, send func(frame []byte) error) error {
	w := &pieceWriter{send: send, frame: []byte{KindPart, kind}}
	if _, err := body.WriteTo(w); err != nil {
		return err
	}
	return w.Close()
}

// BroadcastReader takes the bytes of a broadcast.
type BroadcastReader struct {
	head    []byte
	weights *weightsReader
	hash    io.Writer
	digest  func() [32]byte
}

// NewBroadcastReader takes a model into the room for it.
func NewBroadcastReader(room Weights) *BroadcastReader {
	h := protocol.NewBroadcastHash()
	return &BroadcastReader{
		weights: newWeightsReader(room),
		hash:    h,
		digest:  func() [32]byte { return [32]byte(h.Sum(nil)) },
	}
}

// Write takes the next bytes. It fails with [ErrFrame].
func (r *BroadcastReader) Write(b []byte) (int, error) {
	if _, err := r.hash.Write(b); err != nil {
		return 0, err
	}
	n := min(broadcastHead-len(r.head), len(b))
	r.head = append(r.head, b[:n]...)
	if _, err := r.weights.Write(b[n:]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// End returns the broadcast, if all of it has come.
func (r *BroadcastReader) End() (*Broadcast, error) {
	if len(r.head) < broadcastHead {
		return nil, fmt.Errorf("%w: a broadcast of %d bytes", ErrFrame, len(r.head))
	}
	model, err := r.weights.end()
	if err != nil {
		return nil, err
	}
	return &Broadcast{
		Round:  binary.BigEndian.Uint64(r.head),
		Fresh:  [32]byte(r.head[8:]),
		Model:  model,
		Digest: r.digest(),
	}, nil
}

// Spool holds a long message of a party in a file until all of it has come.
type Spool struct {
	file  *os.File
	size  int64
	limit int64
}

// NewSpool makes a file in a folder, whose name is removed at once where the system can
// do that.
func NewSpool(folder string, limit int64) (*Spool, error) {
	file, err := os.CreateTemp(folder, "hushsum-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name())
	return &Spool{file: file, limit: limit}, nil
}

// Write fails with [ErrFrame] beyond the limit.
func (s *Spool) Write(b []byte) (int, error) {
	if s.size += int64(len(b)); s.size > s.limit {
		return 0, fmt.Errorf("%w: a message of more than %d bytes", ErrFrame, s.limit)
	}
	return s.file.Write(b)
}

// Message returns what was written, from its beginning.
func (s *Spool) Message() io.Reader { return io.NewSectionReader(s.file, 0, s.size) }

// Drop gives the file up.
func (s *Spool) Drop() {
	if s != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
