package record

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// This file defines the contents of a backup, and restores a record from one. The format of the
// file is in backupfile.go.

// ErrNotEmpty: the record already has federations, which a restored backup would be mixed with.
var ErrNotEmpty = errors.New("record: it has federations; restore to nodes whose folders are new")

const backupTries = 10 // for a federation that makes decisions meanwhile

// Named returns the references in a state.
type Named func(state []byte) ([]*Ref, error)

// Backup writes all federations to a file that is sealed under the newest key of the record: for
// each its definition, its audit log, and, from one moment, its pointer and state with all objects
// that the state names. Backup opens every object and compares it with its digest. Rounds go on
// meanwhile.
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
	return file.end()
}

func (r *Records) backUp(ctx context.Context, file *backupWriter, id string, named Named) error {
	d, err := r.Definition(ctx, id)
	if err != nil {
		return err
	}
	o, err := r.objects(ctx, id)
	if err != nil {
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
		_, err := r.read(ctx, o, id, ref, func(name string, box []byte) error {
			return file.frame(frameObject, name, box)
		})
		had[ref.Name] = err == nil
		return err
	}
	for _, ref := range append([]*Ref{d.RosterAt, d.Model, d.Before}, d.Keys...) {
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
	var p *pointer
	for try := 1; ; try++ {
		if p, err = r.decided(ctx, id); err != nil {
			return err
		}
		if p == nil {
			break
		}
		if err = putState(p.State); err == nil {
			break
		}
		if !errors.Is(err, ErrMissing) || try == backupTries {
			return err
		}
	}
	if p != nil {
		p.Leader, p.Restored = "", true // the first node may claim it
		if err := file.json(framePointer, p); err != nil {
			return err
		}
	}
	var failed error
	_, err = r.AuditLog(ctx, id, 1, func(line Line) bool {
		line.Number = 0
		failed = file.json(frameAudit, line)
		return failed == nil
	})
	return cmp.Or(failed, err)
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
		return f.check()
	})
	if err != nil {
		return nil, err
	}
	// What a restore that was interrupted has left is replaced.
	had, err := r.list(ctx, map[string]jetstream.Stream{"$KV." + bucketDefinitions + ".": r.defined})
	if err != nil {
		return nil, err
	}
	if len(had) > 0 {
		return nil, ErrNotEmpty
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	// Definitions come last: once they exist nodes find a federation, and lead it.
	var definitions []*Definition
	var o *bucket
	_, err = readBackup(file, r.keys, func(f *frame) (err error) {
		if f.kind == frameDefinition {
			if o, err = r.objects(ctx, f.definition.ID); err == nil {
				definitions = append(definitions, f.definition)
			}
			return err
		}
		return r.restore(ctx, o, definitions[len(definitions)-1].ID, objects, f)
	})
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		b, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		line := Line{Time: time.Now().UTC(), Event: eventRestored,
			Note: "from a backup of " + made.UTC().Format(time.RFC3339)}
		if err := r.Audit(ctx, d.ID, line); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := r.define(ctx, d, b); err != nil {
			return nil, err
		}
		ids = append(ids, d.ID)
	}
	return ids, nil
}

// restore stores the contents of a frame, of the federation before it: parts of objects with the
// name of the key that opens them.
func (r *Records) restore(
	ctx context.Context, o *bucket, id string, objects map[string]*stored, f *frame,
) error {
	switch f.kind {
	case frameObject:
		base, _, _ := strings.Cut(f.name, ".")
		under := ""
		if s := objects[base]; s != nil { // nil: the file has changed
			k := slices.Index(s.ref.names(), f.name)
			if _, by, err := r.keys.open(f.body, associated(id, &s.ref, k)); err == nil {
				under = KeyName(by)
			}
		}
		return r.store(ctx, o, f.name, under, f.body)
	case framePointer:
		err := r.retry(ctx, func(ctx context.Context) error {
			_, err := r.pointers.Put(ctx, id, f.body)
			return err
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	case frameAudit:
		var line Line
		if err := json.Unmarshal(f.body, &line); err != nil {
			return err
		}
		if err := r.Audit(ctx, id, line); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}
