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
	"time"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file has what a node keeps of decisions apart from JetStream: for each federation a file of
// signed entries, which takes each decision of the node before that is sent. A file with a later
// decision than the pointer proves that JetStream has lost that, and says what it was.

const (
	decidedFolder = "decided" // within a node's folder
	keyCopies     = 2         // of a federation's key, so that damage to one costs nothing
)

// own has a federation's key, and this node's file of its decisions.
type own struct {
	id    string
	key   ed25519.PrivateKey
	birth []byte      // the line of entry 0
	file  *chain.File // nil: none is kept
	name  string
}

// KeepIn has decisions kept in files within a node's folder, apart from JetStream. It is called
// before anything is claimed, and [Records.Close] after.
func (r *Records) KeepIn(folder string) error {
	r.folder = filepath.Join(folder, decidedFolder)
	return os.MkdirAll(r.folder, 0o700)
}

// Close gives free the files in which decisions are kept.
func (r *Records) Close() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var errs []error
	for id, o := range r.owned {
		if o.file != nil {
			errs = append(errs, o.file.Close())
		}
		delete(r.owned, id)
	}
	return errors.Join(errs...)
}

// bear makes the key of a federation, and the first entry of its chain.
func (r *Records) bear(ctx context.Context, o *bucket, d *Definition) error {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	for range keyCopies {
		ref, err := r.putBytes(ctx, o, d.ID, kindInitial+"-key", key.Seed())
		if err != nil {
			return err
		}
		d.Keys = append(d.Keys, ref)
	}
	e := chain.NewBirth(d.ID, public)
	e.Time = d.Created.UTC().Round(0)
	d.Birth, err = chain.Sign(e, key)
	return err
}

// own returns the key and the file of a federation, nil if that has no definition.
func (r *Records) own(ctx context.Context, id string) (*own, error) {
	r.mutex.Lock()
	had := r.owned[id]
	r.mutex.Unlock()
	if had != nil {
		return had, nil
	}
	d, err := r.definition(ctx, id)
	if errors.Is(err, ErrNone) || errors.Is(err, ErrDamaged) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := &own{id: id, birth: d.Birth}
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
		out.name = filepath.Join(r.folder, id+".chain")
		if out.file, err = chain.OpenFile(out.name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	r.owned[id] = out
	return out, nil
}

// key reads the key of a federation, from whichever copy opens.
func (r *Records) key(ctx context.Context, d *Definition) (ed25519.PrivateKey, error) {
	err := fmt.Errorf("%w: the federation %.16s… has no key", ErrRecord, d.ID)
	for _, ref := range d.Keys {
		b, failed := r.Get(ctx, d.ID, ref)
		if failed == nil && len(b) == ed25519.SeedSize {
			return ed25519.NewKeyFromSeed(b), nil
		}
		if err = failed; errors.Is(err, ErrUnavailable) {
			return nil, err
		}
	}
	if errors.Is(err, ErrMissing) {
		return nil, &Damage{fmt.Sprintf("the key that signs the decisions of %.16s… is lost", d.ID),
			adviceNothing}
	}
	return nil, err
}

func (o *own) public() ed25519.PublicKey { return o.key.Public().(ed25519.PublicKey) }

// read reads the file; nil if none is kept.
func (o *own) read() ([]byte, error) {
	if o.file == nil {
		return nil, nil
	}
	had, err := o.file.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return had.Bytes, nil
}

// told is the last decision that a node's file or the pointer has.
type told struct {
	entry  *chain.Entry
	line   []byte
	inFile bool // the line of the pointer is in the file, if it names one
	bad    int  // damaged lines of the file
}

// last returns the last decision of a file that was read before the pointer. It fails with
// [ErrDamaged] if the two have different histories.
func (o *own) last(file []byte, p *pointer) (*told, error) {
	var line []byte
	if p != nil {
		line = p.Line
	}
	c, err := chain.Union(o.id, o.public(), o.birth, file, line)
	if errors.Is(err, chain.ErrFork) {
		return nil, &Damage{fmt.Sprintf("this node's file and JetStream have two histories: %v", err),
			"keep a copy of " + o.name + ", and move it away from the nodes whose history does not stand"}
	}
	if err != nil || c.Bad[2] > 0 {
		return nil, fmt.Errorf("%w: the pointer of %.16s… names no decision: %w", ErrRecord, o.id, err)
	}
	out := &told{entry: c.Last(), inFile: line == nil || bytes.Contains(file, line),
		bad: c.Bad[1]}
	out.line = c.Lines(out.entry.Number)[0]
	return out, nil
}

// later fails with [ErrDamaged] if what was told is later than a pointer, nil if there is none.
func (t *told) later(p *pointer) error {
	number := uint64(0)
	if p != nil {
		number = p.Number
	}
	if t == nil || t.entry.Number <= number {
		return nil
	}
	return &Damage{fmt.Sprintf("JetStream has decision %d, and this node's own file has decision %d",
		number, t.entry.Number), adviceNode}
}

// restore makes a pointer name what was told.
func (t *told) restore(p *pointer) {
	p.Number, p.Round, p.Line, p.State = t.entry.Number, t.entry.Round, t.line, nil
	if s := t.entry.State; s != nil {
		p.State = &Ref{s.Name, s.Digest.String(), int(s.Size), int(s.Parts)}
	}
}

// sign writes the entry of a decision that a pointer names, which follows what was told.
func (o *own) sign(t *told, p *pointer) (*told, error) {
	e := t.entry.Next(t.line, chain.Decided, p.Number, p.Restored)
	digest := new(chain.Hash)
	if err := digest.UnmarshalText([]byte(p.State.Digest)); err != nil {
		return nil, err
	}
	e.Node, e.Time, e.Round, e.Claim = p.Leader, time.Now().UTC().Round(0), p.Round, p.Claims
	e.State = &chain.Object{Name: p.State.Name, Digest: *digest, Size: uint64(p.State.Size),
		Parts: uint64(p.State.Parts)}
	line, err := chain.Sign(e, o.key)
	return &told{entry: e, line: line}, err
}

// keep writes a line into the file, durably.
func (o *own) keep(line []byte) error {
	if o.file == nil {
		return nil
	}
	if err := o.file.Append(line); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
