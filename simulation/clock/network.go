package clock

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// Errors of networks.
var (
	// ErrLink: a figure of a link is out of range.
	ErrLink = errors.New("clock: unusable link")
	// ErrNoLink: two places are not connected.
	ErrNoLink = errors.New("clock: no link between two places")
)

// Link describes what lies between two places, the same in both directions.
type Link struct {
	// Latency is the least time that a message takes, and Jitter the most that comes to
	// it, uniformly.
	Latency, Jitter time.Duration
	// Loss is the probability, below 1, with which a message is lost and sent again after
	// Retry, or after twice Latency and Jitter if that is 0, as often as it takes.
	Loss  float64
	Retry time.Duration
	// Bandwidth is in bytes a second; 0: there is no limit. Each message has it for itself.
	Bandwidth float64
}

// Validate fails with [ErrLink].
func (l *Link) Validate() error {
	switch {
	case l.Latency < 0 || l.Jitter < 0 || l.Retry < 0:
		return fmt.Errorf("%w: a time below 0", ErrLink)
	case !(l.Loss >= 0 && l.Loss <= 0.99):
		return fmt.Errorf("%w: loss %v is outside 0 to 0.99", ErrLink, l.Loss)
	case !(l.Bandwidth >= 0) || math.IsInf(l.Bandwidth, 0):
		return fmt.Errorf("%w: bandwidth %v", ErrLink, l.Bandwidth)
	}
	return nil
}

// retry returns how long it takes to see that a message is lost.
func (l *Link) retry() time.Duration {
	if l.Retry > 0 {
		return l.Retry
	}
	return 2 * (l.Latency + l.Jitter)
}

// Network holds places and the links between them. The zero value has none.
type Network struct {
	// Seed decides jitter and loss, for each message by its name.
	Seed  uint64
	links map[[2]string]Link
}

// Connect puts a link between two places, or within one, in both directions. It fails
// with [ErrLink].
func (n *Network) Connect(a, b string, l Link) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if n.links == nil {
		n.links = map[[2]string]Link{}
	}
	n.links[[2]string{a, b}] = l
	n.links[[2]string{b, a}] = l
	return nil
}

// Link returns what is between two places. Within one place there is no latency unless
// Connect has said so.
func (n *Network) Link(a, b string) (Link, bool) {
	l, ok := n.links[[2]string{a, b}]
	return l, ok || a == b
}

// Transit returns how long a message of the given size in bytes takes; name tells it apart from
// all others and decides its jitter and losses. It fails with [ErrNoLink].
func (n *Network) Transit(name, from, to string, bytes int) (time.Duration, error) {
	l, ok := n.Link(from, to)
	if !ok {
		return 0, fmt.Errorf("%w: %q and %q", ErrNoLink, from, to)
	}
	took := l.Latency
	if l.Bandwidth > 0 {
		took += time.Duration(float64(bytes) / l.Bandwidth * float64(time.Second))
	}
	if l.Jitter == 0 && l.Loss == 0 {
		return took, nil
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%s", n.Seed, name, from, to)
	rng := rand.New(rand.NewPCG(n.Seed, h.Sum64()))
	for rng.Float64() < l.Loss && took < End/4 {
		took += min(l.retry(), End/4)
	}
	if l.Jitter > 0 {
		took += time.Duration(rng.Int64N(int64(l.Jitter) + 1))
	}
	return took, nil
}
