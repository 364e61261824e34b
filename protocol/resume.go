package protocol

import (
	"bytes"
	"crypto"
	"fmt"
	"io"
)

// This file has series that are put together from sessions which were saved one by one
// ([Client.Save], [Server.Save]), by programs that kept no series.

// ResumeClientSeries makes the series of a label from its sessions, either of which may be nil:
// the present one, and the one that is set up. A successor that a Begin or Invite has reached has
// taken over, and present is erased. least is as for [NewClientSeries], and is raised above the
// numbers of both sessions. It fails, and changes nothing, with [ErrConfig] if a session has
// another label, with [ErrIdentity] if one is another party's, with [ErrNumber] if the
// successor's number is not the higher or one is above [MaxNumber], and with [ErrPhase] if the
// present session is not set up.
func ResumeClientSeries(
	label string, least uint64, identity crypto.Signer, random io.Reader, present, successor *Client,
) (*ClientSeries, error) {
	own := identityOf(identity)
	if own == nil {
		return nil, fmt.Errorf("%w: there is no Ed25519 signer", ErrIdentity)
	}
	var configs [2]*settled
	for i, c := range []*Client{present, successor} {
		if c == nil {
			continue
		}
		if configs[i] = c.config; !bytes.Equal(c.config.Roster.Key(c.self), own) {
			return nil, fmt.Errorf("%w: session %d is of party %d", ErrIdentity, c.config.Number, c.self)
		}
	}
	least, err := leastAfter(label, least, configs)
	if err != nil {
		return nil, err
	}
	if present != nil && present.stage != stageReady {
		return nil, errPresent(present.config)
	}
	if successor != nil && successor.last > 0 {
		if present != nil {
			present.Erase()
		}
		present, successor = successor, nil
	}
	s := NewClientSeries(label, least, identity, random)
	s.present, s.successor = present, successor
	return s, nil
}

// ResumeServerSeries makes the series of a label from its sessions, either of which may be nil:
// the present one, and the one that is set up, which has had no round. least is as for
// [NewServerSeries], and is raised above the numbers of both. It fails with [ErrConfig] if a
// session has another label, with [ErrNumber] if the successor's number is not the higher or one
// is above [MaxNumber], and with [ErrPhase] if the present session is not set up or the successor
// has had a round: pass it as the present one.
func ResumeServerSeries(
	label string, least uint64, present, successor *Server,
) (*ServerSeries, error) {
	var configs [2]*settled
	for i, server := range []*Server{present, successor} {
		if server != nil {
			configs[i] = server.config
		}
	}
	least, err := leastAfter(label, least, configs)
	if err != nil {
		return nil, err
	}
	if present != nil && present.stage != stageReady {
		return nil, errPresent(present.config)
	}
	if successor != nil && successor.round > 0 {
		return nil, fmt.Errorf("%w: session %d has had rounds and cannot be the successor", ErrPhase,
			successor.config.Number)
	}
	s := NewServerSeries(label, least)
	s.present, s.successor = present, successor
	return s, nil
}

func errPresent(config *settled) error {
	return fmt.Errorf("%w: session %d is not set up and cannot be the present one", ErrPhase,
		config.Number)
}

// leastAfter returns the least number that a series may use after sessions, of which
// either may be nil, and refuses sessions that cannot follow each other in it.
func leastAfter(label string, least uint64, sessions [2]*settled) (uint64, error) {
	for _, c := range sessions {
		switch {
		case c == nil:
			continue
		case c.Label != label:
			return 0, fmt.Errorf("%w: session %d has another label than the series", ErrConfig, c.Number)
		case c.Number > MaxNumber:
			return 0, errMaxNumber(c.Number)
		}
		least = max(least, c.Number+1)
	}
	present, successor := sessions[0], sessions[1]
	if present != nil && successor != nil && successor.Number <= present.Number {
		return 0, fmt.Errorf("%w: session %d cannot follow session %d", ErrNumber, successor.Number,
			present.Number)
	}
	return least, nil
}
