package drive

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// serverState holds a server in its saved form.
type serverState struct {
	Format int
	Job    Recorded
	Series []byte
	Of     []int
	Sum    []byte // of the round that is applied, if it is short
	Digest []byte // of that sum, if it is saved apart
	Apart  string // the object that the sum is, of the open round; empty: none
	Faults []fault
	Doubts [][2]int
	Took   []Time // learned.median
}

const serverFormat = 1

// SessionStage is a session and its stage. Number 0: there is none.
type SessionStage struct {
	Number uint64
	Stage  Stage
}

// Recorded holds the saved state of a job without its keys, for [ResumeServer].
type Recorded struct {
	Round, Lost uint64
	InRow       int
	Fresh       [32]byte
	Begun       Time
	Paused      bool
	Ended       string
	Ledger      []byte          // in JSON; of a job with noise
	Counts      []uint64        // submissions by party; of a job that bounds them
	Sessions    [2]SessionStage // present, forming
}

// Save is a method of [Lead]. A long sum of the open round is an object.
func (s *server) Save(key *keyexchange.SealKey) (saved Saved, err error) {
	job := Recorded{
		Round: s.round, Lost: s.lost, InRow: s.inRow, Fresh: s.fresh, Begun: s.begun,
		Paused: s.paused, Ended: s.ended, Counts: s.counts,
	}
	if s.ledger != nil {
		if job.Ledger, err = s.ledger.MarshalJSON(); err != nil {
			return saved, err
		}
	}
	for k, x := range s.sessions() {
		if x != nil {
			job.Sessions[k] = SessionStage{x.number, x.stage}
		}
	}
	out := serverState{Format: serverFormat, Job: job, Of: s.of, Faults: s.faults.of,
		Doubts: s.faults.doubts, Took: s.learned.median[:]}
	var sum io.WriterTo
	if s.apart {
		out.Series, sum, err = s.series.SaveParts(key)
	} else {
		out.Series, err = s.series.Save(key)
	}
	if err == nil && s.sum != nil {
		sum, err = out.keep(s.sum, s.apart)
	}
	if err != nil {
		return saved, err
	}
	if sum != nil {
		out.Apart = s.sumName()
		saved.Objects, saved.Needed = []Object{{out.Apart, sum}}, []string{out.Apart}
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(out)
	saved.State = b.Bytes()
	return saved, err
}

// keep makes the sum that is applied a part of the state, or has it saved apart.
func (out *serverState) keep(sum *masking.Vector, apart bool) (io.WriterTo, error) {
	if !apart {
		var b bytes.Buffer
		_, err := sum.WriteTo(&b)
		out.Sum = b.Bytes()
		return nil, err
	}
	digest := sha256.New()
	_, err := sum.WriteTo(digest)
	out.Digest = digest.Sum(nil)
	return sum, err
}

// sumName names the long sum that is saved.
func (s *server) sumName() string {
	if s.sum != nil {
		return fmt.Sprint("applied", s.round)
	}
	return fmt.Sprint("sum", s.round)
}

// readServer restores the server that Save saved.
func readServer(
	c Settings, key *keyexchange.SealKey, now Time, state []byte,
) (s *server, err error) {
	var in serverState
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Apart == "" {
		return in.read(c, key, now, nil)
	}
	err = c.read(in.Apart, func(sum io.Reader) (err error) {
		s, err = in.read(c, key, now, sum)
		return err
	})
	return s, err
}

// read makes a server of its state, and of the sum that was saved apart, nil if there was none.
func (out *serverState) read(
	c Settings, key *keyexchange.SealKey, now Time, sum io.Reader,
) (*server, error) {
	if out.Format != serverFormat {
		return nil, fmt.Errorf("%w: it is of format %d, want %d", ErrState, out.Format, serverFormat)
	}
	var masked io.Reader
	if out.Digest == nil {
		masked = sum
	}
	series, err := protocol.ReadServerSeries(c.Label, key, out.Series, c.Session, masked)
	if err != nil {
		return nil, err
	}
	s, err := resumeServer(c, now, out.Job, series)
	if err != nil {
		return nil, err
	}
	s.faults = faults{out.Faults, out.Doubts}
	copy(s.learned.median[:], out.Took)
	if err := s.faults.check(len(s.peers)); err != nil {
		return nil, err
	}
	if x := s.present; x != nil && x.stage == Applying {
		if err := s.readSum(out, sum); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readSum reads the sum of the round that is applied, and asks for the next model again.
func (s *server) readSum(in *serverState, apart io.Reader) error {
	if in.Digest == nil {
		apart = bytes.NewReader(in.Sum)
	}
	if apart == nil {
		return fmt.Errorf("%w: its sum was saved apart, and is missing", ErrState)
	}
	intake, err := masking.NewIntake(s.config.Session(1).Layout)
	if err != nil {
		return err
	}
	found := sha256.New()
	if _, err := io.Copy(io.MultiWriter(intake, found), apart); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if in.Digest != nil && !bytes.Equal(found.Sum(nil), in.Digest) {
		return fmt.Errorf("%w: its sum is not the one that was saved apart", ErrState)
	}
	if s.sum, err = intake.Vector(); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	s.of, s.ask = in.Of, true
	return nil
}

// ResumeServer makes a lead that continues a job at the given place, with the sessions of a series.
// It fails with [ErrState].
func ResumeServer(
	c Settings, now Time, r Recorded, series *protocol.ServerSeries,
) (Lead, error) {
	return orNil(resumeServer(c, now, r, series))
}

func resumeServer(
	c Settings, now Time, r Recorded, series *protocol.ServerSeries,
) (*server, error) {
	s, err := newServer(c, now)
	if err != nil {
		return nil, err
	}
	s.series = series
	s.resume(&r)
	if s.ledger != nil {
		if err := s.ledger.UnmarshalJSON(r.Ledger); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrState, err)
		}
	}
	if len(r.Counts) != len(s.counts) {
		return nil, fmt.Errorf("%w: submissions of %d parties", ErrState, len(r.Counts))
	}
	copy(s.counts, r.Counts)
	s.expect(s.now, s.config.ComeBack)
	if series.Present() == nil && r.Round == 0 {
		s.arm(s.least(c.Session(1)))
	}
	for k, at := range []**session{&s.present, &s.forming} {
		server := []*protocol.Server{series.Present(), series.Successor()}[k]
		in := r.Sessions[k]
		if in.Number == 0 {
			continue
		}
		if server == nil || in.Stage < Announcing || in.Stage > Applying {
			return nil, fmt.Errorf("%w: session %d is %v", ErrState, in.Number, in.Stage)
		}
		*at = s.newSession(c.Session(in.Number), in.Stage)
		(*at).since = s.now
		s.mark(*at)
	}
	return s, nil
}
