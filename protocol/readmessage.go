package protocol

import (
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// ReadMessage does what [Server.Receive] does, for a message that it reads in pieces, to its end:
// of a submission it holds as bytes at most 32 KiB and the part after the vector. It needs memory
// for one vector and the sum, from the first message of a round until [Server.Survivors] or the
// sum.
//
// A message that is refused or breaks off changes nothing. If r fails, ReadMessage fails with
// [ErrTruncated] and the error of r. It returns when r ends or the message has ended; the server
// does nothing else until then, so let slow parties write to files first.
func (s *Server) ReadMessage(from int, r io.Reader) error {
	if from < 0 || from >= s.config.parties {
		return fmt.Errorf("%w: there is no party %d", ErrSender, from)
	}
	if err := s.readFrom(from, r); err != nil {
		return partyError(s.config.Roster, from, err)
	}
	return nil
}

func (s *Server) readFrom(from int, r io.Reader) error {
	head := make([]byte, wire.HeaderSize)
	if n, err := io.ReadFull(r, head); err != nil {
		_, _, parsed := wire.ParseHeader(head[:n])
		return brokenOff(parsed, err)
	}
	h, _, err := wire.ParseHeader(head)
	if err != nil {
		return err
	}
	if h.Type != wire.TypeMasked {
		limit := int64(s.config.mostBeside - wire.HeaderSize)
		rest, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return brokenOff(ErrTruncated, err)
		}
		if int64(len(rest)) > limit {
			return ErrOversized
		}
		return s.receiveFrom(from, append(head, rest...))
	}
	switch {
	case h.Sender != uint32(from):
		return fmt.Errorf("%w: it names %d", ErrSender, int32(h.Sender))
	case s.stage != stageReady:
		return fmt.Errorf("%w: set-up is not over", ErrPhase)
	case h.Session != s.session:
		return ErrSession
	case !s.topology.members.Has(from):
		return ErrMembers
	}
	if err := s.checkMasked(h, from); err != nil {
		return err
	}
	if err := s.readMasked(from, r); err != nil {
		s.intake.Reset()
		return err
	}
	delete(s.pending, from)
	return nil
}

// readMasked takes a submission from its packed vector on.
func (s *Server) readMasked(from int, r io.Reader) error {
	if s.intake == nil {
		intake, err := masking.NewIntake(s.config.Layout)
		if err != nil {
			return err
		}
		s.intake = intake
	}
	size := int64(s.config.Layout.PackedSize())
	// An Intake takes all that it is given, or says what is wrong with it.
	if n, err := io.Copy(s.intake, io.LimitReader(r, size)); errors.Is(err, masking.ErrPadding) {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	} else if err != nil || n < size {
		return brokenOff(ErrTruncated, err)
	}
	rest := make([]byte, s.restSize(from))
	if _, err := io.ReadFull(r, rest); err != nil {
		return brokenOff(ErrTruncated, err)
	}
	switch _, err := io.ReadFull(r, make([]byte, 1)); err {
	case io.EOF:
	case nil:
		return ErrTrailing
	default:
		return brokenOff(ErrTruncated, err)
	}
	parsed, err := s.parseRest(rest, from)
	if err != nil {
		return err
	}
	if err := s.intake.AddTo(s.open.sum); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	s.take(from, parsed)
	return nil
}

// brokenOff adds why reading ended, unless that is the end of what there was.
func brokenOff(err, reason error) error {
	if reason == nil || reason == io.EOF || reason == io.ErrUnexpectedEOF {
		return err
	}
	return fmt.Errorf("%w: %w", err, reason)
}
