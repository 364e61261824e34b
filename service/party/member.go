package party

import (
	"context"
	"crypto"
	"fmt"
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
type helping struct {
	*running
	member *drive.Member
}

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
	h := &helping{running: &running{
		Party: Party{Federation: m.Federation, Identity: m.Identity, Server: m.Server,
			Folder: m.Folder, Key: m.Key, Policy: m.Policy, Log: m.Log, Spent: m.Spent, fault: m.fault},
		path: memberPath(m.Federation.ID),
		most: int64(one.MaxMessage()),
	}}
	h.machine = h
	return h.run(ctx, kindMember)
}

func (h *helping) load() error {
	v, err := h.store.load(h.Spent > 0)
	if err != nil {
		return err
	}
	if h.round = uint64(h.Spent); v != nil {
		h.round = max(h.round, v.Round)
	}
	settled := h.Federation.Settled
	config := drive.MemberConfig{
		Sums:     settled.Oneshot(),
		Rounds:   uint64(settled.Rounds()),
		Spent:    h.round,
		Identity: h.Identity,
	}
	if v == nil {
		if h.member, err = drive.NewMember(config); err != nil || h.Spent == 0 {
			return err
		}
		return h.saveState(h.member.State) // so that the next start knows it
	}
	if h.member, err = drive.LoadMember(config, h.Key, v.Party); err != nil {
		return fmt.Errorf("%w: %w", ErrStored, err)
	}
	h.member.Connected() // the last answer may never have arrived
	return nil
}

func (h *helping) ask() exchange.Ask {
	return exchange.Ask{Round: h.member.Told(), Seen: h.seen}
}

// take handles what is next.
func (h *helping) take(next *exchange.Next) error {
	switch next.Kind {
	case exchange.Message:
		h.member.Receive(next.Message)
	case exchange.End:
		h.member.Finish()
	default:
		return errNext(next)
	}
	return nil
}

// proceed saves what the member has decided, then sends it.
func (h *helping) proceed(ctx context.Context) error {
	for {
		ready, some := h.member.Ready()
		if !some {
			return nil
		}
		if ready.Save {
			if err := h.saveState(h.member.State); err != nil {
				return err
			}
		}
		for _, one := range ready.Reports {
			h.tell(one)
		}
		for _, message := range h.member.Advance() {
			if _, err := h.post(ctx, message); err != nil {
				return err
			}
		}
	}
}
