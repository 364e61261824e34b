package sidecar

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// States of the releases that counted nothing load. What their session has had of rounds counts as
// spent, but for one that waits for the vector.
func TestUncountedStates(t *testing.T) {
	var saved struct {
		Plan, Roster json.RawMessage
		Digest       string
		Seed, Key    string
		States       map[string]string
		Broadcasts   []string
	}
	text, err := os.ReadFile("testdata/party-states-uncounted.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		t.Fatal(err)
	}
	bytesOf := func(text string) []byte {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	seed, key := bytesOf(saved.Seed), bytesOf(saved.Key)
	for name, want := range map[string]uint64{
		"ready": 0, "due 1": 0, "submitted 1": 1, "after 1": 1, "due 2": 1, "submitted 2": 2,
	} {
		s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
		must(t, s, "plan.settle", fmt.Sprintf(`{"plan":%s,"roster":%s}`, saved.Plan, saved.Roster))
		must(t, s, "party.load", `{"settled":1,"number":1}`, seed, key, bytesOf(saved.States[name]))
		if len(s.guards) != 1 {
			t.Fatalf("%s: %d guards", name, len(s.guards))
		}
		for _, g := range s.guards {
			if got := g.counted(); got != (counted{want, want}) {
				t.Errorf("%s: counted %+v, want %+v", name, got, (counted{want, want}))
			}
		}
		if _, number, due := strings.Cut(name, "due "); due {
			round := int(number[0] - '0')
			text := fmt.Sprintf(`{"party":2,"round":%%d,"broadcast":"%s"}`,
				digestOf(saved.Broadcasts[round-1]))
			_, _, err := s.call(&request{call: "party.submit", with: fmt.Appendf(nil, text, round-1),
				blobs: []blob{{bytes: floatBlob([]float64{1, 2, 3})}}})
			if err == nil {
				t.Fatalf("%s: it answers round %d", name, round-1)
			}
			must(t, s, "party.submit", fmt.Sprintf(text, round), floatBlob([]float64{1, 2, 3}))
		}
		// It is saved as one that counts.
		again := must(t, s, "party.save", `{"party":2}`, key)[0]
		if saved, err := openState((*keyexchange.SealKey)(key), again); err != nil || saved.uncounted {
			t.Errorf("%s: saved again: %+v, %v", name, saved.counted, err)
		}
	}
	if len(saved.States) != 6 {
		t.Errorf("%d states", len(saved.States))
	}
}

// A saved party opens whole or not at all: no bit of what was counted, of the submission or of
// the rest can be changed, nothing cut off or added.
func TestSavedPartyIsWhole(t *testing.T) {
	c, key := start(t), bytes.Repeat([]byte{7}, 32)
	settled, seeds := c.parties(3, smallPlan())
	s := c.sit(settled, 1, seeds)
	s.hold(1, "round 1")
	s.begin("round 2")
	if a := s.submit(0, 2, "round 2"); a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	_, state := c.call("party.save", map[string]any{"party": s.parties[0]}, key)
	whole := state[0]
	with := map[string]any{"settled": settled, "number": 1}
	refused := func(what string, state, key []byte) {
		t.Helper()
		if a := c.try("party.load", with, seeds[0], key, state); a.Error == nil ||
			a.Error.Kind != "state" {
			t.Errorf("%s: %+v", what, a.Error)
		}
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1 << (i % 8)
		refused(fmt.Sprint("bit changed in byte ", i), changed, key)
	}
	for _, n := range []int{0, 1, 31, 32, 33, 47, 48, 52, len(whole) - 32, len(whole) - 1} {
		refused(fmt.Sprint("cut to ", n), whole[:n], key)
	}
	refused("longer", append(bytes.Clone(whole), 0), key)
	refused("another key", whole, bytes.Repeat([]byte{8}, 32))
	// What was counted cannot be taken off, as if the state were of a release that counted nothing.
	refused("without the count", whole[countedSize:], key)
	c.call("party.load", with, seeds[0], key, whole)
}

// Identities and keys come in the frame, never in memory that others could read.
func TestSecretsAreNotShared(t *testing.T) {
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	fill(t, s) // 1 to 4
	state := must(t, s, "party.save", `{"party":2}`, make([]byte, 32))[0]
	f := &oneshotFixture
	f.once.Do(func() { makeOneshotFixture(t) })
	must(t, s, "plan.settle", f.plan)
	must(t, s, "oneshot.party", `{"settled":5}`, f.seeds[0])
	must(t, s, "oneshot.member", `{"settled":5}`, f.seeds[2])
	must(t, s, "oneshot.server", `{"settled":5}`)
	coordinator := strings.Repeat("00", 32)
	named := make(map[string]bool)
	for _, k := range []struct {
		call, with string
		blobs      int
		secrets    []int
	}{
		{"identity", `{}`, 1, []int{0}},
		{"party.new", `{"settled":1,"number":2}`, 1, []int{0}},
		{"party.load", `{"settled":1,"number":2}`, 3, []int{0, 1}},
		{"party.save", `{"party":2}`, 1, []int{0}},
		{"server.load", `{"settled":1,"number":2}`, 2, []int{0}},
		{"server.save", `{"server":3}`, 1, []int{0}},
		{"oneshot.party", `{"settled":5}`, 1, []int{0}},
		{"oneshot.party.load", `{"settled":5}`, 3, []int{0, 1}},
		{"oneshot.party.save", `{"object":6}`, 1, []int{0}},
		{"oneshot.member", `{"settled":5}`, 1, []int{0}},
		{"oneshot.member.load", `{"settled":5}`, 3, []int{0, 1}},
		{"oneshot.member.save", `{"object":7}`, 1, []int{0}},
		{"oneshot.server.load", `{"settled":5}`, 2, []int{0}},
		{"oneshot.server.save", `{"object":8}`, 1, []int{0}},
		{"job.join", `{"settled":1,"state":"x","coordinator":"` + coordinator + `"}`, 2, []int{0, 1}},
		{"job.coordinate", `{"settled":1,"state":"x"}`, 3, []int{0, 2}},
	} {
		named[k.call] = true
		for _, secret := range k.secrets {
			r := &request{call: k.call, with: []byte(k.with)}
			for i := range k.blobs {
				r.blobs = append(r.blobs, blob{bytes: make([]byte, 32), shared: i == secret})
			}
			switch k.call {
			case "job.coordinate":
				r.blobs[1].bytes = nil
			case "party.load":
				r.blobs[2].bytes = state
			}
			_, _, err := s.call(r)
			if err == nil || !strings.Contains(err.Error(), "came through shared memory") {
				t.Errorf("%s takes secret %d through shared memory: %v", k.call, secret, err)
			}
		}
	}
	for call := range byName() {
		keyed := strings.HasSuffix(call, ".save") || strings.HasSuffix(call, ".load")
		if keyed && !named[call] && !strings.HasPrefix(call, "ledger.") {
			t.Errorf("%s is not in the list", call)
		}
	}
}
