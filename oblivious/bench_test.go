package oblivious

import (
	"fmt"
	"testing"
	"time"

	"github.com/hushsum/hushsum/protocol"
)

// BenchmarkTransfer measures one party of n with d = 105 coordinates: its seconds
// and the bytes that it sends, for set-up (once per session) and for a round. The
// other n − 1 are real but for one thing: they hold keys with this party only and
// do nothing with each other. Only this party's work is counted.
func BenchmarkTransfer(b *testing.B) {
	for _, n := range []int{20, 100} {
		config := &Config{Parties: n, Length: 105, Bits: 32, Noise: scale(1000)}
		b.Run(fmt.Sprintf("n=%d/setup", n), func(b *testing.B) {
			var spent time.Duration
			var sent int
			for b.Loop() {
				_, s, by := benchSetup(b, config)
				spent, sent = spent+s, sent+by
			}
			report(b, spent, sent)
		})
		b.Run(fmt.Sprintf("n=%d/round", n), func(b *testing.B) {
			parties, _, _ := benchSetup(b, config)
			var spent time.Duration
			var sent int
			for round := uint64(1); b.Loop(); round++ {
				s, by := benchRound(b, parties, round)
				spent, sent = spent+s, sent+by
			}
			report(b, spent, sent)
		})
	}
}

func report(b *testing.B, spent time.Duration, sent int) {
	b.ReportMetric(spent.Seconds()/float64(b.N), "s/party")
	b.ReportMetric(float64(sent)/float64(b.N), "B/party")
	b.ReportMetric(0, "ns/op")
}

// meter runs work of party 0.
func meter(spent *time.Duration, work func()) {
	start := time.Now()
	work()
	*spent += time.Since(start)
}

func benchSetup(b *testing.B, config *Config) (parties []*Transfer, spent time.Duration, sent int) {
	parties = make([]*Transfer, config.Parties)
	for i, secrets := range pairSecrets(config.Parties) {
		terms := filler(&fixed{value: func(int) int64 { return 0 }})
		if i == 0 {
			terms = benchNoise(b, config)
		}
		var err error
		if parties[i], err = newTransfer(config, i, secrets, nil, terms); err != nil {
			b.Fatal(err)
		}
	}
	var fromZero []protocol.Envelope
	meter(&spent, func() { fromZero, _ = parties[0].Setup() })
	sent = size(fromZero)
	for i, p := range parties[1:] {
		for j := 1; j < len(p.peers); j++ {
			p.peers[j] = nil
		}
		e, err := p.Setup()
		if err != nil {
			b.Fatal(err)
		}
		benchReceive(b, p, fromZero[i].Message)
		meter(&spent, func() { benchReceive(b, parties[0], e[0].Message) })
	}
	return parties, spent, sent
}

// benchSamplers are the exact samplers of party 0, prepared once per n.
var benchSamplers = map[int]filler{}

func benchNoise(b *testing.B, config *Config) filler {
	n := config.Parties
	if benchSamplers[n] == nil {
		var err error
		if benchSamplers[n], err = config.Noise.sampler(n, nil); err != nil {
			b.Fatal(err)
		}
	}
	return benchSamplers[n]
}

func benchRound(b *testing.B, parties []*Transfer, round uint64) (spent time.Duration, sent int) {
	zero := parties[0]
	var fromZero []protocol.Envelope
	meter(&spent, func() { fromZero, _ = zero.Begin(round) })
	sent = size(fromZero)
	for i, p := range parties[1:] {
		choice, err := p.Begin(round)
		if err != nil {
			b.Fatal(err)
		}
		offer := benchReceive(b, p, fromZero[i].Message)
		var own []protocol.Envelope
		meter(&spent, func() {
			benchReceive(b, zero, offer[0].Message)
			own = benchReceive(b, zero, choice[0].Message)
		})
		sent += size(own)
		benchReceive(b, p, own[0].Message)
	}
	meter(&spent, func() {
		if _, err := zero.Correction(); err != nil {
			b.Fatal(err)
		}
	})
	return spent, sent
}

func benchReceive(b *testing.B, p *Transfer, message []byte) []protocol.Envelope {
	answer, err := p.Receive(message)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

func size(envelopes []protocol.Envelope) (n int) {
	for _, e := range envelopes {
		n += len(e.Message)
	}
	return n
}

func BenchmarkLeastCoins(b *testing.B) {
	for b.Loop() {
		if _, err := LeastCoins(16, 0.5, 1e-6); err != nil {
			b.Fatal(err)
		}
	}
}
