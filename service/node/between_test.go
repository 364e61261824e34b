package node

import (
	"errors"
	"testing"
	"time"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

// A message between nodes opens once, for its federation, its purpose and its question, under the
// seal key and within a minute of its time; of what was opened nothing is kept for longer.
func TestBetween(t *testing.T) {
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	newNode := func(key *keyexchange.SealKey) *between {
		return newBetween(record.NewKeys(*key), func() time.Time { return at })
	}
	a, b := newNode(key), newNode(key)
	sealed, own, err := a.seal(forOrder, "id", number{}, []byte("pause"))
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, _, err = b.open(forOrder, "other", number{}, sealed)
	refused("another federation", err, errForged)
	_, _, err = b.open(forLead, "id", number{}, sealed)
	refused("another purpose", err, errForged)
	_, _, err = b.open(forOrder, "id", own, sealed)
	refused("a reply to itself", err, errForged)
	_, _, err = b.open(forOrder, "id", number{}, sealed[:len(sealed)-1])
	refused("a message cut short", err, errForged)
	_, _, err = b.open(forOrder, "id", number{}, []byte(`{"what":"pause","who":"alice"}`))
	refused("a message without a seal", err, errForged)
	other, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = newNode(other).open(forOrder, "id", number{}, sealed)
	refused("another key", err, errForged)

	body, question, err := b.open(forOrder, "id", number{}, sealed)
	if err != nil || string(body) != "pause" || question != own {
		t.Fatalf("%q %v", body, err)
	}
	_, _, err = b.open(forOrder, "id", number{}, sealed)
	refused("a copy", err, errOld)
	reply, _, err := b.seal(forReply, "id", question, []byte("paused"))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = a.open(forReply, "id", number{1}, reply)
	refused("a reply to another question", err, errForged)
	if body, _, err = a.open(forReply, "id", own, reply); err != nil || string(body) != "paused" {
		t.Errorf("the reply: %q %v", body, err)
	}

	late := newNode(key)
	at = at.Add(time.Second)
	_, _, err = newNode(key).open(forOrder, "id", number{}, sealed)
	refused("a copy of a message from before the node's start", err, errOld)
	at = at.Add(clockBound)
	_, _, err = late.open(forOrder, "id", number{}, sealed)
	refused("an old message", err, errOld)
	_, _, err = b.open(forOrder, "id", number{}, sealed)
	refused("an old copy", err, errOld)
	future, _, err := a.seal(forLead, "id", number{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	at = at.Add(-2 * clockBound)
	_, _, err = newNode(key).open(forLead, "id", number{}, future)
	refused("a message of a clock that is ahead", err, errOld)
	at = at.Add(4 * clockBound)
	for range 3 {
		sealed, _, err = a.seal(forLead, "id", number{}, nil)
		if err == nil {
			_, _, err = b.open(forLead, "id", number{}, sealed)
		}
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(clockBound)
	}
	if len(b.had) > 3 {
		t.Errorf("%d numbers are kept", len(b.had))
	}
}
