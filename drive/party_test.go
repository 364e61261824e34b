package drive_test

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
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// table is a job of three parties whose events a test chooses one by one. Party 0 is under test.
type table struct {
	*testing.T
	config  protocol.Config
	configs []drive.PartSettings
	parties []drive.Part
	servers map[uint64]*protocol.Server
	key     keyexchange.SealKey
	saved   drive.Saved // of party 0, the last time
	state   []byte
}

func newTable(t *testing.T, change func(c *drive.PartSettings)) *table {
	t.Helper()
	var signers []crypto.Signer
	var members []keyexchange.Entry
	for i := range 3 {
		seed := sha256.Sum256(fmt.Appendf(nil, "party %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		signers = append(signers, key)
		members = append(members,
			keyexchange.Entry{Name: fmt.Sprint("party-", i), Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	b := &table{T: t, servers: make(map[uint64]*protocol.Server)}
	b.config = protocol.Config{
		Label:      "table",
		Roster:     roster,
		MinMembers: 2,
		Layout:     masking.Layout{{Length: 2, Bits: 16}},
		Recovery: &protocol.Recovery{Adversary: protocol.CuriousServer, Threshold: 1,
			MinSurvivors: 2},
		Classical: true,
	}
	for i, signer := range signers {
		c := drive.PartSettings{
			Limits:   drive.Limits{Rounds: 3},
			Session:  b.session,
			Label:    b.config.Label,
			Identity: signer,
			Random:   rand.NewChaCha8([32]byte{byte(i)}),
		}
		if change != nil && i == 0 {
			change(&c)
		}
		p, err := drive.NewPart(c)
		if err != nil {
			t.Fatal(err)
		}
		b.configs, b.parties = append(b.configs, c), append(b.parties, p)
	}
	return b
}

func (b *table) session(number uint64) *protocol.Config {
	config := b.config
	config.Number = number
	return &config
}

// digestOf is the digest of what a round of the job begins with.
func digestOf(round uint64) [32]byte { return sha256.Sum256([]byte{byte(round)}) }

// did does what a party has decided, gives the sessions what it sends, and returns both.
func (b *table) did(i int, err error) (drive.Ready, drive.Out) {
	b.Helper()
	if err != nil {
		b.Fatalf("party %d: %v", i, err)
	}
	p := b.parties[i]
	r, decided := p.Ready()
	if r.Save && i == 0 {
		b.save()
	}
	out := p.Advance()
	if _, more := p.Ready(); more {
		b.Fatalf("party %d: there is more to be done", i)
	}
	something := r.Save || out.Cancel || out.Ask != nil ||
		len(r.Reports)+len(out.Send)+len(out.Away) > 0
	if decided != something {
		b.Fatalf("party %d: decided %v, and %+v, %+v", i, decided, r, out)
	}
	for _, m := range out.Send {
		message := m.Bytes
		if s := p.Object(drive.SubmissionName); message == nil && s != nil {
			message = bytesOf(b.T, s)
		}
		if s := b.servers[m.Session]; s != nil {
			_ = s.Receive(i, message) // what it has had it refuses
		}
	}
	return r, out
}

func bytesOf(t *testing.T, s io.WriterTo) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// save saves party 0.
func (b *table) save() {
	b.Helper()
	var err error
	if b.saved, err = b.parties[0].Save(&b.key); err != nil {
		b.Fatal(err)
	}
	b.state = b.saved.State
}

// restart ends party 0 and loads it from what was saved last.
func (b *table) restart() {
	b.Helper()
	p, err := drive.LoadPart(b.configs[0], &b.key, b.state)
	if err != nil {
		b.Fatal(err)
	}
	b.parties[0] = p
}

func (b *table) receive(i int, message []byte, round uint64) (drive.Ready, drive.Out) {
	b.Helper()
	return b.did(i, b.parties[i].Receive(carried(message, round)))
}

// form sets a session up with all parties.
func (b *table) form(number uint64) {
	b.Helper()
	s, err := protocol.NewServer(b.session(number))
	if err != nil {
		b.Fatal(err)
	}
	b.servers[number] = s
	for i, p := range b.parties {
		b.did(i, p.Receive(joining(number)))
	}
	b.end(number)
	if len(s.Enrolled()) != 3 || len(s.Missing()) != 0 {
		b.Fatalf("session %d has %v, and %v are missing", number, s.Enrolled(), s.Missing())
	}
}

// end ends a step of a session and gives the parties what is pending.
func (b *table) end(number uint64) {
	b.Helper()
	s := b.servers[number]
	if err := s.EndStep(); err != nil {
		b.Fatal(err)
	}
	for i := range b.parties {
		for _, m := range s.Pending(i) {
			b.receive(i, m, 0)
		}
	}
}

// begin begins a round in a session and returns what it begins with for party 0.
func (b *table) begin(number, round uint64) []byte {
	b.Helper()
	envelopes, err := b.servers[number].BeginDigest(digestOf(round))
	if err != nil {
		b.Fatal(err)
	}
	return envelopes[0].Message
}

// answer is the answer of a program to round of the job.
func answer(id drive.AskID, round uint64) drive.Answer {
	return drive.Answer{ID: id, Round: round, Broadcast: digestOf(round), Fill: fill}
}

func joining(number uint64) drive.Item { return drive.Item{Kind: drive.Join, Session: number} }

func carried(message []byte, round uint64) drive.Item {
	return drive.Item{Kind: drive.Carry, Own: message, Round: round}
}

func fill(v *masking.Vector) error { return v.Set([]uint64{1, 2}) }

// kinds are those of reports.
func kinds(r drive.Ready) (out []drive.ReportKind) {
	for _, one := range r.Reports {
		out = append(out, one.Kind)
	}
	return out
}

// wantReport checks that one report was made, with an error of this kind.
func (b *table) wantReport(r drive.Ready, kind drive.ReportKind, cause error) {
	b.Helper()
	if len(r.Reports) != 1 || r.Reports[0].Kind != kind || !errors.Is(r.Reports[0].Err, cause) {
		b.Errorf("reports %+v, want one of kind %d with %v", r.Reports, kind, cause)
	}
}

func (b *table) wantNothing(out drive.Out) {
	b.Helper()
	if len(out.Send)+len(out.Away) > 0 || out.Ask != nil {
		b.Errorf("%+v leaves", out)
	}
}

func (b *table) wantCount(count, last uint64) {
	b.Helper()
	if g := b.parties[0].Guard(); g.Count() != count || g.Last() != last {
		b.Errorf("%d are counted up to round %d, want %d up to %d", g.Count(), g.Last(), count, last)
	}
}

// One party through two rounds: what is saved when, and what leaves.
func TestPartyRounds(t *testing.T) {
	b := newTable(t, nil)
	b.form(1)
	p := b.parties[0]
	for round := uint64(1); round <= 2; round++ {
		begin := b.begin(1, round)
		r, out := b.receive(0, begin, round)
		id := drive.AskID{Session: 1, Round: round}
		if r.Save || out.Ask == nil || out.Ask.ID != id || out.Ask.Round != round ||
			len(out.Send) != 0 {
			t.Fatalf("Begin: %+v, %+v", r, out)
		}
		took := slices.Contains(kinds(r), drive.TookOver)
		if took != (round == 1) {
			t.Errorf("round %d: took over %v", round, took)
		}
		b.wantCount(round-1, round-1)
		r, out = b.did(0, p.Answer(answer(id, round)))
		if !r.Save || len(b.saved.Objects) != 1 || len(b.saved.Needed) != 1 || len(out.Send) != 1 ||
			out.Send[0].Session != 1 || out.Send[0].Bytes != nil {
			t.Fatalf("Answer: %+v, %+v", r, out)
		}
		b.wantReport(r, drive.Submitted, nil)
		b.wantCount(round, round)
		first := bytesOf(t, b.saved.Objects[0].Body)
		// Asked again it sends the same again, and makes no other.
		if r, out = b.receive(0, begin, round); r.Save || len(out.Send) != 1 ||
			out.Send[0].Bytes != nil || out.Ask != nil {
			t.Errorf("Begin again: %+v, %+v", r, out)
		}
		if !bytes.Equal(bytesOf(t, p.Object(drive.SubmissionName)), first) {
			t.Error("the submission has changed")
		}
		b.wantCount(round, round)
		for i := 1; i < 3; i++ {
			for _, m := range b.servers[1].Pending(i) {
				b.receive(i, m, round)
			}
			b.did(i, b.parties[i].Answer(answer(id, round)))
		}
		b.end(1) // survivors
		for _, m := range b.servers[1].Pending(0) {
			t.Errorf("%x is pending for a party that has signed", m[:2])
		}
		b.end(1) // certificate
		sum, err := b.servers[1].Sum()
		if err != nil || !slices.Equal(sum[0], []uint64{3, 6}) {
			t.Fatalf("%v, %v", sum, err)
		}
	}
}

// What a message answers is saved before it leaves, and sent again as it was.
func TestPartyAnswersAgain(t *testing.T) {
	b := newTable(t, nil)
	p := b.parties[0]
	r, out := b.did(0, p.Receive(joining(4)))
	if !r.Save || len(out.Send) != 1 || out.Send[0].Bytes == nil {
		t.Fatalf("Join: %+v, %+v", r, out)
	}
	b.wantReport(r, drive.Joined, nil)
	announce := out.Send[0].Bytes
	for name, again := range map[string]func(){
		"Join":      func() { r, out = b.did(0, b.parties[0].Receive(joining(4))) },
		"Connected": func() { b.parties[0].Connected(); r, out = b.did(0, nil) },
		"restart":   func() { b.restart(); b.parties[0].Connected(); r, out = b.did(0, nil) },
	} {
		again()
		if r.Save || len(r.Reports) != 0 || len(out.Send) != 1 || out.Send[0].Session != 4 ||
			!bytes.Equal(out.Send[0].Bytes, announce) {
			t.Errorf("%s: %+v, %+v", name, r, out)
		}
	}
	if h := b.parties[0].Hello(); !slices.Equal(h.Sessions, []uint64{4}) || h.Least != 5 {
		t.Errorf("%+v", h)
	}
}

// Numbers: none below the least, none twice, none far above, none beyond the last.
func TestPartyNumbers(t *testing.T) {
	b := newTable(t, func(c *drive.PartSettings) { c.Least = 5 })
	refused := func(numbers ...uint64) {
		t.Helper()
		for _, number := range numbers {
			least := b.parties[0].Hello().Least
			r, out := b.did(0, b.parties[0].Receive(joining(number)))
			b.wantReport(r, drive.Refused, protocol.ErrNumber)
			b.wantNothing(out)
			if r.Save || b.parties[0].Hello().Least != least {
				t.Errorf("number %d: %+v", number, r)
			}
		}
	}
	far := protocol.MaxNumberJump
	refused(0, 4, 5+far+1, 1<<62, 1<<63, 1<<64-1)
	b.did(0, b.parties[0].Receive(joining(5)))
	refused(0, 4, 6+far+1)
	b.did(0, b.parties[0].Receive(joining(6+far)))
	refused(5, 6, 5+far, 1<<62)
	b.restart()
	refused(5, 6, 5+far, 1<<62)
	// A least that the operator knows counts with a saved state too, if it is higher.
	b.configs[0].Least = 9 + far
	b.restart()
	refused(8 + far)
	b.did(0, b.parties[0].Receive(joining(9+far)))
	b.configs[0].Least = 7
	b.restart()
	if least := b.parties[0].Hello().Least; least != 10+far {
		t.Errorf("the least is %d", least)
	}
	// The last number of all.
	b = newTable(t, func(c *drive.PartSettings) { c.Least = protocol.MaxNumber })
	r, _ := b.did(0, b.parties[0].Receive(joining(protocol.MaxNumber)))
	if r.Reports[0].Kind != drive.Joined {
		t.Errorf("%+v", r)
	}
	refused(protocol.MaxNumber+1, 0)
}

// Configurations that make no session are the caller's mistake.
func TestPartyConfig(t *testing.T) {
	b := newTable(t, func(c *drive.PartSettings) {
		c.Session = func(uint64) *protocol.Config { return nil }
	})
	if err := b.parties[0].Receive(joining(1)); !errors.Is(err, protocol.ErrConfig) {
		t.Errorf("no configuration: %v", err)
	}
	b.wantNothing(b.parties[0].Advance())
	for _, limits := range []drive.Limits{{}, {Rounds: 3}} {
		c := b.configs[0]
		c.Limits, c.Spent = limits, 4
		if _, err := drive.NewPart(c); !errors.Is(err, drive.ErrRound) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	c := b.configs[0]
	c.Spent = 2
	p, err := drive.NewPart(c)
	if err != nil {
		t.Fatal(err)
	}
	if g := p.Guard(); g.Count() != 2 || g.Last() != 2 {
		t.Errorf("%+v", g)
	}
}

// A session that is set up may begin, although another was proposed since; and so it is when the
// party was ended in between.
func TestPartyFormed(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newTable(t, nil)
		b.form(1)
		b.receive(0, b.begin(1, 1), 1)
		b.form(2)
		b.did(0, b.parties[0].Receive(joining(3)))
		if restart {
			b.restart()
		}
		if s := b.parties[0].Hello().Sessions; !slices.Equal(s, []uint64{1, 2, 3}) {
			t.Fatalf("sessions %v", s)
		}
		r, out := b.receive(0, b.begin(2, 1), 1)
		want := []drive.ReportKind{drive.TookOver, drive.Late}
		if restart { // nothing works on the round any more
			want = want[:1]
		}
		if !slices.Equal(kinds(r), want) || r.Reports[0].Session != 2 || out.Cancel == restart ||
			out.Ask == nil {
			t.Fatalf("%+v, %+v", r, out)
		}
		if s := b.parties[0].Hello().Sessions; !slices.Equal(s, []uint64{2, 3}) {
			t.Errorf("sessions %v", s)
		}
		// A vector for the session that is over is late.
		r, out = b.did(0, b.parties[0].Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
		b.wantReport(r, drive.Late, nil)
		b.wantNothing(out)
		b.did(0, b.parties[0].Answer(answer(drive.AskID{Session: 2, Round: 1}, 1)))
		b.wantCount(1, 1)
		// A third that is proposed takes the place of the one that was not set up.
		b.did(0, b.parties[0].Receive(joining(4)))
		b.restart()
		if s := b.parties[0].Hello().Sessions; !slices.Equal(s, []uint64{2, 4}) {
			t.Errorf("sessions %v", s)
		}
		b.wantCount(1, 1)
	}
}

// A program's answers: late, twice, to nothing that was asked, for another round, from another
// broadcast, and none.
func TestPartyAnswers(t *testing.T) {
	b := newTable(t, nil)
	p := b.parties[0]
	id := drive.AskID{Session: 1, Round: 1}
	late := func(id drive.AskID) {
		t.Helper()
		r, out := b.did(0, p.Answer(answer(id, 1)))
		b.wantReport(r, drive.Late, nil)
		b.wantNothing(out)
		p.Absent(id, 1, errors.New("no"))
		if r, decided := p.Ready(); decided {
			t.Errorf("%+v", r)
		}
	}
	late(id) // before there is a session
	b.form(1)
	late(id) // before there is a round
	begin := b.begin(1, 1)
	b.receive(0, begin, 1)
	late(drive.AskID{Session: 2, Round: 1})
	late(drive.AskID{Session: 0, Round: 1})
	late(drive.AskID{Session: 1, Round: 0})
	late(drive.AskID{Session: 1, Round: 2})
	for _, round := range []uint64{0, 2, 9} {
		r, out := b.did(0, p.Answer(answer(id, round)))
		b.wantReport(r, drive.Declined, drive.ErrRound)
		if r.Save || len(out.Send) != 0 || out.Ask != nil ||
			!slices.Equal(out.Away, []drive.Absence{{Number: round, Cause: drive.Guarded}}) {
			t.Errorf("round %d: %+v, %+v", round, r, out)
		}
	}
	other := answer(id, 1)
	other.Broadcast = digestOf(2)
	r, out := b.did(0, p.Answer(other))
	b.wantReport(r, drive.Refused, protocol.ErrBroadcast)
	b.wantNothing(out)
	b.wantCount(0, 0)
	// No vector, and then no vector that fits: the round can be asked for again.
	why := errors.New("no data")
	for _, absent := range []func(){
		func() { p.Absent(id, 1, why); r, out = b.did(0, nil) },
		func() {
			a := answer(id, 1)
			a.Fill = func(*masking.Vector) error { return why }
			r, out = b.did(0, p.Answer(a))
		},
	} {
		absent()
		b.wantReport(r, drive.Missed, why)
		if r.Save || len(out.Send) != 0 ||
			!slices.Equal(out.Away, []drive.Absence{{Number: 1, Cause: drive.NoVector}}) {
			t.Errorf("%+v, %+v", r, out)
		}
		b.wantCount(0, 0)
		if r, out = b.receive(0, begin, 1); out.Ask == nil || out.Ask.ID != id || r.Save {
			t.Errorf("Begin again: %+v, %+v", r, out)
		}
	}
	b.did(0, p.Answer(answer(id, 1)))
	b.wantCount(1, 1)
	late(id)
	b.wantCount(1, 1)
}

// broken fails once it is told to.
type broken struct {
	io.Reader
	now bool
}

func (r *broken) Read(b []byte) (int, error) {
	if r.now {
		return 0, io.ErrUnexpectedEOF
	}
	return r.Reader.Read(b)
}

// An error of the machine counts nothing, and lets nothing go.
func TestPartyMachine(t *testing.T) {
	random := &broken{Reader: rand.NewChaCha8([32]byte{})}
	b := newTable(t, func(c *drive.PartSettings) { c.Random = random })
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	random.now = true
	id := drive.AskID{Session: 1, Round: 1}
	if err := b.parties[0].Answer(answer(id, 1)); !errors.Is(err, protocol.ErrRandom) {
		t.Errorf("%v", err)
	}
	if r, decided := b.parties[0].Ready(); decided {
		t.Errorf("%+v", r)
	}
	b.wantCount(0, 0)
	if err := b.parties[0].Receive(joining(2)); !errors.Is(err, protocol.ErrRandom) {
		t.Errorf("%v", err)
	}
	b.wantNothing(b.parties[0].Advance())
	random.now = false
	b.did(0, b.parties[0].Answer(answer(id, 1)))
	b.wantCount(1, 1)
}

// What the guard refuses is told apart, and not worked on where the carrier knows the round.
func TestPartyGuarded(t *testing.T) {
	for _, c := range []struct {
		announced, round uint64
		want             error
	}{
		{4, 4, drive.ErrRound}, {0, 4, drive.ErrRound}, {0, 0, drive.ErrRound},
		{2, 2, drive.ErrRepeated}, {0, 2, drive.ErrRepeated}, {1, 1, drive.ErrRepeated},
		{3, 2, drive.ErrRound}, {1, 3, drive.ErrRepeated},
	} {
		b := newTable(t, func(c *drive.PartSettings) { c.Spent = 2 })
		b.form(1)
		r, out := b.receive(0, b.begin(1, c.round), c.announced)
		if out.Ask != nil {
			r, out = b.did(0, b.parties[0].Answer(answer(out.Ask.ID, c.round)))
		} else {
			r.Reports = r.Reports[1:] // it took over
		}
		b.wantReport(r, drive.Declined, c.want)
		if len(out.Send) != 0 || len(out.Away) != 1 || out.Away[0].Cause != drive.Guarded {
			t.Errorf("%+v: %+v", c, out)
		}
		b.wantCount(2, 2)
		// With the right round it goes on: this one is lost.
		if err := b.servers[1].EndStep(); !errors.Is(err, protocol.ErrTooFew) {
			t.Fatal(err)
		}
		for i := range b.parties {
			for _, m := range b.servers[1].Pending(i) {
				b.receive(i, m, 0)
			}
		}
		r, out = b.receive(0, b.begin(1, 3), 3)
		if out.Ask == nil {
			t.Fatalf("%+v: %+v, %+v", c, r, out)
		}
		b.did(0, b.parties[0].Answer(answer(out.Ask.ID, 3)))
		b.wantCount(3, 3)
	}
}

// Messages that are not for the party, or of nobody, change nothing.
func TestPartyMessages(t *testing.T) {
	b := newTable(t, nil)
	b.form(1)
	begin := b.begin(1, 1)
	foreign := bytes.Clone(begin)
	foreign[5] ^= 1 // the session
	for name, message := range map[string][]byte{
		"nothing": nil, "a byte": {1}, "another session's": foreign, "a head": begin[:wire.HeaderSize-1],
	} {
		r, out := b.receive(0, message, 1)
		if r.Save || len(r.Reports) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		b.wantNothing(out)
	}
	for at := wire.HeaderSize; at < len(begin); at += 7 {
		changed := bytes.Clone(begin)
		changed[at] ^= 1
		before := b.parties[0].Guard()
		r, _ := b.receive(0, changed, 1)
		if r.Save || *b.parties[0].Guard() != *before {
			t.Fatalf("byte %d: %+v", at, r)
		}
		b.restart()
	}
	r, _ := b.receive(0, begin[:len(begin)-1], 1)
	b.wantReport(r, drive.Refused, protocol.ErrTruncated)
}

// What came between Ready and Advance does not leave before it was saved.
func TestPartyAdvance(t *testing.T) {
	b := newTable(t, nil)
	p := b.parties[0]
	if err := p.Receive(joining(1)); err != nil {
		t.Fatal(err)
	}
	b.wantNothing(p.Advance()) // nobody has asked what has to be saved
	if r, _ := p.Ready(); !r.Save {
		t.Errorf("%+v", r)
	}
	for name, event := range map[string]func() error{
		"Join":      func() error { return p.Receive(joining(2)) },
		"Connected": func() error { p.Connected(); return nil },
		"Receive":   func() error { return p.Receive(carried(make([]byte, 60), 0)) },
		"Absent":    func() error { p.Absent(drive.AskID{}, 1, io.EOF); return nil },
		"Answer":    func() error { return p.Answer(drive.Answer{}) },
	} {
		if r, _ := p.Ready(); !r.Save {
			t.Errorf("%s: %+v", name, r)
		}
		if err := event(); err != nil {
			t.Fatal(err)
		}
		b.wantNothing(p.Advance())
	}
	if r, _ := p.Ready(); !r.Save {
		t.Errorf("%+v", r)
	}
	if out := p.Advance(); len(out.Send) < 2 {
		t.Errorf("%+v", out)
	}
	b.wantNothing(p.Advance())
}

// A submission that was not asked for in time is not taken for the next one, which is in its
// room.
func TestPartyRoom(t *testing.T) {
	b := newTable(t, nil)
	p := b.parties[0]
	b.form(1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(p.Receive(carried(b.begin(1, 1), 1)))
	must(p.Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
	for i := 1; i < 3; i++ {
		b.did(i, b.parties[i].Receive(carried(b.servers[1].Pending(i)[0], 1)))
		b.did(i, b.parties[i].Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
	}
	first := bytesOf(t, p.Object(drive.SubmissionName))
	must(b.servers[1].Receive(0, first)) // so that there is a second round
	must(p.Receive(carried(b.begin(1, 2), 2)))
	a := answer(drive.AskID{Session: 1, Round: 2}, 2)
	a.Fill = func(*masking.Vector) error { return io.EOF }
	must(p.Answer(a))
	r, _ := p.Ready()
	b.save()
	out := p.Advance()
	if !r.Save || len(b.saved.Objects) > 0 || len(out.Send) != 0 {
		t.Errorf("%+v, %+v", r, out)
	}
	b.wantCount(1, 1)
}

// States load as they were saved, with the key, label and identity that they were saved with.
func TestPartyStates(t *testing.T) {
	b := newTable(t, nil)
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	b.did(0, b.parties[0].Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
	b.restart()
	b.wantCount(1, 1)
	if b.parties[0].Object(drive.SubmissionName) != nil {
		t.Error("a submission comes back")
	}
	b.parties[0].Connected()
	if _, out := b.did(0, nil); len(out.Send) != 1 || out.Send[0].Bytes != nil {
		t.Errorf("%+v", out)
	}
	load := func(change func(c *drive.PartSettings), key keyexchange.SealKey, state []byte) error {
		c := b.configs[0]
		if change != nil {
			change(&c)
		}
		p, err := drive.LoadPart(c, &key, state)
		if (p == nil) != (err != nil) {
			t.Fatalf("%v, %v", p, err)
		}
		return err
	}
	for name, c := range map[string]struct {
		change func(c *drive.PartSettings)
		key    keyexchange.SealKey
		state  []byte
		want   error
	}{
		"another key": {nil, keyexchange.SealKey{1}, b.state, protocol.ErrState},
		"another label": {func(c *drive.PartSettings) {
			c.Label = "x"
		}, b.key, b.state, protocol.ErrState},
		"another identity": {func(c *drive.PartSettings) {
			c.Identity = b.configs[1].Identity
		}, b.key, b.state, protocol.ErrState},
		"no rounds": {func(c *drive.PartSettings) {
			c.Limits.Rounds = 0
		}, b.key, b.state, drive.ErrState},
		"nothing": {nil, b.key, nil, drive.ErrState},
		"a part":  {nil, b.key, b.state[:len(b.state)/2], drive.ErrState},
		"other sessions": {func(c *drive.PartSettings) {
			c.Session = func(uint64) *protocol.Config { return nil }
		}, b.key, b.state, protocol.ErrState},
	} {
		if err := load(c.change, c.key, c.state); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// The word for rounds that were spent is for who has lost the state.
	if err := load(func(c *drive.PartSettings) { c.Spent = 3 }, b.key, b.state); err != nil {
		t.Error(err)
	}
	for at := range b.state {
		changed := bytes.Clone(b.state)
		changed[at] ^= 1 << (at % 8)
		err := load(nil, b.key, changed)
		if err != nil && !errors.Is(err, drive.ErrState) && !errors.Is(err, protocol.ErrState) {
			t.Errorf("byte %d: %v", at, err)
		}
		if err := load(nil, b.key, b.state[:at]); err == nil {
			t.Errorf("%d bytes of it load", at)
		}
	}
}
