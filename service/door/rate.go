package door

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters is how many addresses are remembered at once.
const maxLimiters = 100_000

// limiter limits the requests of an address, or of a party.
type limiter struct {
	*rate.Limiter
	used time.Time
}

// limits holds limiters by the address or party that they limit. It is safe for concurrent use.
type limits[K comparable] struct {
	mutex sync.Mutex
	most  int
	of    map[K]*limiter
	swept time.Time // when they were last looked through for old ones
}

func newLimits[K comparable](most int) limits[K] {
	return limits[K]{most: most, of: make(map[K]*limiter)}
}

// allow counts a request of a caller that may make a given number of requests per second.
func (l *limits[K]) allow(who K, perSecond float64, now time.Time) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	own := l.of[who]
	if own == nil {
		if len(l.of) >= l.most && !l.forget(now) {
			return false
		}
		own = &limiter{Limiter: rate.NewLimiter(rate.Limit(perSecond), int(10*perSecond))}
		l.of[who] = own
	}
	own.used = now
	return own.AllowN(now, 1)
}

// forget drops callers that have been silent for a minute, and reports whether there is room for
// another. A search through all of them takes time under the lock: it happens once a second,
// however many strangers come. The lock is held.
func (l *limits[K]) forget(now time.Time) bool {
	if now.Sub(l.swept) < time.Second {
		return false
	}
	l.swept = now
	for who, own := range l.of {
		if now.Sub(own.used) > time.Minute {
			delete(l.of, who)
		}
	}
	return len(l.of) < l.most
}

// Address returns the part of a remote address that its owner cannot vary: no port, and of IPv6
// only the network's part.
func Address(remote string) (a netip.Addr, ok bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	if a, err = netip.ParseAddr(host); err != nil {
		return netip.Addr{}, false
	}
	if a = a.Unmap(); a.Is6() && !a.IsLoopback() {
		prefix, err := a.Prefix(64)
		if err != nil {
			return netip.Addr{}, false
		}
		a = prefix.Addr()
	}
	return a, true
}

// tooMany counts a stranger's request, and refuses it if there are too many from its address. A
// request that fails under a party's name, but not with its key, counts as a stranger's. Strangers
// from loopback, where proxies on this machine and its probes are, are not counted unless
// [Options.PerSecond] says how many there may be: they would use up each other's requests.
func (d *Door) tooMany(w http.ResponseWriter, r *http.Request) bool {
	a, known := Address(r.RemoteAddr)
	free := !known || a.IsLoopback() && d.PerSecond == defaultRate
	if free || d.strangers.allow(a, d.PerSecond, d.Now()) {
		return false
	}
	d.refuse(w, "rate", "%g requests a second are allowed", d.PerSecond)
	return true
}

// tooManyOf counts a party's request, wherever it comes from, and refuses it if there are too many
// from this party.
func (d *Door) tooManyOf(w http.ResponseWriter, c *caller) bool {
	if d.parties.allow(c.key(), d.PerSecond, d.Now()) {
		return false
	}
	d.refuse(w, "rate", "%g requests a second are allowed from one party", d.PerSecond)
	return true
}
