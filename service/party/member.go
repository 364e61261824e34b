package party

import (
	"context"
	"crypto"
	"log/slog"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
)

// Member is one member of the committee of a federation whose sums are of one message. Set the
// fields, then call Run. A [Party] that is in the committee needs none: its Run does both.
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
}

// Run helps until the federation ends. It fails with the errors of [Party.Run].
func (m *Member) Run(ctx context.Context) error {
	if m.Federation.Settled.Oneshot() == nil {
		return &job.ConfigError{Path: "sum.protocol", Reason: "pairwise sums have no committee"}
	}
	if err := checkSpent(m.Federation, m.Spent); err != nil {
		return err
	}
	if err := m.Policy.Check(m.Federation.Settled); err != nil {
		return err
	}
	r := m.running()
	_, err := r.run(ctx, kindMember, m.Federation.Settled.Member(m.Identity, nil))
	return err
}

// running returns the member as it runs.
func (m *Member) running() *running {
	p := Party{Federation: m.Federation, Identity: m.Identity, Server: m.Server, Folder: m.Folder,
		Key: m.Key, Policy: m.Policy, Log: m.Log, Spent: m.Spent}
	r := p.running()
	r.carrier.path, r.carrier.member = memberPath(m.Federation.ID), true
	return r
}
