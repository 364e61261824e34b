package protocol

import (
	"crypto"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/masking"
)

// toll adds up what one party and the server do and send.
type toll struct {
	party, server time.Duration // of all parties; of the server
	up, down      int           // bytes of all parties
}

func (m *toll) watch(c *Carrier[*Server, *Client]) {
	c.Carry = func(from, _ int, message []byte) []byte {
		if from < 0 {
			m.down += len(message)
		} else {
			m.up += len(message)
		}
		return message
	}
	c.Work = func(party int) func() {
		start := time.Now()
		return func() {
			if party < 0 {
				m.server += time.Since(start)
			} else {
				m.party += time.Since(start)
			}
		}
	}
}

// BenchmarkPresent is the cost of a round among n parties that are there, against a
// cheating server, of 10,000 coordinates of 32 bits, one tenth of whom drop out before
// they submit: in a standing session of those n ("standing", 3 round trips), in a session of
// three times as many by Gather ("gather", 4), and as a session of its own, classical and
// hybrid ("classical", 4; "hybrid", 5). It reports, of one party, milliseconds
// ("party-ms"), kilobytes that it sends and gets ("up-kB", "down-kB"); of the server
// "server-ms"; and "round-trips". n = 1,000 runs with -long.
func BenchmarkPresent(b *testing.B) {
	for _, n := range []int{30, 100, 1000} {
		for _, kind := range []string{"standing", "gather", "classical", "hybrid"} {
			b.Run(fmt.Sprintf("n=%d/%s", n, kind), func(b *testing.B) {
				if n == 1000 && !suite.Longest() {
					b.Skip("a thousand parties in one process take minutes: run with -long")
				}
				benchmarkPresent(b, n, kind)
			})
		}
	}
}

func benchmarkPresent(b *testing.B, n int, kind string) {
	all, trips := n, 3
	switch kind {
	case "gather":
		trips = 4
		if all = 3 * n; n == 1000 {
			all = n + 100 // the session itself is not what is measured
		}
	case "classical":
		trips = 4
	case "hybrid":
		trips = 5
	}
	signers, roster := parties(b, all)
	config := &Config{Label: "present", Roster: roster, MinMembers: n, Colluders: n / 10,
		Classical: kind != "hybrid",
		Layout:    masking.Layout{{Length: 10_000, Bits: 32}}, Recovery: &Recovery{}}
	in, _ := inputs(1, config.Layout, 1)
	given := func(i int) ([][]uint64, error) {
		if i%10 == 9 {
			return nil, nil
		}
		return in[0], nil
	}
	there := make([]int, n)
	for i := range there {
		there[i] = i
	}
	var m toll
	var c *Carrier[*Server, *Client]
	var err error
	if kind == "standing" || kind == "gather" {
		everybody := make([]int, all)
		for i := range everybody {
			everybody[i] = i
		}
		if c, err = sessionAmong(config, signers, everybody); err != nil {
			b.Fatal(err)
		}
		m.watch(c)
	}
	for b.Loop() {
		switch kind {
		case "gather":
			err = c.Step(func() ([]Envelope, error) { return c.Server.Gather(there) })
		case "standing":
			err = c.Step(c.Server.Invite) // those who dropped out of the last round
		default:
			c, err = watchedSession(config, signers, &m)
		}
		if err == nil {
			err = c.Step(func() ([]Envelope, error) { return c.Server.Begin(nil) })
		}
		if err == nil {
			err = c.Submit(nil, given)
		}
		if err == nil {
			err = c.Certify()
		}
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Server.Sum(); err != nil {
			b.Fatal(err)
		}
		m.server += time.Since(start)
		if got := len(c.Server.Included()); got != n-n/10 || slices.Contains(c.Server.Included(), 9) {
			b.Fatalf("a sum of %d", got)
		}
	}
	each := float64(b.N * n)
	b.ReportMetric(m.party.Seconds()*1e3/each, "party-ms")
	b.ReportMetric(m.server.Seconds()*1e3/float64(b.N), "server-ms")
	b.ReportMetric(float64(m.up)/each/1e3, "up-kB")
	b.ReportMetric(float64(m.down)/each/1e3, "down-kB")
	b.ReportMetric(float64(trips), "round-trips")
	b.ReportMetric(0, "ns/op")
}

// watchedSession sets a session up, all of which is counted.
func watchedSession(
	config *Config, signers []crypto.Signer, m *toll,
) (*Carrier[*Server, *Client], error) {
	server, err := NewServer(config)
	if err != nil {
		return nil, err
	}
	c := &Carrier[*Server, *Client]{Config: config, Server: server,
		Clients: make([]*Client, len(signers))}
	m.watch(c)
	for i := range signers {
		done := c.Work(i)
		if c.Clients[i], err = NewClient(config, signers[i], nil); err != nil {
			return nil, err
		}
		done()
	}
	return c, c.SetUp()
}

// BenchmarkSetUp is the set-up of a session against a cheating server, with classical
// and with hybrid keys in one run: of one party the milliseconds ("party-ms") and the
// kilobytes that it sends and gets ("up-kB", "down-kB"). With 100 parties it is a whole
// session, and has the server too ("server-ms"); with 1,000 it is the middle one of them,
// with what the others would send.
func BenchmarkSetUp(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, classical := range []bool{true, false} {
			kind := map[bool]string{true: "classical", false: "hybrid"}[classical]
			b.Run(fmt.Sprintf("n=%d/%s", n, kind), func(b *testing.B) {
				signers, roster := parties(b, n)
				config := &Config{Label: "set-up", Roster: roster, Classical: classical,
					Layout: masking.Layout{{Length: 1, Bits: 32}}}
				var m toll
				each := float64(n)
				if n == 1000 {
					each = 1
				}
				for b.Loop() {
					if n == 1000 {
						one, _ := setUpOfOne(b, config, signers)
						m.party += one.party
						m.up += one.up
						m.down += one.down
					} else if _, err := watchedSession(config, signers, &m); err != nil {
						b.Fatal(err)
					}
				}
				each *= float64(b.N)
				b.ReportMetric(m.party.Seconds()*1e3/each, "party-ms")
				if m.server != 0 {
					b.ReportMetric(m.server.Seconds()*1e3/float64(b.N), "server-ms")
				}
				b.ReportMetric(float64(m.up)/each/1e3, "up-kB")
				b.ReportMetric(float64(m.down)/each/1e3, "down-kB")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
