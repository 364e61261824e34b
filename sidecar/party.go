package sidecar

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"sync"

	"github.com/hushsum/hushsum/drive"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

var partyCalls = map[string]handler{
	"party.new":     newParty,
	"party.load":    loadParty,
	"party.state":   party(partyState),
	"party.output":  partyOutput,
	"party.receive": party(partyReceive),
	"party.submit":  partySubmit,
	"party.save":    party(partySave),
}

// partyObject is one party in one session.
type partyObject struct {
	mutex    sync.Mutex
	client   *protocol.Client
	settled  *declared.Settled
	identity ed25519.PrivateKey
	guard    *guard
	kept     body   // the last message, if it is a submission
	unfit    string // why it consists of zeros with noise, if it does
}

func (p *partyObject) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.client.Erase()
	clear(p.identity)
}

// identityCall returns the public key of an identity, or of a new one if none is given.
func identityCall(_ *sidecar, r *request) (any, [][]byte, error) {
	if err := r.takeWith(&struct{}{}); err != nil {
		return nil, nil, err
	}
	var seed []byte
	var err error
	switch len(r.blobs) {
	case 0:
		seed = make([]byte, ed25519.SeedSize)
		_, err = rand.Read(seed)
	case 1:
		seed, err = r.secret(0, "the identity")
	default:
		err = requestError("", "identity came with %d blobs and takes at most 1", len(r.blobs))
	}
	if err != nil {
		return nil, nil, err
	}
	key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return struct {
		Public string `json:"public"`
	}{hex.EncodeToString(key)}, [][]byte{seed}, nil
}

// partyJSON is the progress of a party.
type partyJSON struct {
	Party    uint64 `json:"party"` // the object
	Index    int    `json:"index"` // in the roster
	Enrolled []int  `json:"enrolled"`
	Round    uint64 `json:"round"`
	Due      bool   `json:"due"` // Round waits for this party's vector
	// Unfit says why the submission consists of zeros with noise, in the answer to the call that
	// made it.
	Unfit string `json:"unfit,omitempty"`
}

func (p *partyObject) state(id uint64) partyJSON {
	round, due := p.client.Due()
	return partyJSON{id, p.client.Party(), p.client.Enrolled(), round, due, p.unfit}
}

// sessionParameters are those of a party and of a server.
type sessionParameters struct {
	Settled uint64 `json:"settled"`
	Number  uint64 `json:"number"` // of the session
}

type partyParameters struct {
	sessionParameters
	// Spent is the last round of the job that the party may have submitted in, as far as the caller
	// knows: all rounds up to it count.
	Spent uint64 `json:"spent"`
}

func newParty(s *sidecar, r *request) (any, [][]byte, error) {
	var with partyParameters
	if err := r.take(&with, 1); err != nil {
		return nil, nil, err
	}
	return s.addParty(r, with, savedParty{}, func(c *protocol.Config, identity ed25519.PrivateKey) (
		*protocol.Client, error,
	) {
		return protocol.NewClient(c, identity, nil)
	})
}

// loadParty takes the identity, the key and the saved state.
func loadParty(s *sidecar, r *request) (any, [][]byte, error) {
	var with partyParameters
	if err := r.take(&with, 3); err != nil {
		return nil, nil, err
	}
	key, err := r.sealKey(1)
	if err != nil {
		return nil, nil, err
	}
	saved, err := openState(key, r.blobs[2].private())
	if err != nil {
		return nil, nil, err
	}
	return s.addParty(r, with, saved, func(c *protocol.Config, identity ed25519.PrivateKey) (
		*protocol.Client, error,
	) {
		return protocol.LoadClient(c, identity, nil, key, saved.state)
	})
}

// sealKey returns a blob that is a key to seal states with.
func (r *request) sealKey(i int) (*keyexchange.SealKey, error) {
	b, err := r.secret(i, "the key")
	if err != nil {
		return nil, err
	}
	key := keyexchange.SealKey(b)
	return &key, nil
}

// addParty makes the party for the identity in the first blob.
func (s *sidecar) addParty(
	r *request, with partyParameters, saved savedParty,
	makeClient func(c *protocol.Config, identity ed25519.PrivateKey) (*protocol.Client, error),
) (any, [][]byte, error) {
	settled, err := lookup[*declared.Settled](s, with.Settled, "job")
	if err != nil {
		return nil, nil, err
	}
	if err := sessions(settled); err != nil {
		return nil, nil, err
	}
	declared, err := checkSpent(settled, with.Spent)
	if err != nil {
		return nil, nil, err
	}
	seed, err := r.secret(0, "the identity")
	if err != nil {
		return nil, nil, err
	}
	p := &partyObject{
		settled:  settled,
		identity: ed25519.NewKeyFromSeed(seed),
		kept:     inMemory(saved.kept),
	}
	clear(seed)
	if p.client, err = makeClient(settled.Config(with.Number), p.identity); err != nil {
		clear(p.identity)
		return nil, nil, err
	}
	p.guard, err = s.guard(settled, p.identity, saved.counted.and(declared))
	id := uint64(0)
	if err == nil {
		id, err = s.add(p)
	}
	if err != nil {
		p.close()
		return nil, nil, err
	}
	p.mutex.Lock()
	return streamed{p.state(id), p.last(), p.mutex.Unlock}, nil, nil
}

// last returns the last message that the party has made.
func (p *partyObject) last() body {
	if _, kept := p.client.Kept(); kept {
		return p.kept
	}
	if output := p.client.Output(); output != nil {
		return inMemory(output)
	}
	return inMemory(p.client.Announce())
}

// party finds the party of a call, and has it work on no other call meanwhile.
func party(work func(p *partyObject, r *request) ([][]byte, error)) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		var with struct {
			Party uint64 `json:"party"`
		}
		if err := r.takeWith(&with); err != nil {
			return nil, nil, err
		}
		p, err := lookup[*partyObject](s, with.Party, "party")
		if err != nil {
			return nil, nil, err
		}
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.unfit = ""
		blobs, err := work(p, r)
		if err != nil {
			return nil, nil, err
		}
		return p.state(with.Party), blobs, nil
	}
}

// need checks the number of blobs.
func (r *request) need(n int) error {
	if len(r.blobs) != n {
		return requestError("", "%s came with %d blobs and takes %d", r.call, len(r.blobs), n)
	}
	return nil
}

func partyState(_ *partyObject, r *request) ([][]byte, error) { return nil, r.need(0) }

// withMessage finds the party of a call that answers with its last message. The party works on
// nothing else until that is written.
func (s *sidecar) withMessage(
	id uint64, work func(p *partyObject) error,
) (any, [][]byte, error) {
	p, err := lookup[*partyObject](s, id, "party")
	if err != nil {
		return nil, nil, err
	}
	p.mutex.Lock()
	p.unfit = ""
	written := p.mutex.Unlock
	defer func() {
		if written != nil {
			written() // there will be no answer
		}
	}()
	if err := work(p); err != nil {
		return nil, nil, err
	}
	answer := streamed{p.state(id), p.last(), written}
	written = nil
	return answer, nil, nil
}

func partyOutput(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Party uint64 `json:"party"`
	}
	if err := r.take(&with, 0); err != nil {
		return nil, nil, err
	}
	return s.withMessage(with.Party, func(*partyObject) error { return nil })
}

// partyReceive answers with one blob, or none if there is nothing to answer.
func partyReceive(p *partyObject, r *request) ([][]byte, error) {
	if err := r.need(1); err != nil {
		return nil, err
	}
	answer, err := p.client.Receive(r.blobs[0].private())
	if err != nil {
		return nil, err
	}
	if _, kept := p.client.Kept(); p.kept != nil && !kept {
		size := int(p.kept.Size())
		if p.kept = nil; size >= large {
			p.client.Release()
		}
		freed(size)
	}
	if answer == nil {
		return nil, nil
	}
	return [][]byte{answer}, nil
}

// private returns bytes that the caller cannot change while they are in use.
func (b blob) private() []byte {
	if !b.shared {
		return b.bytes
	}
	return append([]byte(nil), b.bytes...)
}

// partySubmit takes the vector, empty if there is none. It is counted, then masked; the message is
// written from the place where it was masked.
func partySubmit(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Party     uint64 `json:"party"`
		Round     uint64 `json:"round"` // of the job
		Broadcast string `json:"broadcast"`
		vectorCall
	}
	if err := r.take(&with, 1); err != nil {
		return nil, nil, err
	}
	broadcast, err := parseDigest(with.Broadcast)
	if err != nil {
		return nil, nil, err
	}
	return s.withMessage(with.Party, func(p *partyObject) error {
		encode, err := with.encoding(p.settled, broadcast, r.blobs[0].bytes)
		if err != nil {
			return err
		}
		return p.guard.submit(func(next *drive.Guard) error {
			made, err := p.client.SubmitVector(broadcast, func(v *masking.Vector) error {
				err := next.Charge(with.Round)
				if err == nil {
					p.unfit, err = submission(p.settled, v, len(r.blobs[0].bytes) == 0, encode)
				}
				return err
			})
			if err == nil {
				p.kept = made
			}
			return err
		})
	})
}

func partySave(p *partyObject, r *request) ([][]byte, error) {
	if err := r.need(1); err != nil {
		return nil, err
	}
	key, err := r.sealKey(0)
	if err != nil {
		return nil, err
	}
	state, err := p.client.Save(key)
	if err != nil {
		return nil, err
	}
	var kept body = inMemory(nil)
	if p.kept != nil {
		kept = p.kept
	}
	sealed, err := sealState(key, p.guard.counted(), state, kept)
	return [][]byte{sealed}, err
}
