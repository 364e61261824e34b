package drive_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

var errRows = errors.New("too few rows of a class")

// failures are the ways in which a program has no vector.
var failures = map[string]func(a *drive.Answer){
	"an error":           func(a *drive.Answer) { a.Err, a.Fill = errRows, nil },
	"what does not fit":  func(a *drive.Answer) { a.Fill = none },
	"half of a vector":   func(a *drive.Answer) { a.Fill = half },
	"an error when full": func(a *drive.Answer) { a.Fill = full },
}

func none(*masking.Vector) error { return errRows }

// half writes the first number, and then has no second one.
func half(v *masking.Vector) error {
	if err := v.Store(0, 0, []uint64{9}); err != nil {
		return err
	}
	return errRows
}

func full(v *masking.Vector) error {
	if err := v.Set([]uint64{9, 9}); err != nil {
		return err
	}
	return errRows
}

// told is all that others see of party 0 in a round: what leaves, and how long that is.
type told struct {
	saves   bool
	lengths []int
	away    []drive.Absence
}

// With noise a party without a vector submits zeros and noise, and others see what they see of one
// that has a vector: the same messages, as long, after the same question. Without, they see that it
// is absent.
func TestPartyBlank(t *testing.T) {
	seen := func(t *testing.T, noisy bool, fails func(a *drive.Answer)) (
		out told, r drive.Ready, b *table,
	) {
		b = newTable(t, func(c *drive.PartSettings) {
			if noisy {
				c.Blank = func(_ uint64, v *masking.Vector) error { return v.Set([]uint64{5, 7}) }
			}
		})
		b.form(1)
		b.receive(0, b.begin(1, 1), 1)
		a := answer(drive.AskID{Session: 1, Round: 1}, 1)
		fails(&a)
		r, sent := b.did(0, b.parties[0].Answer(a))
		out.saves, out.away = r.Save, sent.Away
		for _, m := range sent.Send {
			if m.Bytes != nil {
				t.Errorf("%x leaves", m.Bytes)
			}
			out.lengths = append(out.lengths, len(bytesOf(t, b.parties[0].Object(drive.SubmissionName))))
		}
		return out, r, b
	}
	want, r, _ := seen(t, true, func(*drive.Answer) {})
	if !slices.Equal(kinds(r), []drive.ReportKind{drive.Submitted}) || len(want.lengths) != 1 {
		t.Fatalf("with a vector: %+v, %+v", r, want)
	}
	failures := maps.Clone(failures)
	failures["a panic"] = func(a *drive.Answer) {
		a.Fill = func(*masking.Vector) error { panic(errRows) }
	}
	for name, fails := range failures {
		got, r, b := seen(t, true, fails)
		if got.saves != want.saves || !slices.Equal(got.lengths, want.lengths) || len(got.away) != 0 {
			t.Errorf("%s: others see %+v, want %+v", name, got, want)
		}
		cause := errRows
		if name == "a panic" {
			cause = drive.ErrPanic
		}
		b.wantReport(r, drive.Blank, cause)
		b.wantCount(1, 1) // it counts as any other
		for i := 1; i < 3; i++ {
			b.receive(i, b.servers[1].Pending(i)[0], 1)
			b.did(i, b.parties[i].Answer(answer(drive.AskID{Session: 1, Round: 1}, 1)))
		}
		b.end(1)
		b.end(1)
		if sum, err := b.servers[1].Sum(); err != nil || !slices.Equal(sum[0], []uint64{7, 11}) {
			t.Errorf("%s: the sum is %v, %v", name, sum, err)
		}
		if name == "a panic" {
			continue // without noise a program's panic is its own
		}
		if got, r, b = seen(t, false, fails); len(got.lengths) != 0 || len(got.away) != 1 {
			t.Errorf("%s, without noise: %+v", name, got)
		}
		b.wantReport(r, drive.Missed, errRows)
		b.wantCount(0, 0)
	}
}

// Noise that cannot be drawn is a fault of the machine: nothing is counted, and nothing leaves.
func TestPartyBlankFails(t *testing.T) {
	broken := errors.New("no randomness")
	b := newTable(t, func(c *drive.PartSettings) {
		c.Blank = func(uint64, *masking.Vector) error { return broken }
	})
	b.form(1)
	b.receive(0, b.begin(1, 1), 1)
	a := answer(drive.AskID{Session: 1, Round: 1}, 1)
	a.Err = errRows
	if err := b.parties[0].Answer(a); !errors.Is(err, broken) {
		t.Error(err)
	}
	if r, decided := b.parties[0].Ready(); decided {
		t.Errorf("%+v", r)
	}
	b.wantCount(0, 0)
}

// A party's budget is of what is declared, never of what its rows make: whatever it submits, it
// stops in the same round.
func TestGuardDeclared(t *testing.T) {
	limits := drive.LimitsOf(t, 5, 3)
	last := map[string]uint64{}
	for _, name := range []string{"a vector", "zeros"} {
		b := newTable(t, func(c *drive.PartSettings) {
			c.Limits = limits
			c.Blank = func(_ uint64, v *masking.Vector) error { return fill(v) }
		})
		b.form(1)
		for round := uint64(1); round <= limits.Rounds; round++ {
			_, out := b.receive(0, b.begin(1, round), round)
			if out.Ask == nil {
				break
			}
			a := answer(out.Ask.ID, round)
			if name == "zeros" {
				a.Err = errRows
			}
			b.did(0, b.parties[0].Answer(a))
			last[name] = round
			for i := 1; i < 3; i++ {
				b.receive(i, b.servers[1].Pending(i)[0], round)
				id := drive.AskID{Session: 1, Round: round}
				b.did(i, b.parties[i].Answer(answer(id, round)))
			}
			b.end(1)
			b.end(1)
			if _, err := b.servers[1].Sum(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last["a vector"] != 3 || last["zeros"] != 3 {
		t.Errorf("the last rounds are %v, want 3", last)
	}
}

// A lost round is held again as another round of the job: it counts again, with a vector and noise
// of its own, in a message as long. The round itself is not held again, and what was sent is sent
// again byte by byte.
func TestEventsOfRetry(t *testing.T) {
	for _, fails := range []bool{false, true} {
		fills := 0
		b := newTable(t, func(c *drive.PartSettings) {
			c.Blank = func(_ uint64, v *masking.Vector) error {
				fills++
				return fill(v)
			}
		})
		b.form(1)
		var sent [][]byte
		for round := uint64(1); round <= 2; round++ {
			begin := b.begin(1, round)
			b.receive(0, begin, round)
			a := answer(drive.AskID{Session: 1, Round: round}, round)
			if fails {
				a.Err = errRows
			} else {
				a.Fill = func(v *masking.Vector) error {
					fills++
					return fill(v)
				}
			}
			b.did(0, b.parties[0].Answer(a))
			sent = append(sent, bytesOf(t, b.parties[0].Object(drive.SubmissionName)))
			b.receive(0, begin, round)
			if !bytes.Equal(bytesOf(t, b.parties[0].Object(drive.SubmissionName)), sent[round-1]) {
				t.Error("what was sent is another when it is sent again")
			}
			b.wantCount(round, round)
			if round == 1 { // nobody else submits
				if err := b.servers[1].EndStep(); !errors.Is(err, protocol.ErrTooFew) {
					t.Fatal(err)
				}
				for i := range b.parties {
					for _, m := range b.servers[1].Pending(i) {
						b.receive(i, m, 0)
					}
				}
			}
		}
		if len(sent[0]) != len(sent[1]) || bytes.Equal(sent[0], sent[1]) || fills != 2 {
			t.Errorf("%d and %d bytes, made %d times", len(sent[0]), len(sent[1]), fills)
		}
		if guard := b.parties[0].Guard(); !errors.Is(guard.Check(1), drive.ErrRepeated) {
			t.Error("the lost round may be held again")
		}
	}
}

// At an instant the zeros leave that were made with the question, whatever the program has failed
// with by then: to draw their noise at the instant would show in when they leave.
func TestBlankBeforeTheInstant(t *testing.T) {
	for name, fails := range failures {
		drawn := 0
		b := newTable(t, func(c *drive.PartSettings) {
			c.After = 1
			c.Blank = func(_ uint64, v *masking.Vector) error {
				drawn++
				return v.Set([]uint64{5, 7})
			}
		})
		b.form(1)
		b.receive(0, b.begin(1, 1), 1)
		a := answer(drive.AskID{Session: 1, Round: 1}, 1)
		fails(&a)
		r, _ := b.did(0, b.parties[0].Answer(a))
		b.wantReport(r, drive.Missed, errRows)
		before := drawn
		r, sent := b.did(0, b.parties[0].Instant(a))
		b.wantReport(r, drive.Submitted, nil)
		if drawn != before || len(sent.Send) != 1 {
			t.Errorf("%s: at the instant noise is drawn %d times, and %d messages leave", name,
				drawn-before, len(sent.Send))
		}
	}
}
