package rounds

import (
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// The jobs that are attacked: seven parties, of whom one may collude with the server, and sums of
// at least five.
const (
	parties   = 7
	survivors = 5
	bad       = parties - 1 // the party that does the attack, or that it is on
	label     = "attack"

	stepTime = 30 * drive.Second
	pace     = drive.Second
)

// layout has 2,048 bits: unrelated vectors are equal with probability 2^-2048.
var layout = masking.Layout{{Length: 64, Bits: 32}}

// options of a world. The zero value has all defences.
type options struct {
	rounds    uint64
	colluders int  // that the coordinator reckons with
	forgets   bool // it does not remember after a round what parties have done
	deaf      bool // it is not told of rounds
	tells     bool // parties tell that they have no vector

	whole bool       // each sum is of all parties, and none is recovered
	after drive.Time // the instant at which parties submit, 0 without
	luck  float64    // the probability of their coins, 0 without
	// blank writes what parties submit without a vector; nil: zeros.
	blank func(p *party, v *masking.Vector) error
}

// world is a job in virtual time: a coordinator and parties as programs run them, with links that
// take no time.
type world struct {
	options
	ctx     context.Context
	config  protocol.Config
	now     drive.Time
	server  drive.Lead
	parties []*party

	sums   []sum
	lost   int
	number uint64     // the highest of a session
	forms  int        // sessions that were proposed
	begun  []uint64   // rounds, as often as they began
	over   bool       // a round, since between was called
	start  drive.Time // of the round that began last
	later  []deed
	// between, if set, is called after each round.
	between func() error
}

// A deed is done later, by a party.
type deed struct {
	at drive.Time
	do func() error
}

// sum holds what a coordinator gets in a round.
type sum struct {
	round   uint64
	parties []int
	values  [][]uint64
}

// errStill says that nobody has anything to do any more.
var errStill = errors.New("the job stands still")

// newWorld makes a job with everybody there.
func newWorld(r *runner, o options) (*world, error) {
	signers := textbook.Signers(parties)
	w := &world{options: o, ctx: r.ctx, config: protocol.Config{
		Label:      label,
		Roster:     textbook.RosterOf("party", signers),
		Layout:     layout,
		MinMembers: survivors,
		Colluders:  1,
	}}
	if !o.whole {
		w.config.Recovery = &protocol.Recovery{MinSurvivors: survivors, Threshold: 4}
	}
	var err error
	if w.server, err = drive.NewLead(w.settings(), w.now); err != nil {
		return nil, err
	}
	random := r.o.Rand(0)
	for i, signer := range signers {
		p := &party{world: w, index: i, identity: signer, limit: o.rounds}
		for _, segment := range layout {
			values := make([]uint64, segment.Length)
			for k := range values {
				values[k] = random.Uint64() >> (64 - segment.Bits)
			}
			p.vector = append(p.vector, values)
		}
		w.parties = append(w.parties, p)
	}
	return w, nil
}

func (w *world) session(number uint64) *protocol.Config {
	c := w.config
	c.Number = number
	return &c
}

func (w *world) settings() drive.Settings {
	least := survivors
	if w.whole {
		least = parties
	}
	return drive.Settings{
		Session: w.session, Label: label, Rounds: w.rounds,
		Survivors: least, Colluders: w.colluders,
		Broadcast: func(round uint64, fresh [32]byte) ([32]byte, error) {
			return broadcast(round, fresh), nil
		},
		StepTime: stepTime, Pace: pace,
	}
}

// broadcast is the digest of what a round begins with. The model is always the same.
func broadcast(round uint64, fresh [32]byte) [32]byte {
	h := protocol.NewBroadcastHash()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, round)) // as hash.Hash has it, no error
	_, _ = h.Write(fresh[:])
	return [32]byte(h.Sum(nil))
}

// join makes the parties that have no keys yet, and has all connect.
func (w *world) join() error {
	for _, p := range w.parties {
		if err := p.connect(); err != nil {
			return err
		}
	}
	return nil
}

// run has things happen until something is so.
func (w *world) run(until func() bool) error {
	const most = 1_000_000
	for range most {
		if until() {
			return nil
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
		moved, err := w.step()
		if err == nil && w.over {
			if w.over = false; w.between != nil {
				err = w.between()
			}
		}
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		wake := w.server.Wake()
		for _, d := range w.later {
			wake = min(wake, d.at)
		}
		if wake == drive.Never {
			return errStill
		}
		w.now = max(wake, w.now+1)
	}
	return errStill
}

func (w *world) ended() bool { return w.server.Status().Ended != "" }

// step does what is due now, and reports whether there was anything.
func (w *world) step() (moved bool, err error) {
	if err := w.server.Tick(w.now); err != nil {
		return false, err
	}
	if ready, decided := w.server.Ready(); decided {
		moved = true
		for _, n := range ready.Notices {
			w.note(n)
		}
		// A state that is durable at once: nobody crashes here.
		if apply := w.server.Advance(w.now).Apply; apply != nil {
			w.sums = append(w.sums, sum{apply.Round, apply.Parties, apply.Sum.Values()})
			w.server.Applied(w.now, apply.Round, nil)
		}
		if w.server.Status().Paused { // who attacks, or does not know why, goes on
			w.server.Order(w.now, drive.Order{Do: drive.Resume, Why: "all the same"})
		}
	}
	for _, p := range w.parties {
		took, err := p.pump()
		if err != nil {
			return false, err
		}
		moved = moved || took
	}
	for i := 0; i < len(w.later); i++ {
		if d := w.later[i]; d.at <= w.now {
			w.later = slices.Delete(w.later, i, i+1)
			return true, d.do()
		}
	}
	return moved, nil
}

func (w *world) note(n drive.Notice) {
	switch n.Kind {
	case drive.Forms:
		w.number = max(w.number, n.Session)
		w.forms++
	case drive.Begun:
		w.begun, w.start = append(w.begun, n.Round), w.now
	case drive.Lost:
		w.lost++
		w.over = true
	case drive.Summed:
		w.over = true
	}
}

// resume lets a coordinator go on from another program's state, or from one that it has made up: it
// has no memory of what parties have done.
func (w *world) resume(round, lost uint64, begun drive.Time) error {
	server, err := drive.ResumeServer(w.settings(), w.now, drive.Recorded{
		Round: round, Lost: lost, Begun: begun,
	}, protocol.NewServerSeries(label, w.number+1))
	if err != nil {
		return err
	}
	w.server = server
	return w.join()
}

// forget has the coordinator forget what parties have done, if it does that.
func (w *world) forget() error {
	if !w.forgets || w.ended() {
		return nil
	}
	st := w.server.Status()
	return w.resume(st.Round, st.Lost, st.Begun)
}

// sumsOf returns the sums of a round.
func (w *world) sumsOf(round uint64) (out []sum) {
	for _, s := range w.sums {
		if s.round == round {
			out = append(out, s)
		}
	}
	return out
}

// minus returns a − b in the ring.
func minus(a, b [][]uint64) (out [][]uint64) {
	for j, segment := range layout {
		values := make([]uint64, segment.Length)
		for k := range values {
			values[k] = (a[j][k] - b[j][k]) & (^uint64(0) >> (64 - segment.Bits))
		}
		out = append(out, values)
	}
	return out
}

func equal(a, b [][]uint64) bool { return reflect.DeepEqual(a, b) }
