package party

import (
	"context"
	"crypto"
	"log/slog"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// Member is one member of the committee of a federation whose sums are of one message. Set the
// fields, then call Run.
type Member struct {
	Federation *federation.Federation // worked out from what was accepted
	Identity   crypto.Signer          // Ed25519, of the committee
	Server     *Server
	Folder     string               // for the state; one process at a time, and no party's
	Key        *keyexchange.SealKey // seals the state
	Policy     *consent.Policy      // nil: everything is accepted
	Log        *slog.Logger         // nil: nothing is logged

	// Spent is for a member whose state is lost: the last round in which it may have helped. The
	// member helps in no round up to that one. With 0, Run fails with store.ErrOldState if the
	// counter has seen a newer state than the folder's.
	Spent int

	fault func(file string) error // see store; nil: there is none
}

// helping is a Member that runs.
type helping struct{ *running }

// Run helps until the federation ends. It fails with the errors of [Party.Run].
func (m *Member) Run(ctx context.Context) error {
	one := m.Federation.Settled.Oneshot()
	if one == nil {
		return &job.ConfigError{Path: "sum.protocol", Reason: "pairwise sums have no committee"}
	}
	if err := checkSpent(m.Federation, m.Spent); err != nil {
		return err
	}
	if err := m.Policy.Check(m.Federation.Settled); err != nil {
		return err
	}
	h := &helping{&running{
		Party: Party{Federation: m.Federation, Identity: m.Identity, Server: m.Server,
			Folder: m.Folder, Key: m.Key, Policy: m.Policy, Log: m.Log, Spent: m.Spent, fault: m.fault},
		path: memberPath(m.Federation.ID),
		most: int64(one.MaxMessage()),
	}}
	h.machine = h
	return h.run(ctx, kindMember)
}

func (h *helping) load() error {
	if err := h.begin(h.Federation.Settled.Member(h.Identity, nil)); err != nil {
		return err
	}
	h.party.Connected() // the last answer may never have arrived
	return nil
}

func (h *helping) ask() exchange.Ask {
	return exchange.Ask{Round: h.party.Hello().Told, Seen: h.seen}
}

// take handles what is next.
func (h *helping) take(next *exchange.Next) (err error) {
	switch next.Kind {
	case exchange.Message:
		err = h.party.Receive(drive.Item{Kind: drive.Carry, Own: next.Message})
	case exchange.End:
		err = h.party.Receive(drive.Item{Kind: drive.Last})
	default:
		return errNext(next)
	}
	if err != nil {
		return localError{err}
	}
	return nil
}

// proceed saves what the member has decided, then sends it.
func (h *helping) proceed(ctx context.Context) error {
	for {
		ready, some := h.party.Ready()
		if !some {
			return nil
		}
		if ready.Save {
			if err := h.save(); err != nil {
				return err
			}
		}
		for _, one := range ready.Reports {
			h.tell(one)
		}
		for _, message := range h.party.Advance().Send {
			if _, err := h.post(ctx, message.Bytes); err != nil {
				return err
			}
		}
	}
}
