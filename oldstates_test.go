package hushsum

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// States that the last release saved are loaded and led to the end: of a job of four rounds among
// five parties, ended in its third round, in which four had submitted and one was at work.
// What the present session has had of rounds counts as spent.
func TestOldStates(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/states.json")
	if err != nil {
		t.Fatal(err)
	}
	var saved map[string]struct {
		State []byte            `json:"state"`
		Long  map[string][]byte `json:"long"`
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	store := func(name string) *MemoryStore {
		if saved[name].State == nil {
			t.Fatalf("there is no state of %s", name)
		}
		return &MemoryStore{state: saved[name].State, long: saved[name].Long}
	}
	j := oldJob(t, &job.Plan{Name: "test", Rounds: 4, Length: 5, Clip: 100, DropOut: 0.3,
		Classical: true}, 5)
	j.key = &keyexchange.SealKey{7}
	for i := range j.signers {
		p := &participant{Participant: *j.participant(i, store(string(rune('0'+i))))}
		if err := p.load(); err != nil {
			t.Fatal(err)
		}
		guard := p.party.Guard()
		want := uint64(3)
		if i == 4 {
			want = 2 // it was at work
		}
		if guard.Count() != want || guard.Last() != want {
			t.Errorf("party %d: %d rounds are counted, the last is %d, want %d", i, guard.Count(),
				guard.Last(), want)
		}
		p.vault.close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	for i := range j.signers {
		p := j.participant(i, store(string(rune('0'+i))))
		go func() {
			if _, err := p.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		}()
	}
	c := j.coordinator(store("coordinator"))
	c.Apply = nil
	result, err := c.Run(ctx)
	if err != nil || result.Rounds != 4 || result.Lost != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	for k, x := range result.Model {
		if want := 4 * 3.; math.Abs(x-want) > 1e-6 {
			t.Errorf("coordinate %d is %v, want %v", k, x, want)
		}
	}
}

// A coordinator of the last release is followed by this one at each stage of the set-up of a
// session and of a round, with its parties as they were: no round is lost.
func TestOldStages(t *testing.T) {
	text, err := os.ReadFile("testdata/stages.json")
	if err != nil {
		t.Fatal(err)
	}
	var saved map[string]map[string]struct {
		State []byte            `json:"state"`
		Long  map[string][]byte `json:"long"`
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	if len(saved) != 12 {
		t.Errorf("%d stages", len(saved))
	}
	for stage, images := range saved {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := &job.Plan{Name: "stages", Rounds: 5, Length: 3, Clip: 100, DropOut: 0.25,
					Classical: stage != "exchanging keys"}
				h := &held{group: oldJob(t, plan, 4)}
				h.key = &keyexchange.SealKey{7}
				h.ctx, h.close = context.WithCancel(t.Context())
				defer h.wait.Wait()
				defer h.close()
				store := func(name string) *MemoryStore {
					return &MemoryStore{state: images[name].State, long: images[name].Long}
				}
				for i := range h.signers {
					h.start(h.participant(i, store(fmt.Sprint(i))))
				}
				c := h.coordinator(store("coordinator"))
				c.Apply, c.StepTime = nil, time.Hour
				result, err := c.Run(h.ctx)
				if err != nil || result.Rounds != 5 || result.Lost != 0 {
					t.Fatalf("%+v, %v\n%v", result, err, h.events)
				}
				// One party or another was not in a round.
				if x := result.Model[0]; x < 5*2-1e-3 || x > 5*(1+3+4)/3.+1e-3 {
					t.Errorf("the model is %v", result.Model)
				}
			})
		})
	}
}

// oldJob returns a group that runs a job that began under a plan.
func oldJob(t *testing.T, plan *job.Plan, n int) *group {
	t.Helper()
	signers, roster := identities(t, n)
	settled, err := plan.Settle(roster)
	if err != nil {
		t.Fatal(err)
	}
	return newGroup(t, settled, signers)
}
