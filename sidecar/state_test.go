package sidecar

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

// A saved party opens whole or not at all: no bit of what was counted, of the submission or of
// the rest can be changed, nothing cut off or added.
func TestSavedPartyIsWhole(t *testing.T) {
	c, key := start(t), bytes.Repeat([]byte{7}, 32)
	settled, seeds := c.parties(3, smallJob)
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
	// What was counted cannot be taken off.
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
	settleOneshot(t, s)
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
