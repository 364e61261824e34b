package record

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/keyexchange"
)

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
		piece := uint32(pieceSize)
		if len(part) > partSize/4 {
			piece = largePiece
		}
		err = r.retryOf(ctx, len(part), func(ctx context.Context) error {
			_, err := o.Put(ctx, jetstream.ObjectMeta{
				Name: name,
				Opts: &jetstream.ObjectMetaOptions{ChunkSize: piece},
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
