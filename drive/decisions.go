package drive

import (
	"fmt"
	"iter"
	"slices"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// This file has when a server decides, and how what follows is given out.

// Wake is a method of [Lead].
func (s *server) Wake() Time {
	if s.save || s.ended != "" {
		return Never
	}
	wake := min(s.sweep, s.lookAt)
	if s.look || s.counted && !s.applying() {
		return s.now
	}
	if s.held && !s.apart {
		wake = min(wake, s.saved+keepEvery)
	}
	for _, x := range s.sessions() {
		if x != nil {
			wake = min(wake, s.wakeFor(x))
		}
	}
	return wake
}

// Tick is a method of [Lead].
func (s *server) Tick(now Time) error {
	s.clock(now)
	if s.save || s.ended != "" {
		return nil
	}
	s.sweepAway()
	if s.held && !s.apart && s.now >= s.saved+keepEvery {
		s.save = true
	}
	for {
		if again, err := s.proceed(); err != nil || !again {
			return err
		}
	}
}

// Keep is a method of [Lead].
func (s *server) Keep() {
	if s.held && s.ended == "" {
		s.save = true
	}
}

// proceed decides one thing, and reports whether there may be another.
func (s *server) proceed() (again bool, err error) {
	if s.ended != "" {
		return false, nil
	}
	look := s.look || s.now >= s.lookAt
	if s.look = false; look {
		s.lookAt = Never
		s.tellMissing(&s.room, &s.faults)
	}
	if again, err := s.catchUp(); again || err != nil {
		return again, err
	}
	if again, err := s.form(look); again || err != nil {
		return again, err
	}
	if f := s.forming; f != nil && f.stage == Resting &&
		(s.present == nil || s.present.stage == Resting) {
		if s.smaller() {
			s.refuse()
			return true, nil
		}
		return true, s.takeOver()
	}
	x := s.present
	if x == nil || x.stage == Applying || x.stage != Resting && !s.over(x) {
		return false, nil
	}
	switch x.stage {
	case Resting:
		return s.prepare(look)
	case Preparing:
		return true, s.begin()
	case Submitting:
		if !s.recovers {
			s.total()
			return true, nil
		}
		return true, s.step(Signing)
	case Signing:
		return true, s.step(Revealing)
	default:
		s.total()
		return true, nil
	}
}

// Prepared lists the work that must be done before anything leaves.
type Prepared struct {
	// Save reports that what [Lead.Save] returns is new, and must be durable before Advance is called.
	Save    bool
	Notices []Notice
}

// Ready is a method of [Lead].
func (s *server) Ready() (Prepared, bool) {
	p := Prepared{Save: s.save, Notices: slices.Clone(s.notices)}
	return p, s.save || s.ask || len(s.notices) > 0
}

// Orders holds the consequences of decisions.
type Orders struct {
	// Tell reports that [Lead.Pending] may have something new, for any peer.
	Tell bool
	// Upload lists the parties that were told to upload since the last call: a program that leads
	// thousands of parties has something new for these parties, and for others only if a stage has
	// begun.
	Upload []int
	Apply  *Apply // what the program is asked; nil: nothing
}

// Apply asks the program for the next model. Its answer is [Lead.Applied].
type Apply struct {
	Round   uint64
	Fresh   [32]byte // of the round's broadcast
	Parties []int
	Sum     *masking.Vector // which the program only reads
	Values  []int64         // in place of Sum, of one-message sums
	// Lost counts the rounds until now without a sum, and Ledger has what they and this one spent; it
	// does not change, and is nil without noise.
	Lost   uint64
	Ledger *accounting.Ledger
}

// Advance is a method of [Lead].
func (s *server) Advance(now Time) Orders {
	s.clock(now)
	out := Orders{Tell: s.save} // also those who came during the save, and were handed nothing
	if s.ask {
		out.Apply = &Apply{Round: s.round, Fresh: s.fresh, Parties: slices.Clone(s.of), Sum: s.sum,
			Lost: s.lost, Ledger: s.ledger}
	}
	if s.save {
		s.held, s.late, s.saved = s.late, false, s.now
	}
	for _, x := range s.sessions() {
		if x != nil && x.fresh {
			x.waiting = waiting{since: s.now}
			s.mark(x)
		}
	}
	s.save, s.ask, s.notices = false, false, nil
	return out
}

// ItemKind says what an item tells a party to do.
type ItemKind uint8

// The kinds of items.
const (
	Join   ItemKind = iota + 1 // make keys for Session
	Carry                      // take the message
	Last                       // the job is over, with its last model
	Upload                     // send the submission that was offered for Round
)

// Item is one message or order for a party. Two items with the same Name are the same bytes.
type Item struct {
	Kind    ItemKind
	Name    string
	Session uint64
	Round   uint64 // of the job, if the message begins one: the broadcast goes with it
	// Shared and Own are the two parts of the message. All parties may have the memory of Shared in
	// common, so it must not be written to.
	Shared, Own []byte
}

// Pending is a method of [Lead].
func (s *server) Pending(who Peer) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		if s.closed(yield) {
			return
		}
		for _, x := range s.sessions() {
			if x != nil && !s.pendingOf(x, who.Index, yield) {
				return
			}
		}
	}
}

// pendingOf yields what is pending of one session.
func (s *server) pendingOf(x *session, party int, yield func(Item) bool) bool {
	p, server := &s.peers[party], s.machine(x)
	if x == s.present && s.away(party) {
		return true
	}
	if x.stage == Announcing {
		if !s.mayJoin(party, x) || !server.Awaits(party) {
			return true
		}
		return yield(Item{Kind: Join, Name: fmt.Sprintf("%d.join", x.number), Session: x.number})
	}
	if !slices.Contains(p.sessions, x.number) {
		return true
	}
	for shared, own := range server.PendingParts(party) {
		item := Item{Kind: Carry, Session: x.number, Shared: shared, Own: own}
		item.Name = nameOf(x.number, shared, own)
		if server.Step() == protocol.StepMasked {
			item.Round = s.round
		}
		if !yield(item) {
			return false
		}
	}
	return true
}

// away reports whether a party does not submit in the round that is open.
func (s *server) away(party int) bool {
	return s.present != nil && s.present.stage == Submitting && s.peers[party].absent == s.round
}
