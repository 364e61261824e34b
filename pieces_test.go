package hushsum

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// linkOf is a connection of which the other end is the test.
func linkOf(t *testing.T, ctx context.Context, h *hub) (near Link, from *connection) {
	t.Helper()
	var memory Memory
	dialled := make(chan Link, 1)
	go func() {
		conn, err := memory.Dialer(0).Dial(ctx)
		if err != nil {
			t.Error(err)
		}
		dialled <- conn
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
		return append([]byte{link.KindPart, kind}, body...)
	}
	for name, c := range map[string]struct {
		frames [][]byte
		want   string
		err    error
	}{
		"short": {[][]byte{link.NewFrame(link.KindMessage, []byte("abc"))}, "", nil},
		"long": {[][]byte{
			part(link.KindMessage, "abc"), part(link.KindMessage, "de"),
			link.NewFrame(link.KindMessage, []byte("f")),
		}, "abcdef", nil},
		"empty": {[][]byte{part(link.KindMessage, "abc"), link.NewFrame(link.KindMessage, nil)}, "abc", nil},
		"too long": {[][]byte{
			part(link.KindMessage, "abcdefgh"),
			link.NewFrame(link.KindMessage, []byte("ijk")),
		}, "", ErrFrame},
		"of none": {[][]byte{part(link.KindBroadcast, "abc")}, "", ErrFrame},
		"mixed": {[][]byte{part(link.KindMessage, "abc"),
			link.NewFrame(link.KindHello, nil)}, "", ErrFrame},
		"headless": {[][]byte{{link.KindPart}}, "", ErrFrame},
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
			defer long.Drop()
			if !errors.Is(err, c.err) || (long != nil) != (c.want != "") {
				t.Fatalf("%x, %v, %v", in, long, err)
			}
			_ = near.Close()
			if long == nil {
				return
			}
			for range 2 { // it can be read again
				if b, err := io.ReadAll(long.Message()); err != nil || string(b) != c.want {
					t.Errorf("%q, %v", b, err)
				}
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(h.spools, "*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// A long job between processes' sides over TCP, whatever takes the sums: models and messages go in
// parts, of which no frame is longer than the links allow.
func TestLongJobTCP(t *testing.T) {
	for name, plan := range carriers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan.Rounds, plan.Model.Length = 2, 280_000
			if plan.Oneshot() {
				plan.Model.Length = 400_000
			}
			longJobTCP(t, plan)
		})
	}
}

func longJobTCP(t *testing.T, plan *job.Job) {
	j, c := newEither(t, plan, nil)
	coordinator, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	listen := func(roster *keyexchange.Roster) (*TCPListener, func(signer crypto.Signer) Dialer) {
		listener, err := ListenTCP("127.0.0.1:0", coordinator, roster)
		if err != nil {
			t.Fatal(err)
		}
		return listener, func(signer crypto.Signer) Dialer {
			return &TCPDialer{Address: listener.Address(), Identity: signer,
				Coordinator: coordinator.Public().(ed25519.PublicKey)}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	var wait sync.WaitGroup
	listener, dialer := listen(j.settled.Roster())
	defer listener.Close()
	c.Listener, c.Folder, c.StepTime = listener, t.TempDir(), jobTime
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Dialer = dialer(j.signers[i])
		wait.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	if one := j.settled.Oneshot(); one != nil {
		listener, dialer := listen(one.Committee)
		defer listener.Close()
		c.Committee = listener
		for k := range j.members {
			m := j.member(k, nil)
			m.Dialer = dialer(j.members[k])
			wait.Go(func() {
				if err := m.Run(ctx); err != nil {
					t.Errorf("member %d: %v", k, err)
				}
			})
		}
	}
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
