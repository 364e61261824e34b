// Package record keeps what a federation must not lose, on NATS JetStream: a pointer in a key-value
// bucket that moves by compare-and-set, the sealed states and models that it leads to in an object
// store, and an audit log in a stream.
//
// The node that leads a federation holds the revision of its pointer. A decision is a new object
// and then a move of the pointer from the revision held; if the move is refused, another node has
// claimed the federation, and the decision is dropped unsent. So a round has one list of
// participants, one of survivors and one model, no matter which nodes believe that they lead.
//
// A node also has its decisions as signed lines in files of its own, and a decision is sent once it
// is there. JetStream takes what it has lost for what there never was: the files, the states and
// the audit log say otherwise, and [ErrDamaged] says that.
//
// Objects are sealed under a key that JetStream does not have: anyone who rewrites JetStream's
// files can stop a federation or set it back, but nothing more.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// Format is the format of definitions, and of pointers with all that they lead to. A record of
// another format is led by nobody.
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
	bucketPointers    = "hushsum-pointers"
	bucketObjects     = "hushsum-objects-" // and the first digits of the identifier
	streamAudit       = "HUSHSUM-AUDIT"
	subjectAudit      = "hushsum.audit."
	kindInitial       = "initial" // objects that stay: of the definition
	probe             = "probe-"  // and a node: a pointer and an object that say nothing
	pieceSize         = 256 << 10 // larger ones take much more memory in a cluster
	largePiece        = 768 << 10 // of long objects, since each piece is synced to the disk
	longRoster        = 256 << 10 // bytes above which it is an object
	partSize          = 32 << 20  // of an object
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
	pointers    jetstream.KeyValue
	// Streams that the leader of each is asked for: any other copy may have lost what that has.
	defined, pointed, audit jetstream.Stream

	folder string // for files of decisions; empty: none are kept

	mutex   sync.Mutex
	buckets map[string]*bucket // of federations that were asked for, by identifier
	owned   map[string]*own    // the same
	places  map[string]*places // of federations whose audit log was read, by identifier
}

// forget is how long JetStream's answer to a message is remembered as due.
const forget = time.Minute

// JetStream returns a client of the JetStream at a connection.
func JetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	return jetstream.New(conn, jetstream.WithPublishAsyncTimeout(forget))
}

// Open creates or finds the buckets and the stream. js is made by [JetStream], and replicas is 1 or
// 3.
func Open(ctx context.Context, js jetstream.JetStream, replicas int, keys *Keys,
) (*Records, error) {
	r := &Records{js: js, keys: keys, replicas: replicas,
		buckets: make(map[string]*bucket), owned: make(map[string]*own),
		places: make(map[string]*places)}
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		r.definitions, r.defined, err = r.bucket(ctx, bucketDefinitions, 900<<10)
		if err != nil {
			return err
		}
		if r.pointers, r.pointed, err = r.bucket(ctx, bucketPointers, -1); err != nil {
			return err
		}
		r.audit, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:       streamAudit,
			Subjects:   []string{subjectAudit + ">"},
			Replicas:   replicas,
			DenyDelete: true,
			DenyPurge:  true,
		})
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
		DenyDelete:        true,
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
	// Keys says where the key that signs decisions is stored, more than once, and Birth is the first
	// entry of the chain of decisions, which names its public half.
	Keys  []*Ref `json:"keys"`
	Birth []byte `json:"birth"`
}

// pointer names the newest state of a federation, and its leader.
type pointer struct {
	Format int    `json:"format"`
	Number uint64 `json:"number"`          // of decisions
	Leader string `json:"leader"`          // name of a node
	State  *Ref   `json:"state"`           // nil before the first decision
	Round  uint64 `json:"round,omitempty"` // the last that was begun
	// Line is the entry of decision Number, Claims how many claims there were, and Restored says that
	// the pointer comes from a backup, and nothing was decided since.
	Line     []byte `json:"line,omitempty"`
	Claims   uint64 `json:"claims,omitempty"`
	Restored bool   `json:"restored,omitempty"`
	// Lost: the pointer before this one was lost, or older than what followed from it, and nothing was
	// decided since.
	Lost bool `json:"lost,omitempty"`
}

// Create records a federation. model is the first model's file, and before the text of what was
// spent before, nil if there is none. It fails with [ErrExists].
func (r *Records) Create(ctx context.Context, d Definition, model, before []byte) error {
	d.Format = Format
	o, err := r.objects(ctx, d.ID)
	if err != nil {
		return err
	}
	if err := r.bear(ctx, o, &d); err != nil {
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
		d.RosterAt, err = r.putBytes(ctx, o, d.ID, kindInitial+"-roster", d.Roster)
		if err != nil {
			return err
		}
		d.Roster = nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
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
	o, err := r.objects(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Roster, err = r.get(ctx, o, id, d.RosterAt); err != nil {
		return nil, err
	}
	return d, nil
}

// definition reads a definition as [Records.Definition] does, without a long roster.
func (r *Records) definition(ctx context.Context, id string) (*Definition, error) {
	var b []byte
	err := r.retry(ctx, func(ctx context.Context) error {
		entry, err := r.definitions.Get(ctx, id)
		if err == nil {
			b = entry.Value()
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, r.absent(ctx, id)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	d := new(Definition)
	if err := json.Unmarshal(b, d); err != nil || d.ID != id {
		return nil, fmt.Errorf("%w: the definition of %s", ErrRecord, id)
	}
	if err := readable("definition", id, d.Format); err != nil {
		return nil, err
	}
	return d, nil
}

// List returns the identifiers of all federations, sorted: of those that are defined, and of those
// that anything else is recorded of, whose definition is lost.
func (r *Records) List(ctx context.Context) ([]string, error) {
	return r.list(ctx, map[string]jetstream.Stream{"$KV." + bucketDefinitions + ".": r.defined,
		"$KV." + bucketPointers + ".": r.pointed, subjectAudit: r.audit})
}

// list lists the federations that streams have subjects for, by the prefix of these.
func (r *Records) list(ctx context.Context, streams map[string]jetstream.Stream) ([]string, error) {
	var ids map[string]bool
	err := r.retry(ctx, func(ctx context.Context) error {
		ids = make(map[string]bool)
		for prefix, stream := range streams {
			if err := known(ctx, stream, prefix, ids); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// Leader reads the name of the node that leads a federation, empty if none does.
func (r *Records) Leader(ctx context.Context, id string) (string, error) {
	p, _, err := r.pointer(ctx, id)
	if err != nil || p == nil {
		return "", err
	}
	return p.Leader, nil
}

// pointer reads a pointer, nil before the first claim.
func (r *Records) pointer(ctx context.Context, id string) (*pointer, uint64, error) {
	var b []byte
	var revision uint64
	err := r.retry(ctx, func(ctx context.Context) error {
		entry, err := r.pointers.Get(ctx, id)
		if err == nil {
			b, revision = entry.Value(), entry.Revision()
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p := new(pointer)
	if err := json.Unmarshal(b, p); err != nil {
		return nil, 0, fmt.Errorf("%w: the pointer of %s", ErrRecord, id)
	}
	if err := readable("record", id, p.Format); err != nil {
		return nil, 0, err
	}
	return p, revision, nil
}
