package link

import (
	"crypto"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// Tests of whole jobs are in a package of their own, since the root imports this one.

// Bounds on connections.
const (
	MaxStrangers = maxStrangers
	MaxOfParty   = maxOfParty
)

// ClientTLS is how a party speaks.
var ClientTLS = tlsConfig

// Counted is a listener that says how many connections it holds.
type Counted struct {
	*TCPListener
	under *counted
}

// ListenCounted listens as [ListenTCP] does, on this machine.
func ListenCounted(t testing.TB, identity crypto.Signer, roster *keyexchange.Roster) *Counted {
	t.Helper()
	l, under := listenCounted(t, identity, roster, nil)
	return &Counted{l, under}
}

// Held returns how many strangers there are, and how many connections of a party.
func (c *Counted) Held(party int) (strangers, of int) { return c.held(party) }

// Most returns the most connections that were open at a time.
func (c *Counted) Most() int64 { return c.under.most.Load() }
