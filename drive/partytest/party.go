package partytest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// party is one party with its store and its program, and what the observer knows of it.
type party struct {
	world  *World
	index  int
	config drive.PartSettings
	drive  drive.Part // nil: the process has ended
	cast   *broadcast // the last that came
	asks   []question
	asked  []question // that were ever asked

	// The store, which never goes back.
	state  []byte
	object []byte   // the submission
	kept   [32]byte // its digest, of the state
	known  counts   // what the state counts

	// The observer's.
	last     counts // what the party counted when it was last looked at
	messages map[messageID][32]byte
	numbers  map[uint64][32]byte // announcements
	job      map[[32]byte]uint64 // round of the job of a submission, by digest
	released []uint64            // rounds of the job of submissions that left
	vectors  map[[32]byte]*masking.Vector
	filled   *broadcast // of the last vector that was asked for
}

// question is an Ask, and the broadcast that the program works with.
type question struct {
	drive.Ask
	cast *broadcast
}

// counts never fall.
type counts struct{ count, last, least uint64 }

func (a counts) below(b counts) bool {
	return a.count < b.count || a.last < b.last || a.least < b.least
}

func countsOf(p drive.Part) counts {
	guard := p.Guard()
	return counts{guard.Count(), guard.Last(), p.Hello().Least}
}

type messageID struct {
	session [32]byte
	round   uint64
	kind    wire.Type
}

// load makes the party of its durable state.
func (p *party) load() drive.Part {
	var d drive.Part
	var err error
	if p.state == nil {
		d, err = drive.NewPart(p.config)
	} else {
		d, err = drive.LoadPart(p.config, &p.world.key, p.state)
	}
	if err != nil {
		p.world.fatal("party %d does not load: %v", p.index, err)
	}
	if now := countsOf(d); now.below(p.known) {
		p.world.fatal("party %d: %+v was durable, it comes back with %+v", p.index, p.known, now)
	}
	return d
}

// start starts the process.
func (p *party) start() {
	if p.messages == nil {
		p.messages = make(map[messageID][32]byte)
		p.numbers = make(map[uint64][32]byte)
		p.job = make(map[[32]byte]uint64)
		p.vectors = make(map[[32]byte]*masking.Vector)
	}
	p.world.seen.Loads++
	p.drive = p.load()
	p.last = countsOf(p.drive)
	p.drive.Connected()
	p.proceed()
}

// kill ends the process: nothing is left but the store.
func (p *party) kill() {
	if p.drive == nil {
		return
	}
	p.world.note("party %d is killed", p.index)
	p.world.seen.Kills++
	p.drive.Erase()
	p.drive, p.asks, p.cast = nil, nil, nil
}

// lose loses the state, and has the operator say so, who knows numbers of the coordinator's.
func (p *party) lose() {
	if p.known == (counts{}) || p.world.choices.IntN(4) > 0 {
		return
	}
	p.kill()
	p.world.note("party %d loses its state of %+v", p.index, p.known)
	p.config.Least, p.config.Spent = max(p.config.Least, p.known.least), p.known.last
	p.state, p.object = nil, nil
}

// killing is of how many places in the handling of an event a party survives all but one.
const killing = 40

// killed kills the process now and then.
func (p *party) killed() bool {
	w := p.world
	if p.index >= w.tested || w.kills == 0 || w.choices.IntN(killing) > 0 {
		return false
	}
	w.kills--
	p.kill()
	return true
}

// proceed does what the party has decided, as a carrier does.
func (p *party) proceed() {
	w := p.world
	for p.drive != nil {
		r, decided := p.drive.Ready()
		if !decided {
			return
		}
		for _, report := range r.Reports {
			p.reported(report)
		}
		if r.Save {
			saved, err := p.drive.Save(&w.key)
			if err != nil {
				w.fatal("party %d: %v", p.index, err)
			}
			for _, o := range saved.Objects {
				digest := p.submitted(o.Body)
				if p.killed() {
					return
				}
				p.object = bytesOf(w, o.Body)
				if p.killed() {
					return
				}
				p.kept = digest
			}
			p.state, p.known = saved.State, countsOf(p.drive)
			if p.killed() {
				return
			}
		}
		out := p.drive.Advance()
		p.durable(out)
		for _, away := range out.Away {
			if w.honest {
				w.fatal("party %d is absent from round %d: %s", p.index, away.Number, away.Cause)
			}
		}
		if out.Ask != nil {
			q := question{*out.Ask, p.cast}
			p.asks, p.asked = append(p.asks, q), append(p.asked, q)
		}
		for _, m := range out.Send {
			if p.killed() {
				return
			}
			p.send(m)
		}
	}
}

func (p *party) reported(r drive.Report) {
	w := p.world
	w.note("party %d: %+v", p.index, r)
	switch r.Kind {
	case drive.Declined:
		w.seen.Declined++
		if !errors.Is(r.Err, drive.ErrRound) && !errors.Is(r.Err, drive.ErrRepeated) &&
			!errors.Is(r.Err, drive.ErrSpent) {
			w.fatal("party %d declines: %v", p.index, r.Err)
		}
	case drive.Refused:
		w.seen.Refused++
	case drive.Joined, drive.TookOver, drive.Missed, drive.Late, drive.Submitted:
		return
	}
	if w.honest {
		// Of an honest coordinator only what comes a second time is refused.
		if !errors.Is(r.Err, protocol.ErrStale) {
			w.fatal("party %d: %+v of an honest coordinator", p.index, r)
		}
	}
}

func bytesOf(w *World, s io.WriterTo) []byte {
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		w.fatal("%v", err)
	}
	return b.Bytes()
}

// submitted notes which round of the job a submission is for.
func (p *party) submitted(s io.WriterTo) [32]byte {
	digest := sha256.Sum256(bytesOf(p.world, s))
	p.job[digest] = p.filled.round
	return digest
}

// durable checks that the party which its durable state makes knows all that leaves for the
// first time.
func (p *party) durable(out drive.Out) {
	w := p.world
	var known []drive.Message
	for _, m := range out.Send {
		h, _, _ := wire.ParseHeader(m.Bytes)
		digest := sha256.Sum256(m.Bytes)
		if p.messages[messageID{h.Session, h.Round, h.Type}] == digest {
			continue
		}
		if known == nil {
			again := p.load()
			again.Connected()
			again.Ready()
			known = again.Advance().Send
			again.Erase()
		}
		found := slices.ContainsFunc(known, func(k drive.Message) bool {
			return k.Session == m.Session && bytes.Equal(k.Bytes, m.Bytes) &&
				(k.Bytes == nil) == (m.Bytes == nil)
		})
		if !found {
			w.fatal("party %d sends a message of session %d that its durable state does not know",
				p.index, m.Session)
		}
		s := p.drive.Object(drive.SubmissionName)
		if m.Bytes != nil || s == nil {
			continue
		}
		if digest := sha256.Sum256(bytesOf(w, s)); digest != p.kept || p.known.last < p.job[digest] {
			w.fatal("party %d sends a submission for round %d, and round %d is durable", p.index,
				p.job[digest], p.known.last)
		}
	}
}

// send carries a message to the coordinator, before the observer's eyes.
func (p *party) send(m drive.Message) {
	w := p.world
	message := m.Bytes
	if message == nil {
		if s := p.drive.Object(drive.SubmissionName); s != nil {
			message = bytesOf(w, s)
		} else if sha256.Sum256(p.object) == p.kept {
			message = p.object
		} else {
			return // it was replaced, and the state was not
		}
	}
	h, _, err := wire.ParseHeader(message)
	if err != nil || h.Sender != uint32(p.index) {
		w.fatal("party %d sends what is no message of its own: %v", p.index, err)
	}
	p.observe(h, m.Session, message)
	w.take(p.index, message)
}

// observe checks one message that leaves.
func (p *party) observe(h wire.Header, number uint64, message []byte) {
	w := p.world
	digest := sha256.Sum256(message)
	id := messageID{h.Session, h.Round, h.Type}
	before, repeated := p.messages[id]
	if repeated && before != digest {
		w.fatal("party %d sends two messages of type %v for round %d of session %d", p.index, h.Type,
			h.Round, number)
	}
	p.messages[id] = digest
	switch h.Type {
	case wire.TypeAnnounce:
		config, err := w.session(number).Digest()
		if err != nil || config != h.Session || number > protocol.MaxNumber {
			w.fatal("party %d announces session %d: %v", p.index, number, err)
		}
		if old, found := p.numbers[number]; found && old != digest {
			w.fatal("party %d makes keys for session %d twice", p.index, number)
		}
		p.numbers[number] = digest
	case wire.TypeMasked:
		if !repeated {
			p.release(digest)
		}
	}
}

// release checks a submission that leaves for the first time.
func (p *party) release(digest [32]byte) {
	w := p.world
	w.seen.Submissions++
	round, found := p.job[digest]
	if !found || round == 0 || round > w.limits.Rounds {
		w.fatal("party %d submits in round %d of %d", p.index, round, w.limits.Rounds)
	}
	if n := len(p.released); n > 0 && p.released[n-1] >= round {
		w.fatal("party %d submits in round %d after rounds %v", p.index, round, p.released)
	}
	p.released = append(p.released, round)
	if w.limits.Ledger != nil && w.certified(len(p.released)) > w.epsilon {
		w.fatal("party %d has spent %g in %d submissions, and may %g", p.index,
			w.certified(len(p.released)), len(p.released), w.epsilon)
	}
}

// check checks what must hold between two events.
func (w *World) check() {
	for i, p := range w.parties {
		if p.drive == nil {
			continue
		}
		now := countsOf(p.drive)
		if now.below(p.last) {
			w.fatal("party %d counts %+v after %+v", i, now, p.last)
		}
		p.last = now
		if n := uint64(len(p.released)); n > now.count || now.count > w.limits.Rounds {
			w.fatal("party %d: %d submissions have left, it counts %d of %d", i, n, now.count,
				w.limits.Rounds)
		}
	}
}

// vector returns what a program answers with.
func (p *party) vector(cast *broadcast) func(v *masking.Vector) error {
	return func(v *masking.Vector) error {
		p.filled = cast
		low := []uint64{1, uint64(p.index), cast.round}
		if err := v.Set(low, []uint64{uint64(cast.digest[0])<<56 | uint64(p.index)}); err != nil {
			return err
		}
		p.vectors[cast.digest] = v.Clone()
		return nil
	}
}

// answer has the program answer a question.
func (p *party) answer(q question) {
	if p.drive == nil || q.cast == nil {
		return
	}
	p.give(p.right(q))
}

// right is the answer that a program should give to a question.
func (p *party) right(q question) drive.Answer {
	return drive.Answer{
		ID:        q.ID,
		Round:     q.cast.round,
		Broadcast: q.cast.digest,
		Fill:      p.vector(q.cast),
	}
}

func (p *party) give(a drive.Answer) {
	if err := p.drive.Answer(a); err != nil {
		p.world.fatal("party %d: %v", p.index, err)
	}
	p.proceed()
}

// misanswer has the program answer otherwise than it should.
func (p *party) misanswer() {
	w := p.world
	if p.drive == nil || len(p.asked) == 0 {
		return
	}
	q := p.asked[len(p.asked)-1-w.choices.IntN(min(4, len(p.asked)))]
	if q.cast == nil {
		return
	}
	a := p.right(q)
	switch w.choices.IntN(6) {
	case 0: // late, or again
		p.give(a)
	case 1: // twice
		p.give(a)
		if p.drive != nil {
			p.give(a)
		}
	case 2:
		p.drive.Absent(q.ID, q.cast.round, errors.New("no data"))
		p.proceed()
	case 3: // it fails when it has written half
		a.Fill = func(v *masking.Vector) error {
			return errors.Join(v.Set([]uint64{9, 9, 9}, []uint64{9}), fmt.Errorf("no more data"))
		}
		p.give(a)
	case 4: // to another question
		a.ID.Session += uint64(w.choices.IntN(3)) - 1
		a.ID.Round += uint64(w.choices.IntN(3)) - 1
		p.give(a)
	case 5: // from another broadcast
		other := p.asked[w.choices.IntN(len(p.asked))].cast
		if other != nil {
			a.Broadcast, a.Round, a.Fill = other.digest, other.round, p.vector(other)
			p.give(a)
		}
	}
}
