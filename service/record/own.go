package record

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file has what a node keeps of decisions apart from JetStream: for each federation a file of
// signed entries, which takes each decision of the node before that is told, and what the node
// hears of other nodes' decisions. A file with a later decision than the stream proves that
// JetStream has lost that, and says what it was.

const (
	decidedFolder = "decided" // within a node's folder
	keyCopies     = 2         // of a federation's key, so that damage to one costs nothing
)

// own has a federation's keys, and this node's file of its decisions.
type own struct {
	id    string
	key   ed25519.PrivateKey
	birth []byte      // the line of entry 0
	file  *chain.File // nil: none is kept
	name  string
	// mended says what of the definition was put back since the last claim; empty: nothing.
	mended string

	mutex sync.Mutex
	told  *told // the last entry of the file; nil: it has not been read
}

// told is an entry with its line.
type told struct {
	entry *chain.Entry
	line  []byte
}

// KeepIn has decisions kept in files within a node's folder, apart from JetStream. It is called
// before anything is claimed, and [Records.Close] after.
func (r *Records) KeepIn(folder string) error {
	r.folder = filepath.Join(folder, decidedFolder)
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	return r.hear()
}

// Alone says that there is no other node, whose files a claim would ask for what is lost.
func (r *Records) Alone() { r.alone = true }

// chainName returns the name of this node's file of a federation's decisions.
func (r *Records) chainName(id string) string { return filepath.Join(r.folder, id+".chain") }

// Close gives free the files in which decisions are kept.
func (r *Records) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var errs []error
	for _, s := range r.heard {
		errs = append(errs, s.Unsubscribe())
	}
	r.heard = nil
	for id, o := range r.owned {
		if o.file != nil {
			errs = append(errs, o.file.Close())
		}
		delete(r.owned, id)
	}
	return errors.Join(errs...)
}

// bear makes the keys of a federation, and the first entry of its chain, which has lines for
// people.
func (r *Records) bear(ctx context.Context, d *Definition, lines []Line) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	names := newNames()
	for range keyCopies {
		ref, err := r.putBytes(ctx, r.archive, d.ID, kindKey+d.ID, key.Seed())
		if err != nil {
			return err
		}
		d.Keys = append(d.Keys, ref)
		if ref, err = r.putBytes(ctx, r.archive, d.ID, kindNames+d.ID, names[:]); err != nil {
			return err
		}
		d.Names = append(d.Names, ref)
	}
	e := chain.NewBirth(d.ID, public)
	e.Time = d.Created.UTC().Round(0)
	if e.Notes, err = names.seal(e, lines); err != nil {
		return err
	}
	d.Birth, err = chain.Sign(e, key)
	return err
}

// own returns the key and the file of a federation. It fails as [Records.Definition] does.
func (r *Records) own(ctx context.Context, id string) (*own, error) {
	r.mutex.Lock()
	had := r.owned[id]
	r.mutex.Unlock()
	if had != nil {
		return had, nil
	}
	d, mended, err := r.defined(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &own{id: id, birth: d.Birth, mended: mended}
	if out.key, err = r.key(ctx, d); err != nil {
		return nil, err
	}
	if _, err := chain.Open(d.Birth, id, out.public()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if had := r.owned[id]; had != nil {
		return had, nil
	}
	if r.folder != "" {
		out.name = r.chainName(id)
		if out.file, err = chain.OpenFile(out.name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if err := r.copyDefinition(d); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnavailable, err), out.file.Close())
		}
	}
	r.owned[id] = out
	return out, nil
}

// key reads the key of a federation, from whichever copy opens.
func (r *Records) key(ctx context.Context, d *Definition) (ed25519.PrivateKey, error) {
	seed, err := r.first(ctx, d, d.Keys, ed25519.SeedSize)
	if errors.Is(err, ErrMissing) {
		return nil, &Damage{fmt.Sprintf("the key that signs the decisions of %.16s… is lost", d.ID),
			adviceNothing}
	}
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// first reads the first of some copies of a secret that opens.
func (r *Records) first(ctx context.Context, d *Definition, copies []*Ref, size int,
) (secret []byte, err error) {
	err = fmt.Errorf("%w: the federation %.16s… has no key", ErrRecord, d.ID)
	for _, ref := range copies {
		b, failed := r.get(ctx, r.archive, d.ID, ref)
		if failed == nil && len(b) == size {
			return b, nil
		}
		if err = failed; errors.Is(err, ErrUnavailable) {
			return nil, err
		}
	}
	return nil, err
}

func (o *own) public() ed25519.PublicKey { return o.key.Public().(ed25519.PublicKey) }

// last returns the last entry of the file, nil if none is kept, or if it has none.
func (o *own) last() (*told, error) {
	if o.file == nil {
		return nil, nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.told != nil {
		return o.told, nil
	}
	had, err := o.file.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	c, err := o.join(o.birth, had.Bytes)
	if err != nil {
		return nil, err
	}
	o.told = &told{c.Last(), c.Lines(c.Last().Number)[0]}
	return o.told, nil
}

// join makes a chain of copies. It fails with [ErrDamaged] if they are two histories.
func (o *own) join(copies ...[]byte) (*chain.Chain, error) {
	c, err := chain.Union(o.id, o.public(), copies...)
	if errors.Is(err, chain.ErrFork) {
		return nil, &Damage{fmt.Sprintf("the copies of the decisions of %.16s… are two histories: %v",
			o.id, err), adviceFork}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return c, nil
}

// keep writes an entry into the file, durably.
func (o *own) keep(t *told) error {
	if o.file == nil {
		return nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.append(t)
}

// append writes an entry into the file. The caller holds the mutex.
func (o *own) append(t *told) error {
	if err := o.file.Append(t.line); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if o.told == nil || o.told.entry.Number < t.entry.Number {
		o.told = t
	}
	return nil
}

// errBetween: the file lacks entries before the one that was heard.
var errBetween = errors.New("record: other entries were not heard")

// heardOf writes an entry of another node into the file, if it is the next, and returns it then. It
// fails with [errBetween] if it is a later one.
func (o *own) heardOf(line []byte) (*chain.Entry, error) {
	last, err := o.last()
	if err != nil || last == nil || bytes.Equal(last.line, line) {
		return nil, err
	}
	e, err := chain.Open(line, o.id, o.public())
	if err != nil {
		return nil, err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch {
	case o.told == nil || e.Number <= o.told.entry.Number: // it is known
		return nil, nil
	case e.Before != chain.HashOf(o.told.line):
		return nil, errBetween
	}
	return e, o.append(&told{e, line})
}

// fill makes the file have all lines of a chain, and no damaged ones. What else it has stays: lines
// that were heard meanwhile, and those of a history that does not stand.
func (o *own) fill(c *chain.Chain) error {
	if o.file == nil {
		return nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	had, err := o.file.Read()
	if err != nil {
		return unavailable(err)
	}
	in, bad := make(map[string]bool), false
	var others [][]byte
	lines := c.Lines(0)
	for line := range bytes.SplitSeq(had.Bytes, []byte("\n")) {
		if len(line) == 0 || in[string(line)] {
			continue
		}
		e, err := chain.Parse(line)
		if err == nil && !bytes.Equal(c.Line(e.Number), line) { // else it is known to be signed
			if _, err = chain.Open(line, o.id, o.public()); err == nil {
				others = append(others, line)
			}
		}
		if bad = bad || err != nil; err == nil {
			in[string(line)] = true
		}
	}
	missing := slices.DeleteFunc(slices.Clone(lines), func(line []byte) bool {
		return in[string(line)]
	})
	if o.told = nil; len(others) == 0 {
		o.told = &told{c.Last(), c.Line(c.Last().Number)}
	}
	if bad {
		if err := o.file.Rewrite(had, slices.Concat(lines, others)); err != nil {
			return unavailable(err)
		}
		return nil
	}
	for _, line := range missing {
		if err := o.file.Append(line); err != nil {
			return unavailable(err)
		}
	}
	return nil
}
