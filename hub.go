package hushsum

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
)

// hub is who is connected to a coordinator through one listener, and what comes from
// them.
type hub struct {
	parties map[int]*connection
	events  chan arrival
}

func newHub() hub {
	return hub{parties: make(map[int]*connection), events: make(chan arrival, 64)}
}

// connection is a party that is there.
type connection struct {
	link     Link
	queue    chan []byte
	sessions []uint64
	greeted  bool
	cancel   context.CancelFunc
}

// arrival is what comes from a party: a frame, or the end of its connection.
type arrival struct {
	party int
	from  *connection
	frame []byte
	err   error
}

// accept takes connections and reads from them.
func (h *hub) accept(ctx context.Context, listener Listener, failed chan<- error) {
	for {
		party, link, err := listener.Accept(ctx)
		if err != nil {
			failed <- err
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		from := &connection{link: link, queue: make(chan []byte, queueSize), cancel: cancel}
		go func() { // writes
			defer link.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case out := <-from.queue:
					if link.Send(ctx, out) != nil {
						cancel()
						return
					}
				}
			}
		}()
		go func() { // reads
			for {
				in, err := link.Receive(ctx)
				select {
				case h.events <- arrival{party, from, in, err}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					cancel()
					return
				}
			}
		}()
	}
}

// admit makes a connection its party's, in place of an older one.
func (h *hub) admit(a arrival) {
	if old := h.parties[a.party]; old != nil {
		old.cancel()
	}
	a.from.greeted = true
	h.parties[a.party] = a.from
}

// gone takes the end of a connection, and reports whether it was its party's.
func (h *hub) gone(a arrival) bool {
	a.from.cancel()
	if h.parties[a.party] != a.from {
		return false
	}
	delete(h.parties, a.party)
	return true
}

// send queues a frame for a party, if it is there. One that does not take its frames is
// hung up on: it dials again and is told what it needs.
func (h *hub) send(party int, out []byte) {
	to := h.parties[party]
	if to == nil || !to.greeted {
		return
	}
	select {
	case to.queue <- out:
	default:
		h.hangUp(party)
	}
}

func (h *hub) hangUp(party int) {
	if to := h.parties[party]; to != nil {
		to.cancel()
		delete(h.parties, party)
	}
}

// refuse tells a connection why the coordinator does not go on with it.
func (c *connection) refuse(r *refusal) {
	c.greeted = true
	c.queue <- jsonFrame(frameRefusal, r)
}

// greeting is how somebody with the plan begins.
func (s *Settled) greeting() hello {
	roster := s.Roster().Digest()
	return hello{
		Plan:   s.plan,
		Roster: hex.EncodeToString(roster[:]),
		Digest: hex.EncodeToString(s.digest[:]),
	}
}

// check reads a greeting, and returns a refusal if it is of another plan.
func (s *Settled) check(body []byte) (hello, *refusal) {
	var h hello
	if err := parseJSON(body, &h); err != nil {
		return h, &refusal{Ours: err.Error()}
	}
	var differs *DifferenceError
	if errors.As(s.plan.compare(&h.Plan), &differs) {
		return h, &refusal{differs.Field, differs.Ours, differs.Theirs}
	}
	ours := s.greeting()
	if h.Roster != ours.Roster {
		return h, &refusal{"roster", ours.Roster, fmt.Sprintf("%.64s", h.Roster)}
	}
	if h.Digest != ours.Digest {
		return h, &refusal{"digest", ours.Digest, fmt.Sprintf("%.64s", h.Digest)}
	}
	return h, nil
}
