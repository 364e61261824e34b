package oneshot

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// vectorMessages reads the messages of a file of vectors.
func vectorMessages(f *testing.F, name string) []vectorMessage {
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		f.Fatal(err)
	}
	var round vectorRound
	if err := json.Unmarshal(b, &round); err != nil {
		f.Fatal(err)
	}
	return round.Messages
}

// FuzzParse parses bytes as each kind of message, of open and of covered rounds.
// There is one encoding of each: whatever parses marshals back byte for byte.
func FuzzParse(f *testing.F) {
	var both []*settled
	for i, name := range []string{"round.json", "covered.json"} {
		both = append(both, must(newWorld(5, 7, vectorTerms(i == 1)).config.settle()))
		for _, m := range vectorMessages(f, name) {
			f.Add([]byte(m.Message), i == 1)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte, covered bool) {
		s := both[0]
		if covered {
			s = both[1]
		}
		h, body, err := s.parse(message)
		if err != nil {
			return
		}
		again := h.Append(nil)
		switch h.Type {
		case typeOpening:
			var o *opening
			if o, err = s.parseOpening(h.Round, body); err == nil {
				again = o.append(again)
			}
		case typeSubmission:
			var m *submission
			if m, err = s.parseSubmission(body, 6); err == nil {
				again = m.append(again)
			}
		case typeBatch:
			var number int
			var entries []entry
			if number, entries, err = s.parseBatch(body); err == nil {
				again = append(again, uint32Bytes(number)...)
				for i := range entries {
					again = entries[i].append(again)
				}
			}
		case typeDisputes, typeSettled:
			var number int
			var set wire.Set
			if number, set, err = parseNumbered(body, 5); err == nil {
				again = appendNumbered(again, number, set)
			}
		case typeClosing:
			var c *closing
			if c, err = s.parseClosing(body); err == nil {
				again = c.append(again)
			}
		case typeCertificate:
			var c wire.Certificate
			if c, err = wire.ParseCertificate(body, s.c); err == nil {
				again = c.Append(again)
			}
		default:
			return
		}
		if err == nil && !bytes.Equal(again, message) {
			t.Fatalf("%x parses, and marshals to %x", message, again)
		}
	})
}

// stage is a round that has come so far, ready to be loaded.
type stage struct {
	config  *Config
	server  []byte
	members [][]byte
	key     keyexchange.SealKey
}

// stages plays the round of a file of vectors and saves everybody before each message.
func stages(covered bool, messages []vectorMessage) []*stage {
	r := &recorded{world: newWorld(5, 7, vectorTerms(covered))}
	w := r.replay(0)
	var out []*stage
	for _, m := range messages {
		s := &stage{config: w.config}
		s.server = must(w.server.Save(&s.key))
		for _, member := range w.members {
			random := member.random
			member.random = nil // the keys of the file come from the rest of it
			s.members = append(s.members, must(member.Save(&s.key)))
			member.random = random
		}
		out = append(out, s)
		r.deliverOne(w, m)
	}
	return out
}

// FuzzRound shows a message to the server, to a member and to a party at some point of a
// round. Nobody panics, and whoever refuses it is left as it was.
func FuzzRound(f *testing.F) {
	var all []*stage
	for i, name := range []string{"round.json", "covered.json"} {
		messages := vectorMessages(f, name)
		at := len(all)
		all = append(all, stages(i == 1, messages)...)
		for k, m := range messages {
			f.Add([]byte(m.Message), uint16(at+k))
			f.Add([]byte(m.Message), uint16(at+(k+7)%len(messages)))
		}
	}
	_, memberKeys := people("member", 7)
	_, partyKeys := people("party", 5)
	f.Fuzz(func(t *testing.T, message []byte, at uint16) {
		s := all[int(at)%len(all)]
		kept := slices.Clone(message)
		inside := func(owner byte, i int, state []byte) []byte {
			return must(keyexchange.Open(&s.key, state, stateData(must(s.config.settle()), owner, i)))
		}
		server := must(LoadServer(s.config, 0, &s.key, s.server))
		before := inside(ownerServer, 0, must(server.Save(&s.key)))
		if err := server.Receive(message); err != nil &&
			!bytes.Equal(before, inside(ownerServer, 0, must(server.Save(&s.key)))) {
			t.Fatalf("the server refuses, and has changed: %v", err)
		}
		member := must(LoadMember(s.config, memberKeys[0], nil, &s.key, s.members[0]))
		before = inside(ownerMember, 0, must(member.Save(&s.key)))
		if _, err := member.Receive(message); err != nil &&
			!bytes.Equal(before, inside(ownerMember, 0, must(member.Save(&s.key)))) {
			t.Fatalf("the member refuses, and has changed: %v", err)
		}
		party := must(NewParty(s.config, partyKeys[0], nil))
		if _, err := party.Submit(message, []byte("model"), make([]int64, 5)); err != nil &&
			(party.Round() != 0 || party.Output() != nil) {
			t.Fatalf("the party refuses, and has changed: %v", err)
		}
		if !bytes.Equal(kept, message) {
			t.Fatal("the message was changed")
		}
	})
}
