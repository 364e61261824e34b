package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Hold is a claim on a federation. It is not safe for concurrent use, but for [Hold.Tidy].
type Hold struct {
	records  *Records
	id       string
	objects  *bucket
	pointer  pointer
	revision uint64
	found    *Ref     // the state that the claim found, or went back to
	before   []string // names of the objects that there were before the claim
	// spent is the state before the present one, with the objects that only it names: a slow reader
	// may need them, and so may a leader that finds the present one missing.
	spent   []*Ref
	claimed []byte          // the state that the claim found
	tried   map[string]bool // states that the hold has gone back from
	damage  error           // why nobody knows which state is the newest; nil: the pointer names it
	healed  error           // why the pointer was taken from this node's file; nil: it was not
	own     *own            // nil: nothing signs
	told    *told           // the last decision
	worn    int             // damaged lines of this node's file at the claim

	// Round is the last round that was begun. Each decision records Round, so that a leader that has
	// to go back to an older state knows how many rounds are missing.
	Round uint64

	// Fault, for tests, is called before each step of a decision, with its name: object,
	// pointer, sending.
	Fault func(step string)
}

// Claim makes a node the leader of a federation, no matter which node led it before. A record that
// does not open stays as it is, and Claim fails with [ErrRecord]. It does not fail if the newest
// state is missing, nor if nothing names it any more: see [Hold.State] and [Hold.Back].
func (r *Records) Claim(ctx context.Context, id, node string) (*Hold, error) {
	h := &Hold{records: r, id: id}
	var err error
	if h.objects, err = r.objects(ctx, id); err != nil {
		return nil, err
	}
	// Of what there is before the claim, nothing is a later leader's.
	short, cancel := context.WithTimeout(ctx, tidyTime)
	s, unsigned := r.signs(short, id, h.objects)
	cancel()
	h.before = s.names
	if h.own, err = r.own(ctx, id); err != nil {
		return nil, err
	}
	var file []byte
	if h.own != nil {
		if file, err = h.own.read(); err != nil {
			return nil, err
		}
	}
	p, revision, err := r.pointer(ctx, id)
	if err != nil {
		return nil, err
	}
	h.revision = revision
	if p != nil {
		h.pointer = *p
	}
	if err := h.find(ctx, p, file); err != nil {
		return nil, err
	}
	if h.healed == nil {
		if err := h.doubt(ctx, p, &s, unsigned); err != nil {
			return nil, err
		}
	}
	if h.found = h.pointer.State; h.found != nil && h.damage == nil {
		h.claimed, err = h.Get(ctx, h.found)
		if err != nil && !errors.Is(err, ErrMissing) {
			return nil, err
		}
	}
	h.Round = h.pointer.Round
	h.pointer.Leader, h.pointer.Format = node, Format
	h.pointer.Claims++
	return h, h.write(ctx)
}

// find compares the pointer with this node's file: what JetStream has lost of the newest decision
// is taken from there.
func (h *Hold) find(ctx context.Context, p *pointer, file []byte) (err error) {
	if h.own == nil {
		return nil
	}
	if h.told, err = h.own.last(file, p); err != nil {
		return err
	}
	h.worn = h.told.bad
	if h.healed = h.told.later(p); h.healed != nil {
		h.told.restore(&h.pointer)
		h.pointer.Lost = false
		return nil
	}
	if !h.told.inFile { // another node has decided since
		return h.own.keep(h.pointer.Line)
	}
	return nil
}

// doubt finds out whether anything contradicts the pointer. unsigned says why the signs are not
// known.
func (h *Hold) doubt(ctx context.Context, p *pointer, s *signs, unsigned error) (err error) {
	switch {
	case unsigned == nil:
		h.damage = s.contradict(p)
	case p == nil || p.State == nil: // what says that it begins?
		if _, err = h.records.decided(ctx, h.id); err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		h.damage = err
	}
	if h.damage != nil {
		h.pointer.Lost = true
		h.pointer.Number = max(h.pointer.Number, s.newest)
		h.pointer.Round = max(h.pointer.Round, s.round)
	}
	return nil
}

// write moves the pointer from the revision held. If an answer was lost, write finds out by asking
// again.
func (h *Hold) write(ctx context.Context) error {
	b, err := json.Marshal(h.pointer)
	if err != nil {
		return err
	}
	var revision uint64
	err = h.records.retry(ctx, func(ctx context.Context) (err error) {
		if h.revision == 0 {
			revision, err = h.records.pointers.Create(ctx, h.id, b)
			return err
		}
		revision, err = h.records.pointers.Update(ctx, h.id, b, h.revision)
		return err
	})
	switch {
	case err == nil:
		h.revision = revision
		return nil
	case wrongSequence(err) || errors.Is(err, jetstream.ErrKeyExists):
		p, revision, failed := h.records.pointer(ctx, h.id)
		if failed != nil {
			return failed
		}
		// Mine, written by an attempt whose answer was lost? A node that was frozen may still have the
		// pointer that it knew.
		same, failed := json.Marshal(p)
		if failed == nil && revision > h.revision && bytes.Equal(same, b) {
			h.revision = revision
			return nil
		}
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Keep claims the federation anew, as it stands. It fails with [ErrLost] if another node has
// claimed it since. A node that was frozen learns the truth by a write only: what it reads may be
// as old as the freeze.
func (h *Hold) Keep(ctx context.Context) error { return h.write(ctx) }

// Damage returns why nobody knows which state is the newest, nil if it is known. It is
// [ErrDamaged].
func (h *Hold) Damage() error { return h.damage }

// Healed returns why the newest state was found by this node's own file, nil if it was not. It is
// [ErrDamaged].
func (h *Hold) Healed() error { return h.healed }

// DamagedLines returns how many lines of this node's own file were damaged when it claimed.
func (h *Hold) DamagedLines() int { return h.worn }

func (h *Hold) fault(step string) {
	if h.Fault != nil {
		h.Fault(step)
	}
}

// State reads the newest state, nil before the first decision. It fails with [ErrDamaged] if
// nothing names the newest state any more, until [Hold.Back] has found one.
func (h *Hold) State(ctx context.Context) ([]byte, error) {
	if h.damage != nil {
		return nil, h.damage
	}
	if h.pointer.State == nil {
		return nil, nil
	}
	if b := h.claimed; b != nil {
		return b, nil
	}
	return h.Get(ctx, h.pointer.State)
}

// Back sets the hold back to the newest state that exists, if the present state is missing or names
// a missing object, or if nobody knows which it is, and returns the last round that is known to
// have been begun. Nothing is changed before the next decision. It fails with [ErrMissing] if no
// older state exists.
//
// The state may belong to a decision that an earlier leader prepared and never made: give up the
// round that it has open.
func (h *Hold) Back(ctx context.Context) (begun uint64, err error) {
	var all []string
	err = h.records.retry(ctx, func(ctx context.Context) (err error) {
		all, err = h.objects.names(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if h.tried == nil {
		h.tried = make(map[string]bool)
	}
	if h.pointer.State != nil {
		h.tried[h.pointer.State.Name] = true
	}
	type candidate struct {
		number uint64
		ref    *Ref
	}
	var found []candidate
	for _, name := range all {
		if number, is := stateNumber(name); is && !h.tried[name] {
			found = append(found, candidate{number, &Ref{Name: name}})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(b.number, a.number) })
	for _, c := range found {
		for _, name := range all {
			if strings.HasPrefix(name, c.ref.Name+".") {
				c.ref.Parts = max(c.ref.Parts, 1) + 1
			}
		}
		h.tried[c.ref.Name] = true
		b, err := h.records.getParts(ctx, h.objects, h.id, c.ref, nil)
		if errors.Is(err, ErrUnavailable) {
			return 0, err
		}
		if err != nil {
			continue
		}
		c.ref.Size, c.ref.Digest = len(b), digestOf(b)
		h.found, h.pointer.State, h.pointer.Number = c.ref, c.ref, max(h.pointer.Number, c.number)
		h.claimed, h.damage = b, nil
		return h.pointer.Round, nil
	}
	if d := new(Damage); errors.As(h.damage, &d) {
		return 0, &Damage{d.What + ", and there is no state", adviceNothing}
	}
	return 0, fmt.Errorf("%w: %w, and no older state of %.16s… is", ErrRecord, ErrMissing, h.id)
}

const kindState = "state-" // and the number of the decision

// stateNumber returns the decision that a state belongs to, by the name of its first part.
func stateNumber(name string) (number uint64, is bool) {
	rest, is := strings.CutPrefix(name, kindState)
	digits, unique, cut := strings.Cut(rest, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, is && cut && err == nil && !strings.Contains(unique, ".")
}

// Number returns how many decisions were recorded.
func (h *Hold) Number() uint64 { return h.pointer.Number }

// Put stores an object that a state will name.
func (h *Hold) Put(ctx context.Context, kind string, b []byte) (*Ref, error) {
	return h.records.putBytes(ctx, h.objects, h.id, kind, b)
}

// PutFrom is Put for an object that is written in pieces and has a given number of bytes in all.
func (h *Hold) PutFrom(ctx context.Context, kind string, size int, content io.WriterTo,
) (*Ref, error) {
	return h.records.put(ctx, h.objects, h.id, kind, size, content)
}

// Get reads an object.
func (h *Hold) Get(ctx context.Context, ref *Ref) ([]byte, error) {
	return h.records.get(ctx, h.objects, h.id, ref)
}

// Decide records a decision. Once it has returned without an error the decision may be sent. If it
// fails nothing may be sent, and the hold is no longer usable: claim again. Objects in spent are
// deleted after the next decision, or after a later decision if that fails.
func (h *Hold) Decide(ctx context.Context, state []byte, spent ...*Ref) error {
	h.fault("object")
	ref, err := h.Put(ctx, fmt.Sprint(kindState, h.pointer.Number+1), state)
	if err != nil {
		return err
	}
	older, before := h.spent, h.pointer.State
	h.spent, h.claimed = append(slices.Clone(spent), before), nil
	h.pointer.Number++
	h.pointer.State, h.pointer.Round, h.pointer.Lost = ref, h.Round, false
	if h.own != nil {
		if h.told, err = h.own.sign(h.told, &h.pointer); err != nil {
			return err
		}
		h.pointer.Line, h.pointer.Restored = h.told.line, false
	}
	h.fault("pointer")
	if err := h.write(ctx); err != nil {
		return err
	}
	if h.own != nil { // what is told is in the file
		if err := h.own.keep(h.told.line); err != nil {
			return err
		}
	}
	for k, old := range older {
		if old == nil {
			continue
		}
		if err := h.removeAll(ctx, old); err != nil { // the next decision tries again
			h.spent = append(h.spent, older[k:]...)
			break
		}
	}
	h.fault("sending")
	return nil
}

func (h *Hold) removeAll(ctx context.Context, ref *Ref) error {
	for _, name := range ref.names() {
		if err := h.remove(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}

// remove deletes an object without a trace. JetStream would leave a message that says so for ever;
// such messages keep files alive that otherwise hold only deleted objects, 2 MB each.
func (h *Hold) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if err := h.objects.Delete(ctx, name); err != nil {
		return err
	}
	return h.objects.stream.Purge(ctx, jetstream.WithPurgeSubject(h.objects.subject(name)))
}

// tidyTime is how long a request for the sake of tidiness may take.
const tidyTime = 2 * time.Second

// Tidy deletes the objects that no state names any more: those of decisions that were never
// completed before the claim. keep names what the present state does. The hold may be used
// meanwhile, and may even be lost.
func (h *Hold) Tidy(ctx context.Context, keep ...*Ref) error {
	wanted := make(map[string]bool)
	for _, ref := range append(keep, h.found) {
		if ref == nil {
			continue
		}
		for _, name := range ref.names() {
			wanted[name] = true
		}
	}
	for _, name := range h.before {
		if wanted[name] || strings.HasPrefix(name, kindInitial) || strings.HasPrefix(name, probe) {
			continue
		}
		short, cancel := context.WithTimeout(ctx, tidyTime)
		err := h.remove(short, name)
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}
