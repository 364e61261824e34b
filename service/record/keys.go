package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
)

// This file has the keys that records are sealed under, and moves a record to another key while it
// is in use. Each stored part names the key that it is sealed under, by a digest that reveals
// nothing of the key: anyone who can change that in JetStream's files could as well delete the
// part.

// Keys holds the keys of records: the first key seals, all keys open. It is safe for concurrent
// use.
type Keys struct {
	ring atomic.Pointer[[]keyexchange.SealKey]
}

// NewKeys returns Keys that hold one key or more.
func NewKeys(first keyexchange.SealKey, others ...keyexchange.SealKey) *Keys {
	k := new(Keys)
	k.Set(append([]keyexchange.SealKey{first}, others...))
	return k
}

// Set replaces all keys, with at least one.
func (k *Keys) Set(ring []keyexchange.SealKey) {
	ring = slices.Clone(ring)
	k.ring.Store(&ring)
}

// All returns the keys, first the key that seals.
func (k *Keys) All() []keyexchange.SealKey { return *k.ring.Load() }

// Newest returns the key that seals.
func (k *Keys) Newest() *keyexchange.SealKey { return &k.All()[0] }

// Open opens what any of the keys has sealed. It fails with keyexchange.ErrOpen.
func (k *Keys) Open(sealed, associated []byte) (plain []byte, err error) {
	plain, _, err = k.open(sealed, associated)
	return plain, err
}

// open is Open, and also returns the key.
func (k *Keys) open(sealed, associated []byte) (plain []byte, by *keyexchange.SealKey, err error) {
	for _, key := range k.All() {
		if plain, err = keyexchange.Open(&key, sealed, associated); err == nil {
			return plain, &key, nil
		}
	}
	return nil, nil, err
}

// KeyName names a key without revealing it: 16 hexadecimal digits.
func KeyName(key *keyexchange.SealKey) string {
	digest := sha256.Sum256(append([]byte(labels.NameSealKey+"\n"), key[:]...))
	return hex.EncodeToString(digest[:8])
}

// metaKey is the entry of an object's metadata that names the key that seals it.
const metaKey = "seal-key"

// stored is an object with its parts, as JetStream lists them.
type stored struct {
	ref   Ref
	under map[string]string // of a key, by the part's name; empty: no key opened it in a backup
}

// storedOf makes objects from JetStream's list.
func storedOf(all []*jetstream.ObjectInfo) (out []*stored) {
	index := make(map[string]*stored)
	for _, info := range all {
		if strings.HasPrefix(info.Name, probe) {
			continue
		}
		base, _, _ := strings.Cut(info.Name, ".")
		s := index[base]
		if s == nil {
			s = &stored{ref: Ref{Name: base}, under: make(map[string]string)}
			index[base] = s
			out = append(out, s)
		} else {
			s.ref.Parts = max(s.ref.Parts, 1) + 1
		}
		s.under[info.Name] = info.Metadata[metaKey]
	}
	return out
}

// Sealed counts the parts of objects of all federations by the name of the key under which they are
// sealed. Parts of a backup that no key opened are counted under "".
func (r *Records) Sealed(ctx context.Context) (map[string]int, error) {
	count := make(map[string]int)
	err := r.eachObject(ctx, func(_ *bucket, _ string, s *stored) error {
		for _, under := range s.under {
			count[under]++
		}
		return nil
	})
	return count, err
}

// Reseal seals under the newest key everything that is sealed under another, in place: rounds go on
// meanwhile. It leaves states to their leaders, since states contain further sealed boxes;
// decisions replace states.
func (r *Records) Reseal(ctx context.Context) error {
	newest := KeyName(r.keys.Newest())
	return r.eachObject(ctx, func(o *bucket, id string, s *stored) error {
		if strings.HasPrefix(s.ref.Name, kindState) {
			return nil
		}
		for k, name := range s.ref.names() {
			if s.under[name] == newest {
				continue
			}
			box, err := r.getPart(ctx, o, name, partSize+keyexchange.SealOverhead)
			if errors.Is(err, ErrRecord) {
				continue // it was deleted
			}
			if err != nil {
				return err
			}
			place := associated(id, &s.ref, k)
			plain, err := r.keys.Open(box, place)
			if err != nil {
				continue // it is counted as left
			}
			if err := r.putPart(ctx, o, name, plain, place); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachObject calls a function with each object of all federations.
func (r *Records) eachObject(
	ctx context.Context, call func(o *bucket, id string, s *stored) error,
) error {
	ids, err := r.List(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if d, err := r.definition(ctx, id); err == nil && d.Forgotten != nil {
			continue
		}
		o, err := r.objects(ctx, id)
		if err != nil {
			return err
		}
		if err := r.eachOf(ctx, o, func(*stored) string { return id }, call); err != nil {
			return fmt.Errorf("the federation %.16s…: %w", id, err)
		}
	}
	return r.eachOf(ctx, r.archive, func(s *stored) string {
		_, rest, _ := strings.Cut(s.ref.Name, "-")
		return rest[:min(len(rest), 64)]
	}, call)
}

// eachOf calls a function with each object of a bucket, and the federation that it is of.
func (r *Records) eachOf(ctx context.Context, o *bucket, of func(*stored) string,
	call func(o *bucket, id string, s *stored) error,
) error {
	all, err := r.stored(ctx, o)
	if err != nil {
		return err
	}
	for _, s := range storedOf(all) {
		if err := call(o, of(s), s); err != nil {
			return err
		}
	}
	return nil
}

// stored lists the existing objects. A list uses a consumer: one that JetStream began to send
// before it was restarted never ends, so each attempt has a time limit.
func (r *Records) stored(ctx context.Context, o jetstream.ObjectStore,
) (all []*jetstream.ObjectInfo, err error) {
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		all, err = o.List(ctx)
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return all, nil
}
