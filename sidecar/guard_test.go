package sidecar

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
)

// countedPlan has noise, so that each submission is charged to a ledger too.
func countedPlan() map[string]any {
	plan := smallPlan()
	delete(plan, "drop_out")
	plan["rounds"], plan["noise"], plan["epsilon"] = 3, "discrete-gaussian", 8
	return plan
}

// settle settles a plan of the parties with the given seeds.
func (c *client) settle(plan map[string]any, seeds [][]byte) float64 {
	c.Helper()
	var roster []memberJSON
	for i, seed := range seeds {
		identity, _ := c.call("identity", map[string]any{}, seed)
		roster = append(roster, memberJSON{fmt.Sprint("party", i), identity["public"].(string)})
	}
	result, _ := c.call("plan.settle", map[string]any{"plan": plan, "roster": roster})
	return result["settled"].(float64)
}

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
	digest := hushsum.BroadcastDigest([]byte(broadcast))
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
// session and when the first one's party is closed; none gets more than the plan's rounds.
func TestGuardOfCalls(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(3, countedPlan())
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

	// Another plan counts for itself.
	plan := countedPlan()
	plan["name"] = "other"
	c.sit(c.settle(plan, seeds), 1, seeds).hold(1, "round 1")
}

// A submission that fails is not counted; one that was made is, whether it is sent or not.
func TestGuardCountsWhatIsMade(t *testing.T) {
	c := start(t)
	settled, seeds := c.parties(3, countedPlan())
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
	plan := countedPlan()
	settled, seeds := c.parties(3, plan)
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
	settled = c.settle(plan, seeds)
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
	settled, seeds := c.parties(3, countedPlan())
	with := map[string]any{"settled": settled, "number": 1, "spent": 4}
	if a := c.try("party.new", with, seeds[0]); a.Error == nil || a.Error.Kind != "request" ||
		!strings.Contains(a.Error.Text, "0 to the plan's 3") {
		t.Errorf("spent above the plan's rounds: %+v", a.Error)
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
	for _, call := range []string{"server.new", "oneshot.member", "oneshot.server"} {
		if a := c.try(call, map[string]any{"settled": settled, "number": 1, "spent": 1}); a.Error == nil {
			t.Errorf("%s takes spent", call)
		}
	}
}

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
			if got := g.counted(); got != spent(want) {
				t.Errorf("%s: counted %+v, want %+v", name, got, spent(want))
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

// A party of one message refuses rounds that the plan does not have, and those that another of its
// objects has answered, or that are declared as spent; members help in no other rounds.
func TestGuardOfOneMessage(t *testing.T) {
	oneshotFixture.once.Do(func() { makeOneshotFixture(t) })
	f, key := &oneshotFixture, make([]byte, 32)
	const with = `{"settled":1}`
	s := &sidecar{ctx: context.Background(), objects: make(map[uint64]any)}
	must(t, s, "plan.settle", f.plan) // of one round
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
	must(t, s, "plan.settle", f.plan)
	must(t, s, "oneshot.party.load", with, f.seeds[0], key, state)     // 2
	must(t, s, "oneshot.party", with, f.seeds[0])                      // 3
	must(t, s, "oneshot.party", `{"settled":1,"spent":1}`, f.seeds[1]) // 4
	refused(try("oneshot.submit", 2, opening, []byte("model"), zeros), "replay")
	refused(try("oneshot.submit", 3, opening, []byte("model"), zeros), "repeated")
	refused(try("oneshot.submit", 4, opening, []byte("model"), zeros), "repeated")

	// The second round of a plan of one.
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
	about := []hushsum.EventKind{hushsum.Connected, hushsum.Disconnected, hushsum.Absent,
		hushsum.Refused}
	for kind := hushsum.Connected; !strings.HasPrefix(kind.String(), "EventKind"); kind++ {
		j := &job{events: make(chan jobEvent, 1)}
		e := hushsum.Event{Kind: kind, Party: 3, Session: 2, Round: 1}
		j.progress(t.Context(), e, partyOf(e))
		got := <-j.events
		if named := got.Party != nil && *got.Party == 3; named != slices.Contains(about, kind) {
			t.Errorf("%v: party %v", kind, got.Party)
		}
		if !strings.Contains(got.Text, kind.String()) {
			t.Errorf("%v is told as %q", kind, got.Text)
		}
	}
}
