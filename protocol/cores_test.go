package protocol

import (
	"bytes"
	"crypto"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// setUpOn is a set-up of parties with chosen randomness on this many cores, up to what the
// server tells the members. It returns the clients, and what each was sent and answered.
func setUpOn(
	t *testing.T, cores int, config *Config, signers []crypto.Signer,
) (clients []*Client, sent, answers [][]byte) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	server, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, signer := range signers {
		c, err := NewClient(config, signer, rand.NewChaCha8([32]byte{byte(i), 41}))
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		if err := server.Receive(i, c.Announce()); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := server.Keys()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range keys {
		answer, err := clients[e.To].Receive(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		sent, answers = append(sent, e.Message), append(answers, answer)
		if err := server.Receive(e.To, answer); err != nil {
			t.Fatal(err)
		}
	}
	members, err := server.Members()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range members {
		sent = append(sent, e.Message)
	}
	return clients, sent, answers
}

// What a party answers and keeps, and whom it names when several peers are at fault, is the
// same on one core as on many. What is refused leaves it as it was.
func TestConcurrentSetUp(t *testing.T) {
	const n, self, runs = 8, 7, 2
	signers, roster := parties(t, n)
	config := testConfig(roster)
	var first []string // the first run's
	for run, cores := range slices.Repeat([]int{1, 2, 4 * n}, runs) {
		clients, sent, answers := setUpOn(t, cores, config, signers)
		refused := func(c *Client, m []byte) {
			t.Helper()
			before := snapshot(c)
			_, err := c.Receive(m)
			var named *PartyError
			if !errors.As(err, &named) || named.Party != 3 || !errors.Is(err, ErrSignature) {
				t.Fatalf("on %d cores: got %v, want a signature of party 3", cores, err)
			}
			if snapshot(c) != before {
				t.Fatalf("on %d cores: the client has changed", cores)
			}
		}
		was := runtime.GOMAXPROCS(cores)
		again, err := NewClient(config, signers[self], rand.NewChaCha8([32]byte{self, 41}))
		if err != nil {
			t.Fatal(err)
		}
		// Each entry ends with its signature.
		spoilt := bytes.Clone(sent[self])
		for _, party := range []int{3, 4, 6} {
			spoilt[wire.HeaderSize+1+(party+1)*wire.KeyEntrySize(true)-1] ^= 1
		}
		refused(again, spoilt)
		if answer, err := again.Receive(sent[self]); err != nil ||
			!bytes.Equal(answer, answers[self]) {
			t.Fatalf("on %d cores, after a refusal: another answer, %v", cores, err)
		}
		spoilt = bytes.Clone(sent[n+self])
		at := wire.HeaderSize + 1
		for party := range self {
			place, of := again.topology.place(party, self)
			at += wire.CiphertextSize + pathLength(place, of)*wire.NodeSize + keyexchange.SignatureSize
			if party == 3 || party > 4 {
				spoilt[at-1] ^= 1
			}
		}
		if at != len(spoilt) {
			t.Fatalf("entries of %d bytes, the message has %d", at, len(spoilt))
		}
		refused(again, spoilt)
		for i, c := range clients {
			if _, err := c.Receive(sent[n+i]); err != nil {
				t.Fatal(err)
			}
			got := snapshot(c) + string(answers[i])
			if run == 0 {
				first = append(first, got)
			} else if got != first[i] {
				t.Fatalf("on %d cores party %d answers or keeps something else", cores, i)
			}
		}
		runtime.GOMAXPROCS(was)
	}
}

// Of a certificate's signatures the first that is invalid is named.
func TestConcurrentCertificate(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, cores := range []int{1, 2, 16, 16, 16} {
		runtime.GOMAXPROCS(cores)
		s := recoveryAt(t, afterCertificate)
		m := bytes.Clone(s.toParty[0])
		c, err := wire.ParseCertificate(m[wire.HeaderSize:], 5)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(c); i++ {
			c[i].Signature[0] ^= 1
		}
		_, err = s.Clients[0].Receive(c.Append(m[:wire.HeaderSize:wire.HeaderSize]))
		var named *PartyError
		if !errors.As(err, &named) || named.Party != c[1].Party || !errors.Is(err, ErrSignature) {
			t.Errorf("on %d cores: got %v, want a signature of party %d", cores, err, c[1].Party)
		}
	}
}

// BenchmarkReceiveKeys measures a party that takes the keys of 99 others, hybrid, the largest part
// of its set-up: the least time of all runs ("least-ms"), which says something on a busy machine
// too.
func BenchmarkReceiveKeys(b *testing.B) {
	const n, self = 100, 50
	signers, roster := parties(b, n)
	config := testConfig(roster)
	server, err := NewServer(config)
	if err != nil {
		b.Fatal(err)
	}
	client := func(i int) *Client {
		c, err := NewClient(config, signers[i], rand.NewChaCha8([32]byte{byte(i), 42}))
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	for i := range n {
		if err := server.Receive(i, client(i).Announce()); err != nil {
			b.Fatal(err)
		}
	}
	keys, err := server.Keys()
	if err != nil {
		b.Fatal(err)
	}
	least := time.Hour
	for b.Loop() {
		c := client(self)
		begun := time.Now()
		if _, err := c.Receive(keys[self].Message); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(begun))
	}
	b.ReportMetric(least.Seconds()*1e3, "least-ms")
	b.ReportMetric(0, "ns/op")
}
