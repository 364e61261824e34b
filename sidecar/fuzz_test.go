package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/internal/strict"
	declared "github.com/hushsum/hushsum/job"
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
	left := []string{"job.", "account.", "noise.", "trial."}
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
	// Rounds: see fillRounds.
	for _, party := range []int{6, 10, 14} {
		begun := `"round":1,"broadcast":"` + digestOf("model") + `"`
		for _, with := range []string{begun, begun + `,"weight":3`, begun + `,"numbers":"float32"`} {
			for _, vector := range [][]byte{floatBlob([]float64{0.5}), floatBlob([]float32{-9}), {},
				floatBlob([]float64{math.NaN()})} {
				f.Add("party.submit", fmt.Appendf(nil, `{"party":%d,%s}`, party, with), vector)
			}
		}
		for _, numbers := range []string{"", `,"numbers":"float32"`} {
			f.Add("server.sum", fmt.Appendf(nil, `{"server":%d,"broadcast":"%s"%s}`, party+2,
				digestOf("model"), numbers), []byte{})
		}
		f.Add("server.survivors", fmt.Appendf(nil, `{"server":%d}`, party+1), []byte{})
	}
	// A round of one message, at its steps: see fillOneshot.
	for _, call := range []string{"oneshot.submit", "oneshot.party.save", "oneshot.party.output"} {
		f.Add(call, []byte(`{"object":2}`), make([]byte, 8))
		f.Add(call, []byte(`{"object":2}`), []byte{0xf0})
	}
	for _, call := range []string{"oneshot.answer", "oneshot.member.save", "oneshot.member.output"} {
		f.Add(call, []byte(`{"object":4}`), []byte{0xf0})
		f.Add(call, []byte(`{"object":6}`), []byte{0xf0, 0, 60, 1})
	}
	for _, call := range []string{"oneshot.receive", "oneshot.invite", "oneshot.open", "oneshot.coin",
		"oneshot.batch", "oneshot.settle", "oneshot.close", "oneshot.certificate", "oneshot.uncover",
		"oneshot.sum", "oneshot.server.save", "oneshot.server.state"} {
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
		if len(b) > 0 || call == "party.submit" { // with no vector
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
			fillRounds(t, s)
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

// fuzzJobs are jobs of two parties: of vectors that are clipped, of vectors that have weights and
// signs too, and of vectors with noise.
var fuzzJobs = []string{fuzzJob, fuzzJob + "sum.max_weight = 8\ntraining.mask = \"soft\"\n",
	fuzzJob + "privacy.noise = \"discrete-gaussian\"\nprivacy.epsilon = 8.0\n"}

const fuzzJob = `name = "a"
rounds = 1
parties.count = 2
privacy.clip = 1.0
model.length = 1
sum.adversary = "curious"
sum.recovery = true
`

// fuzzRoster names the parties: their keys are those of the seeds 0…0 and 1 0…0 (RFC 8032).
const fuzzRoster = `{"roster":[` +
	`{"name":"a","key":"3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"},` +
	`{"name":"b","key":"cecc1507dc1ddd7295951c290888f095adb9044d1b73d696e6df065d683bd4fc"}]}`

// fill gives a sidecar a job (1), a party (2), a server (3) and a ledger (4).
func fill(t *testing.T, s *sidecar) {
	t.Helper()
	must(t, s, "job.settle", fuzzRoster, []byte(fuzzJob))
	must(t, s, "party.new", `{"settled":1,"number":1}`, make([]byte, 32))
	must(t, s, "server.new", `{"settled":1,"number":1}`)
	must(t, s, "ledger.new", `{"epsilon":1,"delta":0}`)
}

// roundsFixture holds, for each of fuzzJobs, the states of a party that has a round to submit in,
// of its server, and of the server when it has the sum.
var roundsFixture struct {
	once     sync.Once
	settled  []*declared.Settled
	parties  [][]byte
	servers  [][]byte
	finished [][]byte
}

func makeRoundsFixture(t *testing.T) {
	t.Helper()
	f, key := &roundsFixture, make([]byte, 32)
	for _, text := range fuzzJobs {
		s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
		must(t, s, "job.settle", fuzzRoster, []byte(text))
		settled, err := lookup[*declared.Settled](s, 1, "job")
		if err != nil {
			t.Fatal(err)
		}
		f.settled = append(f.settled, settled)
		const of, server = `{"settled":1,"number":1}`, `{"server":2}`
		must(t, s, "server.new", of)
		receive := func(party int, messages ...[]byte) {
			for _, m := range messages {
				must(t, s, "server.receive", fmt.Sprintf(`{"server":2,"party":%d}`, party), m)
			}
		}
		for i := range 2 {
			receive(i, must(t, s, "party.new", of, append([]byte{byte(i)}, make([]byte, 31)...))[0])
		}
		step := func(call, with string) { // of each, in order, since all are told
			for i, m := range must(t, s, call, with) {
				receive(i, must(t, s, "party.receive", fmt.Sprintf(`{"party":%d}`, i+3), m)...)
			}
		}
		step("server.keys", server)
		step("server.members", server)
		step("server.begin", `{"server":2,"broadcast":"`+digestOf("model")+`"}`)
		f.parties = append(f.parties, must(t, s, "party.save", `{"party":3}`, key)[0])
		f.servers = append(f.servers, must(t, s, "server.save", server, key)[0])
		for i := range 2 {
			with := fmt.Sprintf(`{"party":%d,"round":1,"broadcast":"%s"}`, i+3, digestOf("model"))
			receive(i, must(t, s, "party.submit", with, make([]byte, 8))...)
		}
		step("server.survivors", server)
		step("server.certificate", server)
		f.finished = append(f.finished, must(t, s, "server.save", server, key)[0])
	}
}

// fillRounds gives a sidecar for each of fuzzJobs a job, a party and a server in a round, and a
// server that has the sum: 5 to 8, 9 to 12 and 13 to 16.
func fillRounds(t *testing.T, s *sidecar) {
	t.Helper()
	f, key := &roundsFixture, make([]byte, 32)
	f.once.Do(func() { makeRoundsFixture(t) })
	for i, settled := range f.settled {
		id, err := s.add(settled)
		if err != nil {
			t.Fatal(err)
		}
		with := fmt.Sprintf(`{"settled":%d,"number":1}`, id)
		must(t, s, "party.load", with, make([]byte, 32), key, f.parties[i])
		must(t, s, "server.load", with, key, f.servers[i])
		must(t, s, "server.load", with, key, f.finished[i])
	}
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
		var b bytes.Buffer
		_, err := answer.blob.WriteTo(&b)
		answer.done()
		if err != nil {
			t.Fatal(call, err)
		}
		out = append(out, b.Bytes())
	}
	return out
}

// oneshotFixture has the seeds of two parties and four members, and their and the server's states,
// saved once for all inputs: making keys takes milliseconds.
var oneshotFixture struct {
	once    sync.Once
	seeds   [][]byte // of the parties, then of the members
	opening []byte
	first   []byte // a submission
	servers [][]byte
	member  []byte
}

const oneshotJob = `name = "a"
rounds = 1
parties.count = 2
sum.protocol = "oneshot"
privacy.clip = 1.0
model.length = 1
`

// oneshotSeed is that of the i-th of two parties and four members.
func oneshotSeed(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, 32) }

// oneshotRosters are the arguments with which job.settle settles oneshotJob.
func oneshotRosters() map[string][]memberJSON {
	var all []memberJSON
	for i := range 6 {
		key := ed25519.NewKeyFromSeed(oneshotSeed(i)).Public().(ed25519.PublicKey)
		all = append(all, memberJSON{fmt.Sprint("n", i), hex.EncodeToString(key)})
	}
	return map[string][]memberJSON{"roster": all[:2], "committee": all[2:]}
}

// settleOneshot settles oneshotJob.
func settleOneshot(t *testing.T, s *sidecar) {
	t.Helper()
	with, err := json.Marshal(oneshotRosters())
	if err != nil {
		t.Fatal(err)
	}
	must(t, s, "job.settle", string(with), []byte(oneshotJob))
}

func makeOneshotFixture(t *testing.T) {
	t.Helper()
	f := &oneshotFixture
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	for i := range 6 {
		f.seeds = append(f.seeds, oneshotSeed(i))
	}
	settleOneshot(t, s)
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

// fillOneshot gives a sidecar a job (1), two parties that have not submitted (2, 3), two
// members that have done nothing (4, 5), one that has signed (6), and the server of an open
// round (7), of one with all signatures (8) and of one with all parts of the sum (9).
func fillOneshot(t *testing.T, s *sidecar) {
	t.Helper()
	f, key := &oneshotFixture, make([]byte, 32)
	f.once.Do(func() { makeOneshotFixture(t) })
	const with = `{"settled":1}`
	settleOneshot(t, s)
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
