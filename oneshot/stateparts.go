package oneshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has states of which submissions, which are long, are saved apart, once.

// serverPartsState is the state of a server whose batch is saved apart.
type serverPartsState struct {
	Server serverState
	Batch  []byte // digest of the batch that is with the members, nil if none is
}

type coverState struct {
	Party                      uint32
	Masked, Commitment, Stated [32]byte
}

// SaveParts is [Server.Save] without submissions. [Server.Flight] separately saves the submissions
// of the batch that is with the members; submissions that wait for a batch are forgotten, and their
// parties send them again. [ReadServer] restores the server.
func (s *Server) SaveParts(key *keyexchange.SealKey) ([]byte, error) {
	out := serverPartsState{Server: *s.state()}
	if r := s.open; r != nil && r.step > stepKeys {
		received, err := wire.ParseSet(bytes.Clone(r.received.Bytes()), s.config.dealers())
		if err != nil {
			panic("oneshot: " + err.Error()) // it is a set of as many
		}
		for _, sub := range r.waiting {
			received.Remove(sub.party)
		}
		out.Server.Open.Received = received.Bytes()
		if r.flight != nil {
			digest := sha256.New()
			if _, err := batchOf(r.flight).WriteTo(digest); err != nil {
				return nil, err
			}
			out.Batch = digest.Sum(nil)
		}
	}
	return sealState(nil, key, s.config, ownerServerParts, 0, &out)
}

// Flight returns the submissions of the batch that is with the members, nil if there is no such
// batch. Make them durable before the state of [Server.SaveParts], once for each
// [Server.BatchNumber].
func (s *Server) Flight() io.WriterTo {
	if s.open == nil || s.open.flight == nil {
		return nil
	}
	return batchOf(s.open.flight)
}

// BatchNumber returns the number of the batch that is with the members, or of the last one; 0
// before the round's first.
func (s *Server) BatchNumber() int {
	if s.open == nil {
		return 0
	}
	return s.open.number
}

// batchOf is a batch as it is saved: u32(party) ‖ body of each submission.
type batchOf []*submitted

// WriteTo writes the batch.
func (b batchOf) WriteTo(w io.Writer) (written int64, err error) {
	for _, sub := range b {
		for _, part := range [][]byte{uint32Bytes(sub.party), sub.body} {
			n, err := w.Write(part)
			if written += int64(n); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// readBatch calls take with the parties and bodies of a saved batch.
func (s *settled) readBatch(
	batch io.Reader, members int, take func(party int, body []byte) error,
) error {
	one := make([]byte, 4+s.submissionSize(members))
	for range maxBatch {
		if _, err := io.ReadFull(batch, one); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%w: %w", ErrState, err)
		}
		party, body, err := parseNumber(one)
		if err != nil || party >= s.dealers() {
			return fmt.Errorf("%w: a batch of nobody", ErrState)
		}
		if err := take(party, body); err != nil {
			return err
		}
	}
	return nil
}

// ReadServer restores the server that [Server.SaveParts] saved under key, with the same
// configuration and the given size of batches; batch is the batch that was saved with the state,
// nil if there was none. It fails with [ErrState] or [ErrConfig].
func ReadServer(
	config *Config, size int, key *keyexchange.SealKey, state []byte, batch io.Reader,
) (*Server, error) {
	s, err := NewServer(config, size)
	if err != nil {
		return nil, err
	}
	var in serverPartsState
	if err := openState(key, s.config, ownerServerParts, 0, state, &in); err != nil {
		return nil, err
	}
	if in.Batch != nil {
		if err := s.config.readFlight(&in, batch); err != nil {
			return nil, err
		}
	}
	if err := s.load(&in.Server); err != nil {
		return nil, err
	}
	return s, nil
}

// readFlight reads the batch that was saved with a state into it.
func (s *settled) readFlight(in *serverPartsState, batch io.Reader) error {
	if batch == nil || in.Server.Open == nil {
		return fmt.Errorf("%w: its batch is missing", ErrState)
	}
	members, err := loadSet(in.Server.Open.Members, s.c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	digest := sha256.New()
	flight := &in.Server.Open.Flight
	err = s.readBatch(io.TeeReader(batch, digest), members.Len(),
		func(party int, body []byte) error {
			*flight = append(*flight, submittedState{party, slices.Clone(body)})
			return nil
		})
	if err == nil && !bytes.Equal(digest.Sum(nil), in.Batch) {
		err = fmt.Errorf("%w: its batch is another", ErrState)
	}
	return err
}
