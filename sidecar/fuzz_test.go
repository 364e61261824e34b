package sidecar

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// Whatever comes is a call, or an error that says why not; what is announced and does not
// come takes no room.
func FuzzRequest(f *testing.F) {
	f.Add(frameOf(`{"id":1,"call":"hello","with":{"version":2}}`))
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
		if decodeStrictly(text, &h, "") != nil {
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
	left := []string{"job.", "account.", "noise.", "plan.settle", "plan.spent", "trial."}
	f.Add("plan.parse", []byte(`{"plan":{"name":"a","rounds":1,"length":1,"clip":1}}`), []byte{})
	f.Add("party.receive", []byte(`{"party":2}`), []byte{2, 1})
	f.Add("party.load", []byte(`{"settled":1,"number":1}`), make([]byte, 32))
	f.Add("server.receive", []byte(`{"server":3,"party":0}`), []byte{2, 1})
	f.Add("server.load", []byte(`{"settled":1,"number":1}`), make([]byte, 32))
	f.Add("party.submit", []byte(`{"party":2,"broadcast":"00"}`), make([]byte, 8))
	f.Add("party.output", []byte(`{"party":2}`), []byte{})
	f.Add("ledger.load", []byte(`{}`), []byte(`{"version":1}`))
	f.Add("ledger.spend", []byte(`{"ledger":4,"clients":["a"],"run":{"mechanism":"gaussian"}}`),
		[]byte{})
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
		fill(t, s)
		r := &request{id: 1, call: call, with: with}
		if len(b) > 0 {
			r.blobs = []blob{{bytes: b}}
		}
		if call == "party.load" || call == "server.load" {
			r.blobs = []blob{{bytes: make([]byte, 32)}, {bytes: make([]byte, 32)}, {bytes: b}}
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
	must := func(call, with string, blobs ...[]byte) {
		r := &request{call: call, with: []byte(with)}
		for _, b := range blobs {
			r.blobs = append(r.blobs, blob{bytes: b})
		}
		result, _, err := s.call(r)
		if err != nil {
			t.Fatal(call, err)
		}
		if answer, ok := result.(streamed); ok {
			answer.done()
		}
	}
	// The keys of the seeds 0…0 and 1 0…0 (RFC 8032).
	must("plan.settle", `{"plan":{"name":"a","rounds":1,"length":1,"clip":1,"adversary":2},"roster":[`+
		`{"name":"a","key":"3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"},`+
		`{"name":"b","key":"cecc1507dc1ddd7295951c290888f095adb9044d1b73d696e6df065d683bd4fc"}]}`)
	must("party.new", `{"settled":1,"number":1}`, make([]byte, 32))
	must("server.new", `{"settled":1,"number":1}`)
	must("ledger.new", `{"epsilon":1,"delta":0}`)
}
