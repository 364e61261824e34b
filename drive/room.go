package drive

import "slices"

// This file has how long a step waits, which follows from what peers do: a step is over once
// all have answered, or nobody that has not is both here and still has patience left, and those
// that have gone had the time to come back.

// peer holds what a server knows of a party, or of a member, and does not save.
type peer struct {
	connected bool
	here      bool     // connected, or heard of within Away
	near      bool     // connected, or heard of within Away and ComeBack: steps wait for it
	seen      Time     // last, if not connected
	known     bool     // it has been here since the server was made, or was last let in again
	came      Time     // for the first time since then
	expected  Time     // until when a party that has gone may come back
	sessions  []uint64 // that it has keys for
	least     uint64   // number of a session that it may join, by its word
	doubted   bool     // it has told once that the number of a session that formed is too low
	told      uint64   // last round that it knows of, by its word
	absent    uint64   // round that it does not submit in
	passed    uint64   // round of which it let a step pass
}

// room knows who of some peers is here, and has learned of their ways.
type room struct {
	limits  *Settings
	peers   []peer
	learned learned
	sweep   Time
	came    int  // peers that have been here since the server was made
	enough  int  // of these, for the first round of a job; 0: others take part in a later round
	late    Time // until then that round waits for peers that have not come
}

func newRoom(limits *Settings, n int, now Time) room {
	r := room{limits: limits, peers: make([]peer, n), sweep: Never}
	if limits.Away > 0 {
		r.sweep = now + max(1, limits.linger()/4)
	}
	return r
}

// expect has steps wait for so long for peers that are not here: nobody was let in before.
func (r *room) expect(now, span Time) {
	r.came = 0
	for i := range r.peers {
		p := &r.peers[i]
		switch {
		case !p.near:
			p.known, p.expected = false, now.after(span)
		case !p.connected:
			p.seen = now
		}
		if p.known {
			r.came++
		}
	}
}

// arm has the first round of a job wait for the peers that have not come yet, for StepTime once
// enough have: programs that are started at once do not come at once. Later rounds go on without.
func (r *room) arm(enough int) {
	if r.limits.BeginWith == 0 && r.limits.StepTime < Never {
		r.enough = enough
	}
}

// arrive counts a peer as here, and near. It reports whether it was not here.
func (r *room) arrive(i int, now Time) (came bool) {
	p := &r.peers[i]
	switch {
	case p.near:
	case p.known:
		r.learned.cameBack(now - p.seen)
	default:
		p.came = now
		if r.came++; r.came == r.enough {
			r.late = now.after(r.limits.StepTime)
		}
	}
	came = !p.here
	p.here, p.near, p.known = true, true, true
	return came
}

// parted returns how many peers are here that are not left out, and who is not here of these.
func (r *room) parted(f *faults) (here int, missing []int) {
	for i := range r.peers {
		switch {
		case f.excluded(i):
		case r.peers[i].here:
			here++
		default:
			missing = append(missing, i)
		}
	}
	return here, missing
}

// fade counts a peer as gone for the step that is under way.
func (r *room) fade(i int) {
	if p := &r.peers[i]; p.near {
		p.near, p.expected = false, max(p.expected, p.seen+r.learned.back(r.limits))
	}
}

// leave counts a peer as gone, and reports whether it was here.
func (r *room) leave(i int) (went bool) {
	r.fade(i)
	p := &r.peers[i]
	went, p.here = p.here, false
	return went
}

// sweepAway calls gone with those who have not been heard of for long enough, and likely with
// those for whom steps do not wait any more.
func (r *room) sweepAway(now Time, gone, likely func(i int)) {
	if now < r.sweep {
		return
	}
	linger := r.limits.linger()
	r.sweep = now + max(1, linger/4)
	for i := range r.peers {
		p := &r.peers[i]
		if p.here && !p.connected && now >= p.seen+r.limits.Away {
			gone(i)
		} else if p.near && !p.connected && now >= p.seen+linger {
			likely(i)
		}
	}
}

// beyond returns the largest number that more parties than the given number of liars tell or
// exceed; 0 if there are too few parties.
func (r *room) beyond(liars int, tell func(p *peer) uint64) uint64 {
	if liars >= len(r.peers) {
		return 0
	}
	told := make([]uint64, len(r.peers))
	for i := range r.peers {
		told[i] = tell(&r.peers[i])
	}
	slices.Sort(told)
	return told[len(told)-1-liars]
}

// waiting is whom a session waits for, in its stage.
type waiting struct {
	fresh    bool // Advance has not been called since the stage began
	since    Time // the stage began, as parties know
	heard    Time // the last answer; 0: none
	awaited  int  // parties that have not answered
	blocking int  // of these, parties that the step does wait for
	marks    []mark
	recheck  Time // when somebody's patience ends
	told     bool // who is waited for was reported
	looked   bool // for parties that have not come yet, to report them
	stuck    bool // the step cannot end with what there is
	before   int  // parties that had answered before the step began
	delays   []Time
	took     []Time // for how long it has waited for each peer, once it does not any more
}

// anew has a step's time count from now on. Who has let the step pass before has done so.
func (w *waiting) anew(now Time) { w.since, w.heard, w.told, w.looked = now, 0, false, false }

// mark says what a party is for a session's step.
type mark uint8

const (
	markAwaited mark = 1 << iota
	markBlocking
	markPassed // it has let the step pass
)

// claims says of a step what does not follow from who is here.
type claims interface {
	awaits(i int) bool // an answer of the peer is due
	able(i int) bool   // it has what it takes to answer
	passed(i int) bool // it has let an earlier step pass, and this one does not wait for it
	// begins returns when the step begins for a peer that cannot answer from the start: [Never] if
	// that is not known, 0 for others.
	begins(i int) Time
	patience(i int) Time
	spare() Time // of the step's time that anybody may take
	stall(i int) // it has let the step pass
	// share is the part of what a step took that it waits longer, for those who are gone.
	share() Time
	// enough reports whether the step succeeds with those who have answered, and whether it is
	// soon over then.
	enough() (is, soon bool)
}

// markAll finds out anew whom a step waits for, and who has let it pass.
func (r *room) markAll(w *waiting, now Time, c claims) {
	w.awaited, w.blocking, w.recheck, w.stuck = 0, 0, Never, false
	if w.marks == nil {
		w.marks, w.took = make([]mark, len(r.peers)), make([]Time, len(r.peers))
	}
	for i := range r.peers {
		w.marks[i] &= markPassed
		r.markOne(w, now, c, i)
	}
}

func (r *room) markOne(w *waiting, now Time, c claims, i int) {
	next := r.markOf(w, now, c, i)
	was := w.marks[i]
	if next == was {
		return
	}
	if w.marks[i] = next; was&markBlocking != 0 && next&markBlocking == 0 {
		w.took[i] = max(w.took[i], now-r.from(w, c, i))
	}
	w.awaited += int(next&markAwaited) - int(was&markAwaited)
	w.blocking += int(next&markBlocking)/int(markBlocking) - int(was&markBlocking)/int(markBlocking)
}

func (r *room) markOf(w *waiting, now Time, c claims, i int) mark {
	p := &r.peers[i]
	switch {
	case !c.awaits(i):
		return 0
	case w.marks[i]&markPassed != 0:
		return markAwaited | markPassed
	case !p.near || !c.able(i) || c.passed(i):
		return markAwaited
	}
	if ends := r.from(w, c, i).after(c.patience(i)); w.fresh || now < ends {
		w.recheck = min(w.recheck, ends)
		return markAwaited | markBlocking
	}
	c.stall(i)
	return markAwaited | markPassed
}

// from returns since when a step waits for a peer. One that was not here yet since the server was
// loaded has not let anything pass until it came.
func (r *room) from(w *waiting, c claims, i int) Time {
	return max(w.since, r.peers[i].came, c.begins(i))
}

// until returns when the time ends that a step has for those it waits for, 0 if it waits for
// nobody.
func (r *room) until(w *waiting, now Time, c claims) (latest Time) {
	for i, m := range w.marks {
		p := &r.peers[i]
		switch {
		case m&markBlocking != 0:
			latest = max(latest, r.from(w, c, i).after(c.patience(i)))
		case m&markAwaited != 0 && !p.known && now < max(p.expected, r.late):
			latest = max(latest, p.expected, r.late)
		}
	}
	return latest
}

// patience is how long a step waits for a peer that is here: StepTime, less what the peer has used
// of it in earlier steps, beyond what anybody may take; and less than that for one that has let a
// step pass not long ago.
func (r *room) patience(f *faults, i int, round uint64, stage Stage, spare Time) Time {
	usual := r.learned.usual(stage)
	if f.stalling(i, round) && usual > 0 {
		return min(max(r.limits.Floor, 4*usual), r.limits.StepTime)
	}
	left := max(0, r.limits.StepTime-f.of[i].Used)
	return min(r.free(stage, spare).after(left), r.limits.StepTime)
}

// free is how long anybody may take in a step without using up patience.
func (r *room) free(stage Stage, spare Time) Time {
	return min(max(r.limits.Floor, 4*r.learned.usual(stage), spare), r.limits.StepTime)
}

// use learns from a step that is over how long answers take, and counts against each peer how
// long the step has waited for it beyond that. So who answers just in time, or goes in place of
// that, uses up its patience, and has let a step pass when that is gone.
func (r *room) use(w *waiting, stage Stage, f *faults, c claims) {
	free := r.free(stage, c.spare())
	r.learned.ended(w, stage)
	free = max(free, r.free(stage, c.spare()))
	for i, took := range w.took {
		if w.marks[i]&markPassed == 0 && took > free && free < r.limits.StepTime {
			f.of[i].Used += took - free
		}
	}
}

// over reports whether a step need not wait any longer, and whether it is time to tell whom it
// waits for.
func (r *room) over(w *waiting, now Time, c claims) (over, tell bool) {
	if w.fresh && w.awaited > 0 {
		return false, false // its time has not begun
	}
	if w.blocking > 0 && now >= w.recheck {
		r.markAll(w, now, c)
	}
	if r.mayTell(w, now) && now >= w.since+r.untold() {
		w.looked, w.told = true, len(r.waitedFor(w, now)) > 0
		tell = w.told
	}
	switch {
	case w.stuck:
		return false, tell
	case w.awaited == 0:
		return true, tell
	}
	return w.blocking == 0 && now >= r.quiet(w, c), tell
}

// mayTell reports whether somebody may be waited for of whom nobody was told.
func (r *room) mayTell(w *waiting, now Time) bool {
	return !w.told && (w.blocking > 0 || !w.looked && now < r.late)
}

// untold returns how long a step waits for somebody before that is reported.
func (r *room) untold() Time { return min(r.limits.StepTime/4, longestTold) }

// waitedFor lists the peers that a step does wait for.
func (r *room) waitedFor(w *waiting, now Time) (out []int) {
	for i, m := range w.marks {
		if m&markBlocking != 0 || m&markAwaited != 0 && !r.peers[i].known && now < r.late {
			out = append(out, i)
		}
	}
	return out
}

// quiet is the time until which a step waits for peers that are not here: they may be coming
// back, and while others take long to answer they may do so too. A round that has enough without
// them is not lost for want of them, and waits for a second, or half as long again as it took, at
// most.
func (r *room) quiet(w *waiting, c claims) Time {
	last := max(w.since, w.heard)
	// A step that was stuck may have begun long ago.
	took := min(last-w.since, r.limits.StepTime)
	least := last + max(r.limits.Floor, took/c.share())
	enough, soonEnough := c.enough()
	soon := Never
	if soonEnough {
		soon = last + max(20*r.limits.Floor, took/2)
	}
	until := last
	for i, m := range w.marks {
		p := &r.peers[i]
		switch {
		case m&markAwaited == 0 || p.near && (enough || !c.able(i)):
		case p.near: // it may let the step pass only where that goes on without it
			until = max(until, w.since.after(r.limits.StepTime))
		case p.known:
			until = max(until, least, min(p.expected, soon))
		default: // it is on its way to a server that was just started, or to the first round
			until = max(until, least, p.expected, r.late)
		}
	}
	return until
}

// wake returns when a step may be over.
func (r *room) wake(w *waiting, now Time, c claims) Time {
	switch {
	case w.stuck:
		return Never
	case w.awaited == 0:
		return now
	}
	wake := w.recheck
	if w.blocking == 0 {
		wake = r.quiet(w, c)
	}
	if r.mayTell(w, now) {
		wake = min(wake, w.since+r.untold())
	}
	return wake
}

// linger returns how long a step waits for a party that was heard of and is not connected. A server
// that is busy with thousands of parties hears of each less often than that, and holds rounds
// among all of them: they are here for longer.
func (c *Settings) linger() Time { return min(c.Away, c.ComeBack) }

// learned holds what a server has seen of the parties' ways.
type learned struct {
	absences []Time             // of those who came back, the last few; not saved
	median   [Applying + 1]Time // of the time that an answer took, last
}

// mostAbsences is how many absences are remembered.
const mostAbsences = 64

// cameBack notes how long somebody was gone.
func (l *learned) cameBack(after Time) {
	if len(l.absences) == mostAbsences {
		l.absences = slices.Delete(l.absences, 0, 1)
	}
	l.absences = append(l.absences, after)
}

// back is how long somebody who has gone is expected: as long as nine of ten who came back took,
// and no longer than a carrier's next try.
func (l *learned) back(c *Settings) Time {
	if len(l.absences) < 10 {
		return min(c.ComeBack, c.StepTime/10)
	}
	sorted := slices.Sorted(slices.Values(l.absences))
	return min(sorted[9*(len(sorted)-1)/10], c.ComeBack)
}

// answered notes an answer of a step.
func (l *learned) answered(w *waiting, now Time) {
	w.heard = now
	w.delays = append(w.delays, now-w.since)
}

// ended learns from a step that is over. Those that had answered before it count too, so that no
// few others decide how long answers take.
func (l *learned) ended(w *waiting, stage Stage) {
	if len(w.delays) == 0 {
		return
	}
	slices.Sort(w.delays)
	l.median[stage] = 1
	if middle := (w.before+len(w.delays))/2 - w.before; middle >= 0 {
		l.median[stage] = max(1, w.delays[middle])
	}
}

// usual is how long half of the answers of a step take, or those of the slowest step that is known;
// 0: of none.
func (l *learned) usual(stage Stage) Time {
	if l.median[stage] > 0 {
		return l.median[stage]
	}
	return slices.Max(l.median[:])
}
