package hushsum

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
)

func newBook(t *testing.T) *consent.Book {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &consent.Book{File: filepath.Join(t.TempDir(), "book"), Key: key}
}

// entriesOf returns the entries of a book, and how many submissions have left by it.
func entriesOf(t *testing.T, b *consent.Book) (entries []consent.Entry, left int) {
	t.Helper()
	entries, err := b.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, l := range e.Left {
			left += l.Count
		}
	}
	return entries, left
}

// spending is a job of two rounds that may spend an epsilon of 1.
func spending(name string) *job.Job {
	j := testJob()
	j.Name, j.Rounds, j.Sum.Classical = name, 2, true
	j.Privacy.Noise, j.Privacy.Epsilon = "discrete-gaussian", 1
	return j
}

// Each job over TCP is an entry in the book of an identity, and a policy bounds what they spend
// together, in the words of the service.
func TestBook(t *testing.T) {
	t.Parallel()
	book := newBook(t)
	coordinator, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	for number, name := range []string{"first", "second", "third"} {
		j := newJob(t, spending(name), 3)
		listener, err := ListenTCP("127.0.0.1:0", coordinator, j.settled.Roster())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		party := func(i int) *Participant[float64] {
			p := j.participant(i, nil)
			p.Dialer = &TCPDialer{Address: listener.Address(), Identity: j.signers[i],
				Coordinator: coordinator.Public().(ed25519.PublicKey)}
			return p
		}
		careful := party(0)
		careful.Book, careful.Policy = book, &consent.Policy{MaxEpsilonYear: 1.5}
		if number == 2 {
			_, err := careful.Run(ctx)
			const words = "consent: the job is not within this party's policy: with it this party may " +
				"spend in a year epsilon 1.8"
			if !errors.Is(err, consent.ErrPolicy) || !strings.HasPrefix(err.Error(), words) ||
				!strings.HasSuffix(err.Error(), " at delta 1e-05, max_epsilon_year is 1.5") {
				t.Errorf("the third: %v", err)
			}
			if entries, _ := entriesOf(t, book); len(entries) != 2 {
				t.Errorf("a job that is refused is entered: %+v", entries)
			}
			careful.Policy = nil
		}
		var wait sync.WaitGroup
		for i := range j.signers {
			p := careful
			if i > 0 {
				p = party(i)
			}
			wait.Go(func() {
				if _, err := p.Run(ctx); err != nil {
					t.Errorf("%s, party %d: %v", name, i, err)
				}
			})
		}
		c := j.coordinator(nil)
		c.Listener = listener
		if _, err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
	}
	entries, left := entriesOf(t, book)
	if len(entries) != 3 || left != 6 {
		t.Fatalf("%d submissions in %+v", left, entries)
	}
	for i, name := range []string{"first", "second", "third"} {
		if e := &entries[i]; e.Name != name || e.Ended.IsZero() || len(e.Left) != 1 ||
			e.Left[0].Count != 2 || len(e.May) != 0 {
			t.Errorf("%+v", e)
		}
	}
}

// errKilled stands for a kill.
var errKilled = errors.New("killed")

// mortal is a Counter that, every second time, is killed once the state is saved.
type mortal struct {
	counter
	asked int
}

func (m *mortal) Advance(to uint64) error {
	if m.asked++; m.asked%2 == 0 {
		return errKilled
	}
	return m.counter.Advance(to)
}

// A submission is in the book before it leaves, wherever a party was killed before: also between
// the state that counts it and the book.
func TestBookBeforeItLeaves(t *testing.T) {
	for name, oneshot := range map[string]bool{"pairwise": false, "one-message": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				plan := spending("killed")
				if plan.Rounds = 3; oneshot {
					plan.Sum.Protocol = "oneshot"
				}
				j := newCommitteeJob(t, plan, 5, 5)
				ctx, cancel := context.WithTimeout(t.Context(), jobTime)
				defer cancel()
				var wait sync.WaitGroup
				defer wait.Wait()
				for k := range j.members {
					if oneshot {
						wait.Go(func() { _ = j.member(k, nil).Run(ctx) })
					}
				}
				for i := range j.signers[1:] {
					wait.Go(func() { _, _ = j.participant(i+1, nil).Run(ctx) })
				}
				book, store, count := newBook(t), new(MemoryStore), new(mortal)
				submissions, kills := map[[32]byte]bool{}, 0
				show := func(h wire.Header, message []byte) []byte {
					if !oneshot && h.Type != wire.TypeMasked {
						return message
					}
					submissions[sha256.Sum256(message)] = true
					if _, left := entriesOf(t, book); left < len(submissions) {
						t.Errorf("%d have left, and the book has %d", len(submissions), left)
					}
					return message
				}
				wait.Go(func() {
					for {
						p := j.participant(0, store)
						p.Book, p.Counter, p.Dialer = book, count, rewritten{p.Dialer, show}
						_, err := p.Run(ctx)
						if !errors.Is(err, errKilled) {
							if err != nil {
								t.Error(err)
							}
							return
						}
						kills++
					}
				})
				c := j.coordinator(nil)
				if c.StepTime = time.Minute; oneshot {
					c.Committee = j.network
				} else {
					c.Committee = nil
				}
				if _, err := c.Run(ctx); err != nil {
					t.Fatal(err)
				}
				wait.Wait()
				entries, left := entriesOf(t, book)
				if len(entries) != 1 || left != len(submissions) || left < 2 || kills < 2 {
					t.Errorf("%d submissions, %d by the book, %d kills: %+v", len(submissions), left, kills,
						entries)
				}
			})
		})
	}
}

// A party without the state that its book counts does not start, and in a job that has ended for it
// nothing leaves any more.
func TestBookRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, ended := range map[string]bool{"its state is lost": false, "it has ended": true} {
			j := newJob(t, spending("again"), 3)
			ctx, cancel := context.WithTimeout(t.Context(), jobTime)
			p := j.participant(0, nil)
			p.Book = newBook(t)
			accepted, err := p.Book.Accept(nil, p.Job, p.Identity.Public())
			limits, err2 := p.Job.Limits(p.Identity.Public())
			if err = errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
			spent := uint64(1)
			if ended {
				spent = 0
			}
			guard, err := drive.NewGuard(limits, spent)
			if err == nil {
				err = accepted.Count(*guard)
			}
			if err == nil && ended {
				err = accepted.End(*guard)
			}
			if err != nil {
				t.Fatal(err)
			}
			var wait sync.WaitGroup
			for i := range j.signers[1:] {
				wait.Go(func() { _, _ = j.participant(i+1, nil).Run(ctx) })
			}
			wait.Go(func() { _, _ = j.coordinator(nil).Run(ctx) })
			p.Dialer = rewritten{p.Dialer, func(h wire.Header, message []byte) []byte {
				if h.Type == wire.TypeMasked {
					t.Errorf("%s, and it submits", what)
				}
				return message
			}}
			p.Progress = func(e Event) {
				if !ended {
					t.Errorf("%s, and it begins: %v", what, e)
				}
			}
			words := map[bool]string{false: "say with Spent (--spent) the last round",
				true: "has ended, and nothing leaves in it any more"}[ended]
			if _, err := p.Run(ctx); !errors.Is(err, consent.ErrBook) ||
				!strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v", what, err)
			}
			cancel()
			wait.Wait()
		}
	})
}

// A party connects within the hours of its policy, and is gone once they are over.
func TestHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, spending("hours"), 3)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Hour)
		defer cancel()
		p := j.participant(0, nil)
		from := (time.Now().Hour() + 3) % 24
		p.Policy = &consent.Policy{From: from, Until: (from + 2) % 24}
		var connected []int
		gone := 0
		p.Progress = func(e Event) {
			switch e.Kind {
			case host.Connected:
				connected = append(connected, time.Now().Hour())
			case host.Disconnected:
				if gone++; !strings.Contains(e.Err.Error(), "past the hours") ||
					time.Now().Hour() != (from+2)%24 {
					t.Errorf("at %v: %v", time.Now(), e.Err)
				}
			}
		}
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = j.coordinator(nil).Run(ctx) })
		if _, err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wait.Wait()
		if len(connected) != 2 || connected[0] != from || connected[1] != from || gone != 2 {
			t.Errorf("connected at hours %v, %d times gone, from %d", connected, gone, from)
		}
	})
}
