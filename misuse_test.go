package hushsum

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// Sides whose jobs or rosters differ do not meet, and the party is told in what they
// differ. Were they to meet, keys under the one label would not verify under the other.
func TestMisuseOtherJob(t *testing.T) {
	noisy := testJob()
	noisy.Privacy.Noise, noisy.Privacy.Epsilon, noisy.Privacy.Bits = "discrete-gaussian", 8, 18
	for field, change := range map[string]func(p *job.Job){
		"privacy.clip":     func(p *job.Job) { p.Privacy.Clip *= 2 },
		"privacy.epsilon":  func(p *job.Job) { p.Privacy.Epsilon = 7 },
		"privacy.delta":    func(p *job.Job) { p.Privacy.Delta = 1e-6 },
		"privacy.noise":    func(p *job.Job) { p.Privacy.Noise = "skellam" },
		"privacy.bits":     func(p *job.Job) { p.Privacy.Bits = 19 },
		"model.length":     func(p *job.Job) { p.Model.Length = 6 },
		"rounds":           func(p *job.Job) { p.Rounds = 7 },
		"parties.drop_out": func(p *job.Job) { p.Parties.DropOut = 0.15 },
		"sum.adversary":    func(p *job.Job) { p.Sum.Adversary = "curious" },
		"sum.classical":    func(p *job.Job) { p.Sum.Classical = true },
		"name":             func(p *job.Job) { p.Name = "other" },
		"roster":           nil,
	} {
		t.Run(field, func(t *testing.T) {
			j := newJob(t, noisy, 7)
			other := noisy.Clone()
			roster := j.settled.Roster()
			if change == nil {
				var list []keyexchange.Entry // the last is somebody else
				_, more := identities(t, 8)
				for _, i := range []int{0, 1, 2, 3, 4, 5, 7} {
					list = append(list, keyexchange.Entry{Name: more.Name(i), Key: more.Key(i)})
				}
				var err error
				if roster, err = keyexchange.NewRoster(list); err != nil {
					t.Fatal(err)
				}
			} else {
				change(other)
			}
			settled, err := other.Settle(job.Files{Roster: roster})
			if err != nil {
				t.Fatal(err)
			}
			if settled.Config(1).Label == j.settled.Config(1).Label {
				t.Error("their sessions have one label")
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() { _, _ = j.coordinator(nil).Run(ctx) }()
			p := j.participant(0, nil)
			p.Job = settled
			_, err = p.Run(ctx)
			var differs *DifferenceError
			if !errors.Is(err, ErrJob) || !errors.As(err, &differs) || differs.Field != field ||
				differs.Ours == differs.Theirs {
				t.Errorf("%v", err)
			}
		})
	}
}

// A party whose own vectors cost the job its sum learns what was wrong with them, with nobody to
// listen to its progress.
func TestMisuseVectorThatCostsTheJob(t *testing.T) {
	short := returning([]float64{1, 2}, nil)
	large := job.Job{Name: "large", Rounds: 1, Model: job.Model{Length: 3}}
	clipped := *large.Clone()
	clipped.Privacy.Clip = 1
	for _, one := range []struct {
		name string
		plan *job.Job
		work work
		want error
		says string
	}{
		{"length", &large, short, aggregation.ErrLength, "2 coordinates, want 3"},
		{"length, with a clip", &clipped, short, aggregation.ErrLength, "2 coordinates, want 3"},
		{"not a number", &large, constant(math.NaN()), aggregation.ErrNotFinite, ""},
		{"range", &large, constant(1000), aggregation.ErrSaturated, "±64"},
		{"its own error", &large, returning(nil, errFew), errFew, ""},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), jobTime)
			defer cancel()
			j := newJob(t, one.plan, 3)
			p := j.participant(0, nil)
			p.Work = vectors(one.work)
			go func() { _, _ = j.coordinator(nil).Run(ctx) }()
			for i := 1; i < 3; i++ {
				go func() { _, _ = j.participant(i, nil).Run(ctx) }()
			}
			_, err := p.Run(ctx)
			if !errors.Is(err, ErrRefused) || !errors.Is(err, one.want) ||
				!strings.Contains(err.Error(), one.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A number that a party has made keys for is used no second time, whoever asks, and none that would
// leave few or none to follow.
func TestMisuseReusedNumber(t *testing.T) {
	j := newJob(t, testJob(), 7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := make(chan Event, 16)
	p := j.participant(0, nil)
	p.Lost = &Lost{Rounds: 1, Number: 5}
	p.Progress = func(e Event) { events <- e }
	go func() { _, _ = p.Run(ctx) }()
	_, conn, err := j.memory.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Receive(ctx); err != nil { // hello
		t.Fatal(err)
	}
	for _, number := range []uint64{4, math.MaxUint64, 1 << 62, 5, 5, 0, 1<<62 - 1} {
		if err := conn.Send(ctx, link.NumberFrame(link.KindJoin, number)); err != nil {
			t.Fatal(err)
		}
		if number != 5 {
			for e := range events {
				if e.Kind == host.Refused {
					if !errors.Is(e.Err, ErrNumber) || e.Session != number {
						t.Errorf("%v", e)
					}
					break
				}
			}
			continue
		}
		announce, err := conn.Receive(ctx)
		if err != nil || announce[0] != link.KindMessage {
			t.Fatalf("number %d: %v, %v", number, announce[:1], err)
		}
	}
}
