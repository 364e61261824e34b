package hushsum

import (
	"context"
	"crypto"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/keyexchange"
)

// Member is one member of the committee of a job with one-message sums. Set the fields, then
// call Run. A party that is in the committee too runs a [Participant] and a Member in one process,
// with one identity, and a Store for each.
type Member struct {
	Job      *Settled
	Identity crypto.Signer // Ed25519, of the committee
	Dialer   Dialer

	// Store keeps what the member must not lose when its process ends: without one, a restarted member
	// may answer a second time in a round. Key seals it.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil
	Lost    *Lost   // nil: the state is not lost

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil
}

// Run helps until the job is done. Run dials again whenever the connection breaks. It fails with
// the errors of [Participant.Run].
func (m *Member) Run(ctx context.Context) error {
	if err := m.check(); err != nil {
		return err
	}
	report := func(e Event) {
		if m.Progress != nil {
			m.Progress(e)
		}
	}
	settings := m.Job.Member(m.Identity, m.Random)
	m.Lost.count(&settings)
	opened, err := openPart(m.Store, m.Key, m.Counter, fmt.Sprintf("member %x", m.Identity.Public()),
		settings)
	defer opened.close()
	if err != nil {
		return err
	}
	conn := newPartLink(m.Job, m.Dialer, report)
	conn.member = true
	return unmarked((&host.Player{
		Part:    opened.part,
		Carrier: conn,
		Keeper:  opened.keeper,
		Watch: func(r drive.Report) {
			report(Event{Kind: host.Refused, Round: r.Round, Err: r.Err})
		},
		Broken: func(err error) { report(disconnected(err)) },
	}).Run(ctx))
}
