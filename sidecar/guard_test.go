package sidecar

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	declared "github.com/hushsum/hushsum/job"
)

// countedJob has noise, so that each submission is charged to a ledger too.
const countedJob = clearJob + `privacy.noise = "discrete-gaussian"
privacy.epsilon = 8.0
`

// clearJob is the same without noise.
const clearJob = `name = "test"
rounds = 3
parties.roster = "roster.txt"
sum = { adversary = "curious", recovery = true }
model.length = 3
privacy.clip = 10.0
`

// sitting is a session of a job whose messages calls carry.
type sitting struct {
	*client
	server  float64
	parties []float64
}

// sit sets a session up among parties of the given seeds.
func (c *client) sit(settled float64, number int, seeds [][]byte) *sitting {
	c.Helper()
	server, _ := c.call("server.new", map[string]any{"settled": settled, "number": number})
	s := &sitting{client: c, server: server["server"].(float64)}
	for i, seed := range seeds {
		with := map[string]any{"settled": settled, "number": number}
		p, announce := c.call("party.new", with, seed)
		s.parties = append(s.parties, p["party"].(float64))
		s.receive(i, announce[0])
	}
	s.step("server.keys", "")
	s.step("server.members", "")
	return s
}

func (s *sitting) receive(party int, message []byte) {
	s.Helper()
	s.call("server.receive", map[string]any{"server": s.server, "party": party}, message)
}

// step makes a call on the server, and carries what follows.
func (s *sitting) step(call, broadcast string) {
	s.Helper()
	with := map[string]any{"server": s.server}
	if broadcast != "" {
		with["broadcast"] = broadcast
	}
	result, messages := s.call(call, with)
	to, _ := result["to"].([]any)
	for k, m := range messages {
		i := int(to[k].(float64))
		_, answers := s.call("party.receive", map[string]any{"party": s.parties[i]}, m)
		for _, a := range answers {
			s.receive(i, a)
		}
	}
}

func digestOf(broadcast string) string {
	digest := declared.BroadcastDigest([]byte(broadcast))
	return hex.EncodeToString(digest[:])
}

// submit has a party submit in a round of the job.
func (s *sitting) submit(party int, round uint64, broadcast string) *answer {
	s.Helper()
	return s.try("party.submit", map[string]any{"party": s.parties[party], "round": round,
		"broadcast": digestOf(broadcast)}, floatBlob([]float64{1, 2, 3}))
}

// refuses has a party refuse a round with the kind, and stay as it was.
func (s *sitting) refuses(party int, round uint64, broadcast, kind string) {
	s.Helper()
	look := func() string {
		state, last := s.call("party.output", map[string]any{"party": s.parties[party]})
		return fmt.Sprintf("%v %x", state, last)
	}
	before := look()
	a := s.submit(party, round, broadcast)
	if a.Error == nil || a.Error.Kind != kind || a.Error.Advice == "" {
		s.Errorf("round %d: answered %+v, want a refusal of kind %s", round, a.Error, kind)
	}
	if look() != before {
		s.Errorf("round %d: the refusal has changed the party", round)
	}
}

// begin begins a round, in the place of one that is open.
func (s *sitting) begin(broadcast string) {
	s.Helper()
	s.try("server.survivors", map[string]any{"server": s.server}) // it is lost
	s.step("server.invite", "")
	s.step("server.begin", digestOf(broadcast))
}

// hold holds a round to its end.
func (s *sitting) hold(round uint64, broadcast string) {
	s.Helper()
	s.begin(broadcast)
	for i := range s.parties {
		a := s.submit(i, round, broadcast)
		if a.Error != nil {
			s.Fatalf("round %d: %+v", round, a.Error)
		}
		s.receive(i, a.bytes[0])
	}
	s.step("server.survivors", "")
	s.step("server.certificate", "")
	s.call("server.sum", map[string]any{"server": s.server, "broadcast": digestOf(broadcast)})
}

// A server that forgets a round and begins anew gets no second submission in it, also in another
// session and when the first one's party is closed; none gets more than the job's rounds.
func TestGuardOfCalls(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(3, countedJob)
	first := c.sit(settled, 1, seeds)
	first.begin("one")
	first.refuses(0, 0, "one", "round")
	first.refuses(0, 4, "one", "round")
	first.refuses(0, 1, "another", "broadcast")
	first.hold(1, "round 1")
	first.begin("again")
	first.refuses(0, 1, "again", "repeated")

	c.call("close", map[string]any{"object": first.parties[2]})
	second := c.sit(settled, 2, seeds)
	second.begin("round 1")
	for i := range seeds {
		second.refuses(i, 1, "round 1", "repeated")
	}
	if a := second.submit(0, 2, "round 1"); a.Error != nil {
		t.Errorf("the next round: %+v", a.Error)
	}
	// The session before goes on while the next one is there: it is the same count.
	first.refuses(0, 2, "again", "repeated")
	second.hold(3, "round 3")
	second.begin("more")
	second.refuses(0, 3, "more", "repeated")
	second.refuses(0, 4, "more", "round")

	// Another job counts for itself.
	other := c.settle(seeds, strings.Replace(countedJob, "test", "other", 1))
	c.sit(other["settled"].(float64), 1, seeds).hold(1, "round 1")
}

// A submission that fails is not counted; one that was made is, whether it is sent or not.
func TestGuardCountsWhatIsMade(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(3, countedJob)
	s := c.sit(settled, 1, seeds)
	s.begin("one")
	for _, blob := range [][]byte{floatBlob([]float64{1}), make([]byte, 7)} {
		if a := s.try("party.submit", map[string]any{"party": s.parties[0], "round": 1,
			"broadcast": digestOf("one")}, blob); a.Error == nil {
			t.Error("a vector that is none was submitted")
		}
	}
	if a := s.submit(0, 1, "one"); a.Error != nil {
		t.Fatalf("after refusals: %+v", a.Error)
	}
	s.begin("two") // the first was not sent
	s.refuses(0, 1, "two", "repeated")
}

// What was counted is saved with a party, goes on with the party of the next session, and is not
// lowered by an older state.
func TestGuardIsSaved(t *testing.T) {
	c, key := start(t), bytes.Repeat([]byte{7}, 32)
	settled, seeds := c.parties(3, countedJob)
	s := c.sit(settled, 1, seeds)
	save := func() []byte {
		_, state := c.call("party.save", map[string]any{"party": s.parties[0]}, key)
		return state[0]
	}
	fresh := save()
	s.hold(1, "round 1")
	used := save()

	// In another process.
	c = start(t)
	settled = c.settle(seeds, countedJob)["settled"].(float64)
	with := map[string]any{"settled": settled, "number": 1}
	c.call("party.load", with, seeds[0], key, fresh)
	c.call("party.load", with, seeds[0], key, used)
	c.call("party.load", with, seeds[0], key, fresh)
	next := c.sit(settled, 2, seeds)
	next.begin("round 1")
	next.refuses(0, 1, "round 1", "repeated")
	if a := next.submit(1, 1, "round 1"); a.Error != nil { // of which nothing was loaded
		t.Errorf("%+v", a.Error)
	}
	if a := next.submit(0, 2, "round 1"); a.Error != nil {
		t.Errorf("%+v", a.Error)
	}
}

// A party whose state is lost says how many rounds count as spent.
func TestSpentOfCalls(t *testing.T) {
	c, key := start(t), bytes.Repeat([]byte{7}, 32)
	settled, seeds := c.parties(3, countedJob)
	with := map[string]any{"settled": settled, "number": 1, "spent": 4}
	if a := c.try("party.new", with, seeds[0]); a.Error == nil || a.Error.Kind != "request" ||
		!strings.Contains(a.Error.Text, "0 to the job's 3") {
		t.Errorf("spent above the job's rounds: %+v", a.Error)
	}
	p, _ := c.call("party.new", map[string]any{"settled": settled, "number": 9, "spent": 1}, seeds[0])
	s := c.sit(settled, 1, seeds)
	s.begin("one")
	s.refuses(0, 1, "one", "repeated")
	_, state := c.call("party.save", map[string]any{"party": p["party"]}, key)
	c.call("party.load", map[string]any{"settled": settled, "number": 9, "spent": 2}, seeds[0], key,
		state[0])
	s.refuses(0, 2, "one", "repeated")
	if a := s.submit(0, 3, "one"); a.Error != nil {
		t.Errorf("%+v", a.Error)
	}
	with = map[string]any{"settled": settled, "number": 1, "spent": 1}
	if a := c.try("server.new", with); a.Error == nil {
		t.Error("a server takes spent")
	}
}

// A party of one message refuses rounds that the job does not have, and those that another of its
// objects has answered, or that are declared as spent; members help in no other rounds.
func TestGuardOfOneMessage(t *testing.T) {
	oneshotFixture.once.Do(func() { makeOneshotFixture(t) })
	f, key := &oneshotFixture, make([]byte, 32)
	const with = `{"settled":1}`
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	settleOneshot(t, s) // of one round
	for _, seed := range f.seeds {
		call := "oneshot.member"
		if seed[0] <= 2 {
			call = "oneshot.party"
		}
		must(t, s, call, with, seed)
	}
	must(t, s, "oneshot.server", with)
	try := func(call string, object int, blobs ...[]byte) error {
		t.Helper()
		r := &request{call: call, with: fmt.Appendf(nil, `{"object":%d}`, object)}
		for _, b := range blobs {
			r.blobs = append(r.blobs, blob{bytes: bytes.Clone(b)})
		}
		_, _, err := s.call(r)
		return err
	}
	refused := func(err error, kind string) {
		t.Helper()
		if err == nil || newFault(err).Kind != kind {
			t.Errorf("%v, want kind %s", err, kind)
		}
	}
	open := func() []byte {
		t.Helper()
		invite := must(t, s, "oneshot.invite", `{"object":8}`)[0]
		for i := range 4 {
			object := fmt.Sprintf(`{"object":%d}`, i+4)
			for _, m := range must(t, s, "oneshot.answer", object, invite) {
				must(t, s, "oneshot.receive", `{"object":8}`, m)
			}
		}
		return must(t, s, "oneshot.open", `{"object":8}`, []byte("model"))[0]
	}
	opening := open()
	zeros := make([]byte, 8)
	refused(try("oneshot.submit", 2, opening, []byte("another"), zeros), "broadcast")
	if err := try("oneshot.submit", 2, opening, []byte("model"), zeros); err != nil {
		t.Fatal(err)
	}
	refused(try("oneshot.submit", 2, opening, []byte("model"), zeros), "replay")
	must(t, s, "oneshot.party", with, f.seeds[0]) // 9: a second object of the party
	refused(try("oneshot.submit", 9, opening, []byte("model"), zeros), "repeated")

	// In another process, from the saved state and from a declaration.
	state := must(t, s, "oneshot.party.save", `{"object":2}`, key)[0]
	s = &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	settleOneshot(t, s)
	must(t, s, "oneshot.party.load", with, f.seeds[0], key, state)     // 2
	must(t, s, "oneshot.party", with, f.seeds[0])                      // 3
	must(t, s, "oneshot.party", `{"settled":1,"spent":1}`, f.seeds[1]) // 4
	refused(try("oneshot.submit", 2, opening, []byte("model"), zeros), "replay")
	refused(try("oneshot.submit", 3, opening, []byte("model"), zeros), "repeated")
	refused(try("oneshot.submit", 4, opening, []byte("model"), zeros), "repeated")

	for call, seed := range map[string][]byte{"member": f.seeds[2], "server": nil} {
		r := &request{call: "oneshot." + call, with: []byte(`{"settled":1,"spent":1}`)}
		if seed != nil {
			r.blobs = []blob{{bytes: bytes.Clone(seed)}}
		}
		if _, _, err := s.call(r); err == nil {
			t.Errorf("a %s takes spent", call)
		}
	}

	// The second round of a job of one.
	later := bytes.Clone(opening)
	later[2+32+7] = 2
	refused(try("oneshot.submit", 4, later, []byte("model"), zeros), "round")
	must(t, s, "oneshot.member", with, f.seeds[2]) // 5
	refused(try("oneshot.answer", 5, later), "round")
}

// What the guard and jobs end with has kinds, with what to do.
func TestKindsOfGuards(t *testing.T) {
	for kind, errs := range map[string][]error{
		"spent":    {drive.ErrSpent, fmt.Errorf("%w: %w", drive.ErrSpent, accounting.ErrBudget)},
		"repeated": {drive.ErrRepeated},
		"round":    {drive.ErrRound},
		"state":    {drive.ErrState},
		"absent":   {hushsum.ErrAbsent, fmt.Errorf("%w: %w", hushsum.ErrAbsent, drive.ErrRepeated)},
		"stalled":  {hushsum.ErrStalled},
		"paused":   {hushsum.ErrPaused},
		"locked":   {hushsum.ErrLocked},
		"number":   {hushsum.ErrNumber},
	} {
		for _, err := range errs {
			if f := newFault(fmt.Errorf("more: %w", err)); f.Kind != kind || f.Advice == "" {
				t.Errorf("%v: %+v, want kind %s", err, f, kind)
			}
		}
	}
}

// A coordinator's events name the party that they are about.
func TestEventsNameParties(t *testing.T) {
	about := []host.EventKind{host.Connected, host.Disconnected, host.Absent,
		host.Refused, host.Rejected, host.LeftOut, host.Stalled}
	for kind := host.Connected; !strings.HasPrefix(kind.String(), "EventKind"); kind++ {
		j := &job{events: make(chan jobEvent, 1)}
		e := hushsum.Event{Kind: kind, Party: 3, Session: 2, Round: 1}
		j.progress(t.Context(), e, e.String(), partyOf(e))
		got := <-j.events
		if named := got.Party != nil && *got.Party == 3; named != slices.Contains(about, kind) {
			t.Errorf("%v: party %v", kind, got.Party)
		}
		if !strings.Contains(got.Text, kind.String()) {
			t.Errorf("%v is told as %q", kind, got.Text)
		}
	}
}
