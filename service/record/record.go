// Package record keeps what a federation must not lose, on NATS JetStream: a pointer in
// a key-value bucket that moves by compare-and-set, the sealed states and models that it
// leads to in an object store, and an audit log in a stream.
//
// Whoever leads a federation holds the revision of its pointer. A decision is a new
// object and then a move of the pointer from the revision held; refused, somebody else
// has claimed the federation, and what was decided is dropped unsent. So a round has one
// list of participants, one of survivors and one model, whoever believes to lead.
//
// Objects are sealed under a key that JetStream does not have: who rewrites its files
// can stop a federation or set it back, and no more.
package record

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/keyexchange"
)

// Errors of records.
var (
	// ErrLost: another node has claimed the federation. Drop what was not recorded.
	ErrLost = errors.New("record: another node leads this federation now")
	// ErrUnavailable: JetStream does not answer or has no quorum. Nothing was decided.
	ErrUnavailable = errors.New("record: JetStream does not answer")
	// ErrRecord: what is stored does not open: changed, sealed under another key, or of a
	// format that this program does not know.
	ErrRecord = errors.New("record: the stored record does not open")
	// ErrNone: there is no such federation.
	ErrNone = errors.New("record: no such federation")
	// ErrExists: there is a federation of this identifier.
	ErrExists = errors.New("record: the federation is there already")
)

// Format is the version of what this program writes: of definitions, and of pointers with
// all that they lead to. It reads it and the one before, and leads nothing of another.
const Format = 1

// oldest is the oldest version that is read.
const oldest = max(1, Format-1)

// sealing is the version of how objects are sealed.
const sealing = 1

// readable fails with [ErrRecord] unless a version is read.
func readable(what, id string, format int) error {
	if format >= oldest && format <= Format {
		return nil
	}
	return fmt.Errorf("%w: the %s of %.16s… is of format %d, this program reads %d to %d; use the "+
		"program that wrote it, or a newer one", ErrRecord, what, id, format, oldest, Format)
}

// Names in JetStream.
const (
	bucketDefinitions = "hushsum-federations"
	bucketPointers    = "hushsum-pointers"
	bucketObjects     = "hushsum-objects-" // and the first digits of the identifier
	streamAudit       = "HUSHSUM-AUDIT"
	subjectAudit      = "hushsum.audit."
	kindInitial       = "initial" // objects that stay: of the definition
	pieceSize         = 256 << 10 // larger ones take much more memory in a cluster
	longRoster        = 256 << 10 // bytes above which it is an object
	partSize          = 32 << 20  // of an object
)

// Waits on JetStream.
const (
	attemptTime = 3 * time.Second
	patience    = 10 * time.Second // of a write or read, over its attempts
	pause       = 100 * time.Millisecond
	slowestDisk = 4 << 20 // bytes a second of objects, beside
)

// Records is all federations' records in one JetStream.
type Records struct {
	js          jetstream.JetStream
	key         keyexchange.SealKey
	replicas    int
	definitions jetstream.KeyValue
	pointers    jetstream.KeyValue
}

// Open makes or finds the buckets and the stream. replicas is 1 or 3.
func Open(ctx context.Context, js jetstream.JetStream, replicas int, key *keyexchange.SealKey,
) (*Records, error) {
	r := &Records{js: js, key: *key, replicas: replicas}
	err := r.retry(ctx, func(ctx context.Context) (err error) {
		r.definitions, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket:       bucketDefinitions,
			Replicas:     replicas,
			MaxValueSize: 900 << 10,
		})
		if err != nil {
			return err
		}
		r.pointers, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket:   bucketPointers,
			Replicas: replicas,
		})
		if err != nil {
			return err
		}
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
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

// retry calls until it succeeds, fails for good, or has taken too long.
func (r *Records) retry(ctx context.Context, call func(context.Context) error) error {
	return r.retryOf(ctx, 0, call)
}

// retryOf is retry of a call that carries so many bytes.
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

// permanent reports whether an error says something about what is stored, and not that
// JetStream could not say.
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

// wrongSequence reports whether a write was refused since its revision is not the last.
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
	// RosterAt is where a long roster is stored; Definition reads it.
	RosterAt *Ref      `json:"roster_at,omitempty"`
	Model    *Ref      `json:"model,omitempty"`
	Created  time.Time `json:"created"`
}

// Ref names an object, with its digest.
type Ref struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // SHA-256 of what is sealed, in hexadecimal digits
	Size   int    `json:"size"`
	// Parts is how many objects it is, 0 for one: JetStream refuses writes of which more
	// than 128 MB wait for the disk.
	Parts int `json:"parts,omitempty"`
}

// names lists the objects that a Ref's is in.
func (ref *Ref) names() []string {
	names := []string{ref.Name}
	for k := 1; k < ref.Parts; k++ {
		names = append(names, fmt.Sprintf("%s.%d", ref.Name, k))
	}
	return names
}

// Pointer is where the newest state of a federation is, and who leads it.
type Pointer struct {
	Format int    `json:"format"`
	Number uint64 `json:"number"` // of decisions
	Leader string `json:"leader"` // name of a node
	State  *Ref   `json:"state"`  // nil before the first decision
}

// Create records a federation. model is the first model's file, nil if there is none.
// It fails with [ErrExists].
func (r *Records) Create(ctx context.Context, d Definition, model []byte) error {
	d.Format = Format
	if model != nil || len(d.Roster) > longRoster {
		o, err := r.objects(ctx, d.ID)
		if err != nil {
			return err
		}
		if model != nil {
			if d.Model, err = r.put(ctx, o, d.ID, kindInitial, model); err != nil {
				return err
			}
		}
		if len(d.Roster) > longRoster {
			if d.RosterAt, err = r.put(ctx, o, d.ID, kindInitial+"-roster", d.Roster); err != nil {
				return err
			}
			d.Roster = nil
		}
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	err = r.retry(ctx, func(ctx context.Context) error {
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

// Definition reads one federation's. It fails with [ErrNone].
func (r *Records) Definition(ctx context.Context, id string) (*Definition, error) {
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
		return nil, ErrNone
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
	if d.RosterAt != nil {
		o, err := r.objects(ctx, id)
		if err != nil {
			return nil, err
		}
		if d.Roster, err = r.get(ctx, o, id, d.RosterAt); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// List returns the identifiers of all federations.
func (r *Records) List(ctx context.Context) ([]string, error) {
	var ids []string
	err := r.retry(ctx, func(ctx context.Context) error {
		ids = nil
		lister, err := r.definitions.ListKeys(ctx)
		if errors.Is(err, jetstream.ErrNoKeysFound) {
			return nil
		}
		if err != nil {
			return err
		}
		for id := range lister.Keys() {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return ids, nil
}

func (r *Records) objects(ctx context.Context, id string) (o jetstream.ObjectStore, err error) {
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		o, err = r.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket:   bucketObjects + id[:16],
			Replicas: r.replicas,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return o, nil
}

func associated(id, name string) []byte {
	return fmt.Appendf(nil, "hushsum/2 record %d\n%s\n%s", sealing, id, name)
}

// put stores an object under a name of its own.
func (r *Records) put(ctx context.Context, o jetstream.ObjectStore, id, kind string, b []byte,
) (*Ref, error) {
	var unique [8]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return nil, err
	}
	ref := &Ref{Name: kind + "-" + hex.EncodeToString(unique[:]), Size: len(b)}
	digest := sha256.Sum256(b)
	ref.Digest = hex.EncodeToString(digest[:])
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return nil, err
	}
	box, err := keyexchange.Seal(&nonce, &r.key, b, associated(id, ref.Name))
	if err != nil {
		return nil, err
	}
	if parts := (len(box) + partSize - 1) / partSize; parts > 1 {
		ref.Parts = parts
	}
	for _, name := range ref.names() {
		part := box[:min(partSize, len(box))]
		box = box[len(part):]
		err = r.retryOf(ctx, len(part), func(ctx context.Context) error {
			_, err := o.Put(ctx, jetstream.ObjectMeta{
				Name: name,
				Opts: &jetstream.ObjectMetaOptions{ChunkSize: pieceSize},
			}, bytes.NewReader(part))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return ref, nil
}

// get reads an object.
func (r *Records) get(ctx context.Context, o jetstream.ObjectStore, id string, ref *Ref,
) ([]byte, error) {
	var box []byte
	limit := ref.Size + keyexchange.SealOverhead
	for _, name := range ref.names() {
		part, err := r.getPart(ctx, o, name, min(partSize, limit-len(box)))
		if err != nil {
			return nil, err
		}
		box = append(box, part...)
	}
	b, err := keyexchange.Open(&r.key, box, associated(id, ref.Name))
	if err != nil {
		return nil, fmt.Errorf("%w: object %s was changed, or sealed under another key", ErrRecord,
			ref.Name)
	}
	if digest := sha256.Sum256(b); hex.EncodeToString(digest[:]) != ref.Digest {
		return nil, fmt.Errorf("%w: object %s is another", ErrRecord, ref.Name)
	}
	return b, nil
}

// getPart reads one part of an object, of at most so many bytes. One that was just put may
// not be on every node yet, so it is asked for again.
func (r *Records) getPart(ctx context.Context, o jetstream.ObjectStore, name string, most int,
) (part []byte, err error) {
	began := time.Now()
	for {
		err := r.retryOf(ctx, most, func(ctx context.Context) error {
			object, err := o.Get(ctx, name)
			if err != nil {
				return err
			}
			defer object.Close()
			part, err = io.ReadAll(io.LimitReader(object, int64(most)+1))
			return err
		})
		if err == nil {
			return part, nil
		}
		missing := errors.Is(err, jetstream.ErrObjectNotFound)
		if !missing || time.Since(began) > attemptTime {
			if missing {
				return nil, fmt.Errorf("%w: object %s is not there", ErrRecord, name)
			}
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		time.Sleep(pause)
	}
}

// Leader reads who leads a federation, empty if nobody does.
func (r *Records) Leader(ctx context.Context, id string) (string, error) {
	p, _, err := r.pointer(ctx, id)
	if err != nil || p == nil {
		return "", err
	}
	return p.Leader, nil
}

// pointer reads a pointer, nil before the first claim.
func (r *Records) pointer(ctx context.Context, id string) (*Pointer, uint64, error) {
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
	p := new(Pointer)
	if err := json.Unmarshal(b, p); err != nil {
		return nil, 0, fmt.Errorf("%w: the pointer of %s", ErrRecord, id)
	}
	if err := readable("record", id, p.Format); err != nil {
		return nil, 0, err
	}
	return p, revision, nil
}

// Hold is a claim on a federation. It is not safe for concurrent use.
type Hold struct {
	records  *Records
	id       string
	objects  jetstream.ObjectStore
	pointer  Pointer
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
	return h.records.put(ctx, h.objects, h.id, kind, b)
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
		if wanted[info.Name] || strings.HasPrefix(info.Name, kindInitial) {
			continue
		}
		if err := h.objects.Delete(ctx, info.Name); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}

// Line is one of the audit log: who, when, what, digests and sizes. It has no secret.
type Line struct {
	Time    time.Time `json:"time"`
	Node    string    `json:"node"`
	Event   string    `json:"event"`
	Round   int       `json:"round,omitempty"`
	Parties int       `json:"parties,omitempty"`
	Epsilon float64   `json:"epsilon,omitempty"`
	Digest  string    `json:"digest,omitempty"`
	Size    int       `json:"size,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// Audit appends a line to the log of a federation. It is best effort: decisions are in
// the record, whose states have the history too.
func (r *Records) Audit(ctx context.Context, id string, line Line) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	_, err = r.js.Publish(ctx, subjectAudit+id, b)
	return err
}

// AuditLog reads the last lines of the log, at most so many.
func (r *Records) AuditLog(ctx context.Context, id string, most int) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	consumer, err := r.js.OrderedConsumer(ctx, streamAudit, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subjectAudit + id},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var lines []Line
	for {
		batch, err := consumer.FetchNoWait(500)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		got := 0
		for message := range batch.Messages() {
			got++
			var line Line
			if json.Unmarshal(message.Data(), &line) == nil {
				lines = append(lines, line)
			}
		}
		if len(lines) > most {
			lines = lines[len(lines)-most:]
		}
		if got == 0 {
			return lines, nil
		}
	}
}

// Initial reads the first model's file, nil if the definition has none.
func (r *Records) Initial(ctx context.Context, d *Definition) ([]byte, error) {
	if d.Model == nil {
		return nil, nil
	}
	o, err := r.objects(ctx, d.ID)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, o, d.ID, d.Model)
}
