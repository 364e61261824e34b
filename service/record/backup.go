package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file defines the contents of a backup, and restores a record from one. The format of the
// file is in backupfile.go.

// ErrNotEmpty: the record already has federations, which a restored backup would be mixed with.
var ErrNotEmpty = errors.New("record: it has federations; restore to nodes whose folders are new")

const backupTries = 10 // for a federation that makes decisions meanwhile

// Named returns the references in a state.
type Named func(state []byte) ([]*Ref, error)

// Backup writes all federations to a file that is sealed under the newest key of the record: for
// each its definition and, from one moment, its entries and the state with all objects that the
// state names; and the key of the public log. Backup opens every object and compares it with its
// digest. Rounds go on meanwhile.
func (r *Records) Backup(ctx context.Context, w io.Writer, named Named) error {
	ids, err := r.List(ctx)
	if err != nil {
		return err
	}
	file, err := newBackupWriter(w, r.keys.Newest())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := r.backUp(ctx, file, id, named); err != nil {
			return fmt.Errorf("the federation %.16s…: %w", id, err)
		}
	}
	if err := r.backUpLog(ctx, file); err != nil {
		return err
	}
	return file.end()
}

func (r *Records) backUp(ctx context.Context, file *backupWriter, id string, named Named) error {
	d, err := r.Definition(ctx, id)
	if err != nil {
		return err
	}
	var o *bucket
	kept := slices.Concat([]*Ref{d.RosterAt, d.Model, d.Before}, d.Keys, d.Names)
	if gone := d.Forgotten; gone != nil {
		kept = slices.Concat([]*Ref{d.RosterAt, gone.Ledger}, d.Keys, d.Names)
	} else if o, err = r.objects(ctx, id); err != nil {
		return err
	}
	if d.RosterAt != nil {
		d.Roster = nil
	}
	if err := file.json(frameDefinition, d); err != nil {
		return err
	}
	had := make(map[string]bool)
	put := func(ref *Ref) error {
		if ref == nil || had[ref.Name] {
			return nil
		}
		_, err := r.read(ctx, r.in(o, ref), id, ref, func(name string, box []byte) error {
			return file.frame(frameObject, name, box)
		})
		had[ref.Name] = err == nil
		return err
	}
	for _, ref := range kept {
		if err := put(ref); err != nil {
			return err
		}
	}
	putState := func(ref *Ref) error {
		if ref == nil {
			return nil
		}
		b, err := r.get(ctx, o, id, ref)
		if err != nil {
			return err
		}
		refs, err := named(b)
		for _, ref := range append(refs, ref) {
			if err == nil {
				err = put(ref)
			}
		}
		return err
	}
	// Objects that a state names may be deleted before all of them are read: there is a newer state
	// then. No state names the objects already written for the older state, and a later leader
	// deletes them.
	var c *chain.Chain
	for try := 1; ; try++ {
		if _, err = r.newest(ctx, id); err != nil && !errors.Is(err, ErrForgotten) {
			return err
		}
		if c, err = r.Chain(ctx, id); err != nil {
			return err
		}
		state := c.Last().State
		if state == nil {
			break
		}
		if err = putState(refOf(state)); err == nil {
			break
		}
		if !errors.Is(err, ErrMissing) || try == backupTries {
			return err
		}
	}
	for _, line := range c.Lines(0) {
		if err := file.frame(frameEntry, "", line); err != nil {
			return err
		}
	}
	return nil
}

// Restore fills a record that has no federation from a backup. The file is read twice: first all of
// it is verified, and nothing is changed if Restore fails with [ErrCut], [ErrAltered],
// [ErrOtherKey] or [ErrNotEmpty].
func (r *Records) Restore(ctx context.Context, file io.ReadSeeker) (ids []string, err error) {
	objects := make(map[string]*stored) // by their names, which are unique
	made, err := readBackup(file, r.keys, func(f *frame) error {
		if f.kind == frameObject {
			base, _, _ := strings.Cut(f.name, ".")
			s := objects[base]
			if s == nil {
				objects[base] = &stored{ref: Ref{Name: base}}
			} else {
				s.ref.Parts = max(s.ref.Parts, 1) + 1
			}
		}
		if f.kind == frameLog {
			_, err := r.hasLog(ctx, f.body)
			return err
		}
		return f.check()
	})
	if err != nil {
		return nil, err
	}
	// What a restore that was interrupted has left is replaced.
	had := make(map[string]bool)
	err = r.retry(ctx, func(ctx context.Context) error {
		return known(ctx, r.declared, "$KV."+bucketDefinitions+".", had)
	})
	if err != nil {
		return nil, unavailable(err)
	}
	if len(had) > 0 {
		return nil, ErrNotEmpty
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	// Definitions come last: once they exist nodes find a federation, and lead it.
	var all []*restoring
	_, err = readBackup(file, r.keys, func(f *frame) (err error) {
		if f.kind == frameDefinition {
			x := &restoring{d: f.definition}
			if all = append(all, x); x.d.Forgotten == nil {
				x.o, err = r.objects(ctx, x.d.ID)
			}
			return err
		}
		if f.kind == frameLog {
			_, err := r.restoreLog(ctx, f.body)
			return err
		}
		return r.restore(ctx, all[len(all)-1], objects, f)
	})
	if err != nil {
		return nil, err
	}
	line := Line{Event: eventRestored, Note: "from a backup of " + made.UTC().Format(time.RFC3339)}
	for _, x := range all {
		if err := r.restored(ctx, x, line); err != nil {
			return nil, err
		}
		ids = append(ids, x.d.ID)
	}
	return ids, nil
}

// restoring is a federation that is being restored.
type restoring struct {
	d       *Definition
	o       *bucket
	entries []byte // by line
}

// restored stores the entries of a federation, with one more, of a new segment: what they are
// followed by elsewhere may be told already. Then it stores the definition.
func (r *Records) restored(ctx context.Context, x *restoring, said Line) error {
	id := x.d.ID
	o := &own{id: id, birth: x.d.Birth}
	var err error
	if o.key, err = r.key(ctx, x.d); err != nil {
		return err
	}
	c, err := o.join(x.d.Birth, x.entries)
	if err != nil {
		return err
	}
	// A restore that was interrupted has left some of them.
	last, err := r.lastDecided(ctx, id)
	if err != nil {
		return err
	}
	from := uint64(0)
	if last.sequence > 0 {
		e, err := chain.Open(last.line, id, o.public())
		if err != nil {
			return fmt.Errorf("%w: decisions of %.16s…", ErrNotEmpty, id)
		}
		if from = e.Number + 1; e.Number > c.Last().Number && e.Kind != chain.Setback {
			return fmt.Errorf("%w: decisions of %.16s…", ErrNotEmpty, id)
		}
	}
	h := &Hold{records: r, id: id, own: o, chain: c, sequence: last.sequence}
	for _, line := range c.Lines(from) {
		if h.sequence, err = r.decide(ctx, id, line, h.sequence); err != nil {
			return err
		}
	}
	if from <= c.Last().Number+1 {
		if b, err := r.first(ctx, x.d, x.d.Names, len(namesKey{})); err == nil {
			names := namesKey(b)
			h.names = &names
		}
		if err := h.write(ctx, c.Next(chain.Setback, 0, true), []Line{said}); err != nil {
			return err
		}
	}
	b, err := json.Marshal(x.d)
	if err != nil {
		return err
	}
	return r.define(ctx, x.d, b)
}

// restore stores the contents of a frame, of the federation before it: parts of objects with the
// name of the key that opens them.
func (r *Records) restore(
	ctx context.Context, x *restoring, objects map[string]*stored, f *frame,
) error {
	if f.kind == frameEntry {
		x.entries = append(append(x.entries, f.body...), '\n')
		return nil
	}
	base, _, _ := strings.Cut(f.name, ".")
	under := ""
	if s := objects[base]; s != nil { // nil: the file has changed
		k := slices.Index(s.ref.names(), f.name)
		if _, by, err := r.keys.open(f.body, associated(x.d.ID, &s.ref, k)); err == nil {
			under = KeyName(by)
		}
	}
	return r.store(ctx, r.in(x.o, &Ref{Name: f.name}), f.name, under, f.body)
}
