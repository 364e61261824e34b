package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file finds that JetStream has lost something. A message whose checksum fails is none for
// JetStream, so absence alone never means that a federation has decided nothing: what else there is
// of the federation has to say so too.

// ErrDamaged: the record has signs of something that it does not have. It comes with [ErrRecord],
// and with [ErrMissing].
var ErrDamaged = errors.New("record: the record is damaged")

// Damage says what is lost, and what to do. It is [ErrDamaged].
type Damage struct {
	What   string
	Advice string
}

func (d *Damage) Error() string { return fmt.Sprintf("%v: %s; %s", ErrDamaged, d.What, d.Advice) }

// Is makes a damaged record one that cannot be opened, in which an object is missing: whoever can
// goes back to what there is.
func (d *Damage) Is(target error) bool {
	return target == ErrDamaged || target == ErrRecord || target == ErrMissing
}

const (
	adviceNode = "check this node's disk; the federation goes on from the newest state that there " +
		"is, or restore a backup to nodes whose folders are new"
	adviceNothing    = "check this node's disk; restore a backup to nodes whose folders are new"
	adviceDefinition = "check this node's disk; declare the federation by the same files again, or " +
		"restore a backup to nodes whose folders are new"
)

// damaged says what is lost for good.
func damaged(format string, what ...any) *Damage {
	return &Damage{fmt.Sprintf(format, what...), adviceNothing}
}

// states returns the names of a federation's objects, and the highest number of a state among them,
// decided or not. They are read before the entries, which are then as new as they are.
func (b *bucket) states(ctx context.Context) (names []string, newest uint64, err error) {
	if names, err = b.names(ctx); err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		if number, is := stateNumber(name); is {
			newest = max(newest, number)
		}
	}
	return names, newest, nil
}

// contradicts returns what is lost if the last entry that there is is older than a state. One state
// more than the entry after it may have been stored, and never decided.
func contradicts(last *chain.Entry, newest uint64) error {
	switch {
	case last.Unknown:
		return &Damage{"what named the newest state of a federation is lost, and nothing was decided " +
			"since", adviceNode}
	case newest > last.Number+1:
		return &Damage{fmt.Sprintf("the newest decision that there is of a federation is %d, and there "+
			"is a state of decision %d", last.Number, newest), adviceNode}
	}
	return nil
}

// behind returns what is lost if JetStream's last entry is older than this node's own, and what is
// wrong if it is another.
func behind(last, mine *told) error {
	switch {
	case mine == nil || last != nil && last.entry.Number > mine.entry.Number:
	case last == nil:
		return &Damage{fmt.Sprintf("JetStream has no decision of the federation, and this node's own "+
			"file has decision %d", mine.entry.Number), adviceNode}
	case last.entry.Number < mine.entry.Number:
		return &Damage{fmt.Sprintf("JetStream has decision %d, and this node's own file has decision "+
			"%d", last.entry.Number, mine.entry.Number), adviceNode}
	case !bytes.Equal(last.line, mine.line):
		return &Damage{fmt.Sprintf("JetStream and this node's own file have two histories of the "+
			"federation, which differ at decision %d", mine.entry.Number), adviceFork}
	}
	return nil
}

const adviceFork = "keep a copy of each node's folder " + decidedFolder +
	", and say which history stands: hushsumd record choose"

// newest reads a federation's last entry. It fails with [ErrDamaged] if there are signs of others;
// it returns what it has read then.
func (r *Records) newest(ctx context.Context, id string) (*told, error) {
	o, err := r.own(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := r.forgotten(ctx, id); err != nil {
		return nil, err
	}
	b, err := r.objects(ctx, id)
	if err != nil {
		return nil, err
	}
	var newest uint64
	err = r.retry(ctx, func(ctx context.Context) (err error) {
		_, newest, err = b.states(ctx)
		return err
	})
	if err != nil {
		return nil, unavailable(err)
	}
	mine, err := o.last()
	if err != nil {
		return nil, err
	}
	last, err := r.lastDecided(ctx, id)
	if err != nil {
		return nil, err
	}
	if last.sequence == 0 {
		if mine == nil {
			return nil, damaged("JetStream has no decision of the federation %.16s…", id)
		}
		return nil, behind(nil, mine)
	}
	e, err := chain.Open(last.line, id, o.public())
	if err != nil {
		return nil, damaged("the newest decision in JetStream of %.16s… is not signed", id)
	}
	t := &told{e, last.line}
	if err := behind(t, mine); err != nil {
		return t, err
	}
	if mine != nil && e.Number > mine.entry.Number { // it follows, or there are two histories
		u, err := r.union(ctx, o, false)
		if err == nil {
			err = o.fill(u.Chain)
		}
		if err != nil {
			return t, err
		}
	}
	return t, contradicts(e, newest)
}

// known returns the identifiers of federations that a stream has a subject for, with its prefix.
func known(
	ctx context.Context, stream jetstream.Stream, prefix string, into map[string]bool,
) error {
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		if id := strings.TrimPrefix(subject, prefix); identifier(id) {
			into[id] = true
		}
	}
	return nil
}

// identifier reports whether a text may identify a federation.
func identifier(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// absent fails with [ErrNone] if there is nothing of a federation, and with [ErrDamaged] if there
// is something, and so was its definition.
func (r *Records) absent(ctx context.Context, id string) error {
	last, err := r.lastDecided(ctx, id)
	if err != nil {
		return err
	}
	filed := false
	if r.folder != "" {
		_, err := os.Lstat(r.chainName(id))
		filed = err == nil
	}
	if last.sequence == 0 && !filed {
		return ErrNone
	}
	return &Damage{fmt.Sprintf("the definition of the federation %.16s… is lost", id),
		adviceDefinition}
}
