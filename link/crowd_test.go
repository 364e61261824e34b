package link_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// pause is how long one whose connection was closed waits before it dials again: a second,
// but not all at once.
func pause() time.Duration { return time.Second/2 + rand.N(time.Second) }

// strangers keep connections open that say nothing, n at a time, and dial again when they are
// closed. They end with the context.
func strangers(ctx context.Context, address string, wait *sync.WaitGroup, n int) {
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				var d net.Dialer
				conn, err := d.DialContext(ctx, "tcp", address)
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.Copy(io.Discard, conn)
					stop()
					_ = conn.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause()):
				}
			}
		})
	}
}

// holder keeps connections of a party open, with TLS and without hello.
func holder(ctx context.Context, address string, wait *sync.WaitGroup, config *tls.Config, n int) {
	for range n {
		wait.Go(func() {
			for ctx.Err() == nil {
				d := tls.Dialer{Config: config}
				conn, err := d.DialContext(ctx, "tcp", address)
				if err == nil {
					stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
					_, _ = io.Copy(io.Discard, conn)
					stop()
					_ = conn.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause()):
				}
			}
		})
	}
}

// identities returns n identities of parties, their roster, and the coordinator's identity.
func identities(
	t testing.TB, n int,
) (signers []crypto.Signer, roster *keyexchange.Roster, server crypto.Signer) {
	t.Helper()
	var entries []keyexchange.Entry
	for i := range n + 1 {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		if i == n {
			server = key
			break
		}
		signers = append(signers, key)
		entries = append(entries, keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(entries)
	if err != nil {
		t.Fatal(err)
	}
	return signers, roster, server
}

// full waits until as many strangers as may be are there, and connections of a party.
func full(ctx context.Context, t testing.TB, l *link.Counted, party int) {
	t.Helper()
	for {
		n, held := l.Held(party)
		switch {
		case n >= link.MaxStrangers-1 && held == link.MaxOfParty:
			return
		case ctx.Err() != nil:
			t.Fatalf("the table does not fill: %d strangers, %d of the party", n, held)
		}
		time.Sleep(time.Millisecond)
	}
}

// crowdedJob runs ten rounds among ten of eleven parties, with strangers or without, and
// returns how long the rounds took, with the time until the parties were there and without.
func crowdedJob(
	t testing.TB, n int,
) (l *link.Counted, whole, rounds time.Duration, result *hushsum.Result[float64]) {
	t.Helper()
	declared := job.Job{
		Name: "crowded", Rounds: 10, Model: job.Model{Length: 1000},
		Parties: job.Parties{DropOut: 0.3}, Privacy: job.Privacy{Clip: 100},
	}
	signers, roster, server := identities(t, 11)
	settled, err := declared.Settle(job.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	l = link.ListenCounted(t, server, roster)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	crowd, leave := context.WithCancel(ctx)
	defer leave()
	var wait sync.WaitGroup
	if n > 0 {
		config, err := link.ClientTLS(signers[10], func(ed25519.PublicKey) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		strangers(crowd, l.Address(), &wait, n)
		holder(crowd, l.Address(), &wait, config, 50)
		full(ctx, t, l, 10)
	}
	var parties sync.WaitGroup
	began := time.Now()
	for i := range 10 {
		p := &hushsum.Participant[float64]{
			Job:      settled,
			Identity: signers[i],
			Dialer: &link.TCPDialer{Address: l.Address(), Identity: signers[i],
				Coordinator: server.Public().(ed25519.PublicKey)},
			Work: func(
				_ context.Context, r hushsum.Round[float64],
			) (hushsum.Update[float64], error) {
				return hushsum.Update[float64]{Vector: make([]float64, len(r.Model))}, nil
			},
		}
		parties.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	var first, last time.Time
	told := make(map[host.EventKind]int)
	c := &hushsum.Coordinator[float64]{
		Job:      settled,
		Listener: l,
		StepTime: 2 * time.Second, // the first round waits so long for the eleventh
		Progress: func(e hushsum.Event) {
			told[e.Kind]++
			switch now := time.Now(); {
			case e.Kind == host.Begun && first.IsZero():
				first = now
			case e.Kind == host.Summed:
				last = now
			}
			if n, held := l.Held(10); n > link.MaxStrangers || held > link.MaxOfParty {
				t.Errorf("%d strangers, %d of the party that holds", n, held)
			}
		},
	}
	result, err = c.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	parties.Wait()
	leave()
	wait.Wait()
	untold := slices.ContainsFunc(l.Notices(), func(n link.Notice) bool {
		return n.Kind == link.Unfinished
	})
	if n > 0 && told[host.Unfinished] == 0 && !untold {
		t.Error("nobody says that connections were turned away")
	}
	return l, last.Sub(began), last.Sub(first), result
}

// A thousand idle strangers, and a party that holds connections, keep nobody out: all rounds
// are held, and the listener holds as many connections as it may.
func TestThousandStrangers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("opens a thousand connections")
	}
	l, _, _, result := crowdedJob(t, 1000)
	if result.Rounds != 10 || result.Lost != 0 {
		t.Errorf("%d rounds, %d lost", result.Rounds, result.Lost)
	}
	most := int64(link.MaxStrangers + 1 + 11*link.MaxOfParty) // one more waits for room
	if got := l.Most(); got > most || got < link.MaxStrangers {
		t.Errorf("%d connections at a time, want %d at most", got, most)
	}
}

// Rounds with a thousand strangers against rounds without: the ratios of their times, with
// and without the time until the parties are there, and the memory in use after the rounds.
func BenchmarkStrangers(b *testing.B) {
	var crowded, alone, crowdedRounds, aloneRounds float64
	var memory runtime.MemStats
	for b.Loop() {
		_, whole, rounds, _ := crowdedJob(b, 0)
		alone, aloneRounds = alone+whole.Seconds(), aloneRounds+rounds.Seconds()
		_, whole, rounds, _ = crowdedJob(b, 1000)
		crowded, crowdedRounds = crowded+whole.Seconds(), crowdedRounds+rounds.Seconds()
		runtime.ReadMemStats(&memory)
	}
	b.ReportMetric(crowded/alone, "ratio")
	b.ReportMetric(crowdedRounds/aloneRounds, "ratio-rounds")
	b.ReportMetric(alone/float64(b.N), "s-alone")
	b.ReportMetric(float64(memory.HeapInuse+memory.StackInuse)/1e6, "MB-in-use")
}
