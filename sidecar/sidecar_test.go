package sidecar

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/accounting"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/protocol"
)

// client is a program that calls a sidecar of this process.
type client struct {
	*testing.T
	in   io.WriteCloser
	out  *bufio.Reader
	last uint64
	end  chan error
}

// stream joins what a sidecar reads from and writes to.
type stream struct {
	io.Reader
	io.Writer
}

// frameOf returns a frame to the sidecar.
func frameOf(header string, blobs ...[]byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(header)))
	out = append(out, header...)
	for _, b := range blobs {
		out = append(out, b...)
	}
	return out
}

func start(t *testing.T) *client {
	t.Helper()
	in, send := io.Pipe()
	receive, out := io.Pipe()
	c := &client{T: t, in: send, out: bufio.NewReader(receive), end: make(chan error, 1)}
	go func() { c.end <- Serve(t.Context(), stream{in, out}, Memory{}) }()
	c.call("hello", map[string]any{"version": version})
	return c
}

// answer holds what comes back.
type answer struct {
	ID     uint64          `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *faultJSON      `json:"error"`
	Blobs  []blobHeader    `json:"blobs"`

	bytes [][]byte
}

func (c *client) read() *answer {
	c.Helper()
	var size [4]byte
	if _, err := io.ReadFull(c.out, size[:]); err != nil {
		c.Fatal(err)
	}
	text := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.out, text); err != nil {
		c.Fatal(err)
	}
	a := new(answer)
	if err := json.Unmarshal(text, a); err != nil {
		c.Fatal(err)
	}
	for _, b := range a.Blobs {
		blob := make([]byte, b.Length)
		if _, err := io.ReadFull(c.out, blob); err != nil {
			c.Fatal(err)
		}
		a.bytes = append(a.bytes, blob)
	}
	return a
}

// try makes a call.
func (c *client) try(call string, with any, blobs ...[]byte) *answer {
	c.Helper()
	c.last++
	header := map[string]any{"id": c.last, "call": call, "with": with}
	var announced []blobHeader
	for _, b := range blobs {
		announced = append(announced, blobHeader{Length: int64(len(b))})
	}
	header["blobs"] = announced
	text, err := json.Marshal(header)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.in.Write(frameOf(string(text), blobs...)); err != nil {
		c.Fatal(err)
	}
	a := c.read()
	if a.ID != c.last {
		c.Fatalf("answer %d to call %d", a.ID, c.last)
	}
	return a
}

// call makes a call that must not fail, and returns its result.
func (c *client) call(call string, with any, blobs ...[]byte) (map[string]any, [][]byte) {
	c.Helper()
	a := c.try(call, with, blobs...)
	if a.Error != nil {
		c.Fatalf("%s: %+v", call, *a.Error)
	}
	var result map[string]any
	if err := json.Unmarshal(a.Result, &result); err != nil {
		c.Fatal(err)
	}
	return result, a.bytes
}

// parties makes n identities, and settles the text of a job for them.
func (c *client) parties(n int, text string) (settled float64, seeds [][]byte) {
	c.Helper()
	result, seeds := c.settleJob(n, text)
	return result["settled"].(float64), seeds
}

const smallJob = `name = "test"
rounds = 2
parties = { roster = "roster.txt", drop_out = 0.2 }
sum.adversary = "curious"
privacy.clip = 10.0
model.length = 3
`

// Two rounds through the calls alone, one with a party that drops out: the mean is right.
func TestRounds(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(5, smallJob)
	server, _ := c.call("server.new", map[string]any{"settled": settled, "number": 1})
	at := func(more ...any) map[string]any {
		with := map[string]any{"server": server["server"]}
		for i := 0; i < len(more); i += 2 {
			with[more[i].(string)] = more[i+1]
		}
		return with
	}
	var parties []float64
	for i, seed := range seeds {
		p, announce := c.call("party.new", map[string]any{"settled": settled, "number": 1}, seed)
		parties = append(parties, p["party"].(float64))
		if int(p["index"].(float64)) != i {
			t.Fatalf("party %d has index %v", i, p["index"])
		}
		c.call("server.receive", at("party", i), announce[0])
	}
	step := func(call string, more ...any) {
		t.Helper()
		result, messages := c.call(call, at(more...))
		to, _ := result["to"].([]any)
		for k, m := range messages {
			i := int(to[k].(float64))
			_, answers := c.call("party.receive", map[string]any{"party": parties[i]}, m)
			for _, a := range answers {
				c.call("server.receive", at("party", i), a)
			}
		}
	}
	step("server.keys")
	step("server.members")
	for round, present := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 3, 4}} {
		digest := declared.BroadcastDigest(fmt.Append(nil, "broadcast", round))
		broadcast := hex.EncodeToString(digest[:])
		step("server.begin", "broadcast", broadcast)
		want := 0.
		for _, i := range present {
			vector := floatBlob([]float64{float64(i), 1, -2})
			want += float64(i) / float64(len(present))
			_, masked := c.call("party.submit", map[string]any{"party": parties[i],
				"round": round + 1, "broadcast": broadcast}, vector)
			c.call("server.receive", at("party", i), masked[0])
		}
		step("server.survivors")
		step("server.certificate")
		result, sum := c.call("server.sum", at("broadcast", broadcast))
		mean, err := floats[float64](sum[0])
		if err != nil {
			t.Fatal(err)
		}
		for k, w := range []float64{want, 1, -2} {
			if math.Abs(mean[k]-w) > 1e-6 {
				t.Errorf("round %d: mean %v, coordinate %d should be %v", round, mean, k, w)
			}
		}
		if n := len(result["included"].([]any)); n != len(present) {
			t.Errorf("%d parties in the sum of %d", n, len(present))
		}
	}
	// A saved party is loaded, and has made the same message last.
	key := bytes.Repeat([]byte{7}, 32)
	_, state := c.call("party.save", map[string]any{"party": parties[0]}, key)
	_, before := c.call("party.output", map[string]any{"party": parties[0]})
	_, after := c.call("party.load", map[string]any{"settled": settled, "number": 1}, seeds[0], key,
		state[0])
	if !bytes.Equal(before[0], after[0]) {
		t.Error("the loaded party has another last message")
	}
	c.call("close", map[string]any{"object": parties[0]})
	if a := c.try("party.state", map[string]any{"party": parties[0]}); a.Error == nil ||
		a.Error.Kind != "object" {
		t.Errorf("a closed party: %+v", a.Error)
	}
}

// Calls that are not right are refused with a kind and words, and change nothing; the
// frames go on.
func TestRefusals(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(3, smallJob)
	one, _ := c.call("job.settle", oneshotRosters(), []byte(oneshotJob))
	const small = "name = \"a\"\nrounds = 1\nparties.count = 3\n"
	with := func(m map[string]any) string {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	member := with(map[string]any{"settled": settled, "number": 1})
	for _, k := range []struct {
		call, with string
		blobs      [][]byte
		kind, says string
	}{
		{"plan.make", `{}`, nil, "request", "there is no call"},
		{"job.settle", `{}`, [][]byte{[]byte(small + "model.length = 1\nclipp = 1\n")}, "config",
			"clipp"},
		{"job.settle", `{}`, [][]byte{[]byte(small + "model.length = -1\n")}, "config", "model.length"},
		{"job.settle", `{"roster":[],"roster":[]}`, [][]byte{{}}, "request", "given twice"},
		{"job.settle", `{"Roster":[]}`, [][]byte{{}}, "request", "not a name of a field"},
		{"job.settle", `{"rosters":[]}`, [][]byte{{}}, "request", "rosters"},
		{"job.settle", `{"roster":"x"}`, [][]byte{[]byte(vectorJob)}, "request", "takes an array"},
		{"job.settle", `{"roster":[]}`, [][]byte{[]byte(vectorJob)}, "config", "roster"},
		{"job.settle", `{"roster":[{"name":"a","key":"zz"}]}`, [][]byte{[]byte(vectorJob)}, "request",
			"hexadecimal"},
		{"job.parse", `{}`, nil, "request", "takes 1"},
		{"job.parse", `{"name":"a.toml"}`, [][]byte{[]byte("rounds = 0")}, "config", "a.toml:1: rounds: 0"},
		{"job.fields", `{"path":"name"}`, nil, "request", "path"},
		{"party.new", member, nil, "request", "takes 1"},
		{"party.new", member, [][]byte{seeds[0][:31]}, "request", "31 bytes"},
		{"party.new", member, [][]byte{make([]byte, 32)}, "identity", "roster"},
		{"party.new", `{"settled":999,"number":1}`, [][]byte{seeds[0]}, "object", "no job 999"},
		{"server.receive", `{"server":999,"party":0}`, [][]byte{{1}}, "object", "no server 999"},
		{"job.spent", with(map[string]any{"settled": settled, "rounds": -1}), nil, "request", "-1"},
		{"job.spent", with(map[string]any{"settled": settled, "rounds": 3}), nil, "request",
			"0 to the job's 2"},
		{"account.epsilon", `{"mechanism":"gauss","noise_multiplier":1}`, nil, "request", "gauss"},
		{"account.epsilon", `{"mechanism":"gaussian"}`, nil, "request", "not a noise multiplier"},
		{"account.epsilon", `{"mechanism":"gaussian","noise_multiplier":1,"scale":1}`, nil, "request",
			"twice"},
		{"account.epsilon", `{"mechanism":"gaussian","noise_multiplier":1,"rate":2}`, nil, "request", "rate"},
		{"account.epsilon", `{"mechanism":"gaussian","noise_multiplier":1,"unit":"patient"}`, nil, "request",
			"unit"},
		{"account.epsilon", `{"mechanism":"gaussian","noise_multiplier":1,"participations":3,"of":2}`, nil,
			"request", "3 of 2"},
		{"account.epsilon", `{"mechanism":"gaussian","noise_multiplier":"1"}`, nil, "request",
			"takes a number"},
		{"account.calibrate", `{"mechanism":"gaussian","epsilon":1,"find":"x"}`, nil, "request", "find"},
		{"ledger.new", `{"epsilon":-1,"delta":0}`, nil, "config", ""},
		{"claim.words", `{}`, nil, "request", "claim"},
		{"claim.within", `{"claim":{},"budget":{}}`, nil, "request", "server"},
		{"ledger.load", `{}`, [][]byte{[]byte("{}")}, "ledger", ""},
		{"ledger.load", `{}`, [][]byte{[]byte("[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]")}, "ledger", ""},
		{"noise.sample", `{"family":"gaussian","scale":1,"count":1}`, nil, "request", "family"},
		{"noise.sample", `{"family":"skellam","scale":-1,"count":1}`, nil, "config", ""},
		{"noise.sample", `{"family":"skellam","scale":1,"count":-1}`, nil, "request", "count"},
		{"audit.one_run", `{"canaries":1,"guesses":2,"right":3,"delta":0}`, nil, "counts", ""},
		{"job.join", with(map[string]any{"settled": settled, "address": "x", "coordinator": "x"}),
			[][]byte{seeds[0]}, "request", "hexadecimal"},
		{"job.join", with(map[string]any{"settled": settled, "address": "x", "member": true,
			"coordinator": strings.Repeat("00", 32)}), [][]byte{seeds[0]}, "request", "pairwise"},
		{"job.join", with(map[string]any{"settled": settled, "address": "x", "policy": "x",
			"member": true, "coordinator": strings.Repeat("00", 32)}), [][]byte{seeds[0]}, "request",
			"spends nothing"},
		{"job.join", with(map[string]any{"settled": settled, "address": "x", "policy": "/dev/null/x",
			"coordinator": strings.Repeat("00", 32)}), [][]byte{seeds[0]}, "failed", "/dev/null/x"},
		{"job.coordinate", with(map[string]any{"settled": settled, "address": "127.0.0.1:0",
			"committee": "127.0.0.1:0"}), [][]byte{seeds[0], {}}, "request", "committee"},
		{"job.next", `{"job":3}`, nil, "object", "no job"},
		{"party.submit", `{"party":1,"broadcast":"00"}`, [][]byte{{}}, "request", "64 hexadecimal"},
		{"trial.new", with(map[string]any{"settled": one["settled"]}), nil, "request", "cannot be tried"},
		{"rows.new", `{"features":2}`, [][]byte{floatBlob([]float64{1, 2, 3}), floatBlob([]float64{0})},
			"request", "3 numbers in rows of 2"},
		{"rows.new", `{"features":1}`, [][]byte{floatBlob([]float64{1}), floatBlob([]float64{0.5})},
			"request", "the label of row 1"},
		{"rows.new", `{"features":1}`, [][]byte{floatBlob([]float64{math.NaN()}), floatBlob([]float64{0})},
			"request", "row 1 has NaN"},
		{"server.begin", `{"server":1,"numbers":"float16"}`, nil, "object", "no server"},
		{"oneshot.party", with(map[string]any{"settled": settled}), [][]byte{seeds[0]}, "config",
			"pairwise"},
		{"oneshot.server", with(map[string]any{"settled": settled}), nil, "config", "pairwise"},
		{"oneshot.sum", `{"object":1}`, [][]byte{{}}, "object", "no such object"},
	} {
		a := c.try(k.call, json.RawMessage(k.with), k.blobs...)
		if a.Error == nil || a.Error.Kind != k.kind || !strings.Contains(a.Error.Text, k.says) {
			t.Errorf("%s %s: %+v, want kind %s that says %q", k.call, k.with, a.Error, k.kind, k.says)
		}
	}
}

// What is no frame ends the sidecar, with an answer that says why.
func TestBadFrames(t *testing.T) {
	for name, k := range map[string]struct {
		bytes []byte
		says  string
	}{
		"empty header":   {[]byte{0, 0, 0, 0}, "a header of 0 bytes"},
		"long header":    {[]byte{255, 0, 0, 0}, "a header of"},
		"cut length":     {[]byte{0, 0}, "ends within its length"},
		"cut header":     {[]byte{0, 0, 0, 9, '{'}, "ends early"},
		"no JSON":        {frameOf("hello"), "not JSON"},
		"no object":      {frameOf("[1]"), "not an object"},
		"two values":     {frameOf("{} {}"), "after its end"},
		"no call":        {frameOf(`{"id":1}`), "needs id and call"},
		"no UTF-8":       {frameOf("{\"id\":1,\"call\":\"\xff\"}"), "UTF-8"},
		"negative":       {frameOf(`{"id":-1,"call":"x"}`), "whole number of 0 or more"},
		"deep":           {frameOf(`{"with":` + strings.Repeat("[", 40) + `}`), "nested"},
		"negative blob":  {frameOf(`{"id":1,"call":"x","blobs":[{"length":-1}]}`), "a blob of -1"},
		"huge blob":      {frameOf(`{"id":1,"call":"x","blobs":[{"length":9000000000000}]}`), "a blob of"},
		"blobs together": {frameOf(`{"id":1,"call":"x","blobs":[{"length":2147483648},{"length":1}]}`), "more than"},
		"cut blob":       {frameOf(`{"id":1,"call":"x","blobs":[{"length":5}]}`, []byte("abc")), "ends early"},
		"unknown field":  {frameOf(`{"id":1,"call":"x","width":{}}`), `there is no field "width"`},
		"number too big": {frameOf(`{"id":1e30,"call":"x"}`), "whole number"},
	} {
		var out bytes.Buffer
		err := Serve(t.Context(), stream{bytes.NewReader(k.bytes), &out}, Memory{})
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v, want %q", name, err, k.says)
			continue
		}
		c := &client{T: t, out: bufio.NewReader(&out)}
		if a := c.read(); a.Error == nil || a.Error.Kind != "frame" {
			t.Errorf("%s: answered %+v", name, a)
		}
	}
	// A blob that was announced and did not come has taken little room.
	text := frameOf(`{"id":1,"call":"x","blobs":[{"length":2000000000}]}`)
	least := math.Inf(1) // sidecars of other tests may still be ending
	for range 10 {
		least = min(least, testing.AllocsPerRun(1, func() {
			if _, err := readRequest(bufio.NewReader(bytes.NewReader(text)), Memory{}); err == nil {
				t.Error("a blob that did not come")
			}
		}))
	}
	if least > 100 {
		t.Errorf("%v allocations", least)
	}
}

// The first call is hello, of this version.
func TestHello(t *testing.T) {
	var out bytes.Buffer
	frames := slices.Concat(
		frameOf(`{"id":1,"call":"identity"}`),
		frameOf(`{"id":2,"call":"hello","with":{"version":2}}`),
		frameOf(`{"id":3,"call":"identity"}`),
		frameOf(`{"id":4,"call":"hello","with":{"version":4}}`),
	)
	if err := Serve(t.Context(), stream{bytes.NewReader(frames), &out}, Memory{}); err != nil {
		t.Fatal(err)
	}
	c := &client{T: t, out: bufio.NewReader(&out)}
	for id := uint64(1); id <= 4; id++ {
		if a := c.read(); a.ID != id || (a.Error == nil) != (id == 4) {
			t.Errorf("call %d: %+v", id, a.Error)
		}
	}
}

// The sidecar ends with its input, whatever is under way.
func TestEnd(t *testing.T) {
	c := start(t)
	settled, _ := c.parties(3, smallJob)
	_, seed := c.call("identity", map[string]any{})
	job, _ := c.call("job.coordinate", map[string]any{
		"settled": settled, "address": "127.0.0.1:0", "step_time": 1, "apply": false,
	}, seed[0], nil)
	text := fmt.Sprintf(`{"id":99,"call":"job.next","with":{"job":%v}}`, job["job"])
	if _, err := c.in.Write(frameOf(text)); err != nil {
		t.Fatal(err)
	}
	_ = c.in.Close()
	go func() { _, _ = io.Copy(io.Discard, c.out) }()
	select {
	case err := <-c.end:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on without its input")
	}
}

// The party that an error is about is told with its kind.
func TestFaultNames(t *testing.T) {
	party := func(f *faultJSON) int {
		if f.Party == nil {
			return -1
		}
		return *f.Party
	}
	for _, err := range []error{
		&protocol.PartyError{Party: 3, Name: "ana", Err: protocol.ErrReplay},
		fmt.Errorf("more: %w", &oneshot.PartyError{Party: 3, Name: "ana", Err: oneshot.ErrReplay}),
	} {
		if f := newFault(err); f.Kind != "replay" || party(f) != 3 || f.Name != "ana" {
			t.Errorf("%v: %+v", err, f)
		}
	}
	missing := &protocol.MissingError{Need: 3, Parties: []int{1, 4}}
	if f := newFault(missing); !slices.Equal(f.Parties, []int{1, 4}) || party(f) != -1 {
		t.Errorf("%+v", f)
	}
	if f := newFault(&accounting.OverBudget{Client: "ana"}); f.Name != "ana" {
		t.Errorf("%+v", f)
	}
}
