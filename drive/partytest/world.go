// Package partytest runs parties of package drive in jobs whose coordinator cheats, and checks
// from outside what they let go. It is for tests.
package partytest

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/privacy"
	"github.com/hushsum/hushsum/protocol"
)

// Choices decide what happens next.
type Choices interface {
	// IntN returns a number from 0 to n-1.
	IntN(n int) int
}

// World is one job: parties with their stores and programs, and the coordinator.
type World struct {
	tb      testing.TB
	choices Choices
	random  io.Reader
	key     keyexchange.SealKey
	config  protocol.Config
	limits  drive.Limits
	epsilon float64 // 0 without noise
	parties []*party
	tested  int  // the first parties, this many, are killed and have bad programs
	honest  bool // the coordinator is
	kills   int  // that may still come

	jobs   []*server // sessions that go on: one, or as many as a cheating coordinator runs
	round  uint64    // of the job, the last that was begun
	number uint64    // of the last session
	casts  byte      // how many broadcasts there were
	queue  []post
	sent   []post // that were ever put in the queue
	saved  []image
	log    []string

	// Seen holds what the parties let go; see [World.Seen].
	seen Seen
}

// Seen counts what happened.
type Seen struct {
	Submissions, Sums, Kills, Loads, Declined, Refused int
}

// server is one session, on the coordinator's side.
type server struct {
	*protocol.Server
	number uint64
	cast   *broadcast // of the round that is open
}

// broadcast holds what a round of the job begins with.
type broadcast struct {
	round  uint64 // of the job
	digest [32]byte
}

// post is a message to a party, and what a carrier has with it.
type post struct {
	to      int
	message []byte // nil: a proposal of session number
	number  uint64
	round   uint64
	cast    *broadcast
}

// image is an earlier state of the coordinator.
type image struct {
	state  []byte
	number uint64
	cast   *broadcast
	round  uint64 // of the job
}

// budget limits what a party of a job with noise may spend.
type budget struct {
	parties, rounds int
}

// epsilon of every budget.
const epsilon = 1

// budgets caches the cost of a round, of which a given number fit.
var budgets sync.Map

func costOf(tb testing.TB, b budget) accounting.Round {
	tb.Helper()
	if cost, found := budgets.Load(b); found {
		return cost.(accounting.Round)
	}
	release := privacy.Release{
		Promise:   privacy.Assumed(b.parties, b.parties-1),
		Noise:     privacy.Noise{Family: accounting.FamilyDiscreteGaussian, Clip: 1, Bits: 30},
		Dimension: 4,
	}
	var err error
	release.Noise.Multiplier, err = release.Calibrate(privacy.Budget{Epsilon: epsilon}, b.rounds)
	if err != nil {
		tb.Fatal(err)
	}
	cost, err := release.Round()
	if err != nil {
		tb.Fatal(err)
	}
	budgets.Store(b, cost)
	return cost
}

// certified returns ε of a number of seen submissions, by an account of the observer's own.
func (w *World) certified(submissions int) float64 {
	type of struct {
		cost        accounting.Round
		submissions int
	}
	key := of{w.limits.Cost, submissions}
	if found, ok := budgets.Load(key); ok {
		return found.(float64)
	}
	spent, err := w.limits.Cost.Spent(accounting.ServerView, submissions, privacy.DefaultDelta)
	if err != nil {
		w.tb.Fatal(err)
	}
	budgets.Store(key, spent.Bare().Upper)
	return spent.Bare().Upper
}

// New makes a world by choices. The parties draw from random. The first parties, as many as
// tested says, are under test.
func New(tb testing.TB, choices Choices, seed uint64, tested int) *World {
	tb.Helper()
	var stream [32]byte
	stream[0], stream[1], stream[2] = byte(seed), byte(seed>>8), byte(seed>>16)
	w := &World{tb: tb, choices: choices, random: rand.NewChaCha8(stream), key: keyexchange.SealKey{7}}
	n := 3 + choices.IntN(2)
	recovery := &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 1, MinSurvivors: 2}
	if n == 4 {
		recovery = &protocol.Recovery{Threshold: 2, MinSurvivors: 3}
	}
	signers, roster := identities(tb, n)
	w.config = protocol.Config{
		Label:      "world",
		Roster:     roster,
		MinMembers: n - 1,
		Layout:     masking.Layout{{Length: 3, Bits: 16}, {Length: 1, Bits: 64}},
		Recovery:   recovery,
		Classical:  true,
	}
	w.limits.Rounds = uint64(1 + choices.IntN(4))
	if choices.IntN(2) == 1 {
		// Sometimes the budget ends before the count of rounds does.
		fit := 1 + choices.IntN(int(w.limits.Rounds)+1)
		w.limits.Cost, w.epsilon = costOf(tb, budget{n, fit}), epsilon
		ledger, err := privacy.Budget{Epsilon: epsilon}.Ledger(accounting.Statement{})
		if err != nil {
			tb.Fatal(err)
		}
		w.limits.Ledger = ledger
	}
	least := []uint64{0, 0, 0, 5, protocol.MaxNumber - 2}[choices.IntN(5)]
	w.number = max(least, 1) - 1
	w.tested = min(tested, n)
	for i, signer := range signers {
		p := &party{world: w, index: i, config: drive.PartSettings{
			Limits:   w.limits,
			Session:  w.session,
			Label:    w.config.Label,
			Identity: signer,
			Random:   w.random,
			Least:    least,
		}}
		w.parties = append(w.parties, p)
		p.start()
	}
	return w
}

func identities(tb testing.TB, n int) (signers []crypto.Signer, roster *keyexchange.Roster) {
	tb.Helper()
	var members []keyexchange.Entry
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "party %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprint("party-", i), Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		tb.Fatal(err)
	}
	return signers, roster
}

// session is the configuration of the session of a number.
func (w *World) session(number uint64) *protocol.Config {
	config := w.config
	config.Number = number
	return &config
}

// note remembers what happens, for the report of a failure.
func (w *World) note(format string, values ...any) {
	w.log = append(w.log, fmt.Sprintf(format, values...))
}

// fatal ends the test with what happened last.
func (w *World) fatal(format string, values ...any) {
	w.tb.Helper()
	for _, line := range w.log[max(0, len(w.log)-60):] {
		w.tb.Log(line)
	}
	w.tb.Fatalf(format, values...)
}

// Seen returns what was seen so far.
func (w *World) Seen() Seen { return w.seen }

// Honest runs the job as it should be, except for at most kills kills of parties. Every round of
// it has to give the exact sum of all parties, as far as the budget goes.
func (w *World) Honest(kills int) {
	w.tb.Helper()
	w.honest, w.kills = true, kills
	rounds := w.limits.Rounds
	for n := uint64(1); w.limits.Ledger != nil && n <= rounds; n++ {
		if w.certified(int(n)) > w.epsilon {
			rounds = n - 1
		}
	}
	for steps := 0; w.round < rounds || w.jobs[0].Step() != protocol.StepBetween; steps++ {
		if steps > 3000 {
			w.fatal("the job does not end: round %d of %d", w.round, rounds)
		}
		w.goOn()
	}
	if w.seen.Sums != int(rounds) {
		w.fatal("%d sums in %d rounds", w.seen.Sums, rounds)
	}
	for i, p := range w.parties {
		for p.drive == nil {
			p.start()
		}
		if guard := p.drive.Guard(); guard.Count() != rounds || guard.Last() != rounds {
			w.fatal("party %d has counted %d up to round %d of %d", i, guard.Count(), guard.Last(), rounds)
		}
	}
}

// Cheat runs the given number of events of a job whose coordinator cheats, or as many as more
// allows.
func (w *World) Cheat(events int, more func() bool) {
	w.tb.Helper()
	w.kills = events
	for n := 0; n < events && more(); n++ {
		if w.choices.IntN(6) > 0 {
			w.goOn()
		} else {
			w.lie()
		}
		w.check()
	}
}

// goOn does the next thing that an honest coordinator, party or program would do.
func (w *World) goOn() {
	for _, p := range w.parties {
		if p.drive == nil && (p.index >= w.tested || w.choices.IntN(3) > 0) {
			p.start()
			return
		}
	}
	if len(w.queue) > 0 {
		next := w.queue[0]
		w.queue = w.queue[1:]
		w.deliver(next)
		return
	}
	for _, p := range w.parties {
		if len(p.asks) > 0 {
			q := p.asks[0]
			p.asks = p.asks[1:]
			p.answer(q)
			return
		}
	}
	if len(w.jobs) == 0 {
		w.form(w.next())
		return
	}
	w.step(w.jobs[w.choices.IntN(len(w.jobs))])
}

// next returns the least number that all parties may join.
func (w *World) next() uint64 {
	number := w.number + 1
	for _, p := range w.parties {
		if p.drive != nil {
			number = max(number, p.drive.Hello().Least)
		}
	}
	return number
}

// form begins a session and proposes it.
func (w *World) form(number uint64) {
	if number > protocol.MaxNumber {
		return
	}
	s, err := protocol.NewServer(w.session(number))
	if err != nil {
		w.fatal("session %d: %v", number, err)
	}
	w.note("session %d forms", number)
	w.number = max(w.number, number)
	w.jobs = append(w.jobs, &server{Server: s, number: number})
	w.propose(number)
}

func (w *World) propose(number uint64) {
	for i := range w.parties {
		w.post(post{to: i, number: number})
	}
}

func (w *World) post(p post) {
	w.queue, w.sent = append(w.queue, p), append(w.sent, p)
}

// push sends parties what a session has for them.
func (w *World) push(s *server) {
	for i := range w.parties {
		for _, m := range s.Pending(i) {
			p := post{to: i, message: m}
			if s.Step() == protocol.StepMasked {
				p.cast, p.round = s.cast, s.cast.round
				switch {
				case w.honest:
				case w.choices.IntN(6) == 0:
					p.round = 0
				case w.choices.IntN(8) == 0:
					p.round = w.anyRound()
				}
			}
			w.post(p)
		}
	}
}

// anyRound is a round of the job, or a little below or above one.
func (w *World) anyRound() uint64 { return uint64(w.choices.IntN(int(w.limits.Rounds) + 3)) }

// step ends the step of a session, if nobody is missing or the coordinator does not wait.
func (w *World) step(s *server) {
	if missing := s.Missing(); len(missing) > 0 && (w.honest || w.choices.IntN(3) > 0) {
		if s.Step() == protocol.StepAnnounce {
			w.propose(s.number)
		} else {
			w.push(s)
		}
		return
	}
	var err error
	switch s.Step() {
	case protocol.StepBetween:
		// Between two rounds the next session may take over.
		if number := w.next(); w.honest && w.round > 0 && number <= protocol.MaxNumber &&
			w.choices.IntN(6) == 0 {
			w.jobs = nil
			w.form(number)
			return
		}
		err = w.begin(s)
	case protocol.StepReveal:
		err = w.sum(s)
	default:
		err = s.EndStep()
	}
	if err != nil && w.honest {
		w.fatal("session %d, round %d: %v", s.number, w.round, err)
	}
	w.push(s)
}

// begin begins a round of the job.
func (w *World) begin(s *server) error {
	round := w.round + 1
	if !w.honest {
		switch w.choices.IntN(8) {
		case 0:
			round = w.anyRound()
		case 1:
			round = max(w.round, 1)
		}
	}
	w.casts++
	cast := &broadcast{round: round}
	h := protocol.NewBroadcastHash()
	h.Write([]byte{byte(round), w.casts})
	h.Sum(cast.digest[:0])
	if _, err := s.BeginDigest(cast.digest); err != nil {
		return err
	}
	w.note("session %d: round %d of it, %d of the job", s.number, s.Round(), round)
	w.round, s.cast = round, cast
	return nil
}

// sum ends a round. With an honest coordinator it is the sum of all.
func (w *World) sum(s *server) error {
	sum, err := s.SumVector()
	if err != nil {
		return err
	}
	w.seen.Sums++
	want, err := masking.NewVector(w.config.Layout)
	if err != nil {
		return err
	}
	for _, i := range s.Included() {
		vector, found := w.parties[i].vectors[s.cast.digest]
		if !found {
			w.fatal("party %d is in a sum and has submitted nothing", i)
		}
		if err := want.Add(vector); err != nil {
			return err
		}
	}
	for i, values := range want.Values() {
		if w.honest && !slices.Equal(values, sum.Values()[i]) {
			w.fatal("round %d: the sum of %v is wrong", w.round, s.Included())
		}
	}
	if w.honest && len(s.Included()) != len(w.parties) {
		w.fatal("round %d: a sum of %v", w.round, s.Included())
	}
	return nil
}

// deliver gives a party what is for it.
func (w *World) deliver(m post) {
	p := w.parties[m.to]
	if p.drive == nil {
		return
	}
	item := drive.Item{Kind: drive.Carry, Own: m.message, Round: m.round}
	switch {
	case m.message == nil:
		w.note("party %d: join %d", m.to, m.number)
		item = drive.Item{Kind: drive.Join, Session: m.number}
	case m.cast != nil:
		p.cast = m.cast
	}
	if err := p.drive.Receive(item); err != nil {
		w.fatal("party %d: %v", m.to, err)
	}
	p.proceed()
}

// take gives the sessions what a party has sent. Each refuses what is another's.
func (w *World) take(from int, message []byte) {
	for _, s := range w.jobs {
		err := s.Receive(from, message)
		expected := errors.Is(err, protocol.ErrDuplicate) || errors.Is(err, protocol.ErrStale) ||
			errors.Is(err, protocol.ErrSession) || errors.Is(err, protocol.ErrPhase)
		if err != nil && w.honest && !expected {
			w.fatal("party %d, session %d: %v", from, s.number, err)
		}
	}
}

// lie does one thing that no honest coordinator, program or machine would do.
func (w *World) lie() {
	p := w.parties[w.choices.IntN(w.tested)]
	switch w.choices.IntN(12) {
	case 0: // it forgets all, and begins with a new number or an old one
		if w.choices.IntN(3) > 0 {
			return
		}
		w.note("the coordinator forgets")
		number := w.next()
		if w.choices.IntN(2) == 0 {
			number = uint64(w.choices.IntN(int(min(w.number, 20)) + 1))
		}
		w.jobs, w.queue, w.round = nil, nil, 0
		w.form(number)
	case 1: // it keeps an image of itself
		for _, s := range w.jobs {
			if state, err := s.Save(&w.key); err == nil {
				w.saved = append(w.saved, image{state, s.number, s.cast, w.round})
			}
		}
	case 2: // it is set back
		if len(w.saved) > 0 {
			old := w.saved[w.choices.IntN(len(w.saved))]
			s, err := protocol.LoadServer(w.session(old.number), &w.key, old.state)
			if err != nil {
				w.fatal("session %d: %v", old.number, err)
			}
			w.note("the coordinator is set back to session %d, round %d", old.number, old.round)
			w.jobs, w.round = []*server{{s, old.number, old.cast}}, old.round
			w.push(w.jobs[0])
		}
	case 3: // it lies about numbers
		w.lieAboutNumber(p)
	case 4: // it runs two sessions of the job at once
		if len(w.jobs) == 1 {
			w.note("a second session at once")
			w.form(w.next())
		} else {
			w.jobs = w.jobs[:min(1, len(w.jobs))]
		}
	case 5: // an old message, with a round and a broadcast of its own or of others
		if len(w.sent) > 0 {
			old := w.sent[w.choices.IntN(len(w.sent))]
			other := w.sent[w.choices.IntN(len(w.sent))]
			old.to = p.index
			switch w.choices.IntN(4) {
			case 0:
				old.cast, old.round = other.cast, other.round
			case 1:
				old.round = w.anyRound()
			}
			w.deliver(old)
		}
	case 6: // mutated bytes
		if len(w.sent) > 0 {
			old := w.sent[w.choices.IntN(len(w.sent))]
			old.to, old.message = p.index, bytes.Clone(old.message)
			if len(old.message) > 0 {
				old.message[w.choices.IntN(len(old.message))] ^= 1 << w.choices.IntN(8)
				w.deliver(old)
			}
		}
	case 7: // what was on its way is lost, or comes otherwise
		if len(w.queue) > 1 {
			i, j := w.choices.IntN(len(w.queue)), w.choices.IntN(len(w.queue))
			w.queue[i], w.queue[j] = w.queue[j], w.queue[i]
			w.queue = w.queue[w.choices.IntN(2):]
		}
	case 8: // a connection breaks
		if p.drive != nil {
			p.drive.Connected()
			p.proceed()
		}
	case 9: // a process ends
		p.kill()
	case 10: // the state is lost, and the operator says so
		p.lose()
	case 11:
		p.misanswer()
	}
}

// lieAboutNumber proposes a session whose number nobody should use, or a far one.
func (w *World) lieAboutNumber(p *party) {
	least := w.number + 1
	if p.drive != nil {
		least = p.drive.Hello().Least
	}
	number := []uint64{0, 7, 1 << 62, 1<<64 - 1, least - 1, w.number, least + 1<<41,
		least + protocol.MaxNumberJump, least + 3}[w.choices.IntN(9)]
	if w.choices.IntN(2) == 0 && number <= protocol.MaxNumber {
		w.form(number) // and has a session of it
		return
	}
	w.note("a lie about number %d", number)
	w.deliver(post{to: p.index, number: number})
}

// Add adds what another world has seen.
func (s *Seen) Add(other Seen) {
	s.Submissions += other.Submissions
	s.Sums += other.Sums
	s.Kills += other.Kills
	s.Loads += other.Loads
	s.Declined += other.Declined
	s.Refused += other.Refused
}
