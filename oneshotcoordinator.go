package hushsum

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/gob"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/internal/signed"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

// phase is what a round of a committee waits for.
type phase int

const (
	phaseIdle        phase = iota // between rounds
	phaseKeys                     // the members' keys
	phaseSubmissions              // parties
	phaseBatch                    // the members' word on a batch of them
	phaseSigned                   // the members' signatures on who is in
	phaseParts                    // the members' parts
)

// lull is how long parties may be silent before a batch that is not full goes out.
const lull = 100 * time.Millisecond

// maxPending is how many messages a member may be behind: they go out at once when it
// connects.
const maxPending = queueSize - 4

// pending is a message that a member may not have had.
type pending struct {
	Message  []byte
	Answered bool // whether there will be an answer to it
}

// oneshotCoordinator runs a job whose plan has a committee.
type oneshotCoordinator struct {
	*leader
	members   *hub // the connections of the committee
	server    *oneshot.Server
	phase     phase
	since     time.Time // the phase began, or the last submission came
	opened    time.Time // the round was opened
	submitted map[int]bool
	pending   [][]pending // by member
	covered   map[int][]byte
	tried     int // parts that the last attempt at a sum had

	ledger  *accounting.Ledger
	names   []string // of the roster
	round   uint64   // the last that was begun
	lost    int
	inRow   int    // rounds lost since the last sum
	stalled bool   // the job ended without what it is for
	begin   []byte // the broadcast of the round, or that ends the job
	ended   bool
}

// tick is how often it looks what is due.
const tick = 20 * time.Millisecond

// mostLost is how many rounds in a row may be lost before the job ends.
const mostLost = 5

func (l *leader) runOneshot(ctx context.Context) (*Result, error) {
	r := &oneshotCoordinator{leader: l, members: newHub("", maxFrame(l.Plan))}
	ctx, cancel := context.WithCancel(ctx)
	defer r.members.running.Wait()
	defer cancel()
	for i := range l.Plan.Roster().Len() {
		r.names = append(r.names, l.Plan.Roster().Name(i))
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	failed := make(chan error, 2)
	r.running.Go(func() { r.accept(ctx, r.Listener, failed) })
	r.members.running.Go(func() { r.members.accept(ctx, r.Committee, failed) })
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-failed:
			return nil, err
		case a := <-r.events:
			r.fromParty(a)
		case a := <-r.members.events:
			r.fromMember(a)
		case e := <-r.notices:
			r.report(e)
		case e := <-r.members.notices:
			r.report(e)
		case <-ticker.C:
		}
		if err := r.proceed(); err != nil {
			return nil, err
		}
		membersDone := len(r.members.parties) == 0 || time.Since(r.first) > r.StepTime
		if r.ended && r.farewell() <= 0 && membersDone {
			return r.result(r.round, uint64(r.lost), r.stalled, r.ledger)
		}
	}
}

// greet answers the first frame of a connection, and reports whether it was of the plan.
func (r *oneshotCoordinator) greet(h *hub, a arrival) bool {
	if _, refusal := checkGreeting(r.Plan, a.frame[1:]); refusal != nil {
		h.refuse(a, refusal)
		return false
	}
	h.admit(a)
	if r.ended {
		h.send(a.party, r.last())
	}
	return !r.ended
}

// sentBy reports whether a frame is a message of the right sender.
func sentBy(h *hub, a arrival, sender uint32) bool {
	if a.frame[0] != frameMessage || h.parties[a.party] != a.from {
		return false
	}
	header, _, err := wire.ParseHeader(a.frame[1:])
	return err == nil && header.Sender == sender
}

// fromParty handles what came from a party. Nothing of it ends the job.
func (r *oneshotCoordinator) fromParty(a arrival) {
	switch {
	case a.err != nil || len(a.frame) == 0:
		if r.gone(a) {
			r.report(Event{Kind: Disconnected, Party: a.party, Err: a.err})
		}
		return
	case a.frame[0] == frameHello && !a.from.greeted:
		if r.greet(r.hub, a) {
			r.report(Event{Kind: Connected, Party: a.party})
			r.invite(a.party)
		}
		return
	case !sentBy(r.hub, a, uint32(a.party)):
		return
	}
	message := a.frame[1:]
	switch err := r.server.Receive(message); {
	case err == nil:
		r.submitted[a.party] = true
		if r.Plan.Oneshot().Covered {
			r.covered[a.party] = message
		}
		if r.phase == phaseSubmissions {
			r.since = time.Now()
		}
	case errors.Is(err, oneshot.ErrDuplicate):
		r.submitted[a.party] = true
	case errors.Is(err, oneshot.ErrFull):
		r.hangUp(a.party) // it dials again, and sends again
	case errors.Is(err, oneshot.ErrPhase):
		// of a round that is over
	default:
		r.report(Event{Kind: Refused, Round: r.round, Party: a.party, Err: err})
	}
}

// invite sends a party what the open round begins with, if it can still be in it.
func (r *oneshotCoordinator) invite(party int) {
	if r.phase != phaseSubmissions && r.phase != phaseBatch || r.submitted[party] {
		return
	}
	opening, err := r.server.Open(nil) // the same again
	if err != nil {
		return
	}
	r.send(party, frame(frameBroadcast, r.begin))
	r.send(party, frame(frameMessage, opening))
}

// memberSender is added to a member's index in a header (SPEC-ONESHOT.md §6).
const memberSender = 1 << 31

// fromMember handles what came from a member. Nothing of it ends the job.
func (r *oneshotCoordinator) fromMember(a arrival) {
	switch {
	case a.err != nil || len(a.frame) == 0:
		r.members.gone(a)
		return
	case a.frame[0] == frameHello && !a.from.greeted:
		if r.greet(r.members, a) {
			for _, p := range r.pending[a.party] {
				r.members.send(a.party, frame(frameMessage, p.Message))
			}
		}
		return
	case !sentBy(r.members, a, memberSender+uint32(a.party)):
		return
	}
	err := r.server.Receive(a.frame[1:])
	switch {
	case err == nil:
		// It has had what this answers, and what was before.
		waiting := r.pending[a.party]
		if i := slices.IndexFunc(waiting, func(p pending) bool { return p.Answered }); i >= 0 {
			r.pending[a.party] = waiting[i+1:]
		}
	case errors.Is(err, oneshot.ErrDuplicate), errors.Is(err, oneshot.ErrPhase):
	default:
		if errors.Is(err, oneshot.ErrExcluded) {
			r.pending[a.party] = nil
		}
		r.report(Event{Kind: Refused, Round: r.round, Err: err})
	}
}

// tell puts messages on the way to members, once they cannot be forgotten.
func (r *oneshotCoordinator) tell(next phase, answered bool, envelopes ...oneshot.Envelope) error {
	r.phase, r.since = next, time.Now()
	for _, e := range envelopes {
		switch waiting := r.pending[e.To]; {
		case next == phaseKeys:
			r.pending[e.To] = []pending{{e.Message, true}}
		case waiting == nil:
		case len(waiting) == maxPending:
			r.pending[e.To] = nil
			r.report(Event{Kind: Refused, Round: r.round,
				Err: fmt.Errorf("%w (member %d)", errLostMember, e.To)})
		default:
			r.pending[e.To] = append(waiting, pending{e.Message, answered})
		}
	}
	if err := r.save(); err != nil {
		return err
	}
	for _, e := range envelopes {
		if r.pending[e.To] != nil {
			r.members.send(e.To, frame(frameMessage, e.Message))
		}
	}
	return nil
}

// toAll is one message to all members.
func (r *oneshotCoordinator) toAll(message []byte) []oneshot.Envelope {
	var out []oneshot.Envelope
	for k := range r.pending {
		out = append(out, oneshot.Envelope{To: k, Message: message})
	}
	return out
}

// over reports whether the members need not be waited for any longer: all have answered,
// or only those are missing who are not there. Who is there and has had its time is out
// of the round.
func (r *oneshotCoordinator) over() bool {
	waited, missing := time.Since(r.since), false
	for k, waiting := range r.pending {
		if !slices.ContainsFunc(waiting, func(p pending) bool { return p.Answered }) {
			continue
		}
		switch {
		case r.members.parties[k] == nil:
			missing = true
		case r.phase == phaseKeys || waited <= r.StepTime:
			return false
		default:
			r.pending[k] = nil
		}
	}
	return !missing || waited > r.wait(graceTime)
}

// proceed does what is due.
func (r *oneshotCoordinator) proceed() error {
	if r.ended {
		return nil
	}
	switch r.phase {
	case phaseIdle:
		return r.begins()
	case phaseKeys:
		if r.over() {
			return r.opens()
		}
	case phaseSubmissions:
		return r.collect()
	case phaseBatch:
		if r.over() {
			settled, err := r.server.Settle()
			if err != nil {
				return err
			}
			return r.tell(phaseSubmissions, false, r.toAll(settled)...)
		}
	case phaseSigned:
		if r.over() {
			return r.step(phaseParts, r.server.Certificate)
		}
	case phaseParts:
		return r.sums()
	}
	return nil
}

// begins asks the members for keys, or ends the job.
func (r *oneshotCoordinator) begins() error {
	if r.round == uint64(r.Plan.Rounds()) {
		return r.finish()
	}
	invite := r.server.Invite()
	r.round = r.server.Round()
	r.submitted, r.covered, r.tried = make(map[int]bool), make(map[int][]byte), 0
	return r.tell(phaseKeys, true, r.toAll(invite)...)
}

// opens opens the round, once enough members have keys and parties are there.
func (r *oneshotCoordinator) opens() error {
	figures, err := r.Plan.Oneshot().Parameters()
	if err != nil {
		return err
	}
	if r.server.Keys() < figures.Answers || len(r.parties) == 0 {
		return nil // more may come
	}
	ledger, err := r.spend()
	if errors.Is(err, accounting.ErrBudget) {
		return r.finish()
	} else if err != nil {
		return err
	}
	b := broadcast{round: r.round, model: r.model}
	if _, err := rand.Read(b.fresh[:]); err != nil {
		return err
	}
	if r.begin, err = b.bytes(); err != nil {
		return err
	}
	opening, err := r.server.Open(r.begin)
	if err != nil {
		return err
	}
	r.ledger, r.opened = ledger, time.Now()
	for k, waiting := range r.pending {
		if len(waiting) > 0 {
			r.pending[k] = nil // it has no key: the round goes on without it
		} else {
			r.pending[k] = []pending{}
		}
	}
	if err := r.tell(phaseSubmissions, false, r.toAll(opening)...); err != nil {
		return err
	}
	r.report(Event{Kind: Begun, Round: r.round})
	for party := range r.parties {
		r.invite(party)
	}
	return nil
}

// collect sends what has come to the members, or closes the round.
func (r *oneshotCoordinator) collect() error {
	waiting, quiet := r.server.Waiting(), time.Since(r.since) > lull
	if waiting >= oneshot.DefaultBatch || waiting > 0 && quiet {
		envelopes, err := r.server.Batch()
		if err != nil {
			return err
		}
		return r.tell(phaseBatch, true, envelopes...)
	}
	all := len(r.submitted) == len(r.names)
	if waiting > 0 || !all && time.Since(r.opened) < r.wait(graceTime) {
		return nil
	}
	for party := range r.parties {
		if !r.submitted[party] && time.Since(r.opened) < r.StepTime {
			return nil
		}
	}
	closing, err := r.server.Close()
	if errors.Is(err, oneshot.ErrTooFew) {
		if all { // nobody else can come
			return r.lose(err)
		}
		return nil
	} else if err != nil {
		return err
	}
	return r.tell(phaseSigned, true, r.toAll(closing)...)
}

// step asks the members for the next answer, or loses the round.
func (r *oneshotCoordinator) step(next phase, call func() ([]byte, error)) error {
	message, err := call()
	if errors.Is(err, oneshot.ErrTooFew) {
		if time.Since(r.since) > r.StepTime {
			return r.lose(err)
		}
		return nil
	} else if err != nil {
		return err
	}
	return r.tell(next, true, r.toAll(message)...)
}

func (r *oneshotCoordinator) lose(err error) error {
	r.lost++
	r.inRow++
	if err := r.tell(phaseIdle, false); err != nil {
		return err
	}
	r.report(Event{Kind: Lost, Round: r.round, Err: err})
	if r.inRow == mostLost {
		return r.finish()
	}
	return nil
}

// sums ends the round, if the parts that have come are enough.
func (r *oneshotCoordinator) sums() error {
	parts := 0
	for _, waiting := range r.pending {
		if waiting != nil && len(waiting) == 0 {
			parts++
		}
	}
	late := time.Since(r.since) > r.StepTime
	if parts == r.tried && !late || !r.over() {
		return nil
	}
	r.tried = parts
	sum, err := r.sum()
	switch {
	case err == nil:
		return r.apply(sum)
	case late, errors.Is(err, oneshot.ErrNoise), errors.Is(err, oneshot.ErrCover):
		return r.lose(err)
	case errors.Is(err, oneshot.ErrTooFew), errors.Is(err, oneshot.ErrParts):
		return nil // more parts may come
	default:
		return r.lose(err)
	}
}

func (r *oneshotCoordinator) sum() ([]int64, error) {
	if r.Plan.Oneshot().Covered {
		for _, party := range r.server.Included() {
			err := r.server.Uncover(r.covered[party])
			if err != nil && !errors.Is(err, oneshot.ErrDuplicate) {
				return nil, err
			}
		}
	}
	return r.server.Sum()
}

// apply makes the next model from a sum.
func (r *oneshotCoordinator) apply(sum []int64) error {
	out := Round{Number: r.round, Parties: r.server.Included(), Broadcast: BroadcastDigest(r.begin)}
	values := signed.Ring(r.Plan.Layout(), sum)
	var err error
	if out.Sum, err = masking.FromValues(r.Plan.Layout(), values...); err != nil {
		return err
	}
	var next weights
	if !r.Plan.Trains() {
		out.Mean, err = r.Plan.Decode(r.begin, values, len(out.Parties))
	}
	if err == nil {
		next, err = r.nextModel(out, r.model)
	}
	if err != nil {
		return r.lose(err)
	}
	r.adopt(next)
	r.inRow = 0
	if err := r.tell(phaseIdle, false); err != nil {
		return err
	}
	r.report(Event{Kind: Summed, Round: r.round, Parties: out.Parties})
	return nil
}

// finish sends the last model to all who are there.
func (r *oneshotCoordinator) finish() error {
	r.stalled = r.inRow == mostLost || r.lost > 0 && uint64(r.lost) == r.round
	last := broadcast{round: r.round, model: r.model}
	var err error
	if r.begin, err = last.bytes(); err != nil {
		return err
	}
	r.ended, r.first = true, time.Now()
	if err := r.save(); err != nil {
		return err
	}
	for _, h := range []*hub{r.hub, r.members} {
		for i := range h.parties {
			h.send(i, r.last())
		}
	}
	return nil
}

// last is the last frame of a connection.
func (r *oneshotCoordinator) last() []byte {
	if r.stalled && uint64(r.lost) == r.round {
		return withoutSum()
	}
	return frame(frameEnd, r.begin)
}

// oneshotState holds what a coordinator with a committee saves beside what earlierState has.
type oneshotState struct {
	Phase   phase
	Server  []byte // of oneshot.Server.Save
	Pending [][]pending
	Away    []bool         // members that are out of the round: gob has no nil slices
	Kept    map[int][]byte // submissions, if covered
}

func (r *oneshotCoordinator) save() error {
	if r.vault == nil {
		return nil
	}
	server, err := r.server.Save(r.Key)
	if err != nil {
		return err
	}
	state := oneshotState{Phase: r.phase, Server: server, Pending: r.pending, Kept: r.covered}
	for _, waiting := range r.pending {
		state.Away = append(state.Away, waiting == nil)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(state); err != nil {
		return err
	}
	if err := r.keepModel(); err != nil {
		return err
	}
	out := earlierState{
		Kept:      r.leader.kept,
		Round:     r.round,
		Lost:      r.lost,
		Begin:     r.begin,
		Ended:     r.ended,
		InRow:     r.inRow,
		Stalled:   r.stalled,
		Committee: b.Bytes(),
	}
	if r.ledger != nil {
		if out.Ledger, err = r.ledger.MarshalJSON(); err != nil {
			return err
		}
	}
	b = bytes.Buffer{}
	if err := gob.NewEncoder(&b).Encode(out); err != nil {
		return err
	}
	return r.vault.save(b.Bytes())
}

func (r *oneshotCoordinator) load() error {
	saved, err := r.loadCommon()
	if err != nil {
		return err
	}
	r.pending = make([][]pending, r.Plan.Oneshot().Committee.Len())
	r.submitted, r.covered = make(map[int]bool), make(map[int][]byte)
	r.since, r.opened = time.Now(), time.Now()
	if saved == nil {
		r.server, err = oneshot.NewServer(r.Plan.Oneshot(), 0)
		return err
	}
	var state oneshotState
	if err := gob.NewDecoder(bytes.NewReader(saved)).Decode(&state); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if r.server, err = oneshot.LoadServer(r.Plan.Oneshot(), 0, r.Key, state.Server); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	r.phase = state.Phase
	for k := range r.pending {
		if k < len(state.Away) && !state.Away[k] {
			r.pending[k] = append([]pending{}, state.Pending[k]...)
		}
	}
	for party, message := range state.Kept {
		r.covered[party] = message
	}
	return nil
}

// loadCommon loads what has nothing to do with the committee, and returns what has: an
// oneshotState, nil if nothing was saved.
func (r *oneshotCoordinator) loadCommon() (committee []byte, err error) {
	if r.ledger, err = r.Plan.Ledger(); err != nil {
		return nil, err
	}
	b, err := r.open()
	if err != nil {
		return nil, err
	}
	var state earlierState
	if b != nil {
		if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&state); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	if err := r.loadModel(state.Kept); err != nil || b == nil {
		return nil, err
	}
	r.round, r.lost, r.begin = state.Round, state.Lost, state.Begin
	r.ended, r.inRow, r.stalled = state.Ended, state.InRow, state.Stalled
	if r.ledger != nil {
		if err := r.ledger.UnmarshalJSON(state.Ledger); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	return state.Committee, nil
}

// spend returns the ledger as it is after one more round with all, nil without noise: who will
// submit is not known yet. It fails with accounting.ErrBudget if the round would take one over
// its budget.
func (r *oneshotCoordinator) spend() (*accounting.Ledger, error) {
	if r.ledger == nil {
		return nil, nil
	}
	after := r.ledger.Clone()
	return after, after.SpendRound(r.Plan.Round(), r.names...)
}
