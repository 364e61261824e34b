package node

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has a node read its whole record, once a night and when an operator asks, and mend it.

// checkEvery is the time between two checks.
const checkEvery = 24 * time.Hour

// checks has what was found of the record.
type checks struct {
	at              time.Time // of the last check; zero: there was none yet
	damaged, healed int       // federations; and times that something was put back
}

// Check reads everything that is recorded. Each federation's problems are logged.
func (n *Node) Check(ctx context.Context) ([]page.Checked, error) {
	ids, err := n.records.List(ctx)
	if err != nil {
		return nil, err
	}
	out := []page.Checked{}
	damaged := 0
	for _, id := range ids {
		of, err := n.records.Check(ctx, id, runner.Named)
		if err != nil {
			return nil, err
		}
		name := n.nameOf(id)
		for _, problem := range of.Problems {
			n.Log.Error("the record is damaged", "federation", name, "id", id, "error", problem)
		}
		if len(of.Problems) > 0 {
			damaged++
		}
		out = append(out, page.Checked{Name: name, Checked: of})
	}
	slices.SortFunc(out, func(a, b page.Checked) int {
		return strings.Compare(a.Name+a.ID, b.Name+b.ID)
	})
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.checked.at, n.checked.damaged = time.Now(), damaged
	return out, nil
}

// found logs and counts what a claim has found damaged, or put back.
func (n *Node) found(e *entry, lines []record.Line) {
	for _, line := range lines {
		n.Log.Error("the record is damaged", "federation", e.federation.Job.Name, "outcome", line.Event,
			"error", line.Note)
		n.mutex.Lock()
		if line.Event == record.EventHealed {
			n.checked.healed++
		} else {
			n.checked.damaged++
		}
		n.mutex.Unlock()
	}
}

// nameOf returns the name of a federation's job, empty if its definition is lost.
func (n *Node) nameOf(id string) string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if e := n.entries[id]; e != nil {
		return e.federation.Job.Name
	}
	if gone := n.forgotten[id]; gone != nil {
		return gone.Name
	}
	return ""
}

// checkNightly checks the record for as long as the node runs.
func (n *Node) checkNightly() {
	defer n.group.Done()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-time.After(checkEvery):
		}
		if _, err := n.Check(n.ctx); err != nil && n.ctx.Err() == nil {
			n.Log.Warn("the record could not be checked", "error", err.Error())
		}
	}
}

// ReadLost takes from a backup what the record has lost. Leaders find it when they claim.
func (n *Node) ReadLost(ctx context.Context, backup io.Reader) (took map[string]int, err error) {
	file, err := os.CreateTemp(n.Folder, "heal-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	if _, err := io.Copy(file, backup); err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return n.records.HealFrom(ctx, file, runner.Named)
}

// Choose has one of several histories of a federation stand.
func (n *Node) Choose(ctx context.Context, id, last, by string) error {
	return n.records.Choose(ctx, id, last, by)
}

// Chain returns all decisions of a federation, by line, and the note of their head after them.
func (n *Node) Chain(ctx context.Context, id string) (b []byte, err error) {
	if _, found := (*federations)(n).Find(id); !found {
		return nil, record.ErrNone
	}
	all, err := n.records.Chain(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, line := range all.Lines(0) {
		b = append(append(b, line...), '\n')
	}
	_, note, err := n.records.HeadOf(ctx, id, all)
	if errors.Is(err, chain.ErrLost) { // it says which
		err = nil
	}
	return append(b, note...), err
}

// Head returns the signed note of the newest head of a federation's decisions.
func (n *Node) Head(ctx context.Context, id string) ([]byte, error) {
	if _, found := (*federations)(n).Find(id); !found {
		return nil, record.ErrNone
	}
	_, note, err := n.records.Head(ctx, id)
	return note, err
}
