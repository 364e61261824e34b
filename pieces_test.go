package hushsum

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
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
		var frames [][]byte
		err := sendBody(frameMessage, bytes.NewReader(body), func(frame []byte) error {
			if len(frame) > pieceSize+2 {
				t.Fatalf("a frame of %d bytes", len(frame))
			}
			frames = append(frames, slices.Clone(frame))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i, f := range frames {
			if i < len(frames)-1 {
				if f[0] != framePart || f[1] != frameMessage {
					t.Fatalf("frame %d of %d begins with %x", i, len(frames), f[:2])
				}
				got = append(got, f[2:]...)
				continue
			}
			if f[0] != frameMessage {
				t.Fatalf("the last begins with %x", f[:1])
			}
			got = append(got, f[1:]...)
		}
		if !bytes.Equal(got, body) {
			t.Errorf("%d bytes arrive otherwise", size)
		}
		if size <= pieceSize && len(frames) != 1 {
			t.Errorf("%d bytes take %d frames", size, len(frames))
		}
	}
	broken := errors.New("broken")
	err := sendBody(frameMessage, bytes.NewReader(make([]byte, 3*pieceSize)),
		func([]byte) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("a link that breaks: %v", err)
	}
}

// testBroadcast is one whose bytes are known.
func testBroadcast(t testing.TB, length int) (*broadcast, []byte) {
	t.Helper()
	model := make(floats[float64], length)
	for i := range model {
		model[i] = math.Sqrt(float64(i)) - 3
	}
	b := &broadcast{round: 7, fresh: [32]byte{1, 2, 3}, model: model}
	if err := b.settle(); err != nil {
		t.Fatal(err)
	}
	text, err := b.bytes()
	if err != nil {
		t.Fatal(err)
	}
	if b.digest != BroadcastDigest(text) {
		t.Fatal("written and appended it is not the same")
	}
	return b, text
}

// A broadcast that comes in pieces of any size is that which was sent; one that is too
// short, too long or no numbers is refused.
func TestBroadcastReader(t *testing.T) {
	const length = 9001
	want, text := testBroadcast(t, length)
	for _, size := range []int{1, 3, 7, 8, 39, 41, 1000, len(text)} {
		r := newBroadcastReader(make(floats[float64], length))
		for piece := range slices.Chunk(text, size) {
			if _, err := r.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.end()
		if err != nil || got.round != want.round || got.fresh != want.fresh ||
			got.digest != want.digest || !slices.Equal(of[float64](got.model), of[float64](want.model)) {
			t.Errorf("in pieces of %d it arrives otherwise: %v", size, err)
		}
	}
	for _, cut := range []int{0, 39, 40, 47, len(text) - 8, len(text) - 1} {
		r := newBroadcastReader(make(floats[float64], length))
		if _, err := r.Write(text[:cut]); err != nil {
			t.Fatal(err)
		}
		if b, err := r.end(); b != nil || !errors.Is(err, ErrFrame) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
	for name, bad := range map[string][]byte{
		"long": append(slices.Clone(text), 0),
		"NaN":  append(slices.Clone(text[:40]), 0x7f, 0xf8, 0, 0, 0, 0, 0, 0),
	} {
		r := newBroadcastReader(make(floats[float64], length))
		if _, err := r.Write(bad); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	infinite := &broadcast{model: floats[float64]{math.Inf(1)}}
	if err := infinite.settle(); !errors.Is(err, aggregation.ErrNotFinite) {
		t.Errorf("an infinite weight: %v", err)
	}
}

// FuzzBroadcastReader: what is taken is what the parser of whole broadcasts takes, however
// it is cut.
func FuzzBroadcastReader(f *testing.F) {
	_, text := testBroadcast(f, 3)
	f.Add(text, 5)
	f.Add(text[:50], 8)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		if size < 1 || size > 64 {
			return
		}
		want, failed := parseBroadcast(in, 3)
		r := newBroadcastReader(make(floats[float64], 3))
		var err error
		for piece := range slices.Chunk(in, size) {
			if _, err = r.Write(piece); err != nil {
				break
			}
		}
		var got *broadcast
		if err == nil {
			got, err = r.end()
		}
		if (err == nil) != (failed == nil) {
			t.Fatalf("in pieces: %v, whole: %v", err, failed)
		}
		if err != nil {
			return
		}
		same := slices.Equal(of[float64](got.model), of[float64](want.model))
		if got.round != want.round || got.fresh != want.fresh || !same ||
			got.digest != BroadcastDigest(in) {
			t.Error("in pieces it is another")
		}
	})
}

// linkOf is a connection of which the other end is the test.
func linkOf(t *testing.T, ctx context.Context, h *hub) (near Link, from *connection) {
	t.Helper()
	var memory Memory
	dialled := make(chan Link, 1)
	go func() {
		link, err := memory.Dialer(0).Dial(ctx)
		if err != nil {
			t.Error(err)
		}
		dialled <- link
	}()
	_, far, err := memory.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return <-dialled, &connection{link: far, judged: make(chan struct{})}
}

// Parts make a message, and nothing else; nobody fills files beyond the longest message.
func TestHubParts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHub(t.TempDir(), 1<<20)
	h.limit = 10
	part := func(kind byte, body string) []byte {
		return append([]byte{framePart, kind}, body...)
	}
	for name, c := range map[string]struct {
		frames [][]byte
		want   string
		err    error
	}{
		"short": {[][]byte{frame(frameMessage, []byte("abc"))}, "", nil},
		"long": {[][]byte{
			part(frameMessage, "abc"), part(frameMessage, "de"), frame(frameMessage, []byte("f")),
		}, "abcdef", nil},
		"empty": {[][]byte{part(frameMessage, "abc"), frame(frameMessage, nil)}, "abc", nil},
		"too long": {[][]byte{
			part(frameMessage, "abcdefgh"), frame(frameMessage, []byte("ijk")),
		}, "", ErrFrame},
		"of none":  {[][]byte{part(frameBroadcast, "abc")}, "", ErrFrame},
		"mixed":    {[][]byte{part(frameMessage, "abc"), frame(frameHello, nil)}, "", ErrFrame},
		"headless": {[][]byte{{framePart}}, "", ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			near, from := linkOf(t, ctx, h)
			go func() {
				for _, f := range c.frames {
					if near.Send(ctx, f) != nil {
						return
					}
				}
			}()
			in, long, err := h.receive(ctx, from)
			defer long.drop()
			if !errors.Is(err, c.err) || (long != nil) != (c.want != "") {
				t.Fatalf("%x, %v, %v", in, long, err)
			}
			_ = near.Close()
			if long == nil {
				return
			}
			for range 2 { // it can be read again
				if b, err := io.ReadAll(long.message()); err != nil || string(b) != c.want {
					t.Errorf("%q, %v", b, err)
				}
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(h.spools, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// What is kept beside a state is found to be what it was, or refused.
func TestVaultParts(t *testing.T) {
	file := FileStore(filepath.Join(t.TempDir(), "state"))
	for name, store := range map[string]Store{"memory": new(MemoryStore), "file": file} {
		v := &vault{store: store, key: new(keyexchange.SealKey), owner: "a"}
		if _, err := v.get("model0", nil); !errors.Is(err, ErrStore) {
			t.Errorf("%s: nothing kept: %v", name, err)
		}
		digest, err := v.put("model0", floats[float64]{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		from, err := v.get("model0", digest)
		if err != nil {
			t.Fatal(err)
		}
		r := newWeightsReader(make(floats[float64], 3))
		_, err = io.Copy(r, from)
		if err != nil || !slices.Equal(of[float64](r.weights), []float64{1, 2, 3}) {
			t.Errorf("%s: %v, %v", name, r.weights, err)
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if _, err := v.put("model0", floats[float64]{1, 2, 4}); err != nil {
			t.Fatal(err)
		}
		if _, err := v.get("model0", digest); !errors.Is(err, ErrStore) {
			t.Errorf("%s: it was replaced: %v", name, err)
		}
		_, err = v.put("model0", floats[float64]{math.NaN()})
		if !errors.Is(err, aggregation.ErrNotFinite) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A long job between processes' sides over TCP: models and submissions go in parts, of
// which no frame is longer than the links allow.
func TestLongJobTCP(t *testing.T) {
	t.Parallel()
	plan := testPlan()
	plan.Rounds, plan.Length = 2, 280_000
	j := newJob(t, plan, 4)
	coordinator, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := ListenTCP("127.0.0.1:0", coordinator, j.settled.Roster())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	var wait sync.WaitGroup
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Dialer = &TCPDialer{
			Address: listener.Address(), Identity: j.signers[i],
			Coordinator: coordinator.Public().(ed25519.PublicKey), MaxFrame: pieceSize + 2,
		}
		wait.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	c := j.coordinator(nil)
	c.Listener, c.Folder = listener, t.TempDir()
	result, err := c.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	j.check()
	if result.Rounds != 2 || result.Lost != 0 || len(j.rounds) != 2 {
		t.Errorf("%+v\n%v", result, j.events)
	}
}
