package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// This file finds that JetStream has lost something. A message whose checksum fails is none for
// JetStream, so absence alone never means that a federation has decided nothing: what else there is
// of the federation has to say so too.

// ErrDamaged: the record has signs of something that it does not have. It comes with [ErrRecord],
// and with [ErrMissing].
var ErrDamaged = errors.New("record: the record is damaged")

// Damage says what is lost, and what to do. It is [ErrDamaged].
type Damage struct {
	What   string
	Advice string
}

func (d *Damage) Error() string { return fmt.Sprintf("%v: %s; %s", ErrDamaged, d.What, d.Advice) }

// Is makes a damaged record one that cannot be opened, in which an object is missing: whoever can
// goes back to what there is.
func (d *Damage) Is(target error) bool {
	return target == ErrDamaged || target == ErrRecord || target == ErrMissing
}

const (
	adviceNode = "check this node's disk; the federation goes on from the newest state that there " +
		"is, or restore a backup to nodes whose folders are new"
	adviceNothing    = "check this node's disk; restore a backup to nodes whose folders are new"
	adviceDefinition = "check this node's disk; declare the federation by the same files again, or " +
		"restore a backup to nodes whose folders are new"
)

// signs has the traces of a federation's decisions but its pointer. They are read before the
// pointer, which is then as new as they are.
type signs struct {
	names  []string // of objects
	newest uint64   // the highest number of a state, decided or not
	begun  bool     // the audit log has a line that follows from a decision
	round  uint64   // of such a line, the highest
}

// signs looks for signs of decisions.
func (r *Records) signs(ctx context.Context, id string, o *bucket) (s signs, err error) {
	if s.names, err = o.names(ctx); err != nil {
		return s, err
	}
	for _, name := range s.names {
		if number, is := stateNumber(name); is {
			s.newest = max(s.newest, number)
		}
	}
	line, err := r.lastLine(ctx, id)
	if err != nil || line == nil {
		return s, err
	}
	look := func(line Line) bool {
		if line.Event != EventCreated && line.Event != eventRestored && line.Event != EventUnreadable {
			s.begun, s.round = true, max(s.round, uint64(max(line.Round, 0)))
		}
		return true
	}
	if line.Event == eventRestored { // the lines of the backup are before it
		_, err = r.AuditLog(ctx, id, 1, look)
		return s, err
	}
	look(*line)
	return s, nil
}

// lastLine reads the last line of a federation's audit log, nil if there is none.
func (r *Records) lastLine(ctx context.Context, id string) (*Line, error) {
	m, err := r.audit.GetLastMsgForSubject(ctx, subjectAudit+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	line := new(Line)
	if err := json.Unmarshal(m.Data, line); err != nil {
		return nil, fmt.Errorf("%w: a line of the audit log", ErrRecord)
	}
	return line, nil
}

// contradict fails with [ErrDamaged] if a pointer, nil if there is none, is older than what the
// signs follow from. One state more than it names may have been stored, and never decided.
func (s *signs) contradict(p *pointer) error {
	what := ""
	switch {
	case p == nil && (s.newest > 0 || s.begun):
		what = "what names the newest state of a federation is lost"
	case p == nil:
		return nil
	case p.Lost:
		what = "what named the newest state of a federation is lost, and nothing was decided since"
	case p.State == nil && (s.newest > 1 || s.begun):
		what = "what names the newest state of a federation is older than its first decision"
	case s.newest > p.Number+1:
		what = fmt.Sprintf("what names the newest state of a federation names decision %d, and there "+
			"is a state of decision %d", p.Number, s.newest)
	case s.round > p.Round:
		what = fmt.Sprintf("what names the newest state of a federation is of round %d, and its "+
			"audit log of round %d", p.Round, s.round)
	default:
		return nil
	}
	return &Damage{what, adviceNode}
}

// decided reads a federation's pointer, nil if nobody has claimed it. It fails with [ErrDamaged] if
// there are signs of decisions that the pointer does not know of.
func (r *Records) decided(ctx context.Context, id string) (*pointer, error) {
	o, err := r.objects(ctx, id)
	if err != nil {
		return nil, err
	}
	var s signs
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		s, err = r.signs(ctx, id, o)
		return err
	})
	switch {
	case errors.Is(err, ErrRecord):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	mine, err := r.own(ctx, id)
	if err != nil {
		return nil, err
	}
	var file []byte
	if mine != nil {
		if file, err = mine.read(); err != nil {
			return nil, err
		}
	}
	p, _, err := r.pointer(ctx, id)
	if err != nil {
		return nil, err
	}
	if mine != nil {
		t, err := mine.last(file, p)
		if err == nil {
			err = t.later(p)
		}
		if err != nil {
			return p, err
		}
	}
	return p, s.contradict(p)
}

// known returns the identifiers of federations that a stream has a subject for, with its prefix.
func known(
	ctx context.Context, stream jetstream.Stream, prefix string, into map[string]bool,
) error {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		id := strings.TrimPrefix(subject, prefix)
		if len(id) == idSize && strings.Trim(id, "0123456789abcdef") == "" {
			into[id] = true
		}
	}
	return nil
}

// idSize is the length of a federation's identifier.
const idSize = 64

// absent fails with [ErrNone] if there is nothing of a federation, and with [ErrDamaged] if there
// is something, and so was its definition.
func (r *Records) absent(ctx context.Context, id string) error {
	var line *Line
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		line, err = r.lastLine(ctx, id)
		return err
	})
	if err != nil && !errors.Is(err, ErrRecord) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p, _, failed := r.pointer(ctx, id)
	switch {
	case errors.Is(failed, ErrUnavailable):
		return failed
	case line == nil && err == nil && p == nil && failed == nil:
		return ErrNone
	}
	return &Damage{fmt.Sprintf("the definition of the federation %.16s… is lost", id),
		adviceDefinition}
}
