package runner

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/service/exchange"
)

// follower is a party that asks a runner what is next, without a network.
type follower struct {
	*led
	index  int
	party  drive.Part
	seen   []string
	absent uint64 // round that it has nothing for

	// idle has it have no vector in a round, and change changes what it sends; nil: nothing.
	idle   func(round uint64) bool
	change func(h wire.Header, message []byte) []byte
}

// follow makes the parties of a federation, with no keys yet.
func (l *led) follow() (out []*follower) {
	for i := range parties {
		f := &follower{led: l, index: i}
		f.renew(0)
		out = append(out, f)
	}
	return out
}

// renew has the party forget its keys.
func (f *follower) renew(least uint64) {
	f.t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = byte(f.index)
	p, err := drive.NewPart(drive.PartSettings{
		Limits:   drive.Limits{Rounds: uint64(f.fed.Settled.Rounds())},
		Session:  f.fed.Settled.Config,
		Label:    f.fed.Settled.Config(1).Label,
		Identity: ed25519.NewKeyFromSeed(seed),
		Least:    least,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.party, f.seen = p, nil
}

// connects tells what the party tells when it asks.
func (f *follower) connects() {
	hello := f.party.Hello()
	f.connected(Peer{Index: f.index}, &exchange.Ask{Sessions: hello.Sessions,
		Least: hello.Least, Absent: f.absent})
}

// poll asks what is next, and does it. It reports whether there was anything.
func (f *follower) poll() bool {
	f.t.Helper()
	f.connects()
	var n Outgoing
	for item := range f.drive.Pending(Peer{Index: f.index}) {
		if !slices.Contains(f.seen, item.Name) {
			n = nextOf(&item)
			break
		}
	}
	var err error
	switch n.Kind {
	case exchange.Join:
		err = f.party.Receive(drive.Item{Kind: drive.Join, Session: n.Session})
	case exchange.Message:
		err = f.party.Receive(drive.Item{Kind: drive.Carry, Shared: n.Shared, Own: n.Message,
			Round: uint64(n.Round)})
	default:
		return false
	}
	f.seen = append(f.seen, n.Item)
	for err == nil {
		if _, decided := f.party.Ready(); !decided {
			return true
		}
		out := f.party.Advance()
		for _, m := range out.Send {
			f.send(m)
		}
		if out.Ask != nil && out.Ask.Round > 0 {
			err = f.answer(*out.Ask)
		}
	}
	f.t.Fatal(err)
	return false
}

func (f *follower) send(m drive.Message) {
	f.t.Helper()
	message := m.Bytes
	if message == nil {
		var b bytes.Buffer
		if _, err := f.party.Object(drive.SubmissionName).WriteTo(&b); err != nil {
			f.t.Fatal(err)
		}
		message = b.Bytes()
	}
	h, _, err := wire.ParseHeader(message)
	if err != nil {
		f.t.Fatal(err)
	}
	if f.change != nil {
		message = f.change(h, message)
	}
	// Whoever is left out is refused.
	_ = f.ReadMessage(f.t.Context(), Peer{Index: f.index}, bytes.NewReader(message),
		int64(len(message)), sha256.Sum256(message), time.Now())
}

func (f *follower) answer(ask drive.Ask) error {
	if f.idle != nil && f.idle(ask.Round) {
		f.absent = ask.Round
		f.party.Absent(ask.ID, ask.Round, errors.New("no data"))
		return nil
	}
	b, err := f.Broadcast(f.t.Context(), f.index, int(ask.Round))
	if err != nil {
		return err
	}
	digest := job.BroadcastDigest(b)
	return f.party.Answer(drive.Answer{ID: ask.ID, Round: ask.Round, Broadcast: digest,
		Fill: func(v *masking.Vector) error {
			update := make([]float64, f.fed.Spec.Len())
			update[0] = 0.5
			return job.EncodeTo(v, f.fed.Settled, digest, job.Update[float64]{Vector: update}, nil)
		}})
}

// hold holds rounds up to one, and calls between after each.
func (l *led) hold(followers []*follower, last uint64, between func(at drive.Status)) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	over := uint64(0)
	for {
		if ctx.Err() != nil {
			l.t.Fatalf("rounds are not held: %+v", l.drive.Status())
		}
		if err := l.looks(ctx); err != nil {
			l.t.Fatal(err)
		}
		at := l.drive.Status()
		if at.Stage == drive.Applying { // looks adopts the model once it is made
			runtime.Gosched()
			continue
		}
		if n := len(l.history); n > 0 && uint64(l.history[n-1].Round) > over {
			if over = uint64(l.history[n-1].Round); over >= last {
				return
			}
			between(at)
		}
		for _, f := range followers {
			for f.poll() {
			}
		}
	}
}

// Numbers of sessions follow the word of more parties than may lie, of which there may be one.
func TestNumbersTold(t *testing.T) {
	for _, c := range []struct {
		least []uint64
		want  uint64
	}{
		{[]uint64{0, 0, 0}, 1},
		{[]uint64{math.MaxUint64, 0, 0, 0}, 1},
		{[]uint64{math.MaxUint64, 5, 5, 0}, 5},
		{[]uint64{9, 7, 3, 0}, 7},
	} {
		t.Run(fmt.Sprint(c.least), func(t *testing.T) {
			l := newLed(t, "")
			for i, least := range c.least {
				l.drive.Connected(l.now(), Peer{Index: i}, drive.Hello{Least: least})
			}
			if err := l.looks(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at := l.drive.Status(); at.Next.Number != c.want {
				t.Errorf("session %d, want %d", at.Session, c.want)
			}
		})
	}
}

// A party that has no vector says so, and rounds are held without it, which wait for nobody: a step
// would take an hour.
func TestAbsenceTold(t *testing.T) {
	l := newLed(t, "time.step_time = \"1h\"")
	all := l.follow()
	all[4].idle = func(round uint64) bool { return round != 2 }
	l.hold(all, 3, func(drive.Status) {})
	for k, want := range []int{4, 5, 4} {
		if past := l.history[k]; past.Lost != "" || past.Parties != want {
			t.Errorf("round %d: %+v, want %d parties", k+1, past, want)
		}
	}
}

// No session forms before as many parties are here as the job's first round begins with.
func TestBeginWith(t *testing.T) {
	l := newLed(t, "time.begin_with = 5")
	for i := range parties {
		if err := l.looks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := l.drive.Status(); at.Next.Number != 0 {
			t.Fatalf("with %d of 5 parties: %+v", i, at)
		}
		l.drive.Connected(l.now(), Peer{Index: i}, drive.Hello{})
	}
	if err := l.looks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at := l.drive.Status(); at.Next.Number != 1 {
		t.Errorf("all are here: %+v", at)
	}
}

// A party that spoils rounds, and comes again with new keys after one that is lost and
// once more, spoils no more than that one, also where another node leads by then.
func TestSpoilerComesAgain(t *testing.T) {
	l := newLed(t, "")
	all := l.follow()
	spoiler, renewed := all[4], 0
	spoiler.change = func(h wire.Header, message []byte) []byte {
		if h.Type != wire.TypeMasked {
			return message
		}
		const others = parties - 1
		size := l.fed.Settled.Layout().PackedSize()
		m, err := wire.ParseMasked(message[wire.HeaderSize:], size, others,
			others)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Shares {
			m.Shares[i][len(m.Shares[i])-1] ^= 1
		}
		return m.Append(bytes.Clone(message[:wire.HeaderSize]))
	}
	lost := uint64(0)
	l.hold(all, 12, func(at drive.Status) {
		if at.Lost > lost || at.Round%8 == 0 {
			lost = at.Lost
			spoiler.renew(spoiler.party.Hello().Least)
			renewed++
		}
		if at.Round == 6 {
			l.Runner = l.start("another")
		}
	})
	at := l.drive.Status()
	if at.Lost != 1 || renewed < 2 {
		t.Errorf("%d rounds of %d are lost, and it came again %d times", at.Lost, at.Round, renewed)
	}
	for _, past := range l.history[1:] {
		if past.Lost != "" || past.Parties != parties-1 {
			t.Errorf("%+v", past)
		}
	}
}

// Of five parties each round is held among the four that are drawn for it.
func TestSampledRounds(t *testing.T) {
	const rounds = 8
	l := newLed(t, "parties.per_round = 4")
	all := l.follow()
	l.hold(all, rounds, func(drive.Status) {})
	var want [parties]uint64
	for k, past := range l.history {
		if past.Lost != "" || past.Parties != 4 {
			t.Errorf("%+v", past)
		}
		for _, i := range l.Federation.Settled.Draw(uint64(k+1), []int{0, 1, 2, 3, 4}, 4) {
			want[i]++
		}
	}
	for i, f := range all {
		if guard := f.party.Guard(); guard.Count() != want[i] {
			t.Errorf("party %d is in %d rounds of %d, want %d", i, guard.Count(), rounds, want[i])
		}
	}
}
