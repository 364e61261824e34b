package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/chain"
)

// Hold is a claim on a federation. It is not safe for concurrent use, but for [Hold.Tidy].
type Hold struct {
	records  *Records
	id, node string
	objects  *bucket
	own      *own
	names    *namesKey // nil: they were erased
	chain    *chain.Chain
	sequence uint64   // of the last entry
	state    *Ref     // the newest; nil: there is none, or nobody knows which it is
	found    *Ref     // the state that the claim found, or went back to
	before   []string // names of the objects that there were before the claim
	// spent is the state before the present one, with the objects that only it names: a slow reader
	// may need them, and so may a leader that finds the present one missing.
	spent   []*Ref
	claimed []byte          // the state that the claim found
	tried   map[string]bool // states that the hold has gone back from
	damage  error           // why nobody knows which state is the newest; nil: it is known
	healed  error           // what the claim has put back; nil: nothing
	worn    int             // damaged lines of this node's file at the claim
	lost    error           // why the hold is lost; nil: it is not known to be

	// Found says what the claim found damaged, and what it has put back, as the audit log does.
	Found []Line

	// Round is the last round that was begun. Each decision records Round, so that a leader that has
	// to go back to an older state knows how many rounds are missing.
	Round uint64
	// Entry has what the next decision says of itself: its kind, if it has one, session, members,
	// survivors, release, ledger, what is spent, model and order. [Hold.Decide] fills in the rest,
	// and clears it. Lines are for people, likewise.
	Entry chain.Entry
	Lines []Line

	// Fault, for tests, is called before each step of a decision, with its name in [Steps].
	Fault func(step string)
}

// Steps names the steps of a decision: its state is stored, its entry is added to the stream, and
// written into this node's file, and then others may be told.
var Steps = []string{"object", "entry", "file", "sending"}

// Claim makes a node the leader of a federation, no matter which node led it before, and mends what
// copies of the record lack. A record that does not open stays as it is, and Claim fails with
// [ErrRecord]. It does not fail if the newest state is missing, nor if nothing names it any more:
// see [Hold.State] and [Hold.Back].
func (r *Records) Claim(ctx context.Context, id, node string) (*Hold, error) {
	h := &Hold{records: r, id: id, node: node}
	var err error
	if h.own, err = r.own(ctx, id); err != nil {
		return nil, err
	}
	if err := r.forgotten(ctx, id); err != nil {
		return nil, err
	}
	if h.objects, err = r.objects(ctx, id); err != nil {
		return nil, err
	}
	if h.names, err = r.names(ctx, id); err != nil {
		return nil, err
	}
	// Of what there is before the claim, nothing is a later leader's.
	short, cancel := context.WithTimeout(ctx, tidyTime)
	names, newest, err := h.objects.states(short)
	cancel()
	if h.before = names; err != nil {
		newest = 0
	}
	u, err := r.union(ctx, h.own, true)
	if err != nil {
		return nil, err
	}
	h.chain, h.worn, h.sequence = u.Chain, u.bad, u.last.sequence
	if h.names == nil && u.Last().Kind != chain.Forget { // what is decided would have no lines
		return nil, damaged("the key of the lines of the decisions of %.16s… is lost", id)
	}
	if err := h.mend(ctx, &u); err != nil {
		return nil, err
	}
	last := h.chain.Last()
	h.damage = contradicts(last, newest)
	if h.damage == nil && last.State != nil {
		h.state = refOf(last.State)
		h.claimed, err = h.Get(ctx, h.state)
		if err != nil && !errors.Is(err, ErrMissing) {
			return nil, err
		}
	}
	h.found, h.Round = h.state, last.Round
	later, begun := r.laterThan(id, h.chain)
	h.Round = max(h.Round, begun)
	if newest <= last.Number+1 { // a state of the next number may never have been decided
		newest = 0
	}
	e := h.chain.Next(chain.Claim, newest, false, later...)
	e.Claim++
	e.Round = h.Round
	e.Unknown = h.damage != nil
	if e.Unknown {
		e.State, e.Model = nil, nil
	}
	if why := cmp.Or(h.damage, h.setback(e)); why != nil {
		h.Found = append(h.Found, Line{Event: "damaged", Round: int(h.Round), Note: why.Error()})
	}
	if h.healed != nil {
		h.Found = append(h.Found, Line{Event: EventHealed, Round: int(h.Round), Note: h.healed.Error()})
	}
	return h, h.write(ctx, e, h.Found)
}

// setback returns what an entry that begins a segment is for, nil if it begins none.
func (h *Hold) setback(e *chain.Entry) error {
	switch {
	case e.Kind != chain.Setback:
		return nil
	case len(e.Lost) > 0:
		return &Damage{fmt.Sprintf("the decisions %v are in no copy", e.Lost), adviceNode}
	}
	return &Damage{"parties have seen another history than what there is", adviceNode}
}

// mend puts back what the stream and this node's file lack.
func (h *Hold) mend(ctx context.Context, u *union) (err error) {
	var what []string
	if lines := u.behind(); len(lines) > 0 {
		for _, line := range lines {
			if h.sequence, err = h.records.decide(ctx, h.id, line, h.sequence); err != nil {
				return err
			}
		}
		what = append(what, fmt.Sprintf("JetStream had lost the last %d decisions of a federation, and "+
			"has them from the nodes' own files again", len(lines)))
	}
	if err := h.own.fill(h.chain); err != nil {
		return err
	}
	if h.own.mended != "" {
		what = append(what, h.own.mended)
		h.own.mended = ""
	}
	if len(what) > 0 {
		h.healed = &Damage{strings.Join(what, "; "), "check this node's disk"}
	}
	return nil
}

// write adds an entry to the stream, and to this node's file. Once it has returned without an error
// what the entry says may be told.
func (h *Hold) write(ctx context.Context, e *chain.Entry, lines []Line) (err error) {
	e.Node, e.Time = h.node, time.Now().UTC().Round(0)
	for i := range lines {
		if lines[i].Node = cmp.Or(lines[i].Node, h.node); lines[i].Time.IsZero() {
			lines[i].Time = e.Time
		}
	}
	if e.Notes, err = h.names.seal(e, lines); err != nil {
		return err
	}
	line, err := chain.Sign(e, h.own.key)
	if err != nil {
		return err
	}
	h.fault("entry")
	if h.sequence, err = h.records.decide(ctx, h.id, line, h.sequence); err != nil {
		h.lost = err
		return err
	}
	if err := h.chain.Append(line); err != nil {
		return err
	}
	h.fault("file")
	if err := h.own.keep(&told{e, line}); err != nil {
		return err
	}
	h.records.tell(h.id, line)
	return nil
}

// Keep claims the federation anew, as it stands. It fails with [ErrLost] if another node has
// claimed it since. A node that was frozen learns the truth by a write only: what it reads may be
// as old as the freeze.
func (h *Hold) Keep(ctx context.Context) error {
	if h.lost != nil {
		return h.lost
	}
	return h.write(ctx, h.chain.Next(chain.Claim, 0, false), nil)
}

// DamagedLines returns how many lines of this node's own file were damaged when it claimed.
func (h *Hold) DamagedLines() int { return h.worn }

func (h *Hold) fault(step string) {
	if h.Fault != nil {
		h.Fault(step)
	}
}

// State reads the newest state, nil before the first decision. It fails with [ErrDamaged] if
// nothing names the newest state any more, until [Hold.Back] has found one.
func (h *Hold) State(ctx context.Context) ([]byte, error) {
	if h.damage != nil {
		return nil, h.damage
	}
	if h.state == nil {
		return nil, nil
	}
	if b := h.claimed; b != nil {
		return b, nil
	}
	return h.Get(ctx, h.state)
}

// Back sets the hold back to the newest state that exists, if the present state is missing or names
// a missing object, or if nobody knows which it is, and returns the last round that is known to
// have been begun. Nothing is changed before the next decision. It fails with [ErrMissing] if no
// older state exists.
//
// The state may belong to a decision that an earlier leader prepared and never made: give up the
// round that it has open.
func (h *Hold) Back(ctx context.Context) (begun uint64, err error) {
	var all []string
	err = h.records.retry(ctx, func(ctx context.Context) (err error) {
		all, err = h.objects.names(ctx)
		return err
	})
	if err != nil {
		return 0, unavailable(err)
	}
	if h.tried == nil {
		h.tried = make(map[string]bool)
	}
	if h.state != nil {
		h.tried[h.state.Name] = true
	}
	type candidate struct {
		number uint64
		ref    *Ref
	}
	var found []candidate
	for _, name := range all {
		if number, is := stateNumber(name); is && !h.tried[name] {
			found = append(found, candidate{number, &Ref{Name: name}})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(b.number, a.number) })
	for _, c := range found {
		for _, name := range all {
			if strings.HasPrefix(name, c.ref.Name+".") {
				c.ref.Parts = max(c.ref.Parts, 1) + 1
			}
		}
		h.tried[c.ref.Name] = true
		b, err := h.records.getParts(ctx, h.objects, h.id, c.ref, nil)
		if errors.Is(err, ErrUnavailable) {
			return 0, err
		}
		if err != nil {
			continue
		}
		c.ref.Size, c.ref.Digest = len(b), digestOf(b)
		h.found, h.state = c.ref, c.ref
		h.claimed, h.damage = b, nil
		return h.chain.Last().Round, nil
	}
	if d := new(Damage); errors.As(h.damage, &d) {
		return 0, &Damage{d.What + ", and there is no state", adviceNothing}
	}
	return 0, fmt.Errorf("%w: %w, and no older state of %.16s… is", ErrRecord, ErrMissing, h.id)
}

const kindState = "state-" // and the number of the decision

// stateNumber returns the decision that a state belongs to, by the name of its first part.
func stateNumber(name string) (number uint64, is bool) {
	rest, is := strings.CutPrefix(name, kindState)
	digits, unique, cut := strings.Cut(rest, "-")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, is && cut && err == nil && !strings.Contains(unique, ".")
}

// Number returns the number of the last entry.
func (h *Hold) Number() uint64 { return h.chain.Last().Number }

// Put stores an object that a state will name.
func (h *Hold) Put(ctx context.Context, kind string, b []byte) (*Ref, error) {
	return h.records.putBytes(ctx, h.objects, h.id, kind, b)
}

// PutFrom is Put for an object that is written in pieces and has a given number of bytes in all.
func (h *Hold) PutFrom(ctx context.Context, kind string, size int, content io.WriterTo,
) (*Ref, error) {
	return h.records.put(ctx, h.objects, h.id, kind, size, content)
}

// Get reads an object.
func (h *Hold) Get(ctx context.Context, ref *Ref) ([]byte, error) {
	return h.records.get(ctx, h.objects, h.id, ref)
}

// Decide records a decision. Once it has returned without an error the decision may be sent. If it
// fails nothing may be sent, and the hold is no longer usable: claim again. Objects in spent are
// deleted after the next decision, or after a later decision if that fails.
func (h *Hold) Decide(ctx context.Context, state []byte, spent ...*Ref) error {
	if h.lost != nil {
		return h.lost
	}
	e := h.next()
	h.fault("object")
	ref, err := h.Put(ctx, fmt.Sprint(kindState, e.Number), state)
	if err != nil {
		return err
	}
	older := h.spent
	h.spent, h.claimed = append(slices.Clone(spent), h.state), nil
	h.state, e.State = ref, ref.Object()
	lines := h.Lines
	h.Entry, h.Lines = chain.Entry{}, nil
	if err := h.write(ctx, e, lines); err != nil {
		return err
	}
	for k, old := range older {
		if old == nil {
			continue
		}
		if err := h.removeAll(ctx, old); err != nil { // the next decision tries again
			h.spent = append(h.spent, older[k:]...)
			break
		}
	}
	h.fault("sending")
	return nil
}

// next makes the entry of the next decision, but for its state.
func (h *Hold) next() *chain.Entry {
	says := &h.Entry
	e := h.chain.Next(cmp.Or(says.Kind, chain.Decided), 0, false)
	e.Unknown, e.Round = false, h.Round
	e.Session = cmp.Or(says.Session, e.Session)
	if says.Spent != nil {
		e.Spent = says.Spent
	}
	e.Ledger, e.Model = cmp.Or(says.Ledger, e.Ledger), cmp.Or(says.Model, e.Model)
	e.Members, e.Survivors, e.Release, e.Order = says.Members, says.Survivors, says.Release, says.Order
	return e
}

// Object returns a Ref as entries name objects, nil if it is nil.
func (ref *Ref) Object() *chain.Object {
	if ref == nil {
		return nil
	}
	digest := new(chain.Hash)
	_ = digest.UnmarshalText([]byte(ref.Digest)) // it is one of ours
	return &chain.Object{Name: ref.Name, Digest: *digest, Size: uint64(ref.Size),
		Parts: uint64(ref.Parts)}
}

// Salt returns 32 secret bytes of the federation for a purpose, nil once its names are erased.
func (h *Hold) Salt(purpose string) []byte {
	if h.names == nil {
		return nil
	}
	return h.names.secret("salt " + purpose)
}

// Head returns the head of the last entry, with its signed note.
func (h *Hold) Head() (*chain.Head, []byte, error) {
	head, err := h.chain.Head()
	if err != nil {
		return nil, nil, err
	}
	note, err := chain.SignHead(head, h.own.key)
	return head, note, err
}

func (h *Hold) removeAll(ctx context.Context, ref *Ref) error {
	for _, name := range ref.names() {
		if err := h.remove(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}

// remove deletes an object without a trace. JetStream's own way leaves a message that says so for
// ever, which is written to the disk first; such messages keep files alive that otherwise hold only
// deleted objects, 2 MB each.
func (h *Hold) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	info, err := h.objects.GetInfo(ctx, name)
	if err != nil {
		return err
	}
	// Content without a name is found by nobody, so it goes first.
	err = h.objects.stream.Purge(ctx, jetstream.WithPurgeSubject(h.objects.pieces(info.NUID)))
	if err != nil {
		return err
	}
	return h.objects.stream.Purge(ctx, jetstream.WithPurgeSubject(h.objects.subject(name)))
}

// tidyTime is how long a request for the sake of tidiness may take.
const tidyTime = 2 * time.Second

// Tidy deletes the objects that no state names any more: those of decisions that were never
// completed before the claim. keep names what the present state does. The hold may be used
// meanwhile, and may even be lost.
func (h *Hold) Tidy(ctx context.Context, keep ...*Ref) error {
	wanted := make(map[string]bool)
	for _, ref := range append(keep, h.found) {
		if ref == nil {
			continue
		}
		for _, name := range ref.names() {
			wanted[name] = true
		}
	}
	for _, name := range h.before {
		if wanted[name] || strings.HasPrefix(name, kindInitial) || strings.HasPrefix(name, probe) {
			continue
		}
		short, cancel := context.WithTimeout(ctx, tidyTime)
		err := h.remove(short, name)
		cancel()
		if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return unavailable(err)
		}
	}
	return nil
}
