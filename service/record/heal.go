package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file takes back from a backup what a record has lost.

// HealFrom takes from a backup what the record has lost of its federations, and nothing else:
// definitions, entries, and objects that these name. It returns how many of each it took. The file
// is verified whole first. It fails with the errors of [Records.Restore], but for [ErrNotEmpty].
func (r *Records) HealFrom(ctx context.Context, file io.ReadSeeker, named Named) (
	took map[string]int, err error,
) {
	if _, err := readBackup(file, r.keys, (*frame).check); err != nil {
		return nil, err
	}
	h := &healing{records: r, named: named, took: make(map[string]int),
		wanted: make(map[string]map[string]*Ref), gone: make(map[string]bool)}
	// Definitions and entries say what objects are wanted, and states what others are.
	for _, pass := range []func(context.Context, *frame) error{h.entries, h.objects, h.objects} {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		_, err := readBackup(file, r.keys, func(f *frame) error {
			if f.kind == frameDefinition {
				if err := h.end(ctx); err != nil {
					return err
				}
				h.of = f.definition
			}
			return pass(ctx, f)
		})
		if err == nil {
			err = h.end(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return h.took, nil
}

// healing is a record that takes what it lacks from a backup.
type healing struct {
	records *Records
	named   Named
	took    map[string]int
	of      *Definition                // whose frames come
	lines   []byte                     // of it
	state   []byte                     // of it, the parts that came
	wanted  map[string]map[string]*Ref // by federation, and by name
	gone    map[string]bool            // federations that were forgotten
}

// entries takes definitions and entries.
func (h *healing) entries(ctx context.Context, f *frame) error {
	r := h.records
	switch f.kind {
	case frameDefinition:
		d := f.definition
		h.wanted[d.ID] = make(map[string]*Ref)
		now, err := r.definition(ctx, d.ID)
		switch {
		case errors.Is(err, ErrNone): // it is no federation of this record
			h.wanted[d.ID] = nil
			return nil
		case errors.Is(err, ErrDamaged):
			if now, err = r.asForgotten(ctx, *d); err != nil {
				return err
			}
			b, err := json.Marshal(now)
			if err != nil {
				return err
			}
			h.took["definitions"]++
			if err := r.define(ctx, now, b); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		// What was erased by an order is in no present definition.
		h.want(slices.Concat(now.Keys, now.Names, []*Ref{now.RosterAt, now.Model, now.Before}))
		if h.gone[d.ID] = now.Forgotten != nil; h.gone[d.ID] {
			h.want([]*Ref{now.Forgotten.Ledger})
		}
		return nil
	case frameEntry:
		h.lines = append(append(h.lines, f.body...), '\n')
	}
	return nil
}

// end takes the entries of the federation whose frames came.
func (h *healing) end(ctx context.Context) error {
	lines := h.lines
	h.lines = nil
	if h.of == nil || len(lines) == 0 || h.wanted[h.of.ID] == nil {
		return nil
	}
	id := h.of.ID
	for line := range bytes.SplitSeq(lines, []byte("\n")) {
		if e, err := chain.Parse(line); err == nil && e.State != nil && !h.gone[id] {
			h.want([]*Ref{refOf(e.State)})
		}
	}
	added, err := h.records.Heal(ctx, id, lines)
	if errors.Is(err, ErrDamaged) { // its key comes with the objects
		return nil
	}
	h.took["entries"] += added
	return err
}

func (h *healing) want(refs []*Ref) {
	for _, ref := range refs {
		if ref != nil {
			h.wanted[h.of.ID][ref.Name] = ref
		}
	}
}

// objects takes objects that are wanted and missing.
func (h *healing) objects(ctx context.Context, f *frame) error {
	switch f.kind {
	case frameEntry:
		h.lines = append(append(h.lines, f.body...), '\n')
	case frameLog:
		took, err := h.records.restoreLog(ctx, f.body)
		if took {
			h.took["objects"]++
		}
		if errors.Is(err, errOtherLog) { // it was begun since
			return nil
		}
		return err
	}
	base, _, _ := strings.Cut(f.name, ".")
	if f.kind != frameObject || h.of == nil || h.wanted[h.of.ID][base] == nil {
		return nil
	}
	r, id, ref := h.records, h.of.ID, h.wanted[h.of.ID][base]
	under := ""
	part := slices.Index(ref.names(), f.name)
	plain, by, err := r.keys.open(f.body, associated(id, ref, part))
	if err == nil {
		under = KeyName(by)
		h.names(ref, part, plain)
	}
	o := r.in(nil, ref)
	if o == nil {
		if o, err = r.objects(ctx, id); err != nil {
			return err
		}
	}
	if _, err := r.getPart(ctx, o, f.name, mostFrame); !errors.Is(err, ErrMissing) {
		return err
	}
	h.took["objects"]++
	return r.store(ctx, o, f.name, under, f.body)
}

// names has the objects wanted that a state names, once its last part has come: parts come in their
// order.
func (h *healing) names(ref *Ref, part int, plain []byte) {
	if !strings.HasPrefix(ref.Name, kindState) {
		return
	}
	if part == 0 {
		h.state = nil
	}
	if h.state = append(h.state, plain...); part < max(ref.Parts, 1)-1 {
		return
	}
	if digestOf(h.state) == ref.Digest {
		if refs, err := h.named(h.state); err == nil {
			h.want(refs)
		}
	}
	h.state = nil
}
