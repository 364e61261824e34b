package protocol

import (
	"bytes"
	"fmt"
	"iter"
)

// This file is for callers that keep a loop of their own around a server: it says where the
// server stands, and what to send to a party that connects now.

// Step names the messages from parties for which a [Server] waits.
type Step int

// The steps of a session, and the call that ends each. Without recovery there are only
// StepAnnounce, StepEncapsulate, StepBetween and StepMasked; with classical keys there is no
// StepEncapsulate.
const (
	StepAnnounce    Step = iota + 1 // keys; Server.Keys
	StepEncapsulate                 // ciphertexts; Server.Members
	StepBetween                     // material for the next round; Server.Begin
	StepMasked                      // submissions; Server.Survivors, without recovery Server.Sum
	StepSigned                      // signatures; Server.Certificate
	StepReveal                      // shares; Server.Sum
)

var stepNames = []string{"announce", "encapsulate", "between", "masked", "signed", "reveal"}

// String returns the step's name.
func (s Step) String() string {
	if s < StepAnnounce || s > StepReveal {
		return fmt.Sprintf("Step(%d)", int(s))
	}
	return stepNames[s-StepAnnounce]
}

// Step returns what the server waits for. [Server.Missing] names the parties.
func (s *Server) Step() Step {
	switch {
	case s.stage == stageAnnounce:
		return StepAnnounce
	case s.stage == stageEncapsulate:
		return StepEncapsulate
	case s.open == nil:
		return StepBetween
	}
	return StepMasked + Step(s.open.step)
}

// EndStep ends the server's current step as [Server.Keys], [Server.Members], [Server.Survivors] or
// [Server.Certificate] does, with that call's errors, but makes no messages: [Server.Pending] makes
// a party's message once the party can take it. In set-up and on large graphs the messages to all
// parties together take far more memory than the server does. It fails with [ErrPhase] at other
// steps, which [Server.Begin] and [Server.Sum] end.
func (s *Server) EndStep() error {
	switch step := s.Step(); step {
	case StepAnnounce:
		return s.endAnnouncements()
	case StepEncapsulate:
		_, err := s.Members() // which keeps its messages anyway
		return err
	case StepMasked:
		return s.endMasked()
	case StepSigned:
		return s.endSigned()
	default:
		return fmt.Errorf("%w: step %v is ended by another call", ErrPhase, step)
	}
}

// Pending returns the messages of the steps that a party has not answered yet, in the order in
// which the party takes them; nothing if it has answered all. The bytes are those of the envelopes,
// also after [LoadServer]. Send them to a party that has connected, after its last message, which
// the party sends again by itself ([Client.Output]): lost messages then do not matter. A party
// refuses a message that it has already received.
//
// A party that has nothing pending and no keys for the session announces them, or waits for the
// next session.
func (s *Server) Pending(party int) [][]byte {
	var out [][]byte
	for shared, own := range s.PendingParts(party) {
		if len(shared) > 0 {
			own = bytes.Join([][]byte{shared, own}, nil)
		}
		out = append(out, own)
	}
	return out
}

// PendingParts yields the messages of [Server.Pending], each in two parts to be sent one after the
// other: the beginning that is the same for many parties, if there is one, and the rest. The first
// part shares its memory between parties, and must not be written to: with hybrid keys of ten
// thousand parties it is 1.3 MB.
func (s *Server) PendingParts(party int) iter.Seq2[[]byte, []byte] {
	return func(yield func(shared, own []byte) bool) {
		if s.stage == stageEncapsulate {
			if s.Awaits(party) {
				yield(s.head, s.encapsulationKeysFor(party))
			}
			return
		}
		for _, message := range s.pendingWhole(party) {
			if !yield(nil, message) {
				return
			}
		}
	}
}

// pendingWhole is Pending once set-up is over: nothing that is long is shared then.
func (s *Server) pendingWhole(party int) [][]byte {
	if s.stage != stageReady || !s.topology.members.Has(party) {
		return nil
	}
	var out [][]byte
	message, unheard := s.pending[party]
	if unheard {
		out = append(out, message)
	}
	r := s.open
	if r == nil {
		// In round 0 the answer to what ends set-up is material for the first round.
		invited := s.config.recovery && s.lacksMaterial(party)
		if invited && (!unheard || s.round > 0) {
			out = append(out, s.invitation())
		}
		return out
	}
	switch {
	case r.step == stepMasked:
		if r.participants.Has(party) && !r.received.Has(party) {
			out = append(out, s.beginFor(party))
		}
	case !r.survivors.Has(party) || r.step == stepReveal && r.revealed.Has(party):
	default:
		_, signed := s.signature(party)
		if !signed {
			out = append(out, s.survivorsFor(party))
		}
		if r.step == stepReveal {
			out = append(out, s.certificateFor(party))
		}
	}
	return out
}
