package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Hold is a claim on a federation. It is not safe for concurrent use.
type Hold struct {
	records  *Records
	id       string
	objects  jetstream.ObjectStore
	pointer  pointer
	revision uint64
	older    *Ref   // the state before the present one, which a slow reader may want
	claimed  []byte // the state that the claim found

	// Fault, for tests, is called before each step of a decision, with its name: object,
	// pointer, sending.
	Fault func(step string)
}

// Claim makes a node the leader of a federation, whoever led it before. A record that does
// not open it leaves as it is, and fails with [ErrRecord].
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
		h.pointer = *p
		if p.State != nil {
			if h.claimed, err = h.Get(ctx, p.State); err != nil {
				return nil, err
			}
		}
	}
	h.pointer.Leader, h.pointer.Format = node, Format
	return h, h.write(ctx)
}

// write moves the pointer from the revision held. An answer that was lost is cleared up
// by asking again.
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

// Held asks the record whether the claim still holds. It fails with [ErrLost] if another node
// has claimed since; that the record does not answer says nothing.
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

// Number returns how many decisions were recorded.
func (h *Hold) Number() uint64 { return h.pointer.Number }

// Put stores an object that a state will name.
func (h *Hold) Put(ctx context.Context, kind string, b []byte) (*Ref, error) {
	return h.records.putBytes(ctx, h.objects, h.id, kind, b)
}

// PutFrom is Put for what is written in pieces, so many bytes in all.
func (h *Hold) PutFrom(ctx context.Context, kind string, size int, content io.WriterTo,
) (*Ref, error) {
	return h.records.put(ctx, h.objects, h.id, kind, size, content)
}

// Get reads an object.
func (h *Hold) Get(ctx context.Context, ref *Ref) ([]byte, error) {
	return h.records.get(ctx, h.objects, h.id, ref)
}

// Decide records a decision. When it returns what was decided may be sent. If it
// fails nothing may be, and the hold is of no more use: claim again. Objects in spent
// are deleted afterwards, best effort.
func (h *Hold) Decide(ctx context.Context, state []byte, spent ...*Ref) error {
	h.fault("object")
	ref, err := h.Put(ctx, fmt.Sprintf("state-%d", h.pointer.Number+1), state)
	if err != nil {
		return err
	}
	if h.older != nil {
		spent = append(spent, h.older)
	}
	h.older, h.claimed = h.pointer.State, nil
	h.pointer.Number++
	h.pointer.State = ref
	h.fault("pointer")
	if err := h.write(ctx); err != nil {
		return err
	}
	for _, old := range spent {
		if old == nil {
			continue
		}
		for _, name := range old.names() {
			short, cancel := context.WithTimeout(ctx, attemptTime)
			_ = h.objects.Delete(short, name) // what is left is found by Tidy
			cancel()
		}
	}
	h.fault("sending")
	return nil
}

// Tidy deletes the objects that nobody names any more: those of decisions that never
// became one.
func (h *Hold) Tidy(ctx context.Context, keep ...*Ref) error {
	all, err := h.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
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
		if err := h.objects.Delete(ctx, info.Name); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}
