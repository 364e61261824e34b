package sidecar

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"unsafe"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/strict"
)

// version is the version of the frames and calls.
const version = 4

// Bounds of a frame.
const (
	maxHeader = 4 << 20 // bytes
	maxBlobs  = 1 << 14
	maxBlob   = 1 << 31 // bytes, of one and of all together
	firstRead = 1 << 20 // bytes that are allocated before they have arrived
)

// ErrFrame: the bytes received are not a frame. It is then unknown where the next one begins, so
// the sidecar answers and ends.
var ErrFrame = errors.New("sidecar: not a frame of this protocol")

// request is one call.
type request struct {
	id    uint64
	call  string
	with  []byte // JSON object
	blobs []blob
}

// blob is an array of bytes that came with a call.
type blob struct {
	bytes  []byte
	shared bool // it is in memory that the caller can write to
}

// requestHeader is the JSON of a frame to the sidecar.
type requestHeader struct {
	ID    *uint64         `json:"id"`
	Call  string          `json:"call"`
	With  json.RawMessage `json:"with"`
	Blobs []blobHeader    `json:"blobs"`
}

// blobHeader announces a blob. Without an offset it follows in the frame; with one it is in the
// shared memory.
type blobHeader struct {
	Length int64  `json:"length"`
	Offset *int64 `json:"offset,omitempty"`
}

// replyHeader is the JSON of a frame from the sidecar. It has a result or an error.
type replyHeader struct {
	ID     uint64       `json:"id"`
	Result any          `json:"result,omitempty"`
	Error  *faultJSON   `json:"error,omitempty"`
	Blobs  []blobHeader `json:"blobs,omitempty"`
}

// readRequest reads one frame. It fails with io.EOF where no frame begins, with
// [ErrFrame], and with errors of r. If the frame is whole but its header is not a call,
// the error is of the kind "request" and the request has its identifier, as far as known.
func readRequest(r *bufio.Reader, memory Memory) (*request, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%w: it ends within its length", ErrFrame)
	} else if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 2 || n > maxHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes, where 2 to %d are possible", ErrFrame, n,
			maxHeader)
	}
	text, err := readBlob(r, int64(n))
	if err != nil {
		return nil, err
	}
	var h requestHeader
	if err := strict.JSON(text, &h); err != nil {
		return nil, fmt.Errorf("%w: the header: %v", ErrFrame, err)
	}
	if h.ID == nil || h.Call == "" {
		return nil, fmt.Errorf("%w: the header needs id and call", ErrFrame)
	}
	if len(h.Blobs) > maxBlobs {
		return nil, fmt.Errorf("%w: %d blobs, where %d are possible", ErrFrame, len(h.Blobs), maxBlobs)
	}
	total := int64(0)
	for _, b := range h.Blobs {
		if b.Length < 0 || b.Length > maxBlob {
			return nil, fmt.Errorf("%w: a blob of %d bytes, where %d are possible", ErrFrame, b.Length,
				int64(maxBlob))
		}
		if total += b.Length; total > maxBlob {
			return nil, fmt.Errorf("%w: its blobs are more than %d bytes", ErrFrame, int64(maxBlob))
		}
	}
	out := &request{id: *h.ID, call: h.Call, with: h.With}
	var refused error
	for _, b := range h.Blobs {
		if b.Offset == nil {
			bytes, err := readBlob(r, b.Length)
			if err != nil {
				return nil, err
			}
			out.blobs = append(out.blobs, blob{bytes: bytes})
			continue
		}
		bytes, err := memory.at(*b.Offset, b.Length)
		if err != nil && refused == nil {
			refused = err // the frame is whole all the same
		}
		out.blobs = append(out.blobs, blob{bytes: bytes, shared: true})
	}
	return out, refused
}

// readBlob reads n bytes, and allocates little before any have arrived.
func readBlob(r *bufio.Reader, n int64) ([]byte, error) {
	out := make([]byte, 0, min(n, firstRead))
	for int64(len(out)) < n {
		more := min(n-int64(len(out)), max(firstRead, int64(len(out))))
		have := len(out)
		if int64(cap(out)-have) < more {
			grown := make([]byte, have, int64(have)+more)
			copy(grown, out)
			out = grown
		}
		out = out[:int64(have)+more]
		if _, err := io.ReadFull(r, out[have:]); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return nil, fmt.Errorf("%w: it ends early", ErrFrame)
			}
			return nil, err
		}
	}
	return out, nil
}

// body is a blob of an answer that is written in pieces.
type body interface {
	io.WriterTo
	Size() int64
}

// inMemory is a body that is available as bytes.
type inMemory []byte

func (b inMemory) Size() int64 { return int64(len(b)) }

func (b inMemory) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// writeReply writes one frame.
func writeReply(w *bufio.Writer, h replyHeader, blobs []body) error {
	for _, b := range blobs {
		h.Blobs = append(h.Blobs, blobHeader{Length: b.Size()})
	}
	text, err := json.Marshal(h)
	if err == nil && len(text) > maxHeader {
		err = fmt.Errorf("%w: the answer's header has %d bytes", ErrFrame, len(text))
	}
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text)))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	for _, b := range blobs {
		if _, err := b.WriteTo(w); err != nil {
			return err
		}
	}
	return w.Flush()
}

// floats returns the numbers of a blob, little-endian, in place where that is possible.
func floats[F aggregation.Float](b []byte) ([]F, error) {
	size := int(unsafe.Sizeof(F(0)))
	if len(b)%size != 0 {
		return nil, fmt.Errorf("%d bytes are not float%d numbers of %d bytes each", len(b), 8*size, size)
	}
	n := len(b) / size
	if n == 0 {
		return []F{}, nil
	}
	first := unsafe.Pointer(unsafe.SliceData(b))
	if littleEndian && uintptr(first)%uintptr(size) == 0 {
		return unsafe.Slice((*F)(first), n), nil
	}
	out := make([]F, n)
	for i := range out {
		if size == 4 {
			out[i] = F(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		} else {
			out[i] = F(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
	}
	return out, nil
}

// floatBlob is the inverse of floats; the bytes may be those of x.
func floatBlob[F aggregation.Float](x []F) []byte {
	size := int(unsafe.Sizeof(F(0)))
	if len(x) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), size*len(x))
	}
	out := make([]byte, 0, size*len(x))
	for _, v := range x {
		if size == 4 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		} else {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(v)))
		}
	}
	return out
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
