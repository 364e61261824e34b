package hushsum

import (
	"context"
	"fmt"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/transport"
)

// This file has a participant of a job with sum.buffer: it trains while rounds come and go, and
// submits what it made of a broadcast in the round that has room for it.

// making holds what the program makes of a broadcast.
type making struct {
	id      drive.AskID
	of      *transport.Broadcast
	opening [32]byte // the broadcast's digest, since the program may change the model
	cancel  context.CancelFunc
	ended   chan struct{}
	message Message // once it has ended
	err     error
}

// inOpening is the digest by which an opening names a broadcast.
func (p *oneshotParty) inOpening(b *transport.Broadcast) ([32]byte, error) {
	if m := p.making; m != nil && m.of == b {
		return m.opening, nil
	}
	return b.InOpening()
}

// begin has the program work while the party goes on. What it was at is told to end, and waited
// for.
func (p *oneshotParty) begin(id drive.AskID, b *transport.Broadcast, opening [32]byte) {
	last := p.making
	if last != nil {
		last.cancel()
	}
	ctx, cancel := context.WithCancel(p.job)
	m := &making{id: id, of: b, opening: opening, cancel: cancel, ended: make(chan struct{})}
	p.making = m
	p.running.Go(func() {
		defer cancel()
		if last != nil {
			<-last.ended
		}
		m.err = p.try(func() (err error) {
			m.message, err = p.make(ctx, b)
			return err
		})
		close(m.ended)
		select {
		case p.finished <- m:
		case <-ctx.Done():
		}
	})
}

// made tells the party that the program has ended.
func (p *oneshotParty) made(m *making) error {
	if m != p.making {
		return nil
	}
	if m.err == nil {
		p.party.Finished(m.id)
		return nil
	}
	why := drive.Answer{ID: m.id, Round: m.id.Round, Broadcast: m.opening, Err: m.err}
	if err := p.party.Answer(why); err != nil {
		return storeError{err}
	}
	return nil
}

// submitMade submits in a round what was made, weighed by how many rounds before that was begun.
func (p *oneshotParty) submitMade(ask *drive.Ask, b *transport.Broadcast, opening [32]byte) error {
	m := p.making
	if m == nil || m.id.Round != ask.ID.Made {
		p.party.Absent(ask.ID, ask.Round, fmt.Errorf("%w: nothing was made in round %d",
			drive.ErrRound, ask.ID.Made))
		return nil
	}
	return p.answerWith(ask, b, opening, m.message.Weighed(ask.Round-ask.ID.Made), m.err)
}
