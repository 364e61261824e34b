package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// This file lets a node take up other keys and certificates while it runs: it checks five times
// between two probes of the record, once a second, whether their files have changed.

// settling is how long a file may change again without another time or length.
const settling = 2 * time.Second

// watched is a file that is read again once it has changed.
type watched struct {
	name string
	read fs.FileInfo // when it was last read, nil if it was missing
	when time.Time
}

// changed reports whether the file may have changed since the last call of changed.
func (w *watched) changed() bool {
	info, err := os.Stat(w.name)
	was := w.read
	if err != nil {
		w.read = nil
		return was != nil
	}
	same := was != nil && os.SameFile(info, was) && info.Size() == was.Size() &&
		info.ModTime().Equal(was.ModTime()) && w.when.Sub(info.ModTime()).Abs() >= settling
	w.read, w.when = info, time.Now()
	return !same
}

// reload reads what has changed, for as long as the node runs.
func (n *Node) reload() {
	defer n.group.Done()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(n.hooks.Probe / 5):
		}
		_ = n.rereadKeys(false) // which logs what is wrong
		if !n.hooks.Plain {
			n.renew()
		}
	}
}

// rereadKeys takes the keys that the file has now, if it may have changed, or always. A key that is
// no longer in it stays while something is sealed under it.
func (n *Node) rereadKeys(always bool) error {
	if n.hooks.Key != nil {
		return nil
	}
	n.keyMutex.Lock()
	defer n.keyMutex.Unlock()
	if !n.keyFile.changed() && !always {
		return nil
	}
	keys, err := keyfile.SealKeys(n.KeyFile, false)
	if err != nil {
		n.Log.Error("the file of seal keys is unusable: the keys that it had before stay",
			"error", err.Error())
		return err
	}
	had := n.seals.All()
	if slices.Equal(had, keys) {
		return nil
	}
	var gone []keyexchange.SealKey
	for _, key := range had {
		if !slices.Contains(keys, key) {
			gone = append(gone, key)
		}
	}
	n.seals.Set(append(slices.Clone(keys), gone...)) // until it is known that they are not needed
	if len(gone) > 0 {
		kept := n.needed(gone)
		n.seals.Set(append(slices.Clone(keys), kept...))
	}
	n.Log.Info("the file of seal keys was reread", "seals", record.KeyName(n.seals.Newest()),
		"keys", len(n.seals.All()))
	return nil
}

// needed returns those of some keys under which something is sealed, or may be. The file then
// counts as changed, so that they are checked again.
func (n *Node) needed(keys []keyexchange.SealKey) (kept []keyexchange.SealKey) {
	ctx, cancel := context.WithTimeout(n.ctx, sealedTime)
	defer cancel()
	count, err := n.records.Sealed(ctx)
	for _, key := range keys {
		name := record.KeyName(&key)
		switch {
		case err != nil:
			n.Log.Error("a seal key is no longer in the file, and stays, because the record does not say "+
				"whether something is sealed under it", "key", name, "error", err.Error())
		case count[name] > 0:
			n.Log.Error("a seal key is no longer in the file, and stays: put its line back, and run "+
				"'hushsumd key rewrite'", "key", name, "sealed", count[name])
		default:
			n.Log.Info("a seal key is gone: nothing is sealed under it", "key", name)
			continue
		}
		kept = append(kept, key)
	}
	if kept != nil {
		n.keyFile.read = nil
	}
	return kept
}

// sealedTime is how long it may take to find out what is sealed under which key.
const sealedTime = time.Minute

// ErrSealed: something is sealed under a key that the node does not have.
var ErrSealed = errors.New("node: a key is missing under which something is sealed")

// opens fails with [ErrSealed] if the record says that something is sealed under a key that the
// node lacks. It does not fail if the record does not say.
func (n *Node) opens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sealedTime)
	defer cancel()
	count, err := n.records.Sealed(ctx)
	if err != nil {
		n.Log.Warn("the record does not say under which keys it is sealed", "error", err.Error())
		return nil
	}
	for _, key := range n.seals.All() {
		delete(count, record.KeyName(&key))
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if name != "" {
			return fmt.Errorf("%w: %d objects are under the key %s; add its line to the file of --key, "+
				"after that of the key that seals", ErrSealed, count[name], name)
		}
	}
	return nil
}

// Keys returns this node's keys, and how many objects are sealed under each.
func (n *Node) Keys(ctx context.Context) ([]page.Key, error) {
	count, err := n.records.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	var out []page.Key
	for i, key := range n.seals.All() {
		name := record.KeyName(&key)
		out = append(out, page.Key{Name: name, Seals: i == 0, Objects: count[name]})
		delete(count, name)
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, page.Key{Name: name, Missing: true, Objects: count[name]})
	}
	return out, nil
}

// Rewrite seals under the newest key all objects that are sealed under other keys, while rounds go
// on, and returns the objects that are left: those without a leader, or whose leader has not read
// its file of keys yet. This node reads its own file first, and fails with page.ErrKeys if it
// cannot.
func (n *Node) Rewrite(ctx context.Context) ([]page.Key, error) {
	if err := n.rereadKeys(true); err != nil {
		return nil, fmt.Errorf("%w: %w", page.ErrKeys, err)
	}
	n.mutex.Lock()
	ids := make([]string, 0, len(n.entries))
	for id := range n.entries {
		ids = append(ids, id)
	}
	n.mutex.Unlock()
	slices.Sort(ids)
	for _, id := range ids {
		if _, err := n.order(ctx, id, page.Order{What: orderReseal}); err != nil {
			n.Log.Warn("a federation's state was not resealed", "federation", id, "error", err.Error())
		}
	}
	if err := n.records.Reseal(ctx); err != nil {
		return nil, err
	}
	return n.Keys(ctx)
}

// orderReseal has a leader record its state under the newest key.
const orderReseal = "reseal"
