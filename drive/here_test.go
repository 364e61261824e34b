package drive_test

import (
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/wire"
)

// A party without a connection is here for as long as it is heard of, by calls that carry no
// message too, and for Away after the last.
func TestHeardOf(t *testing.T) {
	c, _ := jobtest.Configs(t, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 1,
		Away: 10 * drive.Second, ComeBack: 20 * drive.Second}, nil)
	s, err := drive.NewLead(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Connected(drive.Second, aParty(0), drive.Hello{})
	s.Gone(2*drive.Second, aParty(0))
	for at, want := drive.Second, true; at < 40*drive.Second; at += drive.Second {
		switch at {
		case 9 * drive.Second, 17 * drive.Second:
			s.Heard(at, aParty(0))
		case 30 * drive.Second: // which is looked at four times in Away
			want = false
		case 27 * drive.Second, 28 * drive.Second, 29 * drive.Second:
			continue
		}
		if err := s.Tick(at); err != nil {
			t.Fatal(err)
		}
		if here := s.At(aParty(0)).Here; here != want {
			t.Errorf("at %d s: %v", at/drive.Second, here)
		}
	}
}

// Material that comes when a round has not begun for want of it, without a new connection, has the
// round begin.
func TestMaterialComesLate(t *testing.T) {
	delay := 10 * drive.Millisecond
	w := jobtest.New(t, 1, jobtest.Options{Parties: 3, Survivors: 3, Rounds: 1,
		Delay: func(party int) drive.Time {
			if party == 2 {
				return delay
			}
			return 10 * drive.Millisecond
		}})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Next.Stage == drive.Preparing })
	delay = 15 * drive.Second // a step waits for ten
	unbegun := func(n drive.Notice) bool { return n.Kind == drive.Unbegun }
	w.Run(func() bool { return slices.ContainsFunc(w.Notices, unbegun) })
	w.Run(func() bool { return w.Server.Status().Round == 1 })
}

// A step waits StepTime for one that is here and silent, says until when, and then for nobody.
func TestUntil(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 4, Survivors: 3, Rounds: 1})
	w.Parties[2].Silent = func(wire.Type) bool { return w.Server.Status().Round > 0 }
	if until := w.Server.Drive().Until(); until != 0 {
		t.Errorf("before anybody is here it waits until %d", until)
	}
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(func() bool { return w.Server.Status().Stage == drive.Submitting })
	at := w.Server.Status()
	if until := w.Server.Drive().Until(); until != at.Since+10*drive.Second {
		t.Errorf("the step of %d waits until %d", at.Since, until)
	}
	w.Run(w.Ended)
	if until := w.Server.Drive().Until(); until != 0 {
		t.Errorf("after the end it waits until %d", until)
	}
}
