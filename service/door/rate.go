package door

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// maxLimiters is how many addresses are remembered at once.
const maxLimiters = 100_000

// limiter is one address's.
type limiter struct {
	*rate.Limiter
	used time.Time
}

// allowed keeps every address to its rate. Loopback is where proxies of this machine and
// its own parties are, and has none.
func (d *Door) allowed(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.IsLoopback() && d.PerSecond == defaultRate {
		return true
	}
	if address = address.Unmap(); address.Is6() {
		prefix, err := address.Prefix(64)
		if err != nil {
			return false
		}
		address = prefix.Addr()
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := d.Now()
	l := d.limiters[address]
	if l == nil {
		if len(d.limiters) >= maxLimiters && !d.forget(now) {
			return false
		}
		l = &limiter{Limiter: rate.NewLimiter(rate.Limit(d.PerSecond), int(10*d.PerSecond))}
		d.limiters[address] = l
	}
	l.used = now
	return l.AllowN(now, 1)
}

// forget forgets addresses that have been silent for a minute, and reports whether there is
// room for another. Looking through all of them takes its time, under the lock: once a
// second, however many strangers come. The door's lock is held.
func (d *Door) forget(now time.Time) bool {
	if since := now.Sub(d.swept); since >= 0 && since < time.Second {
		return false
	}
	d.swept = now
	for a, l := range d.limiters {
		if now.Sub(l.used) > time.Minute {
			delete(d.limiters, a)
		}
	}
	return len(d.limiters) < maxLimiters
}
