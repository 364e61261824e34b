package protocol

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// begun returns a session with recovery of which a round has begun, and the inputs.
func begun(t testing.TB, n int) (*Local, *Config, [][][]uint64) {
	t.Helper()
	signers, roster := parties(t, n)
	config := testConfig(roster)
	config.Layout = append(config.Layout, masking.Segment{Length: 9000, Bits: 11})
	config.Recovery = new(Recovery)
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Begin([]byte("model")); err != nil {
		t.Fatal(err)
	}
	in, _ := inputs(3, config.Layout, n)
	return l, config, in
}

// changed is a copy with another byte.
func changed(message []byte, at int, to byte) []byte {
	out := bytes.Clone(message)
	out[at] = to
	return out
}

func broadcastOf(pieces ...string) (digest [32]byte) {
	h := NewBroadcastHash()
	for _, piece := range pieces {
		h.Write([]byte(piece))
	}
	return [32]byte(h.Sum(nil))
}

// A round in pieces is the round that it would be in whole: the broadcast by its digest,
// submissions written and read, the sum as a vector.
func TestRoundInPieces(t *testing.T) {
	const n = 4
	l, config, in := begun(t, n)
	for i, c := range l.Clients {
		s, err := c.SubmitVector(broadcastOf("mo", "del"), func(v *masking.Vector) error {
			return v.Set(in[i]...)
		})
		if err != nil {
			t.Fatal(err)
		}
		var first, again bytes.Buffer
		if size, err := s.WriteTo(&first); err != nil || size != s.Size() || size != int64(first.Len()) {
			t.Fatalf("%d bytes, %v, want %d", size, err, s.Size())
		}
		if round, kept := c.Kept(); !kept || round != 1 || bytes.Equal(c.Output(), first.Bytes()) {
			t.Errorf("party %d: kept: %v, of round %d", i, kept, round)
		}
		if s.WriteTo(&again); !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Error("written again it is another")
		}
		before := snapshot(l.Server)
		if err := deliver(l.Server, first.Bytes()[:first.Len()-1]); !errors.Is(err, ErrTruncated) {
			t.Fatal(err)
		}
		if snapshot(l.Server) != before {
			t.Error("a message that ends early changed the server")
		}
		if err := l.Server.ReadMessage(i, iotest.HalfReader(&first)); err != nil {
			t.Fatal(err)
		}
		if err := l.Server.ReadMessage(i, &again); !errors.Is(err, ErrDuplicate) {
			t.Errorf("twice: %v", err)
		}
	}
	if err := l.Certify(); err != nil {
		t.Fatal(err)
	}
	if _, kept := l.Clients[0].Kept(); kept {
		t.Error("the caller would send a submission that was answered")
	}
	sum, err := l.Server.SumVector()
	if err != nil || !equal(sum.Values(), sumOf(config.Layout, in, l.Server.Included())) {
		t.Fatalf("a wrong sum: %v", err)
	}
	if l.Server.intake != nil {
		t.Error("the server holds room that it does not need")
	}
	// The next round, whole.
	if sum, err := l.Round(nil, in); err != nil || !equal(sum, sumOf(config.Layout, in,
		l.Server.Included())) {
		t.Fatalf("a wrong sum: %v", err)
	}
}

// What fill leaves behind when it fails is in no submission.
func TestSubmitVectorErrors(t *testing.T) {
	l, _, in := begun(t, 4)
	c := l.Clients[0]
	before := snapshot(c)
	failed := errors.New("failed")
	for _, bad := range []struct {
		broadcast [32]byte
		fill      func(v *masking.Vector) error
		want      error
	}{
		{broadcastOf("other"), nil, ErrBroadcast},
		{broadcastOf("model"), func(v *masking.Vector) error {
			if err := v.Set(in[1]...); err != nil {
				return err
			}
			return failed
		}, failed},
	} {
		if s, err := c.SubmitVector(bad.broadcast, bad.fill); s != nil || !errors.Is(err, bad.want) {
			t.Errorf("%v, want %v", err, bad.want)
		}
	}
	if snapshot(c) != before {
		t.Error("a failure changed the client")
	}
	zero, err := masking.NewVector(c.config.Layout)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(c.vector.Values(), zero.Values()) {
		t.Error("an input that was not submitted stays in memory")
	}
}

// Streams that break off, are cut or changed anywhere, or go on too long are refused with
// the errors of messages, and change nothing.
func TestReadMessageErrors(t *testing.T) {
	l, config, in := begun(t, 4)
	message, err := l.Clients[1].Submit([]byte("model"), in[1]...)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the line went dead")
	server := l.Server
	before := snapshot(server)
	refused := func(name string, from int, r io.Reader, want error) {
		t.Helper()
		if err := server.ReadMessage(from, r); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if server.intake = nil; snapshot(server) != before {
			t.Fatalf("%s: the server has changed", name)
		}
	}
	step := 1499
	if !testing.Short() {
		step = 149
	}
	packed := wire.HeaderSize + config.Layout.PackedSize()
	for cut := 0; cut < len(message); cut += step {
		refused("cut", 1, bytes.NewReader(message[:cut]), ErrTruncated)
		dead := io.MultiReader(bytes.NewReader(message[:cut]), iotest.ErrReader(broken))
		refused("dead line", 1, dead, broken)
	}
	for _, cut := range []int{packed - 1, packed, packed + 1, len(message) - 1} {
		refused("cut", 1, bytes.NewReader(message[:cut]), ErrTruncated)
	}
	refused("dead line at the end", 1,
		io.MultiReader(bytes.NewReader(message), iotest.ErrReader(broken)), broken)
	refused("too long", 1, io.MultiReader(bytes.NewReader(message), bytes.NewReader([]byte{0})),
		ErrTrailing)
	refused("of another", 2, bytes.NewReader(message), ErrSender)
	refused("of nobody", 9, bytes.NewReader(message), ErrSender)
	refused("padding", 1, bytes.NewReader(changed(message, wire.HeaderSize+12, 0xff)), ErrEncoding)
	refused("type", 1, bytes.NewReader(changed(message[:99], 1, 99)), ErrType)
	refused("session", 1, bytes.NewReader(changed(message, 2, message[2]^1)), ErrSession)
	refused("round to come", 1, bytes.NewReader(changed(message, 41, 2)), ErrPhase)
	refused("past round", 1, bytes.NewReader(changed(message, 41, 0)), ErrStale)
	endless := io.MultiReader(bytes.NewReader(changed(message[:wire.HeaderSize], 1, 8)),
		iotest.OneByteReader(zeroReader{}))
	refused("endless signature", 1, endless, ErrOversized)
	// After all that the message itself is taken, and by the other way others are.
	if err := server.ReadMessage(1, bytes.NewReader(message)); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 2, 3} {
		message, err := l.Clients[i].Submit([]byte("model"), in[i]...)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Receive(i, message); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Certify(); err != nil {
		t.Fatal(err)
	}
	if sum, err := server.Sum(); err != nil || !equal(sum, sumOf(config.Layout, in,
		server.Included())) {
		t.Errorf("a wrong sum: %v", err)
	}
}

// zeroReader reads zeros for ever.
type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A server that is saved in parts comes back with its decisions and, from the survivors
// on, with the sum that is kept next to it; submissions are sent again.
func TestSaveParts(t *testing.T) {
	l, config, in := begun(t, 4)
	key := keyexchange.SealKey{3}
	restart := func(want bool) {
		t.Helper()
		state, sum, err := l.Server.SaveParts(&key)
		if err != nil || (sum != nil) != want {
			t.Fatalf("a sum: %v, %v", sum != nil, err)
		}
		if size := config.Layout.PackedSize(); len(state) > size {
			t.Errorf("the state has %d bytes, the sum %d", len(state), size)
		}
		var kept bytes.Buffer
		if want {
			if _, err := sum.WriteTo(&kept); err != nil {
				t.Fatal(err)
			}
			for name, bad := range map[string]io.Reader{
				"none":    nil,
				"short":   bytes.NewReader(kept.Bytes()[1:]),
				"long":    io.MultiReader(bytes.NewReader(kept.Bytes()), bytes.NewReader([]byte{0})),
				"changed": bytes.NewReader(changed(kept.Bytes(), 3, kept.Bytes()[3]^1)),
				"broken":  iotest.ErrReader(io.ErrClosedPipe),
			} {
				if s, err := ReadServer(config, &key, state, bad); s != nil || !errors.Is(err, ErrState) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		loaded, err := ReadServer(config, &key, state, &kept)
		if err != nil {
			t.Fatal(err)
		}
		*l.Server = *loaded
	}
	restart(false)
	submissions := make([][]byte, len(l.Clients))
	for i, c := range l.Clients {
		var err error
		if submissions[i], err = c.Submit([]byte("model"), in[i]...); err != nil {
			t.Fatal(err)
		}
		if err := l.Server.Receive(i, submissions[i]); err != nil {
			t.Fatal(err)
		}
	}
	restart(false)
	if missing := l.Server.Missing(); len(missing) != len(l.Clients) {
		t.Errorf("waits for %v only", missing)
	}
	for i := range l.Clients {
		if err := l.Server.Receive(i, l.Clients[i].Output()); err != nil {
			t.Fatal(err)
		}
	}
	for _, next := range []func() ([]Envelope, error){l.Server.Survivors, l.Server.Certificate} {
		if err := l.Step(next); err != nil {
			t.Fatal(err)
		}
		restart(true)
	}
	sum, err := l.Server.Sum()
	if err != nil || !equal(sum, sumOf(config.Layout, in, l.Server.Included())) {
		t.Fatalf("a wrong sum: %v", err)
	}
	restart(false)
	if _, err := l.Round(nil, in); err != nil {
		t.Error(err)
	}
}

// FuzzReadMessage: whatever comes in whatever pieces, it does what Receive does with the
// same bytes at once.
func FuzzReadMessage(f *testing.F) {
	l, config, in := begun(f, 4)
	key := keyexchange.SealKey{3}
	state, err := l.Server.Save(&key)
	if err != nil {
		f.Fatal(err)
	}
	message, err := l.Clients[1].Submit([]byte("model"), in[1]...)
	if err != nil {
		f.Fatal(err)
	}
	packed := wire.HeaderSize + config.Layout.PackedSize()
	f.Add(message, uint16(100))
	f.Add(message[:packed], uint16(1))
	f.Add(message[:wire.HeaderSize], uint16(7))
	f.Add(append(bytes.Clone(message), 0), uint16(4096))
	f.Add(changed(message, packed-1, 0xff), uint16(4096))
	f.Add(changed(message, packed+90, 1), uint16(50))
	f.Add(l.Clients[0].Announce(), uint16(3))
	f.Fuzz(func(t *testing.T, message []byte, size uint16) {
		var servers [2]*Server
		for i := range servers {
			var err error
			if servers[i], err = LoadServer(config, &key, state); err != nil {
				t.Fatal(err)
			}
		}
		whole := servers[0].Receive(1, message)
		before := snapshot(servers[1])
		pieces := servers[1].ReadMessage(1, &pieceReader{message, int(size%5000) + 1})
		servers[1].intake = nil
		if (whole == nil) != (pieces == nil) {
			t.Fatalf("whole: %v, in pieces: %v", whole, pieces)
		}
		after := snapshot(servers[1])
		if pieces != nil && after != before {
			t.Fatalf("refused (%v), and changed the server", pieces)
		}
		if after != snapshot(servers[0]) {
			t.Fatal("in pieces it does something else")
		}
	})
}

// pieceReader reads this many bytes at a time.
type pieceReader struct {
	rest []byte
	size int
}

func (r *pieceReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), r.size)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
