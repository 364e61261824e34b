package clock

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Events happen in the order of their times, and of one time in that in which they were
// made; what is cancelled does not happen.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type planned struct {
			at     time.Duration
			number int
		}
		var c Clock
		var want, got []planned
		for k := range rapid.IntRange(0, 40).Draw(t, "events") {
			p := planned{time.Duration(rapid.IntRange(0, 9).Draw(t, "at")), k}
			e, err := c.At(p.at, func() { got = append(got, p) })
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "cancel") {
				c.Cancel(e)
				c.Cancel(e)
				continue
			}
			want = append(want, p)
		}
		slices.SortStableFunc(want, func(a, b planned) int { return int(a.at - b.at) })
		c.Run()
		if !slices.Equal(got, want) {
			t.Fatalf("happened %v, want %v", got, want)
		}
		if len(want) > 0 && c.Now() != want[len(want)-1].at {
			t.Fatalf("now %v", c.Now())
		}
	})
}

// Nothing is later than the end of time.
func TestEnd(t *testing.T) {
	var c Clock
	var seen []time.Duration
	for _, while := range []time.Duration{End - 1, End} {
		c.After(time.Second, func() {
			c.After(while, func() { seen = append(seen, c.Now()) })
		})
	}
	c.Run()
	if !slices.Equal(seen, []time.Duration{End, End}) {
		t.Errorf("seen at %v", seen)
	}
	net := Network{}
	if err := net.Connect("a", "b", Link{Latency: End / 8, Loss: 0.99}); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(100) {
		net.Seed = seed
		if took, err := net.Transit("message", "a", "b", 1); err != nil || took < End/8 {
			t.Fatalf("it took %v: %v", took, err)
		}
	}
}

func TestPast(t *testing.T) {
	var c Clock
	var seen []time.Duration
	c.After(time.Second, func() {
		if _, err := c.At(0, nil); !errors.Is(err, ErrPast) {
			t.Errorf("an event in the past: %v", err)
		}
		c.After(-time.Second, func() { seen = append(seen, c.Now()) })
		c.After(time.Second, func() { seen = append(seen, c.Now()) })
	})
	c.Run()
	if !slices.Equal(seen, []time.Duration{time.Second, 2 * time.Second}) || c.Step() {
		t.Errorf("seen at %v", seen)
	}
}

func TestTransit(t *testing.T) {
	n := Network{Seed: 7}
	connect := func(a, b string, l Link) {
		t.Helper()
		if err := n.Connect(a, b, l); err != nil {
			t.Fatal(err)
		}
	}
	connect("Boston", "server", Link{Latency: 300 * time.Millisecond})
	connect("Oslo", "server", Link{Latency: time.Second, Bandwidth: 1000})
	connect("Quito", "server", Link{Latency: time.Second, Jitter: time.Second, Loss: 0.5,
		Retry: 10 * time.Second})
	transit := func(name, from string, bytes int) time.Duration {
		t.Helper()
		took, err := n.Transit(name, from, "server", bytes)
		if err != nil {
			t.Fatal(err)
		}
		return took
	}
	if got := transit("a", "Boston", 1e6); got != 300*time.Millisecond {
		t.Errorf("Boston: %v", got)
	}
	if got := transit("a", "Oslo", 500); got != 1500*time.Millisecond {
		t.Errorf("Oslo: %v", got)
	}
	if got, err := n.Transit("a", "server", "server", 1); err != nil || got != 0 {
		t.Errorf("within a place: %v, %v", got, err)
	}
	if _, err := n.Transit("a", "Rome", "server", 1); !errors.Is(err, ErrNoLink) {
		t.Errorf("no link: %v", err)
	}
	// Of 4,000 messages half are lost once or more, within six standard deviations
	// (false alarms: 2e-9), and the rest take 1 to 2 s.
	lost, sum := 0, time.Duration(0)
	for k := range 4000 {
		name := string(rune('a' + k))
		took := transit(name, "Quito", 1)
		if took != transit(name, "Quito", 1) {
			t.Fatal("the same message takes another time")
		}
		if took >= 10*time.Second {
			lost++
			continue
		}
		if took < time.Second || took > 2*time.Second {
			t.Fatalf("a message took %v", took)
		}
		sum += took
	}
	if lost < 2000-190 || lost > 2000+190 {
		t.Errorf("%d of 4000 messages lost, want about a half", lost)
	}
	if mean := sum / time.Duration(4000-lost); mean < 1450*time.Millisecond ||
		mean > 1550*time.Millisecond {
		t.Errorf("mean %v", mean)
	}
}

// Jitter comes to the latency up to its last nanosecond, also where nothing is lost, and
// without a time of its own a loss is seen after twice both.
func TestJitterAndRetry(t *testing.T) {
	for _, loss := range []float64{0, 0.5} {
		n := Network{Seed: 3}
		if err := n.Connect("a", "b", Link{Latency: 1000, Jitter: 2, Loss: loss}); err != nil {
			t.Fatal(err)
		}
		// Of 500 messages each jitter falls on one, and one is lost, but for 1e-80.
		jitters, again := make(map[time.Duration]bool), 0
		for k := range 500 {
			took, err := n.Transit(string(rune('a'+k)), "a", "b", 1)
			if err != nil {
				t.Fatal(err)
			}
			const retry = 2004
			jitter := (took - 1000) % retry
			if took < 1000 || jitter > 2 || loss == 0 && took > 1002 {
				t.Fatalf("loss %v: a message took %v", loss, took)
			}
			jitters[jitter] = true
			if took >= 1000+retry {
				again++
			}
		}
		if len(jitters) != 3 || (again > 0) != (loss > 0) {
			t.Errorf("loss %v: jitters %v, %d lost", loss, jitters, again)
		}
	}
}

func TestLinks(t *testing.T) {
	var n Network
	for _, l := range []Link{
		{Latency: -1}, {Jitter: -1}, {Retry: -1}, {Loss: -0.1}, {Loss: 1}, {Bandwidth: -1},
	} {
		if err := n.Connect("a", "b", l); !errors.Is(err, ErrLink) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
