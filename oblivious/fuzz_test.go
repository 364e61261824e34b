package oblivious

import (
	"bytes"
	"sync"
	"testing"
)

// FuzzHeader: a header that parses is the only encoding of what it says.
func FuzzHeader(f *testing.F) {
	for kind := typeSetup; kind <= typeOffer; kind++ {
		h := header{kind, uint64(kind - typeSetup), 3, 4}
		f.Add(append(h.append(nil), "sealed"...))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		h, sealed, err := parseHeader(message)
		if err == nil && !bytes.Equal(append(h.append(nil), sealed...), message) {
			t.Fatal("two encodings of one header")
		}
	})
}

// FuzzOffer: the same for the body of an offer.
func FuzzOffer(f *testing.F) {
	config := &Config{Parties: 2, Length: 3, Bits: 13, Noise: scale(2)}
	f.Add(config.packOffer([2][]uint64{{1, 2, 3}, {4, 5, 6}}))
	f.Add(make([]byte, config.bodySize(typeOffer)))
	f.Fuzz(func(t *testing.T, body []byte) {
		terms, err := config.parseOffer(body)
		if err == nil && !bytes.Equal(config.packOffer(terms), body) {
			t.Fatal("two encodings of one offer")
		}
	})
}

// FuzzSetup: whatever a peer sends for the base transfers is refused or gives keys.
func FuzzSetup(f *testing.F) {
	receiver, err := newBaseReceiver([32]byte{}, seeded(1))
	if err != nil {
		f.Fatal(err)
	}
	sender, err := newBaseSender(seeded(2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(sender.message[:], receiver.r[:]...))
	f.Fuzz(func(t *testing.T, body []byte) {
		point, pairs, err := parseSetup(body)
		if err != nil {
			return
		}
		receiver.keys([32]byte{}, point)
		sender.keys([32]byte{}, pairs)
	})
}

// FuzzReceive: a party in the middle of a round takes no message that its peer did
// not seal, and keeps its state. The inner form of the message is the fuzzer's as
// well: sealed with the right key, it may only be refused.
func FuzzReceive(f *testing.F) {
	var once sync.Once
	var parties []*Transfer
	setup := func(t testing.TB) {
		parties = session(t, &Config{Parties: 2, Length: 3, Bits: 16, Noise: scale(2)}, seeded(3))
		if _, err := Exchange(parties, 1); err != nil {
			t.Fatal(err)
		}
		for _, p := range parties {
			if _, err := p.Begin(2); err != nil {
				t.Fatal(err)
			}
		}
	}
	for kind := typeSetup; kind <= typeOffer; kind++ {
		f.Add(uint8(kind), uint64(2), bytes.Repeat([]byte{7}, 200), false)
		f.Add(uint8(kind), uint64(2), make([]byte, choiceSize(3)), true)
		f.Add(uint8(kind), uint64(2), make([]byte, 12), true)
	}
	f.Fuzz(func(t *testing.T, kind uint8, round uint64, body []byte, sealed bool) {
		once.Do(func() { setup(t) })
		h := header{messageType(kind), round, 0, 1}
		victim := parties[1]
		message := append(h.append(nil), body...)
		if sealed {
			var err error
			if message, err = parties[0].seal(parties[0].peers[1], h, body); err != nil {
				t.Fatal(err)
			}
		}
		before := *victim.peers[0]
		_, err := victim.Receive(message)
		if !sealed && err == nil {
			t.Fatal("a message that nobody sealed is taken")
		}
		if err != nil && victim.dead == nil &&
			(victim.peers[0].answered != before.answered || victim.peers[0].taken != before.taken) {
			t.Fatal("a refused message changes the state")
		}
		if victim.dead != nil || victim.peers[0].taken {
			setup(t)
		}
	})
}

// FuzzJoint: a message of a Joint that parses is the only encoding of what it says, and a party
// takes nothing that its peer did not make for the step, signed as it may be.
func FuzzJoint(f *testing.F) {
	var stages [stageSum][]*Joint
	var honest [stageSum][]byte // the bodies that party 1 makes
	for stage := range stageSum {
		stages[stage] = jointTrio(f, 8, stage)
		message, err := stages[stage][1].Next()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(stage), message, false)
		m, err := stages[stage][1].config.parseJoint(message)
		if err != nil {
			f.Fatal(err)
		}
		stages[stage], honest[stage] = jointTrio(f, 8, stage), m.body
		f.Add(byte(stage), m.body, true)
		f.Add(byte(stage), m.body[:len(m.body)/2], true)
		f.Add(byte(stage), append(bytes.Clone(m.body), 0), true)
	}
	f.Fuzz(func(t *testing.T, stage byte, message []byte, sign bool) {
		stage %= byte(stageSum)
		parties := stages[stage]
		if sign {
			if bytes.Equal(message, honest[stage]) {
				return // what the fuzzer finds by itself from what differs little
			}
			message = parties[1].forge(t, message)
		} else if m, err := parties[0].config.parseJoint(message); err != nil ||
			!bytes.Equal(m.append(nil), message) {
			if err == nil {
				t.Fatal("two encodings of one message")
			}
		} else {
			return // it may be the honest one
		}
		at := parties[0].at()
		if err := parties[0].Receive(message); err == nil || parties[0].at() != at {
			t.Fatal("taken")
		}
	})
}
