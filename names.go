package hushsum

import (
	"crypto"
	"errors"
	"fmt"
	"runtime"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/store"
)

// What a job is package job says; these are its names here.
type (
	// Settled is a job worked out for its parties, as [job.Job.Settle] returns it.
	Settled = job.Settled
	// ConfigError names the field of a job, or of one of this package's types, that is
	// unusable. It is [ErrConfig].
	ConfigError = job.ConfigError
	// DifferenceError names the first field in which two sides' jobs differ. It is [ErrJob].
	DifferenceError = job.DifferenceError
	// Float constrains how a program holds numbers: float64, or float32 in half the memory, whatever
	// other sides do.
	Float = aggregation.Float
	// Round holds what a round begins with, at a party.
	Round[F Float] = job.Round[F]
	// Update holds what a party submits in a round.
	Update[F Float] = job.Update[F]
	// Done is a round that is over, at the coordinator.
	Done[F Float] = job.Done[F]
	// Event is a step of a job, for logs and progress bars; package host has its kinds.
	Event = host.Event
)

// Errors of jobs.
var (
	ErrConfig = job.ErrConfig
	ErrJob    = job.ErrJob
)

// Names of package store, which keeps the state of a process.
type (
	// Store keeps the newest state of one participant, member or coordinator, sealed and numbered.
	Store = store.Store
	// MemoryStore is a [Store] that lasts as long as its process. The zero value is empty.
	MemoryStore = store.MemoryStore
	// FileStore is a [Store] in the file of this name, and in files next to it.
	FileStore = store.FileStore
	// Counter is a number that only grows, by which an older state is found. Without one, on another
	// disk than the state, a whole store that is an older copy passes.
	Counter = store.Counter
	// FileCounter is a [Counter] in the file of this name.
	FileCounter = store.FileCounter
)

// Errors of stores.
var (
	// ErrOldState: the Counter knows of a newer state than the stored one, or no state is stored and
	// it knows of one. To go on could use keys twice, and spend a budget twice. Bring the newest state
	// back. If it is lost for good, a participant or a member says so with [Lost], and a
	// coordinator begins another job, under another Name.
	ErrOldState = store.ErrOldState
	// ErrLocked: the store is in use elsewhere, in this process or another: every participant, member
	// and coordinator needs its own.
	ErrLocked = store.ErrLocked
	// ErrStore: what is stored was changed, or sealed under another key or for another name.
	ErrStore = store.ErrStore
)

// open opens a store for its owner, and returns the state in it, nil if there is none. Without a
// store there is no vault either. lost is the owner's word that the newest state is lost.
func open(
	s Store, key *keyexchange.SealKey, counter Counter, owner string, lost bool,
) (*store.Vault, []byte, error) {
	switch {
	case s == nil && counter != nil:
		return nil, nil, &ConfigError{Path: "Counter", Reason: "there is no Store that it counts for"}
	case s == nil:
		return nil, nil, nil
	case key == nil:
		return nil, nil, &ConfigError{Path: "Key", Reason: "a store needs a key to seal with"}
	}
	v, state, err := store.Open(s, key, counter, owner, lost)
	if errors.Is(err, ErrOldState) {
		err = fmt.Errorf("%w; a participant or a member whose state is lost says so with Lost", err)
	}
	return v, state, err
}

// Names of package link, which carries frames.
type (
	// Link is a connection between one party and the coordinator.
	Link = link.Link
	// Dialer connects a party to the coordinator.
	Dialer = link.Dialer
	// Listener accepts the parties' connections for the coordinator.
	Listener = link.Listener
	// Memory carries frames between parties and a coordinator of one process. The zero value is ready.
	Memory = link.Memory
	// TCPDialer is a [Dialer] over TCP with TLS 1.3.
	TCPDialer = link.TCPDialer
	// TCPListener is a [Listener] over TCP with TLS 1.3, for the parties of a roster.
	TCPListener = link.TCPListener
)

// Errors of links.
var (
	// ErrPeer: the peer that answers is not the coordinator that the party knows, or the one that
	// dials is not in the roster.
	ErrPeer = link.ErrPeer
	// ErrFrame: a frame is longer than the receiver allows, or of no known kind.
	ErrFrame = link.ErrFrame
)

// ListenTCP listens at an address in the form that net.Listen takes, with the coordinator's
// identity, for the parties of a roster. It fails with [ErrConfig], keyexchange.ErrSigner and
// errors of package net.
func ListenTCP(
	address string, identity crypto.Signer, roster *keyexchange.Roster,
) (*TCPListener, error) {
	if err := checkIdentity(identity, nil); err != nil {
		return nil, err
	}
	if err := required("Roster", roster, "give that of the parties, or of the committee"); err != nil {
		return nil, err
	}
	return link.ListenTCP(address, identity, roster)
}

// drivable returns an error unless there is a job.
func drivable(s *Settled) error {
	if s == nil {
		return &ConfigError{
			Path:   "Job",
			Reason: "there is none",
			Advice: "use what job.Job.Settle returns",
		}
	}
	return nil
}

// longModel is the least number of weights for which vectors that are spent are freed at once.
const longModel = 1 << 20

// collect frees what was spent, in a job of long vectors. Left to itself Go's collector lets what
// is spent grow as large as what is in use, which would double the memory.
func collect(s *Settled) {
	if s.Length() >= longModel {
		runtime.GC()
	}
}
