package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/record"
)

// This file seals the messages between nodes: they go over NATS, which may be an operator's and
// carry others' messages. Each is sealed under the key that seals records, for one federation and
// one purpose, and states when it was made and its random number. A party that may publish and read
// at NATS, without that key, can withhold messages and nothing else.

// Purposes of messages between nodes.
const (
	forLead  = "lead"
	forOrder = "order"
	forReply = "reply"
)

// clockBound is by how much the clocks of two nodes may differ. Copies of older messages are
// refused by their time, and of newer ones by their number.
const clockBound = time.Minute

// Errors of messages between nodes.
var (
	errForged = errors.New("node: a message that no node with this seal key sent for this federation")
	errOld    = fmt.Errorf("node: a message from another node is a copy, or the nodes' clocks "+
		"differ by more than %v; set them by NTP", clockBound)
)

// number is the random number of a message, which identifies copies and binds a reply to its
// question.
type number [16]byte

const headSize = 8 + len(number{})

// between holds the state that a node needs to send and open messages. It is safe for concurrent
// use.
type between struct {
	keys    *record.Keys
	now     func() time.Time
	started time.Time // nothing is known of messages opened before

	mutex sync.Mutex
	had   map[number]time.Time // opened of late
	swept time.Time
}

func newBetween(keys *record.Keys, now func() time.Time) *between {
	return &between{keys: keys, now: now, had: make(map[number]time.Time),
		started: now().Truncate(time.Millisecond)}
}

func associatedOf(purpose, id string, question number) []byte {
	return fmt.Appendf(nil, labels.BetweenNodes+"\n%s\n%s\n%x", purpose, id, question)
}

// seal seals a message, or the reply to the question with a given number, and returns its own
// number.
func (b *between) seal(purpose, id string, question number, body []byte) ([]byte, number, error) {
	nonce, err := keyexchange.GenerateNonce(nil)
	if err != nil {
		return nil, number{}, err
	}
	own := number(nonce[:])
	head := make([]byte, headSize, headSize+len(body))
	binary.BigEndian.PutUint64(head, uint64(b.now().UnixMilli()))
	copy(head[8:], own[:])
	sealed, err := keyexchange.Seal(&nonce, b.keys.Newest(), append(head, body...),
		associatedOf(purpose, id, question))
	return sealed, own, err
}

// open opens a message, once only.
func (b *between) open(purpose, id string, question number, sealed []byte,
) (body []byte, own number, err error) {
	plain, err := b.keys.Open(sealed, associatedOf(purpose, id, question))
	if err != nil || len(plain) < headSize {
		return nil, own, errForged
	}
	own = number(plain[8:headSize])
	at, now := time.UnixMilli(int64(binary.BigEndian.Uint64(plain))), b.now()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	_, copied := b.had[own]
	if copied || at.Before(b.started) || at.Before(now.Add(-clockBound)) ||
		at.After(now.Add(clockBound)) {
		return nil, own, errOld
	}
	if now.Sub(b.swept) > clockBound {
		b.swept = now
		for n, when := range b.had {
			if when.Before(now.Add(-clockBound)) {
				delete(b.had, n)
			}
		}
	}
	b.had[own] = at
	return plain[headSize:], own, nil
}
