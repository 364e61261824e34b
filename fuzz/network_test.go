package fuzz

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// A network is a session with its messages in transit. Whatever the parties and
// the server do passes through the methods of this file, which check what must
// hold at all times; see invariants_test.go.
//
// It is no [protocol.Carrier] on purpose: that one delivers in the order of the
// protocol, and here the schedule decides what is delivered when, lost, doubled or
// forged, and when the server takes its next step.
type network struct {
	tb      testing.TB
	world   *world
	server  *protocol.Server
	clients []*protocol.Client
	random  []io.Reader // by party
	pending []post      // in transit
	archive []post      // all that were ever sent
	record
}

// post is a message on its way. The server is party -1.
type post struct {
	from, to int
	message  []byte
	forged   bool // not what from sent to to
}

// key seals the saved states.
var key = keyexchange.SealKey{1, 2, 3}

// world holds what all sessions of one configuration share.
type world struct {
	config    *protocol.Config
	signers   []crypto.Signer
	n         int
	scheduled int // parties a round
	fewest    int // that a session or a round may be among
	degree    int // neighbours of each, where all take part
	name      string

	setUp   sync.Once
	clients [][]byte // saved after set-up, with the uploads
	server  []byte
	foreign []post // another session of the same parties and configuration
}

// worlds lists the configurations of four and five parties that Validate
// accepts: without recovery, and with every adversary, threshold, complete and
// sparse, all parties in every round and all but one; and such for sessions and
// rounds of any three of five.
var worlds = sync.OnceValue(func() []*world {
	var all []*world
	for _, n := range []int{4, 5} {
		roster, signers := identities("ana", "ben", "eva", "ida", "leo")
		if n == 4 {
			roster, signers = identities("ana", "ben", "eva", "ida")
		}
		for _, k := range []struct{ scheduled, fewest int }{{n, 0}, {n - 1, 0}, {n, 3}} {
			if k.fewest > 0 && n == 4 {
				continue
			}
			scheduled := k.scheduled
			add := func(r *protocol.Recovery) {
				w := &world{
					n:         n,
					scheduled: scheduled,
					fewest:    cmp.Or(k.fewest, scheduled),
					degree:    scheduled - 1,
					signers:   signers,
					config: &protocol.Config{
						Label:      "fuzz",
						Roster:     roster,
						Layout:     masking.Layout{{Length: 3, Bits: 20}, {Length: 1, Bits: 64}},
						Recovery:   r,
						PerRound:   scheduled,
						MinMembers: k.fewest,
						Classical:  len(all)%2 == 1,
					},
				}
				if k.fewest > 0 {
					w.config.PerRound = 0
				}
				w.name = fmt.Sprintf("n = %d, PerRound = %d, no recovery", n, scheduled)
				if r != nil {
					if r.Degree != 0 {
						w.degree = r.Degree
					}
					w.name = fmt.Sprintf("n = %d, PerRound = %d, %+v", n, scheduled, *r)
				}
				w.name += fmt.Sprintf(", %d at least", w.fewest)
				if w.config.Validate() == nil {
					all = append(all, w)
				}
			}
			add(nil)
			for adversary := protocol.CheatingServer; adversary <= protocol.CuriousServer; adversary++ {
				for _, degree := range []int{0, 2} {
					for t := 1; t < n; t++ {
						for _, least := range []int{0, scheduled} {
							add(&protocol.Recovery{
								Adversary:    adversary,
								Degree:       degree,
								Threshold:    t,
								MinSurvivors: least,
							})
						}
					}
				}
			}
		}
	}
	return all
})

// identities returns parties of the given names, and their roster.
func identities(names ...string) (*keyexchange.Roster, []crypto.Signer) {
	var members []keyexchange.Entry
	var signers []crypto.Signer
	for _, name := range names {
		seed := sha256.Sum256([]byte(name))
		identity := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, identity)
		members = append(members,
			keyexchange.Entry{Name: name, Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		panic(err)
	}
	return roster, signers
}

// prepare runs the session that schedules begin with, and another one, of which
// they have the messages.
func (w *world) prepare(tb testing.TB) {
	w.setUp.Do(func() {
		own := newNetwork(tb, w, "own")
		own.exchangeKeys()
		for i, c := range own.clients {
			state, err := c.Save(&key)
			if err != nil {
				tb.Fatal(err)
			}
			if own.archive[i].from != i {
				tb.Fatal("the first messages are not the announcements")
			}
			w.clients = append(w.clients, state)
		}
		var err error
		if w.server, err = own.server.Save(&key); err != nil {
			tb.Fatal(err)
		}
		other := newNetwork(tb, w, "other")
		other.exchangeKeys()
		other.round(0, 0, lastStage)
		if w.config.Recovery != nil {
			other.round(1, 1, lastStage) // the first party drops out
		}
		other.round(0, 0, lastStage)
		w.foreign = other.archive
	})
}

// newNetwork starts a session.
func newNetwork(tb testing.TB, w *world, name string) *network {
	n := &network{tb: tb, world: w, record: newRecord(w)}
	var err error
	if n.server, err = protocol.NewServer(w.config); err != nil {
		tb.Fatal(err)
	}
	for i, signer := range w.signers {
		n.random = append(n.random, endless(name, i))
		c, err := protocol.NewClient(w.config, signer, n.random[i])
		if err != nil {
			tb.Fatal(err)
		}
		n.clients = append(n.clients, c)
		n.send(i, c.Announce())
	}
	return n
}

// loadNetwork starts after the set-up, from the saved states.
func loadNetwork(tb testing.TB, w *world) *network {
	w.prepare(tb)
	n := &network{tb: tb, world: w, record: newRecord(w)}
	n.ready = true
	var err error
	if n.server, err = protocol.LoadServer(w.config, &key, w.server); err != nil {
		tb.Fatal(err)
	}
	for i, signer := range w.signers {
		n.random = append(n.random, endless("loaded", i))
		c, err := protocol.LoadClient(w.config, signer, n.random[i], &key, w.clients[i])
		if err != nil {
			tb.Fatal(err)
		}
		n.clients = append(n.clients, c)
		n.hasKeys[i] = true
		n.sent(i, c.Output())
		n.archive = append(n.archive, post{from: i, to: -1, message: c.Output()})
	}
	return n
}

// endless is a source of randomness that is the same in every run.
func endless(name string, party int) io.Reader {
	var seed [32]byte
	copy(seed[1:], name)
	seed[0] = byte(party)
	return rand.NewChaCha8(seed)
}

// send puts a party's message on its way.
func (n *network) send(from int, message []byte) {
	n.sent(from, message)
	p := post{from: from, to: -1, message: message}
	n.pending, n.archive = append(n.pending, p), append(n.archive, p)
}

// serve puts the server's messages on their way.
func (n *network) serve(envelopes []protocol.Envelope) {
	for _, e := range envelopes {
		p := post{from: -1, to: e.To, message: e.Message}
		n.served(e)
		n.pending, n.archive = append(n.pending, p), append(n.archive, p)
	}
}

// deliver hands a message over.
func (n *network) deliver(p post) {
	message := bytes.Clone(p.message) // a receiver must not keep what it was given
	if p.to < 0 {
		before := fingerprint(n.server)
		err := n.server.Receive(p.from, message)
		clear(message)
		if err != nil {
			n.refused(p, err, before, fingerprint(n.server))
		} else {
			n.serverTook(p)
		}
		n.logf("server ← %d, %s: %v", p.from, describe(p.message), err)
		return
	}
	c := n.clients[p.to]
	before := fingerprint(c)
	answer, err := c.Receive(message)
	clear(message)
	n.logf("party %d ← %s: %v", p.to, describe(p.message), err)
	if err != nil {
		if answer != nil {
			n.tb.Fatalf("party %d refuses a message and answers it", p.to)
		}
		n.refused(p, err, before, fingerprint(c))
		return
	}
	n.clientTook(p)
	if answer != nil {
		n.send(p.to, answer)
	}
}

// flush delivers all that is in transit, and what is answered.
func (n *network) flush() {
	for len(n.pending) > 0 {
		p := n.pending[0]
		n.pending = n.pending[1:]
		n.deliver(p)
	}
}

// crash saves a party or, if it is -1, the server, throws it away, loads it, and
// sends its last message again.
func (n *network) crash(party int) {
	n.logf("crash of %d", party)
	if party < 0 {
		state, err := n.server.Save(&key)
		if err != nil {
			n.tb.Fatal(err)
		}
		before := fingerprint(n.server)
		if n.server, err = protocol.LoadServer(n.world.config, &key, state); err != nil {
			n.tb.Fatalf("the server does not load: %v", err)
		}
		if fingerprint(n.server) != before {
			n.tb.Fatal("the server comes back otherwise")
		}
		return
	}
	c := n.clients[party]
	before := fingerprint(c)
	state, err := c.Save(&key)
	if err != nil {
		n.tb.Fatal(err)
	}
	if fingerprint(c) != before {
		n.tb.Fatalf("party %d changes when it is saved", party)
	}
	c.Erase()
	if c, err = protocol.LoadClient(n.world.config, n.world.signers[party], n.random[party], &key,
		state); err != nil {
		n.tb.Fatalf("party %d does not load: %v", party, err)
	}
	if fingerprint(c) != before {
		n.tb.Fatalf("party %d comes back otherwise", party)
	}
	n.clients[party] = c
	n.send(party, c.Announce())
	n.send(party, c.Output())
}

// submit has a party submit its input for the round that it is in.
func (n *network) submit(party int, broadcast []byte) {
	c := n.clients[party]
	round, due := c.Due()
	before := fingerprint(c)
	message, err := c.Submit(broadcast, n.input(party, round)...)
	n.logf("party %d submits for round %d: %v", party, round, err)
	if err != nil {
		n.stepFailed(err, before, fingerprint(c), true)
		if !due != (isOneOf(err, []error{protocol.ErrPhase})) {
			n.tb.Fatalf("party %d: due is %v, and Submit fails with %v", party, due, err)
		}
		return
	}
	n.send(party, message)
}

// step has the server take a step that makes messages.
func (n *network) step(name string, next func() ([]protocol.Envelope, error)) bool {
	before := fingerprint(n.server)
	envelopes, err := next()
	n.logf("server: %s, round %d: %v", name, n.server.Round(), err)
	if err != nil {
		n.stepFailed(err, before, fingerprint(n.server), false)
		return false
	}
	n.serve(envelopes)
	return true
}

func (n *network) begin(broadcast []byte) bool {
	return n.step("Begin", func() ([]protocol.Envelope, error) {
		envelopes, err := n.server.Begin(broadcast)
		if err == nil {
			n.broadcasts[n.server.Round()] = broadcast
		}
		return envelopes, err
	})
}

// sum has the server end the round, and reports whether there was a sum.
func (n *network) sum() bool {
	before := fingerprint(n.server)
	sum, err := n.server.Sum()
	n.logf("server: Sum of round %d: %v", n.server.Round(), err)
	if err != nil {
		n.stepFailed(err, before, fingerprint(n.server), false)
		return false
	}
	n.summed(sum)
	return true
}

// describe names a message for the log.
func describe(message []byte) string {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return fmt.Sprintf("%d bytes without a header", len(message))
	}
	return fmt.Sprintf("type %d, round %d, from %d, %d bytes", h.Type, h.Round, int32(h.Sender),
		len(body))
}

func (n *network) logf(format string, args ...any) {
	if testing.Verbose() {
		n.tb.Logf(format, args...)
	}
}
