package oblivious

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkJoint measures a session of n parties in which somebody may change d bits by 1, at ε = 1
// and δ = 1e-6, with the coins that [LeastJointCoins] gives. All parties are real. It reports
//
//	s/party     what a party computes, the mean of all
//	s/session   what they compute one after the other: of each step the longest work of a party,
//	            as if each had a machine of its own and messages took no time
//	B/party     what a party sends, each message once, however many read it
//	messages    how many wait for one another
//	coins       of a coordinate
//
// Of 1,000 coordinates 25 are run, with all their coins, and times and bytes are multiplied by 40:
// but for keys and some hundred bytes of each message they are in proportion to d.
func BenchmarkJoint(b *testing.B) {
	for _, c := range []struct {
		length, part int // of length, one part is run
		coins        []int
	}{
		{1, 1, []int{80}},
		{100, 1, []int{4, 4, 4, 4, 27}},
		{1000, 40, []int{4, 4, 4, 4, 4, 69}},
	} {
		config := JointConfig{Length: c.length / c.part, Bound: 1, Coins: c.coins}
		if bound, err := config.Epsilon(1, c.length, 1e-6); err != nil || bound.Upper > 1 {
			b.Fatal(bound, err)
		}
		for _, n := range []int{3, 10} {
			b.Run(fmt.Sprintf("d=%d/n=%d", c.length, n), func(b *testing.B) {
				var total jointCost
				for b.Loop() {
					total.add(playJoint(b, config, n))
				}
				times := float64(c.part) / float64(b.N)
				b.ReportMetric(total.party.Seconds()*times, "s/party")
				b.ReportMetric(total.session.Seconds()*times, "s/session")
				b.ReportMetric(float64(total.sent)*times, "B/party")
				b.ReportMetric(float64(total.steps)/float64(b.N), "messages")
				b.ReportMetric(float64(config.coins()), "coins")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// jointCost holds the time and bytes that a session takes.
type jointCost struct {
	party, session time.Duration
	sent           int // bytes of party 0
	steps          int
}

func (c *jointCost) add(d jointCost) {
	c.party, c.session = c.party+d.party, c.session+d.session
	c.sent, c.steps = c.sent+d.sent, c.steps+d.steps
}

// playJoint plays a session of inputs 0 and measures it.
func playJoint(b *testing.B, config JointConfig, n int) (cost jointCost) {
	b.Helper()
	inputs := make([][]uint64, n)
	for i := range inputs {
		inputs[i] = make([]uint64, config.Length)
	}
	parties := jointSession(b, config, inputs, nil)
	spent := func(work func()) time.Duration {
		start := time.Now()
		work()
		return time.Since(start)
	}
	var all time.Duration
	for parties[0].stage != stageSum {
		at := parties[0].at()
		messages, receives := make([][]byte, n), make([]time.Duration, n)
		var longest time.Duration
		for i, from := range parties {
			if from.at() != at {
				continue // it has gone on, by its own message
			}
			took := spent(func() {
				var err error
				if messages[i], err = from.Next(); err != nil {
					b.Fatal(err)
				}
			})
			longest, all = max(longest, took), all+took
		}
		cost.session, cost.sent, cost.steps = cost.session+longest, cost.sent+len(messages[0]),
			cost.steps+1
		longest = 0
		for k, to := range parties {
			for i, message := range messages {
				if message == nil || i == k {
					continue
				}
				receives[k] += spent(func() {
					if err := to.Receive(message); err != nil {
						b.Fatal(err)
					}
				})
			}
			longest, all = max(longest, receives[k]), all+receives[k]
		}
		cost.session += longest
	}
	var err error
	opened := spent(func() { _, err = parties[0].Sum() })
	if err != nil {
		b.Fatal(err)
	}
	cost.session += opened
	cost.party = all/time.Duration(n) + opened
	return cost
}
