package hushsum

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

// pieceWriter sends what is written to it as one body of a kind: as a frame of that kind
// if it is short, else in pieces before it.
type pieceWriter struct {
	send  func(frame []byte) error
	frame []byte // framePart, the kind, and what has not been sent
}

func newPieceWriter(kind byte, send func(frame []byte) error) *pieceWriter {
	return &pieceWriter{send: send, frame: []byte{framePart, kind}}
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

// sendBody sends a body of any length.
func sendBody(kind byte, body io.WriterTo, send func(frame []byte) error) error {
	w := newPieceWriter(kind, send)
	if _, err := body.WriteTo(w); err != nil {
		return err
	}
	return w.Close()
}

// broadcastReader takes the bytes of a broadcast.
type broadcastReader struct {
	head    []byte
	weights *weightsReader
	hash    io.Writer
	digest  func() [32]byte
}

// newBroadcastReader takes a model into the room for it.
func newBroadcastReader(room weights) *broadcastReader {
	h := protocol.NewBroadcastHash()
	return &broadcastReader{
		weights: newWeightsReader(room),
		hash:    h,
		digest:  func() [32]byte { return [32]byte(h.Sum(nil)) },
	}
}

// Write takes the next bytes. It fails with [ErrFrame].
func (r *broadcastReader) Write(b []byte) (int, error) {
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

// end returns the broadcast, if all of it has come.
func (r *broadcastReader) end() (*broadcast, error) {
	if len(r.head) < broadcastHead {
		return nil, fmt.Errorf("%w: a broadcast of %d bytes", ErrFrame, len(r.head))
	}
	model, err := r.weights.end()
	if err != nil {
		return nil, err
	}
	return &broadcast{
		round:  binary.BigEndian.Uint64(r.head),
		fresh:  [32]byte(r.head[8:]),
		model:  model,
		digest: r.digest(),
	}, nil
}

// spool holds a long message of a party in a file until all of it has come.
type spool struct {
	file  *os.File
	size  int64
	limit int64
}

// newSpool makes a file in a folder, of which the name is gone at once where the system
// can do that.
func newSpool(folder string, limit int64) (*spool, error) {
	file, err := os.CreateTemp(folder, "hushsum-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name())
	return &spool{file: file, limit: limit}, nil
}

// Write fails with [ErrFrame] beyond the limit.
func (s *spool) Write(b []byte) (int, error) {
	if s.size += int64(len(b)); s.size > s.limit {
		return 0, fmt.Errorf("%w: a message of more than %d bytes", ErrFrame, s.limit)
	}
	return s.file.Write(b)
}

// message returns what was written, from its beginning.
func (s *spool) message() io.Reader { return io.NewSectionReader(s.file, 0, s.size) }

// drop gives the file up.
func (s *spool) drop() {
	if s != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}
