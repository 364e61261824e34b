package drive

import (
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// This file has the decisions of a round.

// Reasons for which a job ends by itself.
const (
	AllHeld      = "all rounds were held"
	allSubmitted = "the parties have submitted as often as they agreed to"
	BudgetSpent  = "the privacy budget is spent"
)

// catchUp looks whether what is saved was set back: parties know of a later round. One party's
// word is not enough, nor that of as many as may collude. The rounds in between are spent, and
// lost, since no model that is saved has their sums. They are not held against the job as lost in
// a row. Since keys of the session that is saved were used in them, another session follows.
func (s *server) catchUp() (again bool, err error) {
	if !s.counted && !s.behind || s.applying() {
		return false, nil
	}
	s.counted = false
	known := s.beyond(s.liars(), func(p *peer) uint64 { return p.told })
	if known = s.lastBegun(known); known <= s.round && !s.behind {
		return false, nil
	}
	s.behind = false
	skipped := known - s.round // a round that is open is lost besides
	ledger, counts, err := s.chargeSkipped(skipped)
	if errors.Is(err, accounting.ErrBudget) {
		s.end(BudgetSpent)
		return false, nil
	} else if err != nil {
		return false, err
	}
	if x := s.present; x != nil && x.stage >= Submitting {
		s.lost++
		s.decided(Notice{Kind: Lost, Session: x.number, Round: s.round, Err: ErrSetBack})
	}
	s.ledger, s.counts, s.round, s.lost = ledger, counts, known, s.lost+skipped
	s.series = protocol.NewServerSeries(s.config.Label, s.series.Least())
	s.present, s.forming = nil, nil
	s.decided(Notice{Kind: SetBack, Round: s.round, Skipped: skipped})
	return true, nil
}

// applying reports whether the program has been asked for the next model.
func (s *server) applying() bool { return s.present != nil && s.present.stage == Applying }

// begin begins a round among those whose material is in, if they are enough and the budget
// lasts. They are charged, and nobody else.
func (s *server) begin() error {
	x, server := s.present, s.series.Present()
	var fresh [32]byte
	if _, err := io.ReadFull(s.random, fresh[:]); err != nil {
		return fmt.Errorf("%w: %w", protocol.ErrRandom, err)
	}
	digest, err := s.config.Broadcast(s.round+1, fresh)
	if err != nil {
		return err
	}
	envelopes, err := server.BeginDigest(digest)
	if tooFew(err) {
		number(err, s.round+1)
		s.decided(Notice{Kind: Unbegun, Session: x.number, Round: s.round + 1, Err: err})
		s.enter(x, Resting)
		if s.failed = s.tried; s.failed == nil { // it was tried before the server was loaded
			s.failed = s.takers()
		}
		return nil
	} else if err != nil {
		return err
	}
	n := Notice{Kind: Begun, Session: x.number, Round: s.round + 1}
	var names []string
	for _, e := range envelopes {
		n.Parties = append(n.Parties, e.To)
		names = append(names, s.names[e.To])
	}
	ledger, err := s.charge(names, 1)
	if errors.Is(err, accounting.ErrBudget) {
		s.end(BudgetSpent) // which forgets the session, and the round that has begun in it
		return nil
	} else if err != nil {
		return err
	}
	s.round, s.fresh, s.ledger, s.begun = s.round+1, fresh, ledger, s.now
	for _, i := range n.Parties {
		if s.counts != nil {
			s.counts[i]++
		}
	}
	s.decided(n)
	s.enter(x, Submitting)
	x.asked = len(n.Parties)
	return nil
}

// step ends one step of a round and begins the next. Parties get its messages by Pending.
func (s *server) step(next Stage) error {
	mute := s.mute()
	err := s.series.Present().EndStep()
	if tooFew(err) && mute {
		err = muted{err}
	}
	if tooFew(err) {
		s.lose(err)
		return nil
	} else if err != nil {
		return err
	}
	s.enter(s.present, next)
	return nil
}

// mute reports whether nobody has submitted in the open round though as many are here as a sum
// takes. A server that was loaded within the round cannot tell.
func (s *server) mute() bool {
	x := s.present
	if x.stage != Submitting || x.asked == 0 {
		return false
	}
	missing := s.series.Present().Missing()
	here := 0
	for _, i := range missing {
		if s.peers[i].here {
			here++
		}
	}
	return len(missing) == x.asked && here >= s.config.Survivors
}

// total adds a round up, and asks for the next model.
func (s *server) total() {
	server := s.series.Present()
	sum, err := server.SumVector()
	s.learnFaults(s.present)
	if err != nil {
		s.lose(err)
		return
	}
	s.sum, s.of, s.ask = sum, server.Included(), true
	s.enter(s.present, Applying)
}

// Applied is a method of [Lead].
func (s *server) Applied(now Time, round uint64, err error) {
	s.clock(now)
	x := s.present
	if x == nil || x.stage != Applying || round != s.round {
		return
	}
	if err != nil {
		s.lose(err)
		return
	}
	s.inRow = 0
	s.decided(Notice{Kind: Summed, Session: x.number, Round: s.round, Parties: s.of})
	s.sum, s.of, s.ask = nil, nil, false
	s.enter(x, Resting)
}

// lose ends a round without a sum.
func (s *server) lose(why error) {
	s.sum = nil
	s.loses(s.present.number, why)
	s.enter(s.present, Resting)
}

// end ends the job.
func (s *server) end(why string) {
	s.sum, s.present, s.forming = nil, nil, nil
	s.series = protocol.NewServerSeries(s.config.Label, s.series.Least())
	s.ends(why)
}

// nameOf names a message of a session: of one type and one round there is one.
func nameOf(session uint64, shared, own []byte) string {
	if len(shared) == 0 {
		shared = own
	}
	h, _, err := wire.ParseHeader(shared)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", session, h.Type, h.Round)
}

// Status is the state of a job.
type Status struct {
	Round   uint64       // the last that was begun
	Lost    uint64       // rounds whose sum is in no model, those of a [SetBack] too
	Session uint64       // of the present session, or else of the one that forms; 0: none
	Stage   Stage        // the same session's
	Next    SessionStage // the session that forms, if there is one
	Since   Time         // that stage began
	Paused  bool
	Ended   string // why, empty while the job goes on
	Stalled bool   // it ended, and each of its rounds was lost
	Begun   Time   // the last round
	Taken   int    // submissions that the open round has, where it takes a given number
	Opened  []int  // members that have keys in the open round
	Fresh   [32]byte
}

// Status is a method of [Lead].
func (s *server) Status() Status {
	out := s.status()
	x := s.present
	if f := s.forming; f != nil {
		out.Next = SessionStage{f.number, f.stage}
	}
	if x == nil {
		x = s.forming
	}
	if x != nil {
		out.Session, out.Stage, out.Since = x.number, x.stage, x.since
	}
	return out
}
