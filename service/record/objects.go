package record

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// Ref names an object, with its digest.
type Ref struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // SHA-256 of the plain bytes, in hexadecimal digits
	Size   int    `json:"size"`
	// Parts is how many objects it consists of, 0 for one: JetStream refuses writes while more than
	// 128 MB of them wait for the disk.
	Parts int `json:"parts,omitempty"`
}

// names lists the objects that a Ref consists of.
func (ref *Ref) names() []string {
	names := []string{ref.Name}
	for k := 1; k < ref.Parts; k++ {
		names = append(names, fmt.Sprintf("%s.%d", ref.Name, k))
	}
	return names
}

// bucket has the objects of a federation.
type bucket struct {
	jetstream.ObjectStore
	name   string
	stream jetstream.Stream // that they are in
}

// subject returns the subject that says what an object is, of an empty name that of all.
func (b *bucket) subject(name string) string {
	if name == "" {
		name = ">"
	} else {
		name = base64.URLEncoding.EncodeToString([]byte(name))
	}
	return "$O." + b.name + ".M." + name
}

// pieces returns the subject of an object's content.
func (b *bucket) pieces(nuid string) string { return "$O." + b.name + ".C." + nuid }

// names lists the names of all objects, without a consumer: JetStream makes one on any of its
// nodes, such as one that has just died.
func (b *bucket) names(ctx context.Context) (names []string, err error) {
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.subject("")))
	if err != nil {
		return nil, err
	}
	for subject := range info.State.Subjects {
		name, err := base64.URLEncoding.DecodeString(subject[strings.LastIndexByte(subject, '.')+1:])
		if err == nil {
			names = append(names, string(name))
		}
	}
	return names, nil
}

// objects returns the objects of a federation. They are looked for once: JetStream answers that by
// the leader of its whole cluster, which may be the node that has just died.
func (r *Records) objects(ctx context.Context, id string) (b *bucket, err error) {
	r.mutex.Lock()
	b = r.buckets[id]
	r.mutex.Unlock()
	if b != nil {
		return b, nil
	}
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		b, err = r.bucketOf(ctx, bucketObjects+id[:16])
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.buckets[id] = b
	return b, nil
}

// in returns the archive for an object that is there, and else the federation's own objects.
func (r *Records) in(own *bucket, ref *Ref) *bucket {
	for _, kind := range []string{kindKey, kindNames, kindLedger, kindRoster} {
		if strings.HasPrefix(ref.Name, kind) {
			return r.archive
		}
	}
	return own
}

// bucketOf creates or finds objects by the name of their bucket.
func (r *Records) bucketOf(ctx context.Context, name string) (b *bucket, err error) {
	b = &bucket{name: name}
	b.ObjectStore, err = r.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket:   name,
		Replicas: r.replicas,
	})
	if err == nil {
		b.stream, err = r.js.Stream(ctx, "OBJ_"+name)
	}
	return b, err
}

// Look has the objects, the key and the file of a federation found before they are needed.
func (r *Records) Look(ctx context.Context, id string) error {
	_, err := r.objects(ctx, id)
	if err == nil {
		if _, err = r.own(ctx, id); errors.Is(err, ErrRecord) { // whoever claims it is told
			err = nil
		}
	}
	return err
}

// associated returns the data that a part of an object is sealed with, so that it opens only in its
// own place.
func associated(id string, ref *Ref, part int) []byte {
	return fmt.Appendf(nil, labels.Record+"\n%s\n%s\n%d of %d", id, ref.Name, part,
		max(ref.Parts, 1))
}

func (r *Records) putBytes(ctx context.Context, o *bucket, id, kind string, b []byte,
) (*Ref, error) {
	return r.put(ctx, o, id, kind, len(b), bytes.NewReader(b))
}

// put stores an object of a given number of bytes under a name of its own.
func (r *Records) put(ctx context.Context, o *bucket, id, kind string, size int,
	content io.WriterTo,
) (*Ref, error) {
	var unique [8]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return nil, err
	}
	ref := &Ref{Name: kind + "-" + hex.EncodeToString(unique[:]), Size: size}
	if parts := (size + partSize - 1) / partSize; parts > 1 {
		ref.Parts = parts
	}
	names := ref.names()
	w := &partWriter{
		part: make([]byte, 0, min(partSize, size)),
		put: func(k int, part []byte) error {
			if k >= len(names) {
				return errSize
			}
			return r.putPart(ctx, o, names[k], part, associated(id, ref, k))
		},
	}
	digest := sha256.New()
	written, err := content.WriteTo(io.MultiWriter(digest, w))
	if err == nil && written != int64(size) {
		err = errSize
	}
	if err == nil && w.next < len(names) { // the last, or an empty one
		err = w.flush()
	}
	if err != nil {
		return nil, err
	}
	ref.Digest = hex.EncodeToString(digest.Sum(nil))
	return ref, nil
}

// errSize is for a caller that wrote another number of bytes than it announced.
var errSize = errors.New("record: an object does not have the announced size")

// partWriter cuts the bytes written to it into parts.
type partWriter struct {
	part []byte
	next int // the number of the part
	put  func(k int, part []byte) error
}

func (w *partWriter) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if len(w.part) == partSize {
			if err := w.flush(); err != nil {
				return written, err
			}
		}
		n := min(len(b), partSize-len(w.part))
		w.part, b = append(w.part, b[:n]...), b[n:]
		written += n
	}
	return written, nil
}

func (w *partWriter) flush() error {
	err := w.put(w.next, w.part)
	w.part = w.part[:0]
	w.next++
	return err
}

// putPart seals and stores one part.
func (r *Records) putPart(
	ctx context.Context, o *bucket, name string, part, associated []byte,
) error {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return err
	}
	key := r.keys.Newest()
	box, err := keyexchange.Seal(&nonce, key, part, associated)
	if err != nil {
		return err
	}
	return r.store(ctx, o, name, KeyName(key), box)
}

// store stores a sealed part, with the name of the key if that is known.
func (r *Records) store(
	ctx context.Context, o *bucket, name, under string, box []byte,
) error {
	meta := jetstream.ObjectMeta{Name: name}
	if under != "" {
		meta.Metadata = map[string]string{metaKey: under}
	}
	err := r.retryOf(ctx, len(box), func(ctx context.Context) error {
		return r.write(ctx, o, meta, box)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// write stores an object as [jetstream.ObjectStore] does. That makes a client of JetStream for each
// object, and may leave a goroutine of it behind for good.
func (r *Records) write(
	ctx context.Context, o *bucket, meta jetstream.ObjectMeta, box []byte,
) error {
	old, err := o.GetInfo(ctx, meta.Name, jetstream.GetObjectInfoShowDeleted())
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	size := pieceSize
	if len(box) > partSize/4 {
		size = largePiece
	}
	digest := sha256.New()
	digest.Write(box)
	meta.Opts = &jetstream.ObjectMetaOptions{ChunkSize: uint32(size)}
	info := jetstream.ObjectInfo{
		ObjectMeta: meta,
		Bucket:     o.name,
		NUID:       rand.Text(),
		Size:       uint64(len(box)),
		Chunks:     uint32((len(box) + size - 1) / size),
		Digest:     jetstream.GetObjectDigestValue(digest),
	}
	last := nats.NewMsg(o.subject(meta.Name))
	last.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	if last.Data, err = json.Marshal(info); err != nil {
		return err
	}
	var messages []*nats.Msg
	for piece := range slices.Chunk(box, size) {
		messages = append(messages, &nats.Msg{Subject: o.pieces(info.NUID), Data: piece})
	}
	if err := r.publish(ctx, append(messages, last)); err != nil {
		_ = o.stream.Purge(ctx, jetstream.WithPurgeSubject(o.pieces(info.NUID)))
		return err
	}
	if old != nil && !old.Deleted {
		_ = o.stream.Purge(ctx, jetstream.WithPurgeSubject(o.pieces(old.NUID)))
	}
	return nil
}

// publish stores messages in their order, and returns once all are stored.
func (r *Records) publish(ctx context.Context, messages []*nats.Msg) error {
	var stored []jetstream.PubAckFuture
	for _, m := range messages {
		ack, err := r.js.PublishMsgAsync(m)
		if err != nil {
			return err
		}
		stored = append(stored, ack)
	}
	for _, ack := range stored {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Get reads an object of a federation, whichever node leads it.
func (r *Records) Get(ctx context.Context, id string, ref *Ref) ([]byte, error) {
	o, err := r.objects(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, o, id, ref)
}

// boxes is called with each part of an object, as it is stored; nil: nothing is called.
type boxes func(name string, box []byte) error

func digestOf(b []byte) string {
	digest := sha256.Sum256(b)
	return hex.EncodeToString(digest[:])
}

// State reads the newest state of a federation, without claiming it; nil before the first decision.
// The state and the objects that it names still exist for some decisions. It fails with
// [ErrDamaged] if there are signs of later decisions.
func (r *Records) State(ctx context.Context, id string) ([]byte, error) {
	t, err := r.newest(ctx, id)
	if err != nil || t.entry.State == nil {
		return nil, err
	}
	return r.Get(ctx, id, refOf(t.entry.State))
}

// refOf returns the Ref that an entry names.
func refOf(o *chain.Object) *Ref {
	return &Ref{o.Name, o.Digest.String(), int(o.Size), int(o.Parts)}
}

// get reads an object.
func (r *Records) get(ctx context.Context, o *bucket, id string, ref *Ref,
) ([]byte, error) {
	return r.read(ctx, o, id, ref, nil)
}

// read reads an object, and shows its parts.
func (r *Records) read(
	ctx context.Context, o *bucket, id string, ref *Ref, show boxes,
) (b []byte, err error) {
	if ref.Size < 0 || ref.Parts < 0 || ref.Parts > maxParts { // a definition is not sealed
		return nil, notOpened(ref)
	}
	if b, err = r.getParts(ctx, o, id, ref, show); err != nil {
		return nil, err
	}
	if len(b) != ref.Size || digestOf(b) != ref.Digest {
		return nil, fmt.Errorf("%w: object %s is another", ErrRecord, ref.Name)
	}
	return b, nil
}

// getParts reads an object, each part of which is a box of its own: no object is in memory twice.
func (r *Records) getParts(
	ctx context.Context, o *bucket, id string, ref *Ref, show boxes,
) (b []byte, err error) {
	for k, name := range ref.names() {
		box, err := r.getPart(ctx, o, name, partSize+keyexchange.SealOverhead)
		if err != nil {
			return nil, err
		}
		part, err := r.keys.Open(box, associated(id, ref, k))
		if err != nil {
			return nil, notOpened(ref)
		}
		if k == 0 && ref.Parts > 1 { // the size is trusted once a part has opened
			b = make([]byte, 0, min(ref.Size, ref.Parts*partSize))
		}
		b = append(b, part...)
		if show == nil {
			continue
		}
		if err := show(name, box); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func notOpened(ref *Ref) error {
	return fmt.Errorf("%w: object %s was changed, or sealed under another key", ErrRecord, ref.Name)
}

// getPart reads one part of an object, of at most a given number of bytes. One that was just put
// may not be on every node yet, so getPart asks for it again.
func (r *Records) getPart(ctx context.Context, o *bucket, name string, most int) ([]byte, error) {
	began, appears := time.Now(), attemptTime
	if r.replicas == 1 { // another copy cannot have it
		appears = pause
	}
	for {
		part, err := r.content(ctx, o, name, most)
		if err == nil {
			return part, nil
		}
		missing := errors.Is(err, jetstream.ErrObjectNotFound)
		if !missing || time.Since(began) >= appears {
			if missing {
				return nil, fmt.Errorf("%w: %w: %s", ErrRecord, ErrMissing, name)
			}
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		time.Sleep(pause)
	}
}

// content reads an object as [bucket.names] lists them, without a consumer: message by message, so
// that one which JetStream does not answer costs an attempt of its own.
func (r *Records) content(ctx context.Context, o *bucket, name string, most int,
) (content []byte, err error) {
	var info *jetstream.ObjectInfo
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		info, err = o.GetInfo(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	pieces := o.pieces(info.NUID)
	content = make([]byte, 0, min(info.Size, uint64(most)+1))
	for next := uint64(1); uint64(len(content)) < info.Size && len(content) <= most; {
		err = r.retry(ctx, func(ctx context.Context) error {
			piece, err := o.stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(pieces))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return jetstream.ErrObjectNotFound
			}
			if err == nil {
				content, next = append(content, piece.Data...), piece.Sequence+1
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return content, nil
}

// Probe writes what a decision on a federation would write, in a place of the node's own. It fails
// with [ErrUnavailable] if the record takes no decision, and does not try again.
func (r *Records) Probe(ctx context.Context, id, node string) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	// The next message replaces this one in one step. An object would leave its content behind if a
	// step after the write fails, and each such remnant keeps 8 MB of deleted data on the disk.
	m := nats.NewMsg("$O." + bucketObjects + id[:16] + ".C." +
		base64.RawURLEncoding.EncodeToString([]byte(probe+node)))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	m.Data = []byte{1}
	_, err := r.js.PublishMsg(ctx, m)
	if err == nil {
		_, err = r.definitions.Put(ctx, probe+node, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// Initial reads one of a definition's files, its Model or Before; nil if the definition lacks that
// file.
func (r *Records) Initial(ctx context.Context, d *Definition, ref *Ref) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	o, err := r.objects(ctx, d.ID)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, o, d.ID, ref)
}
