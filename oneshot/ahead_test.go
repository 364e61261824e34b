package oneshot

import (
	"bytes"
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
)

// sameRefusal reports whether two servers refuse a message in the same words and with the same
// evidence.
func sameRefusal(a, b error) bool {
	if a == nil || b == nil || a.Error() != b.Error() {
		return a == nil && b == nil
	}
	e, f := convicting(a), convicting(b)
	if e == nil || f == nil {
		return e == nil && f == nil
	}
	return bytes.Equal(must(e.AppendBinary(nil)), must(f.AppendBinary(nil)))
}

// TestCheck: a server that checks proofs ahead says of each message what one says that checks them
// one by one, and saves the same, whatever comes in whatever order: proofs that hold and that do
// not, second messages of a party, copies, messages that are refused before their proof.
func TestCheck(t *testing.T) {
	const n, members = 5, 7
	terms := boundedNoise(members, 2)
	w := newWorld(n, members, terms)
	dealt := make([][]byte, members) // noise, of whom two cheat
	w.noise = func(k int, m []byte) []byte {
		if name := map[int]string{3: "another key", 4: "uniform y"}[k]; name != "" {
			m = w.cheat(n+k, name, cheats[name])
		}
		dealt[k] = m
		return nil
	}
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	pool := slices.Clone(dealt)
	for i := range n {
		pool = append(pool, must(w.submit(i)))
	}
	for _, name := range slices.Sorted(maps.Keys(cheats)) {
		pool = append(pool, w.cheat(0, name, cheats[name]))
	}
	pool = append(pool, w.cheat(1, "uniform y", cheats["uniform y"]))
	forged := slices.Clone(pool[members])
	forged[len(forged)-1] ^= 1
	pool = append(pool, forged, forged[:50], nil, w.opening)
	key := new(keyexchange.SealKey)
	saved := must(w.server.Save(key))
	for trial := range suite.Size(3, 3, 40, 400) {
		random := mathrand.New(mathrand.NewPCG(uint64(trial), 17))
		size := []int{1, 3, 0}[trial%3] // 1 and 3: what is full meanwhile is refused
		plain := must(LoadServer(w.config, size, key, saved))
		ahead := must(LoadServer(w.config, size, key, saved))
		for range 4 {
			var messages [][]byte
			for range random.IntN(8) {
				messages = append(messages, pool[random.IntN(len(pool))])
			}
			before := ahead.state()
			ahead.Check(messages)
			if !reflect.DeepEqual(ahead.state(), before) {
				t.Fatal("checks change what is saved")
			}
			for i, m := range messages {
				if a, b := ahead.Receive(m), plain.Receive(m); !sameRefusal(a, b) {
					t.Fatalf("message %d: %v, and %v without checks ahead", i, a, b)
				}
			}
			if !reflect.DeepEqual(ahead.state(), plain.state()) ||
				!slices.EqualFunc(ahead.open.waiting, plain.open.waiting,
					func(a, b *submitted) bool { return bytes.Equal(a.body, b.body) }) {
				t.Fatal("the servers have other states")
			}
		}
	}
}

// TestCheckOnce: a party has one proof checked a round, however many it sends, and what was checked
// ahead is not checked again, also where there was no room for it.
func TestCheckOnce(t *testing.T) {
	w := newWorld(5, 7, bounded(Terms{}))
	if err := w.begin(nil); err != nil {
		t.Fatal(err)
	}
	w.server.Check(nil)
	w.server.batch = 1
	good, bad := must(w.submit(0)), w.cheat(0, "uniform y", cheats["uniform y"])
	other := must(w.submit(1))
	w.server.Check([][]byte{good, bad, bad, other})
	w.server.Check([][]byte{bad})
	r := w.server.open
	if len(r.verdicts) != 2 || !r.verdicts[0].holds || !r.verdicts[1].holds {
		t.Fatalf("%d verdicts", len(r.verdicts))
	}
	// That these are asked shows where they are wrong.
	r.verdicts[0] = verdict{r.verdicts[0].statement, false}
	if err := w.server.Receive(good); !errors.Is(err, ErrProof) {
		t.Errorf("the verdict is not asked: %v", err)
	}
	if err := w.server.Receive(other); err != nil {
		t.Fatal(err)
	}
	third := must(w.submit(2))
	w.server.Check([][]byte{third})
	if err := w.server.Receive(third); !errors.Is(err, ErrFull) || len(r.verdicts) != 1 {
		t.Errorf("%v, and %d verdicts", err, len(r.verdicts))
	}
	// A verdict is on what the party signed, and on nothing else.
	w.server.batch = 2
	fourth := w.deal(2, cheats["uniform y"])
	if err := w.server.Receive(fourth); !errors.Is(err, ErrProof) || len(r.verdicts) != 0 {
		t.Errorf("another message of the party: %v, and %d verdicts", err, len(r.verdicts))
	}
	w.server.Check([][]byte{good, third, other})
	if len(r.verdicts) != 0 {
		t.Error("who has been heard is checked again")
	}
}
