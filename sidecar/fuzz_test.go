package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/internal/strict"
)

// Whatever comes is a call, or an error that says why not; what is announced and does not
// come takes no room.
func FuzzRequest(f *testing.F) {
	f.Add(frameOf(`{"id":1,"call":"hello","with":{"version":3}}`))
	f.Add(frameOf(`{"id":2,"call":"party.new","with":{"settled":1},"blobs":[{"length":2}]}`, []byte("ab")))
	f.Add(frameOf(`{"id":3,"call":"x","blobs":[{"length":8,"offset":0}]}`))
	f.Add(frameOf(`{"id":1,"id":1,"call":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		r, err := readRequest(bufio.NewReader(in), Memory{})
		switch {
		case err == nil:
			size := 0
			for _, b := range r.blobs {
				size += len(b.bytes)
			}
			if r.call == "" || size > len(b) {
				t.Errorf("a call %q with %d bytes of blobs from %d", r.call, size, len(b))
			}
		case r != nil:
			if !errors.Is(err, ErrRequest) {
				t.Error(err)
			}
		case err != io.EOF && !errors.Is(err, ErrFrame):
			t.Error(err)
		}
	})
}

// What the strict decoder takes means the same to any other.
func FuzzStrict(f *testing.F) {
	f.Add([]byte(`{"id":1,"call":"a","with":{"x":[1,{"y":"z"}]}}`))
	f.Add([]byte(`{"id":1,"Call":"a"}`))
	f.Add([]byte(`{"with":{"a":1,"a":2}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var h requestHeader
		if strict.JSON(text, &h) != nil {
			return
		}
		var first, second map[string]any
		if err := json.Unmarshal(text, &first); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, &second); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first["with"], second["with"]) {
			t.Errorf("%q was read as %q", text, again)
		}
	})
}

// No call brings the sidecar down, or is answered with a fault of the library. Those that
// go to the network or to files are left out, and those that are meant to take long.
func FuzzCall(f *testing.F) {
	left := []string{"job.", "account.", "noise.", "plan.settle", "trial."}
	f.Add("rows.new", []byte(`{"features":1}`), make([]byte, 8))
	f.Add("party.receive", []byte(`{"party":2}`), []byte{2, 1})
	f.Add("party.load", []byte(`{"settled":1,"number":1}`), make([]byte, 32))
	f.Add("server.receive", []byte(`{"server":3,"party":0}`), []byte{2, 1})
	f.Add("server.load", []byte(`{"settled":1,"number":1}`), make([]byte, 32))
	f.Add("party.submit", []byte(`{"party":2,"round":1,"broadcast":"00"}`), make([]byte, 8))
	f.Add("party.submit", []byte(`{"party":2,"round":1,"broadcast":"`+strings.Repeat("00", 32)+`"}`),
		make([]byte, 8))
	f.Add("party.new", []byte(`{"settled":1,"number":2,"spent":1}`), make([]byte, 32))
	f.Add("party.output", []byte(`{"party":2}`), []byte{})
	f.Add("ledger.load", []byte(`{}`), []byte(`{"version":1}`))
	f.Add("ledger.spend", []byte(`{"ledger":4,"clients":["a"],"run":{"mechanism":"gaussian"}}`),
		[]byte{})
	// A round of one message, at its steps: see fillOneshot.
	for _, call := range []string{"oneshot.submit", "oneshot.party.save", "oneshot.party.output"} {
		f.Add(call, []byte(`{"object":2}`), make([]byte, 8))
		f.Add(call, []byte(`{"object":2}`), []byte{0xf0})
	}
	for _, call := range []string{"oneshot.answer", "oneshot.member.save", "oneshot.member.output"} {
		f.Add(call, []byte(`{"object":4}`), []byte{0xf0})
		f.Add(call, []byte(`{"object":6}`), []byte{0xf0, 0, 60, 1})
	}
	for _, call := range []string{"oneshot.receive", "oneshot.invite", "oneshot.open", "oneshot.batch",
		"oneshot.settle", "oneshot.close", "oneshot.certificate", "oneshot.uncover", "oneshot.sum",
		"oneshot.server.save", "oneshot.server.state"} {
		for _, server := range []string{`{"object":7}`, `{"object":8}`, `{"object":9}`} {
			for _, b := range [][]byte{[]byte("model"), {0xf1}, {0xf1, 0, 50, 1}} {
				f.Add(call, []byte(server), b)
			}
		}
	}
	for _, call := range []string{"oneshot.party", "oneshot.member", "oneshot.server",
		"oneshot.party.load", "oneshot.member.load", "oneshot.server.load"} {
		f.Add(call, []byte(`{"settled":1}`), make([]byte, 32))
		f.Add(call, []byte(`{"settled":1,"spent":1}`), make([]byte, 32))
	}
	f.Fuzz(func(t *testing.T, call string, with, b []byte) {
		for _, family := range left {
			if strings.HasPrefix(call, family) {
				return
			}
		}
		if strings.HasPrefix(call, "ledger.sp") && bytes.Contains(with, []byte("noise")) {
			return // it would be accounted for
		}
		s := &sidecar{ctx: t.Context(), objects: make(map[uint64]any)}
		r := &request{id: 1, call: call, with: with}
		if len(b) > 0 {
			r.blobs = []blob{{bytes: b}}
		}
		if call == "party.load" || call == "server.load" {
			r.blobs = []blob{{bytes: make([]byte, 32)}, {bytes: make([]byte, 32)}, {bytes: b}}
		}
		if strings.HasPrefix(call, "oneshot.") {
			fillOneshot(t, s)
			oneshotBlobs(r, b)
		} else {
			fill(t, s)
		}
		result, _, err := s.call(r)
		if answer, ok := result.(streamed); ok {
			if n, err := answer.blob.WriteTo(io.Discard); err != nil || n != answer.blob.Size() {
				t.Errorf("a blob of %d bytes has %d: %v", answer.blob.Size(), n, err)
			}
			answer.done()
		}
		if errors.Is(err, errInternal) {
			t.Error(err)
		}
		if err != nil && (newFault(err).Kind == "failed" || newFault(err).Text == "") {
			t.Errorf("%s %s: an error of no kind: %v", call, with, err)
		}
	})
}

// fill gives a sidecar a plan (1), a party (2), a server (3) and a ledger (4).
func fill(t *testing.T, s *sidecar) {
	t.Helper()
	// The keys of the seeds 0…0 and 1 0…0 (RFC 8032).
	must(t, s, "plan.settle", `{"plan":{"name":"a","rounds":1,"length":1,"clip":1,"adversary":2},`+
		`"roster":[`+
		`{"name":"a","key":"3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"},`+
		`{"name":"b","key":"cecc1507dc1ddd7295951c290888f095adb9044d1b73d696e6df065d683bd4fc"}]}`)
	must(t, s, "party.new", `{"settled":1,"number":1}`, make([]byte, 32))
	must(t, s, "server.new", `{"settled":1,"number":1}`)
	must(t, s, "ledger.new", `{"epsilon":1,"delta":0}`)
}

// must calls, and returns the blobs of the answer.
func must(t *testing.T, s *sidecar, call, with string, blobs ...[]byte) [][]byte {
	t.Helper()
	r := &request{call: call, with: []byte(with)}
	for _, b := range blobs {
		r.blobs = append(r.blobs, blob{bytes: bytes.Clone(b)})
	}
	result, out, err := s.call(r)
	if err != nil {
		t.Fatal(call, err)
	}
	if answer, ok := result.(streamed); ok {
		answer.done()
	}
	return out
}

// oneshotFixture is the plan of two parties and four members, their seeds, and their and
// the server's states, saved once for all inputs: making keys takes milliseconds.
var oneshotFixture struct {
	once    sync.Once
	plan    string
	seeds   [][]byte // of the parties, then of the members
	opening []byte
	first   []byte // a submission
	servers [][]byte
	member  []byte
}

func makeOneshotFixture(t *testing.T) {
	t.Helper()
	f := &oneshotFixture
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	var names []string
	for i := range 6 {
		seed := bytes.Repeat([]byte{byte(i + 1)}, 32)
		f.seeds = append(f.seeds, seed)
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		names = append(names, fmt.Sprintf(`{"name":"n%d","key":"%x"}`, i, []byte(key)))
	}
	f.plan = `{"plan":{"name":"a","rounds":1,"length":1,"clip":1,"protocol":"oneshot"},"roster":[` +
		strings.Join(names[:2], ",") + `],"committee":[` + strings.Join(names[2:], ",") + `]}`
	must(t, s, "plan.settle", f.plan)
	for i, seed := range f.seeds {
		call := "oneshot.party"
		if i >= 2 {
			call = "oneshot.member"
		}
		must(t, s, call, `{"settled":1}`, seed)
	}
	must(t, s, "oneshot.server", `{"settled":1}`)
	const server = `{"object":8}`
	object := func(i int) string { return fmt.Sprintf(`{"object":%d}`, i+2) }
	toAll := func(message []byte) {
		for i := 2; i < 6; i++ {
			for _, answer := range must(t, s, "oneshot.answer", object(i), message) {
				must(t, s, "oneshot.receive", server, answer)
			}
		}
	}
	toAll(must(t, s, "oneshot.invite", server)[0])
	f.opening = must(t, s, "oneshot.open", server, []byte("model"))[0]
	toAll(f.opening)
	key := make([]byte, 32)
	save := func() {
		f.servers = append(f.servers, must(t, s, "oneshot.server.save", server, key)[0])
	}
	save()
	for i := range 2 {
		m := must(t, s, "oneshot.submit", object(i), f.opening, []byte("model"), make([]byte, 8))[0]
		must(t, s, "oneshot.receive", server, m)
		f.first = m
	}
	batch := must(t, s, "oneshot.batch", server)
	for i, m := range batch {
		for _, answer := range must(t, s, "oneshot.answer", object(i+2), m) {
			must(t, s, "oneshot.receive", server, answer)
		}
	}
	toAll(must(t, s, "oneshot.settle", server)[0])
	toAll(must(t, s, "oneshot.close", server)[0])
	save()
	f.member = must(t, s, "oneshot.member.save", object(4), key)[0]
	toAll(must(t, s, "oneshot.certificate", server)[0])
	save()
}

// fillOneshot gives a sidecar a plan (1), two parties that have not submitted (2, 3), two
// members that have done nothing (4, 5), one that has signed (6), and the server of an open
// round (7), of one with all signatures (8) and of one with all parts of the sum (9).
func fillOneshot(t *testing.T, s *sidecar) {
	t.Helper()
	f, key := &oneshotFixture, make([]byte, 32)
	f.once.Do(func() { makeOneshotFixture(t) })
	const with = `{"settled":1}`
	must(t, s, "plan.settle", f.plan)
	for i := range 4 {
		must(t, s, []string{"oneshot.party", "oneshot.member"}[i/2], with, f.seeds[i])
	}
	must(t, s, "oneshot.member.load", with, f.seeds[4], key, f.member)
	for _, state := range f.servers {
		must(t, s, "oneshot.server.load", with, key, state)
	}
}

// oneshotBlobs gives a call as many blobs as it takes, of which b is the one that matters:
// by its first byte it holds what a party or the server has really sent, changed by the rest.
func oneshotBlobs(r *request, b []byte) {
	f, key := &oneshotFixture, make([]byte, 32)
	kind := byte(0)
	if len(b) > 0 {
		kind = b[0]
	}
	if kind >= 0xf0 {
		base := bytes.Clone([][]byte{f.opening, f.first}[kind&1])
		for k := 1; k+2 < len(b); k += 3 { // a place and what is there
			base[(int(b[k])<<8|int(b[k+1]))%len(base)] ^= b[k+2]
		}
		b = base
	}
	switch r.call {
	case "oneshot.submit":
		r.blobs = []blob{{bytes: bytes.Clone(f.opening)}, {bytes: []byte("model")}, {bytes: b}}
		if kind >= 0xf0 {
			r.blobs[0].bytes, r.blobs[2].bytes = b, make([]byte, 8)
		}
	case "oneshot.party", "oneshot.member":
		r.blobs = []blob{{bytes: bytes.Clone(f.seeds[kind%6])}}
	case "oneshot.party.load", "oneshot.member.load":
		r.blobs = []blob{{bytes: bytes.Clone(f.seeds[kind%6])}, {bytes: key}, {bytes: b}}
	case "oneshot.server.load":
		r.blobs = []blob{{bytes: key}, {bytes: b}}
	case "oneshot.receive", "oneshot.open", "oneshot.answer", "oneshot.uncover", "oneshot.sum":
		r.blobs = []blob{{bytes: b}}
	case "oneshot.party.save", "oneshot.member.save", "oneshot.server.save":
		r.blobs = []blob{{bytes: key}}
	default:
		r.blobs = nil
	}
}
