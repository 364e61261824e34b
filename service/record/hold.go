package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Hold is a claim on a federation. It is not safe for concurrent use.
type Hold struct {
	records  *Records
	id       string
	objects  jetstream.ObjectStore
	stream   jetstream.Stream // that objects are in; nil: not asked for yet
	pointer  pointer
	revision uint64
	// spent is the state before the present one, with the objects that only it names: a slow reader
	// may need them, and so may a leader that finds the present one missing.
	spent   []*Ref
	claimed []byte          // the state that the claim found
	tried   map[string]bool // states that the hold has gone back from
	// Round is the last round that was begun. Each decision records it, so that a leader that has to
	// go back knows how many are missing.
	Round uint64

	// Fault, for tests, is called before each step of a decision, with its name: object,
	// pointer, sending.
	Fault func(step string)
}

// Claim makes a node the leader of a federation, no matter which node led it before. A record that
// does not open stays as it is, and Claim fails with [ErrRecord]. It does not fail if the newest
// state is missing: see [Hold.Back].
func (r *Records) Claim(ctx context.Context, id, node string) (*Hold, error) {
	p, revision, err := r.pointer(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &Hold{records: r, id: id, revision: revision}
	if h.objects, err = r.objects(ctx, id); err != nil {
		return nil, err
	}
	if p != nil {
		h.pointer, h.Round = *p, p.Round
		if p.State != nil {
			h.claimed, err = h.Get(ctx, p.State)
			if err != nil && !errors.Is(err, ErrMissing) {
				return nil, err
			}
		}
	}
	h.pointer.Leader, h.pointer.Format = node, Format
	return h, h.write(ctx)
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
		// Mine, written by an attempt whose answer was lost?
		same, failed := json.Marshal(p)
		if failed == nil && bytes.Equal(same, b) {
			h.revision = revision
			return nil
		}
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Held asks the record whether the claim still holds. It fails with [ErrLost] if another node has
// claimed since; no answer from the record proves nothing.
func (h *Hold) Held(ctx context.Context) error {
	_, revision, err := h.records.pointer(ctx, h.id)
	if err == nil && revision > h.revision {
		return ErrLost
	}
	return err
}

func (h *Hold) fault(step string) {
	if h.Fault != nil {
		h.Fault(step)
	}
}

// State reads the newest state, nil before the first decision.
func (h *Hold) State(ctx context.Context) ([]byte, error) {
	if h.pointer.State == nil {
		return nil, nil
	}
	if b := h.claimed; b != nil {
		return b, nil
	}
	return h.Get(ctx, h.pointer.State)
}

// Back returns the hold to the newest state that exists, from one that is missing or that names a
// missing object, and returns the last round that is known to have been begun. Nothing is changed
// before the next decision. It fails with [ErrMissing] if no older state exists.
//
// The state may be one that was never decided, of a leader that another followed: give up what it
// has open.
func (h *Hold) Back(ctx context.Context) (begun uint64, err error) {
	all, err := h.records.list(ctx, h.objects)
	if err != nil {
		return 0, err
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
	for _, info := range all {
		if number, is := stateNumber(info.Name); is && !h.tried[info.Name] {
			found = append(found, candidate{number, &Ref{Name: info.Name, Sealing: sealing}})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(b.number, a.number) })
	for _, c := range found {
		for _, info := range all {
			if strings.HasPrefix(info.Name, c.ref.Name+".") {
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
		h.pointer.State, h.pointer.Number = c.ref, max(h.pointer.Number, c.number)
		h.claimed = b
		return h.pointer.Round, nil
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

// Decide records a decision. When it returns the decision may be sent. If it fails nothing may be,
// and the hold is no longer usable: claim again. Objects in spent are deleted after the next
// decision, or later ones if that fails.
func (h *Hold) Decide(ctx context.Context, state []byte, spent ...*Ref) error {
	h.fault("object")
	ref, err := h.Put(ctx, fmt.Sprint(kindState, h.pointer.Number+1), state)
	if err != nil {
		return err
	}
	older, before := h.spent, h.pointer.State
	h.spent, h.claimed = append(slices.Clone(spent), before), nil
	h.pointer.Number++
	h.pointer.State, h.pointer.Round = ref, h.Round
	h.fault("pointer")
	if err := h.write(ctx); err != nil {
		return err
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
func (h *Hold) remove(ctx context.Context, name string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	if err = h.objects.Delete(ctx, name); err != nil {
		return err
	}
	bucket := bucketObjects + h.id[:16]
	if h.stream == nil {
		if h.stream, err = h.records.js.Stream(ctx, "OBJ_"+bucket); err != nil {
			return err
		}
	}
	said := "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
	return h.stream.Purge(ctx, jetstream.WithPurgeSubject(said))
}

// list lists the existing objects. A list uses a consumer: one that JetStream began to send before
// it was restarted never ends, so each attempt has a time limit.
func (r *Records) list(ctx context.Context, o jetstream.ObjectStore,
) (all []*jetstream.ObjectInfo, err error) {
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		all, err = o.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return all, nil
}

// Tidy deletes the objects that nothing names any more: those of decisions that were never
// completed.
func (h *Hold) Tidy(ctx context.Context, keep ...*Ref) error {
	all, err := h.records.list(ctx, h.objects)
	if err != nil {
		return err
	}
	wanted := make(map[string]bool)
	for _, ref := range append(keep, h.pointer.State) {
		if ref == nil {
			continue
		}
		for _, name := range ref.names() {
			wanted[name] = true
		}
	}
	for _, info := range all {
		if wanted[info.Name] || strings.HasPrefix(info.Name, kindInitial) ||
			strings.HasPrefix(info.Name, probe) {
			continue
		}
		if err := h.remove(ctx, info.Name); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}
