package protocol

import (
	"crypto"
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// BenchmarkThesis is the thesis's setting: n users, the 105 weights of logistic
// regression on Adult, one round after set-up. It reports the milliseconds that
// one client works ("client-ms": receive Begin, mask, submit) and the server
// ("server-ms": all submissions in, sum out), in one thread. The thesis (Table
// A.1) has 13.9 and 101 ms for 1,000 users on its own machine.
func BenchmarkThesis(b *testing.B) {
	for _, n := range []int{200, 500, 1000, 2000, 5000} {
		b.Run(fmt.Sprintf("users=%d", n), func(b *testing.B) {
			config := &Config{Label: "benchmark", Layout: masking.Layout{{Length: 105, Bits: 32}}}
			_, config.Roster = parties(b, n)
			client, server := oneOfMany(b, config)
			in, _ := inputs(1, config.Layout, 1)
			others := make([][]byte, n)
			var clientTime, serverTime time.Duration
			for b.Loop() {
				start := time.Now()
				begin, err := server.Begin(nil)
				if err != nil {
					b.Fatal(err)
				}
				serverTime += time.Since(start)

				start = time.Now()
				if _, err := client.Receive(begin[0].Message); err != nil {
					b.Fatal(err)
				}
				submission, err := client.Submit(nil, in[0]...)
				if err != nil {
					b.Fatal(err)
				}
				clientTime += time.Since(start)

				// What the other users send costs the server the same whatever is in it.
				for i := range others {
					h := wire.Header{Type: wire.TypeMasked, Session: server.session, Round: server.round,
						Sender: uint32(i)}
					others[i] = append(h.Append(others[i][:0]), submission[wire.HeaderSize:]...)
				}
				start = time.Now()
				for _, message := range others {
					if err := deliver(server, message); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := server.Sum(); err != nil {
					b.Fatal(err)
				}
				serverTime += time.Since(start)
			}
			b.ReportMetric(clientTime.Seconds()*1e3/float64(b.N), "client-ms")
			b.ReportMetric(serverTime.Seconds()*1e3/float64(b.N), "server-ms")
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}

// oneOfMany returns party 0 of a session of n after set-up, and the server. The
// other parties have announced keys but do not exist otherwise, which leaves out
// the n² key exchanges of a whole session in one process. Keys are classical:
// nothing after set-up depends on that.
func oneOfMany(tb testing.TB, config *Config) (*Client, *Server) {
	tb.Helper()
	config.Classical = true
	n := config.Roster.Len()
	signers, _ := parties(tb, n)
	server, err := NewServer(config)
	if err != nil {
		tb.Fatal(err)
	}
	client, err := NewClient(config, signers[0], nil)
	if err != nil {
		tb.Fatal(err)
	}
	digest := digestOf(config)
	for i := range n {
		server.announced.Add(i)
		if i == 0 {
			server.announcements[i] = &client.announce
			continue
		}
		server.announcements[i] = announcement(tb, signers[i], digest, i)
	}
	keys, err := server.Keys()
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := client.Receive(keys[0].Message); err != nil {
		tb.Fatal(err)
	}
	return client, server
}

func announcement(tb testing.TB, signer crypto.Signer, digest [32]byte, party int) *wire.Announce {
	tb.Helper()
	key, err := keyexchange.GenerateKey(nil)
	if err != nil {
		tb.Fatal(err)
	}
	public, err := key.Public()
	if err != nil {
		tb.Fatal(err)
	}
	signature, err := keyexchange.SignKey(signer, digest, party, public, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return &wire.Announce{Key: public, Signature: signature}
}
