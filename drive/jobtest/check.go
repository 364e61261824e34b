package jobtest

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
)

// This file has what must hold whatever happens.

// seen holds what a world has seen of its server.
type seen struct {
	saved   drive.Recorded
	number  uint64 // the highest that was saved
	skipped uint64 // rounds that the server has skipped since, having been set back
	tells   int
	charged map[uint64]map[string]int // by round of the job: who was charged when it began
	begun   []int                     // parties of the round that the server says it has begun last
	digest  uint64                    // of all messages that arrived
	flying  int                       // messages, and work, that are under way
	able    func() bool               // enough parties for a round are here, and well; nil: who knows
}

// seenOfParty holds what a world has seen of a party.
type seenOfParty struct {
	taken, asked, sent int
	items              map[string]uint64  // digests of what it was handed, by name
	messages           map[message]uint64 // digests of what it has sent
	made               uint64             // round of the job of the last submission
	rounds             map[message]uint64 // of submissions, of the job
	released           map[uint64]message // submissions that left, by round of the job
	joined             uint64             // the highest number that it was asked to join
}

// message names a party's message: it makes one of each.
type message struct {
	session [32]byte
	round   uint64
	kind    wire.Type
}

func digestOf(parts ...[]byte) uint64 {
	h := fnv.New64a()
	for _, b := range parts {
		h.Write(b)
	}
	return h.Sum64()
}

// trace notes a message that has arrived.
func (w *World) trace(b []byte) {
	w.seen.digest = w.seen.digest*1099511628211 ^ digestOf(b)
}

// checkSaved checks a state that has become durable against the one before.
func (w *World) checkSaved(state []byte) {
	was, now := w.seen.saved, w.parse(state)
	switch {
	case now.Round > w.options.Rounds || now.Round < was.Round,
		now.Round > was.Round+1+w.seen.skipped:
		w.Fatal("round %d of %d follows round %d", now.Round, w.options.Rounds, was.Round)
	case now.Lost > now.Round || now.Lost < was.Lost:
		w.Fatal("%d rounds of %d are lost, after %d", now.Lost, now.Round, was.Lost)
	case was.Ended != "" && now.Ended != was.Ended:
		w.Fatal("the job goes on after it has ended")
	}
	present, forming := now.Sessions[0].Number, now.Sessions[1].Number
	switch {
	case present != 0 && present != was.Sessions[0].Number && present != was.Sessions[1].Number:
		w.Fatal("session %d takes over from %v", present, was.Sessions)
	case forming != 0 && forming <= present, max(present, forming) > protocol.MaxNumber:
		w.Fatal("sessions %v", now.Sessions)
	case forming != 0 && forming != was.Sessions[1].Number && forming <= w.seen.number:
		w.Fatal("session %d forms after session %d", forming, w.seen.number)
	}
	w.seen.number = max(w.seen.number, forming)
	w.checkCharged(was, now)
	w.seen.saved, w.seen.skipped = now, 0
}

func (w *World) parse(state []byte) drive.Recorded {
	var saved struct{ Job drive.Recorded }
	if err := gob.NewDecoder(bytes.NewReader(state)).Decode(&saved); err != nil {
		w.Fatal("a saved state: %v", err)
	}
	return saved.Job
}

// checkCharged checks that a round is charged in the state that begins it, and nothing else is.
func (w *World) checkCharged(was, now drive.Recorded) {
	if w.limits.Ledger == nil {
		return
	}
	before, after := w.accounts(was.Ledger), w.accounts(now.Ledger)
	if now.Round == was.Round {
		if !maps.Equal(before, after) {
			w.Fatal("accounts go from %v to %v, and no round began", before, after)
		}
		return
	}
	charged := make(map[string]int)
	for name, n := range after {
		if n > w.options.Budget || n > before[name]+1 {
			w.Fatal("accounts go from %v to %v in a round", before, after)
		}
		if n > before[name] {
			charged[name] = n
		}
	}
	for i := range w.Parties { // rounds that are skipped are charged to all
		want := w.seen.skipped > 0 || slices.Contains(w.seen.begun, i)
		if want != (charged[w.config.Roster.Name(i)] > 0) {
			w.Fatal("round %d of %v is charged to %v", now.Round, w.seen.begun, charged)
		}
	}
	w.seen.charged[now.Round] = charged
}

// accounts returns how many rounds each party was charged for.
func (w *World) accounts(ledger []byte) map[string]int {
	var in struct {
		Accounts map[string][]struct{ Count int }
	}
	if ledger == nil {
		return nil
	}
	if err := json.Unmarshal(ledger, &in); err != nil {
		w.Fatal("%v", err)
	}
	out := make(map[string]int)
	for name, entries := range in.Accounts {
		for _, e := range entries {
			out[name] += e.Count
		}
	}
	return out
}

// checkDurable checks that what is handed out follows from what is durable: a server that is
// loaded now hands it out too. It takes long, and is done for some of the decisions.
func (w *World) checkDurable() {
	s := w.Server
	if w.seen.tells++; w.seen.tells%4 != 0 || s.disk.state == nil {
		return
	}
	loaded, err := s.load()
	if err != nil {
		w.Fatal("the server does not load: %v", err)
	}
	for _, p := range w.Parties {
		if p.remote == 0 {
			continue
		}
		hello := p.hello
		hello.Sessions = slices.Clone(hello.Sessions)
		for _, x := range w.seen.saved.Sessions {
			hello.Sessions = append(hello.Sessions, x.Number)
		}
		loaded.Connected(s.Now(), p.peer(), hello)
		knows := make(map[string]uint64)
		for item := range loaded.Pending(p.peer()) {
			knows[item.Name] = digestOf(item.Shared, item.Own)
		}
		for item := range s.drive.Pending(p.peer()) {
			if d, known := knows[item.Name]; !known || d != digestOf(item.Shared, item.Own) {
				w.Fatal("%s for party %d would not survive a crash", item.Name, p.index)
			}
		}
	}
}

// checkAwake checks that the server does not wait for nothing: with enough parties that are well,
// and no message under way, it has something to do at some time.
func (w *World) checkAwake(wake drive.Time) {
	if wake < drive.Never || w.seen.able == nil || w.seen.flying > 0 {
		return
	}
	st := w.Server.Status()
	if st.Ended == "" && !st.Paused && st.Stage != drive.Applying && w.seen.able() {
		w.Fatal("the server waits for ever: %+v", st)
	}
}

// checkItem checks something that is handed to a party.
func (p *Party) checkItem(item drive.Item) {
	w := p.world
	d := digestOf(item.Own)
	if was, ok := p.seen.items[item.Name]; ok && was != d {
		w.Fatal("%s for party %d is not what it was", item.Name, p.index)
	}
	p.seen.items[item.Name] = d
	switch {
	case item.Kind == drive.Last:
		if w.seen.saved.Ended == "" {
			w.Fatal("party %d hears of an end that is not durable", p.index)
		}
	case item.Kind == drive.Join && item.Session < p.seen.joined:
		w.Fatal("party %d is to join %d after %d", p.index, item.Session, p.seen.joined)
	case item.Kind == drive.Join:
		p.seen.joined = item.Session
	}
	if item.Session > protocol.MaxNumber || item.Round > w.options.Rounds {
		w.Fatal("party %d gets %d of session %d", p.index, item.Round, item.Session)
	}
	if len(p.seen.items) > 100*int(w.options.Rounds+1) {
		w.Fatal("party %d got %d items", p.index, len(p.seen.items))
	}
}

// checkSent checks a message that leaves a party.
func (p *Party) checkSent(h wire.Header, b []byte) {
	w := p.world
	m, d := message{h.Session, h.Round, h.Type}, digestOf(b)
	if was, ok := p.seen.messages[m]; ok && was != d {
		w.Fatal("party %d sends two messages of type %v, round %d", p.index, h.Type, h.Round)
	}
	p.seen.messages[m] = d
	p.seen.sent++
	if p.seen.sent > p.seen.taken+p.seen.asked+3*p.links {
		w.Fatal("party %d sent %d messages, got %d and %d questions in %d connections", p.index,
			p.seen.sent, p.seen.taken, p.seen.asked, p.links)
	}
	if h.Type == wire.TypeMasked {
		p.checkReleased(m)
	}
}

// checkReleased checks a submission that leaves a party: it is counted in what is durable.
func (p *Party) checkReleased(m message) {
	w := p.world
	round, known := p.seen.rounds[m]
	if other, again := p.seen.released[round]; !known || again && other != m {
		w.Fatal("party %d submits in round %d again", p.index, round)
	}
	p.seen.released[round] = m
	var state struct{ Guard struct{ Last, Count uint64 } }
	if err := gob.NewDecoder(bytes.NewReader(p.state)).Decode(&state); err != nil {
		w.Fatal("party %d: %v", p.index, err)
	}
	released := uint64(len(p.seen.released))
	switch {
	case round == 0 || round > w.options.Rounds || state.Guard.Last < round:
		w.Fatal("party %d submits in round %d, and has counted %d", p.index, round, state.Guard.Last)
	case released > state.Guard.Count:
		w.Fatal("party %d has released %d, and counted %d", p.index, released, state.Guard.Count)
	case w.options.Budget > 0 && released > uint64(w.options.Budget):
		w.Fatal("party %d has released %d", p.index, released)
	}
	if w.options.Budget > 0 && w.seen.charged[round][w.config.Roster.Name(p.index)] == 0 {
		w.Fatal("party %d submits in round %d, which it was not charged for", p.index, round)
	}
}
