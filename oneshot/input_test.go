package oneshot

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"pgregory.net/rapid"
)

// TestInputs: values out of range and of the wrong number are refused, and a party
// that refused may still submit.
func TestInputs(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	party := w.party(0)
	for _, c := range []struct {
		values []int64
		want   error
	}{
		{nil, ErrLength}, {make([]int64, 4), ErrLength}, {make([]int64, 6), ErrLength},
		{[]int64{0, 0, 128, 0, 0}, ErrRange}, {[]int64{0, 0, 0, 0, -129}, ErrRange},
		{[]int64{math.MaxInt64, 0, 0, 0, 0}, ErrRange}, {[]int64{math.MinInt64, 0, 0, 0, 0}, ErrRange},
	} {
		if out, err := party.Submit(w.opening, []byte("model"), c.values); !errors.Is(err, c.want) ||
			out != nil {
			t.Errorf("%v: %v", c.values, err)
		}
	}
	if _, err := party.Submit(w.opening, []byte("another model"), make([]int64, 5)); !errors.Is(err,
		ErrBroadcast) {
		t.Error(err)
	}
	if party.Round() != 0 || party.Output() != nil {
		t.Error("a refusal left a trace")
	}
	out, err := party.Submit(w.opening, []byte("model"), []int64{-128, 127, 0, 1, -1})
	if err != nil || !bytes.Equal(party.Output(), out) || party.Round() != 1 {
		t.Fatal(err)
	}
	if _, err := party.Submit(w.opening, []byte("model"), make([]int64, 5)); !errors.Is(err,
		ErrReplay) {
		t.Error(err)
	}
}

// TestRandomFails: a source that fails is reported, and nothing is sent.
func TestRandomFails(t *testing.T) {
	w := newWorld(5, 4, small(Terms{Covered: true}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 16, 32} {
		party := must(NewParty(w.config, w.keys[0], bytes.NewReader(make([]byte, n))))
		if _, err := party.Submit(w.opening, []byte("model"), make([]int64, 5)); n < 32 &&
			!errors.Is(err, ErrRandom) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	_, keys := people("member", 4)
	member := must(NewMember(w.config, keys[0], bytes.NewReader(make([]byte, 31))))
	if _, err := member.Receive(w.server.Invite()); !errors.Is(err, ErrRandom) || member.Round() != 0 {
		t.Error(err)
	}
}

// TestLanes: packing keys into scalars is additive and one-to-one within its range, and
// sums beyond it are refused.
func TestLanes(t *testing.T) {
	const edge = 1<<(narrow-1) - 1
	rapid.Check(t, func(t *rapid.T) {
		key := make([]int64, degree)
		fill := rapid.SampledFrom([]int64{edge, -edge - 1, 0, 1, -1}).Draw(t, "fill")
		for i := range key {
			key[i] = fill
		}
		for range 20 {
			key[rapid.IntRange(0, degree-1).Draw(t, "at")] = rapid.Int64Range(-edge-1, edge).Draw(t, "lane")
		}
		got, ok := narrow.unpackVarTime(narrow.pack(key))
		if !ok || !slices.Equal(got, key) {
			t.Fatal("lanes do not come back")
		}
	})
	key := make([]int64, degree)
	for _, at := range []int{12, degree - 1} { // the highest of a scalar
		key[at] = edge + 1
		if _, ok := narrow.unpackVarTime(narrow.pack(key)); ok && at == 12 {
			t.Error("a lane beyond its range was taken")
		}
		key[at] = 0
	}
	secrets := narrow.pack(key)
	secrets[narrow.scalars()-1][20] = 1 // beyond the last coefficient
	if _, ok := narrow.unpackVarTime(secrets); ok {
		t.Error("a coefficient beyond the degree was taken")
	}
}

// TestStates: parties, members and server are saved and loaded after every step of a
// round, which must end as if they had not been.
func TestStates(t *testing.T) {
	for _, covered := range []bool{false, true} {
		w := newWorld(5, 4, small(Terms{Covered: covered}))
		key := must(keyexchange.GenerateSealKey(nil))
		_, memberKeys := people("member", 4)
		reload := func() {
			w.server = must(LoadServer(w.config, 2, key, must(w.server.Save(key))))
			for k, m := range w.members {
				w.members[k] = must(LoadMember(w.config, memberKeys[k], nil, key, must(m.Save(key))))
				if !bytes.Equal(w.members[k].Output(), m.Output()) || w.members[k].Round() != m.Round() {
					t.Fatal("a member's output is lost")
				}
			}
		}
		reload()
		invite := w.server.Invite()
		reload()
		for _, m := range w.members {
			must(m.Receive(invite))
		}
		reload()
		for _, m := range w.members {
			if err := w.server.Receive(m.Output()); err != nil {
				t.Fatal(err)
			}
			reload()
		}
		w.opening = must(w.server.Open([]byte("model")))
		reload()
		if !bytes.Equal(must(w.server.Open(nil)), w.opening) {
			t.Error("the opening has changed")
		}
		for _, m := range w.members {
			must(m.Receive(w.opening))
		}
		var sent [][]byte
		for i := range w.keys {
			party := w.party(i)
			sent = append(sent, must(party.Submit(w.opening, []byte("model"), w.values(i))))
			party = must(LoadParty(w.config, w.keys[i], nil, key, must(party.Save(key))))
			if !bytes.Equal(party.Output(), sent[i]) {
				t.Error("a party's output is lost")
			}
			if _, err := party.Submit(w.opening, []byte("model"), w.values(i)); !errors.Is(err, ErrReplay) {
				t.Error("a loaded party submits again:", err)
			}
			if err := w.server.Receive(sent[i]); err != nil {
				t.Fatal(err)
			}
			reload()
			if i%2 == 1 || i == 4 {
				envelopes := must(w.server.Batch())
				reload()
				again := must(w.server.Batch())
				for j, e := range envelopes {
					if !bytes.Equal(again[j].Message, e.Message) {
						t.Error("a batch has changed")
					}
					answer := must(w.members[e.To].Receive(e.Message))
					reload()
					if err := w.server.Receive(answer); err != nil {
						t.Fatal(err)
					}
				}
				reload()
				settled := must(w.server.Settle())
				reload()
				for _, m := range w.members {
					must(m.Receive(settled))
				}
				reload()
			}
		}
		for step, next := range []func() ([]byte,
			error){func() ([]byte, error) { return w.server.Close() }, func() ([]byte,
			error) {
			return w.server.Certificate()
		}} {
			message := must(next())
			reload()
			for _, m := range w.members {
				must(m.Receive(message))
				reload()
			}
			for _, m := range w.members {
				if err := w.server.Receive(m.Output()); err != nil {
					t.Fatal(step, err)
				}
				reload()
			}
		}
		if covered {
			for _, i := range w.server.Included() {
				// Another masked vector than the one that was signed is refused, and the round
				// goes on.
				another := slices.Clone(sent[i])
				h, body, err := w.server.config.parse(sent[i])
				if err != nil {
					t.Fatal(err)
				}
				m, err := w.server.config.parseSubmission(body, len(w.members))
				if err != nil {
					t.Fatal(err)
				}
				another[bytes.Index(another, m.masked)] ^= 1
				if err := w.server.Uncover(another); !errors.Is(err, ErrContext) {
					t.Fatalf("another vector of %d: %v", h.Sender, err)
				}
				if err := w.server.Uncover(sent[i]); err != nil {
					t.Fatal(err)
				}
				reload()
			}
		}
		sum, err := w.server.Sum()
		if err != nil {
			t.Fatal(err)
		}
		w.near(t, sum, w.total(0, 1, 2, 3, 4))
		reload()
	}
}

// TestStateErrors: a state opens for its owner, configuration and key alone.
func TestStateErrors(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	key, other := must(keyexchange.GenerateSealKey(nil)), must(keyexchange.GenerateSealKey(nil))
	_, memberKeys := people("member", 4)
	party, member, server := must(w.party(0).Save(key)), must(w.members[0].Save(key)),
		must(w.server.Save(key))
	changed := *w.config
	changed.Label = "another"
	bad := slices.Clone(server)
	bad[len(bad)-1] ^= 1
	_, err1 := LoadParty(w.config, w.keys[1], nil, key, party)
	_, err2 := LoadParty(w.config, w.keys[0], nil, other, party)
	_, err3 := LoadParty(w.config, w.keys[0], nil, key, member)
	_, err4 := LoadMember(w.config, memberKeys[1], nil, key, member)
	_, err5 := LoadMember(&changed, memberKeys[0], nil, key, member)
	_, err6 := LoadServer(w.config, 0, key, bad)
	_, err7 := LoadServer(w.config, 0, key, nil)
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if !errors.Is(err, ErrState) {
			t.Errorf("%d: %v", i+1, err)
		}
	}
}

// TestAbandon: a member that gives a round up forgets it, and takes part in the next.
func TestAbandon(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	w.members[0].Abandon()
	if err := w.server.Receive(must(w.submit(0))); err != nil {
		t.Fatal(err)
	}
	if _, err := w.members[0].Receive(must(w.server.Batch())[0].Message); !errors.Is(err, ErrPhase) {
		t.Error(err)
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
}

// TestFull: the server keeps no more than a batch waiting, and takes the rest later.
func TestFull(t *testing.T) {
	w := newWorld(5, 4, small(Terms{}))
	w.server = must(NewServer(w.config, 2))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := w.server.Receive(must(w.submit(i))); i < 2 && err != nil ||
			i == 2 && !errors.Is(err, ErrFull) {
			t.Fatal(i, err)
		}
	}
	if err := w.deliver(nil); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Receive(must(w.submit(2))); err != nil {
		t.Fatal(err)
	}
}

// Numbers have four bytes, and fit an int everywhere.
func TestParseNumber(t *testing.T) {
	for length := range 4 {
		if _, _, err := parseNumber(make([]byte, length)); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
	for _, c := range []struct {
		body []byte
		want int
		rest int
		err  error
	}{
		{[]byte{0, 0, 0, 0}, 0, 0, nil},
		{[]byte{1, 2, 3, 4, 5}, 0x01020304, 1, nil},
		{[]byte{0x7f, 0xff, 0xff, 0xff}, 1<<31 - 1, 0, nil},
		{[]byte{0x80, 0, 0, 0}, 0, 0, ErrEncoding},
		{[]byte{0xff, 0xff, 0xff, 0xff}, 0, 0, ErrEncoding},
	} {
		got, rest, err := parseNumber(c.body)
		if got != c.want || len(rest) != c.rest || !errors.Is(err, c.err) {
			t.Errorf("%x: %d, %d bytes left, %v", c.body, got, len(rest), err)
		}
	}
}
