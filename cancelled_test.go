package hushsum

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// hanging is Work that answers from its second call on: the first waits until it is told to end.
func hanging(causes chan<- error) func(context.Context, uint64, []float64) ([]float64, error) {
	calls := 0
	return func(ctx context.Context, _ uint64, model []float64) ([]float64, error) {
		if calls++; calls > 1 {
			return make([]float64, len(model)), nil
		}
		causes <- nil // it has begun
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	}
}

// Work ends when the round goes on without it, while messages are taken: here the keys of a session
// that takes over. The next round is answered.
func TestWorkCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newScript(t, ctx)
	p, causes, shown := s.participant(0, nil), make(chan error), []uint64(nil)
	p.Work = vectors(hanging(causes))
	p.Submitted = func(round uint64, _ [][]uint64) { shown = append(shown, round) }
	stop := s.run(p)
	s.accept()
	s.others()
	if !s.form(1) {
		t.Fatal("no session")
	}
	s.begin(1, true)
	<-causes
	if !s.form(2) {
		t.Fatal("it takes no message while it works")
	}
	s.begin(2, true)
	if err := <-causes; !errors.Is(err, host.ErrWentOn) {
		t.Errorf("Work is told: %v", err)
	}
	if !s.take() {
		t.Error("it does not answer the next round")
	}
	// What is sent again over another connection is not shown again.
	s.links[0].Close()
	for in, ok := s.next(); ok && in.frame != nil; in, ok = s.next() {
	}
	s.accept()
	s.of(link.KindMessage)
	if err := stop(); !errors.Is(err, context.Canceled) || !slices.Equal(shown, []uint64{2}) {
		t.Errorf("%v, shown of rounds %v", err, shown)
	}
}

// A party of one-message sums likewise, whose next opening tells that the round went on.
func TestWorkCancelledOneshot(t *testing.T) {
	o := newOpenings(t)
	p, causes := o.participant(0, nil), make(chan error)
	p.Work = vectors(hanging(causes))
	r := o.party(p)
	r.send(o.open()...)
	<-causes
	r.send(o.open()...)
	if err := <-causes; !errors.Is(err, host.ErrWentOn) {
		t.Errorf("Work is told: %v", err)
	}
	if e := r.event(host.Absent); e.Round != 1 {
		t.Errorf("%v", e)
	}
	if e := r.event(host.Submitted); e.Round != 2 {
		t.Errorf("%v", e)
	}
	r.receive()
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// That a state is lost is saved before a coordinator is dialed, by participants of both kinds of
// sums, and by members: the next start needs no word of it.
func TestLostSaved(t *testing.T) {
	dialed, key := errors.New("dialed"), &keyexchange.SealKey{1}
	for name, run := range map[string]func(s Store, c Counter, lost *Lost) error{
		"pairwise": func(s Store, c Counter, lost *Lost) error {
			j := newJob(t, testJob(), 4)
			p := j.participant(0, s)
			p.Key, p.Counter, p.Lost, p.Dialer = key, c, lost, refusing{dialed}
			_, err := p.Run(t.Context())
			return err
		},
		"one-message": func(s Store, c Counter, lost *Lost) error {
			j := newCommitteeJob(t, oneshotJob(), 4, 4)
			p := j.participant(0, s)
			p.Key, p.Counter, p.Lost, p.Dialer = key, c, lost, refusing{dialed}
			if lost != nil {
				p.Lost = &Lost{Rounds: lost.Rounds}
			}
			_, err := p.Run(t.Context())
			return err
		},
		"member": func(s Store, c Counter, lost *Lost) error {
			j := newCommitteeJob(t, oneshotJob(), 4, 4)
			m := Member{Job: j.settled, Identity: j.members[0], Store: s, Key: key, Counter: c,
				Dialer: refusing{dialed}}
			if lost != nil {
				m.Lost = &Lost{Rounds: lost.Rounds}
			}
			return m.Run(t.Context())
		},
	} {
		folder := t.TempDir()
		store := FileStore(filepath.Join(folder, "state"))
		counter := FileCounter(filepath.Join(folder, "counter"))
		if err := counter.Advance(3); err != nil {
			t.Fatal(err)
		}
		if err := run(store, counter, nil); !errors.Is(err, ErrOldState) {
			t.Errorf("%s, without a word: %v", name, err)
		}
		if err := run(store, counter, &Lost{Rounds: 1, Number: 7}); !errors.Is(err, dialed) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(string(store) + ".0"); err != nil {
			t.Errorf("%s: nothing is saved: %v", name, err)
		}
		if err := run(store, counter, nil); !errors.Is(err, dialed) {
			t.Errorf("%s, the next start: %v", name, err)
		}
	}
}

// refusing is a Dialer whose first connection ends Run.
type refusing struct{ why error }

func (r refusing) Dial(context.Context) (Link, error) { return nil, errors.Join(ErrPeer, r.why) }

// Parties that lost their coordinator do not all dial again at once.
func TestDialsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		j := newJob(t, testJob(), 4)
		var at [2][]time.Time
		for k := range at {
			p := j.participant(k, nil)
			p.Dialer = failing(func() { at[k] = append(at[k], time.Now()) })
			_, _ = p.Run(ctx)
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
		}
		for k, times := range at {
			for i := range min(len(times), 9) {
				at[k][i] = time.Unix(0, int64(times[i].Sub(times[0])))
			}
		}
		if slices.Equal(at[0][:9], at[1][:9]) {
			t.Errorf("both dial after %v", at[0][:9])
		}
	})
}

// failing is a Dialer without a coordinator.
type failing func()

func (f failing) Dial(context.Context) (Link, error) {
	f()
	return nil, errors.New("nobody is there")
}

// A party without a store, whose coordinator asks for a submission that has made room for one that
// was refused, goes on.
func TestNothingKept(t *testing.T) {
	if _, err := new(host.PartVault).Get(drive.SubmissionName); !errors.Is(err, ErrStore) {
		t.Error(err)
	}
}
