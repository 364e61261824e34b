// Package record keeps what a federation must not lose, on NATS JetStream: its decisions in a
// stream of signed entries that only grows, and the sealed states and models that they name in an
// object store.
//
// The node that leads a federation knows its last entry. A decision is a new object and then an
// entry after that one; if it is not the last any more, another node has claimed the federation,
// and the decision is dropped unsent. So a round has one list of participants, one of survivors and
// one model, no matter which nodes believe that they lead. What people read of a decision, the
// audit log, is in its entry: there is no decision without its line.
//
// A node also has the entries in files of its own, and a decision is sent once it is there.
// JetStream takes what it has lost for what there never was: the files and the states say
// otherwise, and [ErrDamaged] says that.
//
// Objects are sealed under a key that JetStream does not have: anyone who rewrites JetStream's
// files can stop a federation or set it back, but nothing more.
package record

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/durable"
)

// Errors of records.
var (
	// ErrLost: another node has claimed the federation. Drop every decision that was not recorded.
	ErrLost = errors.New("record: another node leads this federation now")
	// ErrUnavailable: JetStream does not answer or has no quorum. Nothing was decided.
	ErrUnavailable = errors.New("record: JetStream does not answer")
	// ErrRecord: the stored record does not open: it was changed, is sealed under another key, or
	// has a format that this program does not know.
	ErrRecord = errors.New("record: the stored record cannot be opened")
	// ErrMissing: a named object is missing. It comes with [ErrRecord].
	ErrMissing = errors.New("record: an object is missing")
	// ErrNone: there is no such federation.
	ErrNone = errors.New("record: no such federation")
	// ErrExists: a federation with this identifier exists.
	ErrExists = errors.New("record: the federation already exists")
)

// Format is the format of definitions. A record of another format is led by nobody.
const Format = 1

// readable fails with [ErrRecord] unless this program reads a format.
func readable(what, id string, format int) error {
	if format == Format {
		return nil
	}
	return fmt.Errorf("%w: the %s of %.16s… has format %d, and this program reads %d; use the "+
		"program that wrote it", ErrRecord, what, id, format, Format)
}

// Names in JetStream.
const (
	bucketDefinitions = "hushsum-federations"
	bucketObjects     = "hushsum-objects-" // and the first digits of the identifier
	kindInitial       = "initial"          // objects that stay: of the definition
	kindKey           = "key-"             // in the archive, and a federation
	kindNames         = "names-"           // likewise
	kindLedger        = "ledger-"          // likewise
	kindRoster        = "roster-"          // likewise
	probe             = "probe-"           // and a node: a key and an object that say nothing
	pieceSize         = 256 << 10          // larger ones take much more memory in a cluster
	largePiece        = 768 << 10          // of long objects, since each piece is synced to the disk
	longRoster        = 256 << 10          // bytes above which it is an object
	partSize          = 32 << 20           // of an object
	maxParts          = 1 << 12
)

// Times of waiting for JetStream.
const (
	attemptTime = 3 * time.Second
	patience    = 10 * time.Second // of a write or read, over its attempts
	pause       = 100 * time.Millisecond
	slowestDisk = 1 << 20 // bytes a second of objects, on top
)

// Records holds the records of all federations in one JetStream.
type Records struct {
	js          jetstream.JetStream
	keys        *Keys
	replicas    int
	definitions jetstream.KeyValue
	// Streams that the leader of each is asked for: any other copy may have lost what that has.
	declared, decided jetstream.Stream
	archive           *bucket // of what outlives a federation's objects: keys, and ledgers

	folder string // for files of decisions; empty: none are kept
	alone  bool   // no other node keeps such files
	heard  []*nats.Subscription

	mutex   sync.Mutex
	buckets map[string]*bucket // of federations that were asked for, by identifier
	owned   map[string]*own    // the same
	later   map[string][]later // heads that others have and the record did not; likewise
}

// answerDue is how long JetStream's answer to a message is remembered as due.
const answerDue = time.Minute

// JetStream returns a client of the JetStream at a connection.
func JetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	return jetstream.New(conn, jetstream.WithPublishAsyncTimeout(answerDue))
}

// Open creates or finds the bucket and the stream. js is made by [JetStream], and replicas is 1 or
// 3.
func Open(ctx context.Context, js jetstream.JetStream, replicas int, keys *Keys,
) (*Records, error) {
	r := &Records{js: js, keys: keys, replicas: replicas,
		buckets: make(map[string]*bucket), owned: make(map[string]*own),
		later: make(map[string][]later)}
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		r.definitions, r.declared, err = r.bucket(ctx, bucketDefinitions, 900<<10)
		if err == nil {
			err = r.openDecided(ctx)
		}
		if err == nil {
			r.archive, err = r.bucketOf(ctx, bucketObjects+"archive")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return r, nil
}

// bucket creates or finds a bucket of keys as [jetstream.KeyValue] has them, but for direct reads:
// they are answered by any copy of a key, also one that has lost it.
func (r *Records) bucket(ctx context.Context, name string, size int32) (
	kv jetstream.KeyValue, stream jetstream.Stream, err error,
) {
	stream, err = r.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:              "KV_" + name,
		Subjects:          []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1,
		MaxMsgSize:        size,
		Discard:           jetstream.DiscardNew,
		Replicas:          r.replicas,
		AllowRollup:       true,
	})
	if err == nil {
		kv, err = r.js.KeyValue(ctx, name)
	}
	return kv, stream, err
}

// retry calls a function until it succeeds, fails for good, or has taken too long.
func (r *Records) retry(ctx context.Context, call func(context.Context) error) error {
	return r.retryOf(ctx, 0, call)
}

// retryOf is retry for a call that carries a given number of bytes.
func (r *Records) retryOf(ctx context.Context, size int, call func(context.Context) error) error {
	began := time.Now()
	carry := time.Duration(float64(size) / slowestDisk * float64(time.Second))
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTime+carry)
		err := call(attempt)
		cancel()
		if err == nil || ctx.Err() != nil || permanent(err) || time.Since(began) > patience+carry {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// permanent reports whether an error says something about the stored data, rather than that
// JetStream could not answer.
func permanent(err error) bool {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyNotFound),
		errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, ErrRecord):
		return true
	case errors.As(err, &api):
		return wrongSequence(err)
	}
	return false
}

// wrongSequence reports whether a write was refused because its revision is not the last.
func wrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == 10164)
}

// Definition is a federation as it was declared.
type Definition struct {
	Format int    `json:"format"`
	ID     string `json:"id"`
	Text   []byte `json:"text"`   // of its file
	Roster []byte `json:"roster"` // of the roster
	// Committee is the text of the committee of one-message sums.
	Committee []byte `json:"committee,omitempty"`
	// RosterAt is where a long roster is stored; Definition reads it.
	RosterAt *Ref `json:"roster_at,omitempty"`
	// Before says where the text of what was spent before is stored, and Succession is an operator's
	// signed statement that the federation continues an earlier one.
	Before     *Ref      `json:"before,omitempty"`
	Succession []byte    `json:"succession,omitempty"`
	Model      *Ref      `json:"model,omitempty"`
	Created    time.Time `json:"created"`
	// Keys says where the key that signs decisions is stored, and Names where that of the names in
	// them is, each more than once. Birth is the first entry of the chain of decisions, which names
	// the public half of the former.
	Keys  []*Ref `json:"keys"`
	Names []*Ref `json:"names,omitempty"`
	Birth []byte `json:"birth"`
	// Forgotten is nil unless an operator had the federation's models and states erased.
	Forgotten *Forgotten `json:"forgotten,omitempty"`
}

// Create records a federation. model is the first model's file, before the text of what was spent
// before, nil if there is none, and lines are for people. It fails with [ErrExists]. A federation
// whose definition was lost is declared again.
func (r *Records) Create(ctx context.Context, d Definition, model, before []byte, lines ...Line,
) error {
	d.Format = Format
	o, err := r.objects(ctx, d.ID)
	if err != nil {
		return err
	}
	birth, err := r.nextDecided(ctx, d.ID, 1)
	if err != nil {
		return err
	}
	if birth.sequence == 0 {
		if err = r.absent(ctx, d.ID); !errors.Is(err, ErrNone) { // this node's file has decisions
			return err
		}
		err = r.bear(ctx, &d, lines)
	} else if had, failed := r.definition(ctx, d.ID); failed == nil {
		if !had.Created.Equal(d.Created) {
			err = ErrExists
		}
		return err
	} else {
		err = r.born(ctx, &d, birth.line)
	}
	if err != nil {
		return err
	}
	if model != nil {
		if d.Model, err = r.putBytes(ctx, o, d.ID, kindInitial, model); err != nil {
			return err
		}
	}
	if before != nil {
		if d.Before, err = r.putBytes(ctx, o, d.ID, kindInitial+"-before", before); err != nil {
			return err
		}
	}
	if len(d.Roster) > longRoster {
		d.RosterAt, err = r.putBytes(ctx, r.archive, d.ID, kindRoster+d.ID, d.Roster)
		if err != nil {
			return err
		}
		d.Roster = nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if birth.sequence == 0 {
		_, err = r.decide(ctx, d.ID, d.Birth, 0)
		if errors.Is(err, ErrLost) {
			return ErrExists
		}
		if err != nil {
			return err
		}
	}
	return r.define(ctx, &d, b)
}

// define stores a definition where there is none.
func (r *Records) define(ctx context.Context, d *Definition, b []byte) error {
	err := r.retry(ctx, func(ctx context.Context) error {
		_, err := r.definitions.Create(ctx, d.ID, b)
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), wrongSequence(err):
		// Perhaps by an attempt of ours whose answer was lost: then it is the same.
		had, err := r.Definition(ctx, d.ID)
		if err == nil && had.Created.Equal(d.Created) {
			return nil
		}
		return ErrExists
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Definition reads the definition of a federation. It fails with [ErrNone], or with
// [ErrDamaged] if there is anything else of the federation.
func (r *Records) Definition(ctx context.Context, id string) (*Definition, error) {
	d, err := r.definition(ctx, id)
	if err != nil || d.RosterAt == nil {
		return d, err
	}
	d.Roster, err = r.get(ctx, r.archive, id, d.RosterAt)
	return d, err
}

// definition reads a definition as [Records.Definition] does, without a long roster.
func (r *Records) definition(ctx context.Context, id string) (*Definition, error) {
	d, _, err := r.defined(ctx, id)
	return d, err
}

// defined is definition, which a node takes from its own copy if JetStream has lost it; it says so
// in mended.
func (r *Records) defined(ctx context.Context, id string,
) (d *Definition, mended string, err error) {
	var b []byte
	err = r.retry(ctx, func(ctx context.Context) error {
		entry, err := r.definitions.Get(ctx, id)
		if err == nil {
			b = entry.Value()
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = r.absent(ctx, id)
		if b = r.copiedDefinition(id); b == nil || errors.Is(err, ErrUnavailable) {
			return nil, "", err
		}
		mended = "JetStream has lost the definition of a federation, and this node's copy is in its place"
	} else if err != nil {
		return nil, "", unavailable(err)
	}
	d = new(Definition)
	if err := json.Unmarshal(b, d); err != nil || d.ID != id {
		return nil, "", fmt.Errorf("%w: the definition of %s", ErrRecord, id)
	}
	if err := readable("definition", id, d.Format); err != nil {
		return nil, "", err
	}
	if mended != "" {
		if d, err = r.asForgotten(ctx, *d); err == nil {
			b, err = json.Marshal(d)
		}
		if err == nil {
			err = r.define(ctx, d, b)
		}
	}
	return d, mended, err
}

// born has a definition continue the chain that begins with a line, with the keys that there are.
func (r *Records) born(ctx context.Context, d *Definition, line []byte) error {
	birth, err := chain.Parse(line)
	if err != nil {
		return fmt.Errorf("%w: the first entry of %.16s…", ErrRecord, d.ID)
	}
	var names []string
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		names, err = r.archive.names(ctx)
		return err
	})
	if err != nil {
		return unavailable(err)
	}
	for _, name := range names {
		is := func(kind string) bool { return strings.HasPrefix(name, kind+d.ID) }
		if !is(kindKey) && !is(kindNames) {
			continue
		}
		ref := &Ref{Name: name}
		b, err := r.getParts(ctx, r.archive, d.ID, ref, nil)
		if errors.Is(err, ErrUnavailable) {
			return err
		}
		if err != nil || len(b) != ed25519.SeedSize {
			continue
		}
		ref.Size, ref.Digest = len(b), digestOf(b)
		if is(kindKey) {
			key := ed25519.NewKeyFromSeed(b)
			if _, err := chain.Open(line, d.ID, key.Public().(ed25519.PublicKey)); err == nil {
				d.Keys = append(d.Keys, ref)
			}
		} else if k := namesKey(b); len(birth.Notes) == 0 {
			d.Names = append(d.Names, ref)
		} else if _, err := k.open(birth); err == nil {
			d.Names = append(d.Names, ref)
		}
	}
	if len(d.Keys) == 0 {
		return damaged("the definition and the key of the federation %.16s… are lost", d.ID)
	}
	d.Birth, d.Created = line, birth.Time
	return nil
}

// copyName returns the name of this node's copy of a definition.
func (r *Records) copyName(id string) string {
	return filepath.Join(r.folder, id+".definition")
}

// copyDefinition keeps a copy of a definition in this node's folder, with a digest.
func (r *Records) copyDefinition(d *Definition) error {
	b, err := json.Marshal(d)
	if err != nil || bytes.Equal(b, r.copiedDefinition(d.ID)) {
		return err
	}
	b = fmt.Appendf(b, "\n%s\n", digestOf(b))
	return durable.Write(r.copyName(d.ID), bytes.NewReader(b))
}

// copiedDefinition returns this node's copy of a definition, nil if there is none that is whole.
func (r *Records) copiedDefinition(id string) []byte {
	if r.folder == "" {
		return nil
	}
	all, err := os.ReadFile(r.copyName(id))
	b, rest, _ := bytes.Cut(all, []byte("\n"))
	if err != nil || string(rest) != digestOf(b)+"\n" {
		return nil
	}
	return b
}

// List returns the identifiers of all federations, sorted: of those that are defined, and of those
// that anything else is recorded of, whose definition is lost.
func (r *Records) List(ctx context.Context) ([]string, error) {
	ids := make(map[string]bool)
	err := r.retry(ctx, func(ctx context.Context) error {
		err := known(ctx, r.declared, "$KV."+bucketDefinitions+".", ids)
		if err == nil {
			err = known(ctx, r.decided, subjectDecided, ids)
		}
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	if r.folder != "" {
		files, err := os.ReadDir(r.folder)
		if err != nil {
			return nil, unavailable(err)
		}
		for _, file := range files {
			if id, is := strings.CutSuffix(file.Name(), ".chain"); is && identifier(id) {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// Leader reads the name of the node that claimed a federation last, empty if none has.
func (r *Records) Leader(ctx context.Context, id string) (string, error) {
	last, err := r.lastDecided(ctx, id)
	if err != nil || last.sequence == 0 {
		return "", err
	}
	e, err := chain.Parse(last.line)
	if err != nil {
		return "", fmt.Errorf("%w: the newest decision of %.16s…", ErrRecord, id)
	}
	return e.Node, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }
