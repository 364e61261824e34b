package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/tilelog"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
)

// This file has a node publish the server's public log: which federations there are, how far the
// chain of each has come, and which have ended. Each node makes the files of the same log; leaves
// are added by whichever node is first. The log may be behind what was decided, and never ahead.

const (
	folderLog = "log" // within a node's folder
	saltLog   = "public log"
	logEvery  = 12 // probes of the record
)

// publicLog is the log as this node has it.
type publicLog struct {
	stored *record.PublicLog
	signer *tilelog.Signer
	log    tilelog.Log
	// known has the last leaf of each kind by federation, or what else a leaf is about.
	known map[chain.Hash]map[tilelog.Kind]tilelog.Leaf
	keys  map[string]chain.Hash // of federations, by identifier
	days  map[string]string     // on which they were looked at last, by identifier
}

// logFolder returns the folder of the log's files.
func (n *Node) logFolder() string { return filepath.Join(n.Folder, folderLog) }

// published returns the folder that the door serves; empty: there is no log.
func (n *Node) published() string {
	if n.PublicLog == "" {
		return ""
	}
	return n.logFolder()
}

// publishes keeps the public log up to date.
func (n *Node) publishes() {
	defer n.group.Done()
	var l *publicLog
	told := ""
	for wait := time.Duration(0); ; wait = logEvery * n.hooks.Probe {
		if n.LogRounds {
			wait = min(wait, n.hooks.Probe)
		}
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(wait):
		}
		err := n.publish(n.ctx, &l)
		switch {
		case n.ctx.Err() != nil:
			return
		case err == nil:
			told = ""
		case err.Error() != told:
			told = err.Error()
			n.Log.Error("the public log is not up to date", "error", told)
		}
		if errors.Is(err, record.ErrLost) || errors.Is(err, record.ErrUnavailable) {
			l = nil // begin anew
		}
	}
}

// publish brings the log up to date.
func (n *Node) publish(ctx context.Context, at **publicLog) (err error) {
	if *at == nil {
		if *at, err = n.openLog(ctx); err != nil {
			*at = nil
			return err
		}
	}
	l := *at
	if err := l.read(ctx); err != nil {
		return err
	}
	if err := n.addDue(ctx, l); err != nil && !errors.Is(err, record.ErrLost) {
		return err
	}
	if err := l.read(ctx); err != nil {
		return err
	}
	n.logMutex.Lock()
	defer n.logMutex.Unlock()
	return l.log.Publish(n.logFolder(), l.signer)
}

// cosigned adds a witness's cosignature to the checkpoint that this node publishes, until the next.
func (n *Node) cosigned(key, line string) error {
	w, err := tilelog.ParseWitness(key)
	if err != nil {
		return err
	}
	n.logMutex.Lock()
	defer n.logMutex.Unlock()
	return tilelog.AddCosignature(n.logFolder(), w, line)
}

// openLog opens the log, or begins it.
func (n *Node) openLog(ctx context.Context) (*publicLog, error) {
	_, err := os.Lstat(filepath.Join(n.logFolder(), "checkpoint"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	stored, err := n.records.PublicLog(ctx, n.PublicLog, err == nil)
	if err != nil {
		return nil, err
	}
	if stored.Restored {
		if err := n.refillLog(ctx, stored); err != nil {
			return nil, err
		}
		if stored, err = n.records.PublicLog(ctx, n.PublicLog, true); err != nil {
			return nil, err
		}
	}
	l := &publicLog{stored: stored, known: make(map[chain.Hash]map[tilelog.Kind]tilelog.Leaf),
		keys: make(map[string]chain.Hash), days: make(map[string]string)}
	l.signer, err = tilelog.NewSigner(stored.Name, stored.Key)
	return l, err
}

// refillLog gives a log whose key was restored from a backup its leaves back, from the files in
// this node's folder. What was published last has to be there: whoever has seen more of the log
// would see another history.
func (n *Node) refillLog(ctx context.Context, stored *record.PublicLog) error {
	signer, err := tilelog.NewSigner(stored.Name, stored.Key)
	if err != nil {
		return err
	}
	files, _, err := tilelog.Open(n.logFolder(), signer.Public())
	if err != nil {
		return fmt.Errorf("%w: %w", &record.Damage{
			What:   "the public log was restored from a backup, which does not have its leaves",
			Advice: "copy what was published last, checkpoint, key and all tiles, to " + n.logFolder(),
		}, err)
	}
	at := int64(0)
	for {
		leaf, err := stored.Next(ctx)
		switch {
		case err != nil:
			return err
		case leaf == nil && at == files.Size():
			return stored.Back(ctx)
		case leaf == nil:
			if err := stored.Append(ctx, files.Leaf(at)); err != nil {
				return err
			}
		case at == files.Size() || !bytes.Equal(leaf, files.Leaf(at)):
			return fmt.Errorf("%w: %s has another than another node's", tilelog.ErrHistory,
				n.logFolder())
		default:
			at++
		}
	}
}

// read takes all leaves that were added.
func (l *publicLog) read(ctx context.Context) error {
	for {
		b, err := l.stored.Next(ctx)
		if err != nil || b == nil {
			return err
		}
		leaf, err := tilelog.ParseLeaf(b)
		if err != nil {
			return err
		}
		if err := l.log.Append(b); err != nil {
			return err
		}
		if l.known[leaf.Key] == nil {
			l.known[leaf.Key] = make(map[tilelog.Kind]tilelog.Leaf)
		}
		l.known[leaf.Key][leaf.Kind] = *leaf
	}
}

// add adds a leaf.
func (l *publicLog) add(ctx context.Context, leaf *tilelog.Leaf) error {
	b, err := leaf.MarshalText()
	if err != nil {
		return err
	}
	if err := l.stored.Append(ctx, b); err != nil {
		return err
	}
	return l.read(ctx)
}

// addDue adds the leaves that are due. It fails with [record.ErrLost] if another node adds some:
// the rest is added the next time.
func (n *Node) addDue(ctx context.Context, l *publicLog) error {
	today := tilelog.Day(time.Now())
	for _, c := range n.statements() {
		next, err := hex.DecodeString(c.Next)
		if err != nil || len(next) != len(chain.Hash{}) {
			continue
		}
		key := chain.Hash(next)
		if _, said := l.known[key][tilelog.Certificate]; !said {
			leaf := &tilelog.Leaf{Kind: tilelog.Certificate, Day: today, Key: key}
			if err := l.add(ctx, leaf); err != nil {
				return err
			}
		}
	}
	n.mutex.Lock()
	due := make(map[string]*federation.Federation) // by identifier; nil: it was forgotten
	for id := range n.forgotten {
		due[id] = nil
	}
	for id, e := range n.entries {
		if e.federation.Job.Parties.Hidden == 0 { // of the others nothing is said
			due[id] = e.federation
		}
	}
	n.mutex.Unlock()
	for _, id := range slices.Sorted(maps.Keys(due)) {
		leaves, err := n.leaves(ctx, l, id, due[id], today)
		if errors.Is(err, record.ErrUnavailable) {
			return err
		}
		if err != nil {
			n.Log.Debug("the public log says nothing new of a federation", "id", id, "error", err.Error())
			continue
		}
		for _, leaf := range leaves {
			if err := l.add(ctx, leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaves returns the leaves that are due of a federation, nil if it was forgotten.
func (n *Node) leaves(ctx context.Context, l *publicLog, id string, f *federation.Federation,
	today string,
) (leaves []*tilelog.Leaf, err error) {
	key, found := l.keys[id]
	if !found {
		public, err := n.records.Public(ctx, id)
		if err != nil || len(public) != ed25519.PublicKeySize {
			return nil, err
		}
		key = chain.Hash(public)
		l.keys[id] = key
	}
	said := l.known[key]
	last, told := said[tilelog.Head]
	_, over := said[tilelog.End]
	_, forgotten := said[tilelog.Forget]
	_, born := said[tilelog.Birth]
	if forgotten || f == nil && !born || f != nil && l.days[id] == today && (over || !n.LogRounds) {
		return nil, nil
	}
	if !born {
		secret, err := n.records.Salt(ctx, id, saltLog)
		if err != nil {
			return nil, err
		}
		leaf := &tilelog.Leaf{Kind: tilelog.Birth, Day: today, Key: key}
		if err := leaf.Job.UnmarshalText([]byte(f.JobDigest)); err != nil {
			return nil, err
		}
		var committee [32]byte
		if list := f.Committee(); list != nil {
			committee = list.Digest()
		}
		leaf.People = tilelog.People(secret, f.Settled.Roster().Digest(), committee)
		leaves = append(leaves, leaf)
	}
	all, err := n.records.Chain(ctx, id)
	if err != nil {
		return leaves, nil // which is named elsewhere
	}
	l.days[id] = today
	head, err := all.Head()
	if err == nil && (!told || head.Segment != last.Segment || head.Size != last.Size) {
		leaves = append(leaves, &tilelog.Leaf{Kind: tilelog.Head, Day: today, Key: key,
			Segment: head.Segment, Size: head.Size, Root: head.Root})
	}
	ended, forgotten := ends(all)
	if ended && !over {
		leaves = append(leaves, &tilelog.Leaf{Kind: tilelog.End, Day: today, Key: key})
	}
	if forgotten {
		leaves = append(leaves, &tilelog.Leaf{Kind: tilelog.Forget, Day: today, Key: key})
	}
	return leaves, nil
}

// ends reports whether a federation has ended, and whether what it has computed was deleted.
func ends(all *chain.Chain) (ended, forgotten bool) {
	for number := all.Last().Number; number > 0 && !ended; number-- {
		if e := all.Entry(number); e != nil {
			ended = e.Order == drive.Ended.String()
			forgotten = forgotten || e.Kind == chain.Forget
		}
	}
	return ended, forgotten
}
