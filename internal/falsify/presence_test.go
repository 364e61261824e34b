package falsify

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/entropy"
	"github.com/hushsum/hushsum/job"
)

// luck tosses a party's coin as drive does.
func luck(q float64) bool {
	up, err := entropy.Coin("falsify", nil, q)
	return up && err == nil
}

// told has what an observer of a party's line knows of a frame.
type told struct {
	at     time.Duration
	kind   byte
	length int
}

// tap is a party's link, of which an observer sees lengths and instants.
type tap struct {
	hushsum.Dialer
	began time.Time
	lock  sync.Mutex
	out   []told
}

type tapped struct {
	hushsum.Link
	of *tap
}

func (t *tap) Dial(ctx context.Context) (hushsum.Link, error) {
	link, err := t.Dialer.Dial(ctx)
	return &tapped{link, t}, err
}

func (l *tapped) Send(ctx context.Context, frame []byte) error {
	l.of.lock.Lock()
	l.of.out = append(l.of.out, told{time.Since(l.of.began), frame[0], len(frame)})
	l.of.lock.Unlock()
	return l.Link.Send(ctx, frame)
}

// programs say what may become of a program, by its rows.
var programs = []string{"makes a vector", "is slow", "overruns", "fails", "panics",
	"makes one of another length", "makes one of no number"}

// errRow is a program's own.
var errRow = errors.New("a row is odd")

// observed are jobs with noise; of those without an instant only lengths are held against each
// other.
var observed = []struct{ name, set string }{
	{"secret coins", "parties.hidden=0.5 privacy.submit_after=2s model.length=20 rounds=6"},
	{"records", "privacy.unit=record privacy.records=9 training.batch=3 privacy.submit_after=2s " +
		"model.length=7 rounds=2"},
	{"an instant", "privacy.submit_after=2s model.length=3 rounds=2"},
	{"no instant", "model.length=5 rounds=2"},
}

// F3: of what a unit does to a party, its line shows nothing: the same messages leave, of the same
// lengths, at the same instants.
func TestPresence(t *testing.T) {
	for _, c := range observed {
		d := draft{}
		d.put("name", "a")
		d.put("parties.count", 4)
		d.put("sum.recovery", true)
		d.put("sum.classical", true)
		d.put("privacy.noise", "discrete-gaussian")
		d.put("privacy.multiplier", 1.0)
		d.put("privacy.clip", 1.0)
		d.set = append(d.set, splitFields(c.set)...)
		s, err := d.settle()
		if err != nil {
			t.Fatal(c.name, err)
		}
		var want []told
		for _, name := range programs {
			if name == "overruns" && s.SubmitAfter() == 0 {
				continue // nobody tells it to end
			}
			got := line(t, s, name)
			if s.SubmitAfter() == 0 {
				for i := range got {
					got[i].at = 0
				}
			}
			if want == nil {
				want = got // of a vector
			}
			if len(want) < 3*s.Rounds() || !slices.Equal(got, want) {
				t.Errorf("F3 refutes %s where the program %s: it sends\n%s\nand without that\n%s", c.name,
					name, lines(got), lines(want))
			}
		}
	}
}

func lines(of []told) string {
	var b strings.Builder
	for _, x := range of {
		fmt.Fprintf(&b, "  %8v kind %2d, %d bytes\n", x.at, x.kind, x.length)
	}
	return b.String()
}

// keyOf is the key of a party of roster.
func keyOf(i int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(binary.BigEndian.AppendUint64([]byte(fmt.Sprintf("%-24s", "party")),
		uint64(i)))
}

// line holds a job in virtual time, and returns what the first party sends.
func line(t *testing.T, s *job.Settled, program string) (out []told) {
	synctest.Test(t, func(t *testing.T) {
		var network hushsum.Memory
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var all sync.WaitGroup
		first := &tap{began: time.Now()}
		for i := range s.Roster().Len() {
			p := &hushsum.Participant[float64]{Job: s, Identity: keyOf(i), Dialer: network.Dialer(i)}
			if i == 0 {
				first.Dialer = p.Dialer
				p.Dialer = first
			}
			p.Work = func(
				ctx context.Context, _ hushsum.Round[float64],
			) (u hushsum.Update[float64], err error) {
				u.Samples = 1
				v := make([]float64, s.Length())
				if u.Vector = v; i > 0 {
					return u, nil
				}
				switch program {
				case "is slow":
					time.Sleep(1500 * time.Millisecond)
				case "overruns":
					<-ctx.Done()
					time.Sleep(100 * time.Millisecond)
					return u, ctx.Err()
				case "fails":
					return u, errRow
				case "panics":
					panic(errRow)
				case "makes one of another length":
					u.Vector = append(v, 0)
				case "makes one of no number":
					v[0] = math.NaN()
				}
				return u, nil
			}
			all.Go(func() {
				if _, err := p.Run(ctx); err != nil && !errors.Is(err, hushsum.ErrAbsent) {
					t.Errorf("party %d: %v", i, err)
				}
			})
		}
		c := &hushsum.Coordinator[float64]{Job: s, Listener: &network}
		if _, err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		all.Wait()
		out = first.out
	})
	return out
}
