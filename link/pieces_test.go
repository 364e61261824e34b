package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
)

// Bodies of all lengths about those of pieces arrive as they were sent, none in a frame
// that is longer than a piece and its head.
func TestPieces(t *testing.T) {
	for _, size := range []int{
		0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 2 * pieceSize, 3*pieceSize + 5,
	} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(i * 7)
		}
		var sent [][]byte
		err := SendBody(KindMessage, bytes.NewReader(body), func(frame []byte) error {
			if len(frame) > pieceSize+2 {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			sent = append(sent, slices.Clone(frame))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i, f := range sent {
			if i < len(sent)-1 {
				if f[0] != KindPart || f[1] != KindMessage {
					t.Fatalf("frame %d of %d begins with %x", i, len(sent), f[:2])
				}
				got = append(got, f[2:]...)
				continue
			}
			if f[0] != KindMessage {
				t.Fatalf("the last begins with %x", f[:1])
			}
			got = append(got, f[1:]...)
		}
		if !bytes.Equal(got, body) {
			t.Errorf("%d bytes arrive otherwise", size)
		}
		if size <= pieceSize && len(sent) != 1 {
			t.Errorf("%d bytes take %d frames", size, len(sent))
		}
	}
	broken := errors.New("broken")
	err := SendBody(KindMessage, bytes.NewReader(make([]byte, 3*pieceSize)),
		func([]byte) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("a link that breaks: %v", err)
	}
}

// testBroadcast is one whose bytes are known.
func testBroadcast(t testing.TB, length int) (*Broadcast, []byte) {
	t.Helper()
	model := make(Floats[float64], length)
	for i := range model {
		model[i] = math.Sqrt(float64(i)) - 3
	}
	b := &Broadcast{Round: 7, Fresh: [32]byte{1, 2, 3}, Model: model}
	if err := b.Settle(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := b.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if b.Digest != job.BroadcastDigest(text.Bytes()) {
		t.Fatal("written and appended it is not the same")
	}
	return b, text.Bytes()
}

// A broadcast that comes in pieces of any size is that which was sent; one that is too
// short, too long or no numbers is refused.
func TestBroadcastReader(t *testing.T) {
	const length = 9001
	want, text := testBroadcast(t, length)
	for _, size := range []int{1, 3, 7, 8, 39, 41, 1000, len(text)} {
		r := NewBroadcastReader(make(Floats[float64], length))
		for piece := range slices.Chunk(text, size) {
			if _, err := r.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.End()
		if err != nil || got.Round != want.Round || got.Fresh != want.Fresh ||
			got.Digest != want.Digest ||
			!slices.Equal(FloatsOf[float64](got.Model), FloatsOf[float64](want.Model)) {
			t.Errorf("in pieces of %d it arrives otherwise: %v", size, err)
		}
	}
	for _, cut := range []int{0, 39, 40, 47, len(text) - 8, len(text) - 1} {
		r := NewBroadcastReader(make(Floats[float64], length))
		if _, err := r.Write(text[:cut]); err != nil {
			t.Fatal(err)
		}
		if b, err := r.End(); b != nil || !errors.Is(err, ErrFrame) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	for name, bad := range map[string][]byte{
		"long": append(slices.Clone(text), 0),
		"NaN":  append(slices.Clone(text[:40]), 0x7f, 0xf8, 0, 0, 0, 0, 0, 0),
	} {
		r := NewBroadcastReader(make(Floats[float64], length))
		if _, err := r.Write(bad); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	infinite := &Broadcast{Model: Floats[float64]{math.Inf(1)}}
	if err := infinite.Settle(); !errors.Is(err, aggregation.ErrNotFinite) {
		t.Errorf("an infinite weight: %v", err)
	}
}

// parseBroadcast parses one whose model is held as float64.
func parseBroadcast(in []byte, length int) (*Broadcast, error) {
	if len(in) < broadcastHead {
		return nil, fmt.Errorf("%w: a broadcast of %d bytes", ErrFrame, len(in))
	}
	b := &Broadcast{Round: binary.BigEndian.Uint64(in), Fresh: [32]byte(in[8:])}
	model, err := aggregation.ParseModel(in[broadcastHead:], length)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	b.Model = Floats[float64](model)
	return b, nil
}

// FuzzBroadcastReader: however a broadcast is cut, the reader takes it if the parser of whole ones
// does.
func FuzzBroadcastReader(f *testing.F) {
	_, text := testBroadcast(f, 3)
	f.Add(text, 5)
	f.Add(text[:50], 8)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size < 1 || size > 64 {
			return
		}
		want, failed := parseBroadcast(in, 3)
		r := NewBroadcastReader(make(Floats[float64], 3))
		var err error
		for piece := range slices.Chunk(in, size) {
			if _, err = r.Write(piece); err != nil {
				break
			}
		}
		var got *Broadcast
		if err == nil {
			got, err = r.End()
		}
		if (err == nil) != (failed == nil) {
			t.Fatalf("in pieces: %v, whole: %v", err, failed)
		}
		if err != nil {
			return
		}
		same := slices.Equal(FloatsOf[float64](got.Model), FloatsOf[float64](want.Model))
		if got.Round != want.Round || got.Fresh != want.Fresh || !same ||
			got.Digest != job.BroadcastDigest(in) {
			t.Error("in pieces it is another")
		}
	})
}
