package oneshot

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// reduce has members leave out again who is convicted, and the others' parts come. change may alter
// a member's answer, nil silences it.
func (w *world) reduce(change func(k int, answer []byte) []byte) error {
	messages, err := w.server.Reduce()
	if err != nil {
		return err
	}
	for _, message := range messages {
		err := w.ask(1, message, func(_, k int, answer []byte) []byte {
			if answer != nil && change != nil {
				answer = change(k, answer)
			}
			return answer
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// coverCheats are parties that cheat under their cover, or in it. A bound alone knows nothing of
// them.
var coverCheats = map[string]dealer{
	"another commitment": {commitment: func(c []byte) { c[0] ^= 1 }},
	"another cover": {covers: func(shares []shamir.Share) {
		for i := range shares {
			shares[i].Value[0] ^= 1
		}
	}},
	"a cover of no polynomial": {covers: func(shares []shamir.Share) {
		for i := range shares {
			shares[i].Value[2*i] ^= 1
		}
	}},
	"coefficients beyond the modulus": {masked: func(_ *settled, y []byte) { y[0], y[1], y[2] = 255, 255, 255 }},
}

// covered is bounded, with covers.
func covered(t Terms) Terms {
	t = bounded(t)
	t.Covered = true
	return t
}

// inCovers are the cheats that show under covers, and not by shares.
func inCovers() map[string]dealer {
	out := maps.Clone(coverCheats)
	for name, d := range cheats {
		if d.parts == nil && name != "another P" {
			out[name] = d
		}
	}
	return out
}

// TestReduced: a covered round with a bound gives the sum of those that keep to it. Who does not is
// out again, named, with evidence that travels and holds; the server and every member may be saved
// and loaded after each step.
func TestReduced(t *testing.T) {
	coveredNoise := boundedNoise(7, 1)
	coveredNoise.Covered = true
	for name, terms := range map[string]Terms{
		"plain": covered(Terms{Colluders: 1}), "stale": covered(Terms{Colluders: 1, Stale: 2}),
		"noise of members": coveredNoise,
	} {
		t.Run(name, func(t *testing.T) { testReduced(t, terms) })
	}
}

func testReduced(t *testing.T, terms Terms) {
	remember(t)
	const honest = 3
	all := inCovers()
	names := slices.Sorted(maps.Keys(all))
	if terms.Stale > 0 || terms.CommitteeNoise {
		names = names[:1]
	}
	w := newWorld(honest+len(names), 7, terms)
	var noise [][]byte
	w.noise = func(_ int, message []byte) []byte {
		if message != nil {
			noise = append(noise, message)
		}
		return message
	}
	w.server.Skip(5) // inputs may be from rounds before
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if terms.CommitteeNoise {
		if err := w.deliver(nil); err != nil {
			t.Fatal(err)
		}
	}
	p := must(w.config.Parameters())
	var messages [][]byte
	for i := range honest {
		message := must(w.submit(i))
		if len(message) != p.Up {
			t.Errorf("%d bytes, stated are %d", len(message), p.Up)
		}
		messages = append(messages, message)
	}
	for i, name := range names {
		messages = append(messages, w.deal(honest+i, all[name]))
	}
	for _, m := range messages {
		if err := w.server.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	key := new(keyexchange.SealKey)
	reload := func() {
		for k, m := range w.members {
			w.members[k] = must(LoadMember(w.config, m.signer, nil, key, must(m.Save(key))))
		}
		w.server = must(LoadServer(w.config, 0, key, must(w.server.Save(key))))
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	if len(w.server.Convicted()) > 0 {
		t.Fatalf("%v before covers are opened", w.server.Convicted())
	}
	reload()
	if err := w.ask(0, must(w.server.Close()), nil); err != nil {
		t.Fatal(err)
	}
	reload()
	if _, err := w.server.Reduce(); !errors.Is(err, ErrPhase) {
		t.Errorf("reduced before the certificate: %v", err)
	}
	if err := w.ask(1, must(w.server.Certificate()), nil); err != nil {
		t.Fatal(err)
	}
	reload()
	if got := w.server.Parts(); got != 7 {
		t.Errorf("%d members have opened covers", got)
	}
	if terms.CommitteeNoise {
		for _, m := range noise {
			if err := w.server.Uncover(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, m := range messages {
		if _, err := w.server.Reduce(); !errors.Is(err, ErrPhase) {
			t.Fatalf("reduced while covers are on: %v", err)
		}
		changed := bytes.Clone(m)
		changed[len(changed)-1] ^= 1
		if err := w.server.Uncover(changed); i >= honest && !errors.Is(err, ErrContext) {
			t.Errorf("a signature that was changed where it was kept: %v", err)
		} else if i < honest && err == nil {
			continue // nothing but evidence takes it
		}
		if err := w.server.Uncover(m); err != nil {
			t.Fatalf("party %d: %v", i, err)
		}
		if err := w.server.Uncover(m); !errors.Is(err, ErrDuplicate) {
			t.Errorf("uncovered twice: %v", err)
		}
		reload()
	}
	convicted := w.server.Convicted()
	if len(convicted) != len(names) {
		t.Fatalf("%d are convicted, want %d: %v", len(convicted), len(names), convicted)
	}
	for i, err := range convicted {
		named, ok := err.(*PartyError)
		if !ok || named.Party != honest+i {
			t.Errorf("%s: %v", names[i], err)
			continue
		}
		text := must(named.Evidence.AppendBinary(nil))
		read, err := ParseEvidence(text)
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
		} else if err := read.Verify(); err != nil || read.Party() != honest+i {
			t.Errorf("%s: %v of party %d", names[i], err, read.Party())
		}
	}
	messages = must(w.server.Reduce())
	for _, message := range messages {
		reload()
		if err := w.ask(1, message, nil); err != nil {
			t.Fatal(err)
		}
		if again := must(w.server.Reduce()); !slices.EqualFunc(again, messages, bytes.Equal) {
			t.Error("another reduction, called again")
		}
	}
	reload()
	sum, err := w.server.Sum()
	if err != nil {
		t.Fatal(err)
	}
	if got := w.server.Included(); !slices.Equal(got, []int{0, 1, 2}) ||
		len(w.server.Excluded()) > 0 {
		t.Errorf("parties %v are in, members %v out", got, w.server.Excluded())
	}
	w.near(t, sum, w.total(0, 1, 2))
}

// reducing takes a covered round with a bound to the point where a member has opened covers.
func reducing(t *testing.T, dealers map[int]string) (*world, [][]byte) {
	const n = 5
	w := newWorld(n, 7, covered(Terms{Colluders: 1}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	var messages [][]byte
	for i := range n {
		if name, ok := dealers[i]; ok {
			messages = append(messages, w.cheat(i, name, inCovers()[name]))
		} else {
			messages = append(messages, must(w.submit(i)))
		}
	}
	w.certified(t, messages, nil)
	return w, messages
}

// certified takes a covered round with a bound to the point where members have opened covers. lie
// may alter what they open.
func (w *world) certified(
	t *testing.T, messages [][]byte, lie func(step, k int, answer []byte) []byte,
) {
	t.Helper()
	for _, m := range messages {
		if err := w.server.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.ask(0, must(w.server.Close()), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.ask(1, must(w.server.Certificate()), lie); err != nil {
		t.Fatal(err)
	}
}

// TestFramed: a server that wants an honest party left out finds no member that believes it. It has
// all that the party has signed, all values of its cover, and evidence that holds of another party,
// of another round and of this one.
func TestFramed(t *testing.T) {
	remember(t)
	w, messages := reducing(t, map[int]string{4: "another cover"})
	for _, m := range messages {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	pieces := must(w.server.Reduce())
	if len(pieces) != 2 {
		t.Fatalf("%d messages", len(pieces))
	}
	guilty, reduction := pieces[0], pieces[1]
	c, r := w.server.config, w.server.open
	place, _ := r.placeOf(1)
	sub := must(c.parseSubmission(messages[1][bodyAt:], r.members.Len()))
	levels := tree(c.parseLeaves(sub.leaves, r.members), c.depth)
	honest := claim{Party: 1, Member: -1, Signature: sub.signature, Extra: sub.extra,
		Dealing: sub.dealing, Packed: sub.masked, Proof: sub.proof}
	for k := range c.Faults + 1 {
		honest.Opened = append(honest.Opened, openedCover{k,
			r.opened[k][place*coverPlainSize:][:coverPlainSize], path(levels, c.coverPlace(k))})
	}
	message := func(c *claim) []byte {
		return c.appendOpened(c.appendSigned(bytes.Clone(guilty[:bodyAt])))
	}
	change := func(do func(c *claim)) []byte {
		one := honest
		one.Packed, one.Proof = bytes.Clone(one.Packed), bytes.Clone(one.Proof)
		one.Dealing, one.Extra = bytes.Clone(one.Dealing), bytes.Clone(one.Extra)
		one.Opened = slices.Clone(one.Opened)
		for i := range one.Opened {
			one.Opened[i].Plain = bytes.Clone(one.Opened[i].Plain)
			one.Opened[i].Path = slices.Clone(one.Opened[i].Path)
		}
		do(&one)
		return message(&one)
	}
	m := w.members[3]
	before := must(m.Save(new(keyexchange.SealKey)))
	for name, one := range map[string]struct {
		message []byte
		want    error
	}{
		"what it sent":        {message(&honest), ErrEvidence},
		"another value":       {change(func(c *claim) { c.Opened[0].Plain[0] ^= 1 }), ErrEvidence},
		"another blind":       {change(func(c *claim) { c.Opened[1].Plain[40] ^= 1 }), ErrEvidence},
		"another path":        {change(func(c *claim) { c.Opened[1].Path[0][0] ^= 1 }), ErrEvidence},
		"another y":           {change(func(c *claim) { c.Packed[0] ^= 1 }), ErrEvidence},
		"another proof":       {change(func(c *claim) { c.Proof[0] ^= 1 }), ErrEvidence},
		"another commitment":  {change(func(c *claim) { c.Extra[0] ^= 1 }), ErrEvidence},
		"another dealing":     {change(func(c *claim) { c.Dealing[0] ^= 1 }), ErrEvidence},
		"another's signature": {change(func(c *claim) { c.Party = 2 }), ErrEvidence},
		"one member twice":    {change(func(c *claim) { c.Opened[1] = c.Opened[0] }), ErrEncoding},
		"members not in order": {change(func(c *claim) {
			c.Opened[0], c.Opened[1] = c.Opened[1], c.Opened[0]
		}), ErrEncoding},
		"no scalar": {change(func(c *claim) {
			for i := range 32 {
				c.Opened[0].Plain[i] = 255
			}
		}), ErrEncoding},
		"nobody":           {change(func(c *claim) { c.Party = 5 }), ErrEncoding},
		"nobody in a set":  {append(bytes.Clone(reduction[:bodyAt]), 32), ErrEncoding},
		"without evidence": {append(bytes.Clone(reduction[:bodyAt]), 2), ErrStatement},
		"too early":        {reduction, nil},
		"a leaf of the key's": {change(func(c *claim) {
			c.Opened[0].Path = path(levels, c.Opened[0].Member)
		}), ErrEvidence},
	} {
		if name == "too early" {
			if _, err := m.Receive(reduction); !errors.Is(err, ErrStatement) {
				t.Errorf("a reduction before its evidence: %v", err)
			}
			continue
		}
		if _, err := m.Receive(one.message); !errors.Is(err, one.want) {
			t.Errorf("%s: %v, want %v", name, err, one.want)
		}
	}
	after := must(m.Save(new(keyexchange.SealKey)))
	if len(after) != len(before) || m.open.guilty.Len() != 0 {
		t.Error("refused evidence left something")
	}
	if _, err := m.Receive(guilty); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Receive(guilty); !errors.Is(err, ErrDuplicate) {
		t.Errorf("evidence twice: %v", err)
	}
	part := must(m.Receive(reduction))
	if _, err := m.Receive(reduction); !errors.Is(err, ErrPhase) {
		t.Errorf("two parts: %v", err)
	}
	if err := w.server.Receive(part); err != nil {
		t.Error(err)
	}
	other := w.members[5] // that has not got anything of who is out
	other.open.kept = slices.DeleteFunc(other.open.kept,
		func(k keptPart) bool { return k.dealer == 4 })
	if _, err := other.Receive(guilty); !errors.Is(err, ErrEvidence) {
		t.Errorf("evidence of a dealer that is not in: %v", err)
	}
	// The next round's members take no evidence of this one.
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.members[0].Receive(guilty); !errors.Is(err, ErrPhase) {
		t.Errorf("evidence of an earlier round: %v", err)
	}
}

// TestTwoReductions: members that are told of two sets of dealers that are out answer once each,
// and what they answer differs by what those dealt themselves: together it tells nothing else.
func TestTwoReductions(t *testing.T) {
	remember(t)
	w, messages := reducing(t, map[int]string{4: "another cover"})
	for _, m := range messages {
		if err := w.server.Uncover(m); err != nil {
			t.Fatal(err)
		}
	}
	pieces := must(w.server.Reduce())
	none := append(bytes.Clone(pieces[1][:bodyAt]), 0)
	for k, m := range w.members {
		var of [][32]byte
		for _, kept := range m.open.kept {
			if kept.dealer == 4 {
				of = slices.Clone(kept.values)
			}
		}
		state := must(m.Save(new(keyexchange.SealKey)))
		other := must(LoadMember(w.config, m.signer, nil, new(keyexchange.SealKey), state))
		with := must(m.Receive(none))
		if _, err := other.Receive(pieces[0]); err != nil {
			t.Fatal(err)
		}
		without := must(other.Receive(pieces[1]))
		sum := shamir.PackedShare{Index: uint32(k) + 1}
		for at := bodyAt; at < len(without); at += scalarSize {
			sum.Values = append(sum.Values, [32]byte(without[at:]))
		}
		if err := sum.Add(&shamir.PackedShare{Index: sum.Index, Values: of}); err != nil {
			t.Fatal(err)
		}
		for i, v := range sum.Values {
			if v != [32]byte(with[bodyAt+i*scalarSize:]) {
				t.Fatalf("member %d: parts differ by more than the dealer's", k)
			}
		}
	}
}
