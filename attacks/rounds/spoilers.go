package rounds

import (
	"fmt"
	"math"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
)

// shut makes the shares in a submission such that they do not open.
func shut(h wire.Header, message []byte) []byte {
	const others = parties - 1
	if h.Type != wire.TypeMasked {
		return message
	}
	m, err := wire.ParseMasked(message[wire.HeaderSize:], layout.PackedSize(), others, others)
	if err != nil {
		return message
	}
	for i := range m.Shares {
		m.Shares[i][len(m.Shares[i])-1] ^= 1
	}
	return m.Append(message[:wire.HeaderSize:wire.HeaderSize])
}

// runSpoilerAgain has one party spoil every round that it is in, and come again with new keys after
// each that is lost, and now and then: it stays until a session that has formed for it takes over.
func runSpoilerAgain(r *runner) error {
	const rounds = 12
	lost := func(forgets bool) (int, error) {
		w, err := newWorld(r, options{rounds: rounds, colluders: 1, forgets: forgets})
		if err != nil {
			return 0, err
		}
		spoiler := w.parties[bad]
		spoiler.change = shut
		seen := 0
		w.between = func() error {
			if w.lost > seen || w.server.Status().Round%4 == 0 {
				seen = w.lost
				if err := spoiler.renew(false); err != nil {
					return err
				}
			}
			return w.forget()
		}
		if err := w.join(); err != nil {
			return 0, err
		}
		err = w.run(w.ended)
		return rounds - len(w.sums), err
	}
	undefended, err := lost(true)
	if err != nil {
		return err
	}
	defended, err := lost(false)
	if err != nil {
		return err
	}
	r.measured("new keys", "rounds lost, of 12", rounds, exactly(undefended, rounds),
		count{float64(defended), 0, 1})
	return nil
}

// steps lists what a party may keep to itself, in the order of a session and a round.
var steps = []struct {
	name   string
	silent wire.Type
}{
	{"keys", wire.TypeAnnounce},
	{"ciphertexts", wire.TypeEncapsulate},
	{"material", wire.TypeUpload},
	{"submission", wire.TypeMasked},
	{"signature", wire.TypeSigned},
	{"shares", wire.TypeReveal},
}

// runSilence has one party stay connected and say nothing at one step, each time.
func runSilence(r *runner) error {
	rounds := uint64(12)
	if r.o.Long {
		rounds = 100
	}
	own := drive.Time(rounds-1) * pace // what the rounds take by themselves
	waited := func(silent wire.Type, forgets bool) (steps float64, lost int, err error) {
		w, err := newWorld(r, options{rounds: rounds, colluders: 1, forgets: forgets})
		if err != nil {
			return 0, 0, err
		}
		w.parties[bad].silent = silent
		w.between = w.forget
		if err = w.join(); err == nil {
			err = w.run(w.ended)
		}
		return float64(w.now-own) / float64(stepTime), int(rounds) - len(w.sums), err
	}
	// A wait is next to the pace of a round, not after it.
	each := float64(rounds) * float64(stepTime-pace) / float64(stepTime)
	for _, step := range steps {
		without, _, err := waited(step.silent, true)
		if err != nil {
			return err
		}
		with, lost, err := waited(step.silent, false)
		if err != nil {
			return err
		}
		name, n := "no "+step.name, int(rounds)
		r.measured(name, fmt.Sprintf("StepTimes waited in %d rounds", n), n,
			count{without, each, math.Inf(1)}, count{with, 0, math.Log2(float64(n))})
		r.measured(name, fmt.Sprintf("rounds lost, of %d", n), n, unmeasured, exactly(lost, 0))
	}
	return nil
}

// runSetBack has a coordinator start from the state that it had two rounds ago.
func runSetBack(r *runner) error {
	const rounds, kept, last = 8, 2, 4
	again := func(deaf bool) (begun, lost int, err error) {
		w, err := newWorld(r, options{rounds: rounds, colluders: 1, deaf: deaf})
		if err != nil {
			return 0, 0, err
		}
		var old drive.Saved
		w.between = func() (err error) {
			switch w.server.Status().Round {
			case kept:
				if old.State == nil {
					old, err = w.server.Save(&sealKey)
				}
			case last:
				w.between = nil
				w.begun, w.lost = nil, 0
				w.server, err = drive.LoadLead(w.settings(), &sealKey, w.now, old.State)
				if err == nil {
					err = w.join()
				}
			}
			return err
		}
		if err = w.join(); err == nil {
			err = w.run(w.ended)
		}
		for _, round := range w.begun {
			if round <= last {
				begun++
			}
		}
		return begun, w.lost, err
	}
	begun, lost, err := again(true)
	if err != nil {
		return err
	}
	defended, defendedLost, err := again(false)
	if err != nil {
		return err
	}
	const name = "two rounds back"
	r.measured(name, "rounds asked again", last-kept, exactly(begun, last-kept), exactly(defended, 0))
	r.measured(name, "rounds lost afterwards", rounds-kept, exactly(lost, last-kept),
		exactly(defendedLost, 0))
	return nil
}
