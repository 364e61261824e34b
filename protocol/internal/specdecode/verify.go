package specdecode

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
)

// server is the sender of the server's messages.
const server = 1<<32 - 1

// Verify checks a recorded session in the form of §14. It returns nil if every
// message and every value in it follow from the identities, the inputs and the
// parties' streams of randomness, and otherwise an ErrVector, or the error of
// JSON.
func Verify(data []byte) error {
	s := &session{uploads: map[string]*material{}, secrets: map[string][]byte{}, raw: map[string][]byte{}, chains: map[string][][]byte{}}
	if err := json.Unmarshal(data, &s.vector); err != nil {
		return fmt.Errorf("specdecode: %w", err)
	}
	var err error
	if s.setting, err = s.settle(); err != nil {
		return err
	}
	if err := s.checkParties(); err != nil {
		return err
	}
	for i, m := range s.Messages {
		if err := s.message(m.From, m.To, m.Type, m.Lost, m.Message); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Type, err)
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	if s.done != len(s.Rounds) {
		return fail("%d rounds in the messages, %d in the vector", s.done, len(s.Rounds))
	}
	return nil
}

// session is the state of Verify: all that any party or the server knows.
type session struct {
	vector
	*setting
	announced [][]byte
	public    [][]byte
	id        []byte
	chains    map[string][][]byte  // CK_1, CK_2, … by pair
	uploads   map[string]*material // by party and round
	raw       map[string][]byte    // the same, as sent
	secrets   map[string][]byte    // k by party and round
	streams   []*stream
	now       *running
	done      int // rounds that are over
}

func key(party int, round uint64) string { return fmt.Sprint(party, " ", round) }

func (s *session) checkParties() error {
	s.announced = make([][]byte, s.n)
	for i, p := range s.Parties {
		if len(p.Identity) != 32 || !bytes.Equal(ed25519.NewKeyFromSeed(p.Identity)[32:], p.Public) {
			return fail("identity of party %d", i)
		}
		s.streams = append(s.streams, &stream{seed: p.Random})
		if !bytes.Equal(s.streams[i].draw(32), p.Private) {
			return fail("X25519 key of party %d is not drawn from its stream", i)
		}
		private, err := ecdh.X25519().NewPrivateKey(p.Private)
		if err != nil {
			return fail("X25519 key of party %d", i)
		}
		s.public = append(s.public, private.PublicKey().Bytes())
	}
	return nil
}

// chainKey returns CK_ℓ of two parties (§5.1, §5.2).
func (s *session) chainKey(a, b int, round uint64) ([]byte, error) {
	low, high := min(a, b), max(a, b)
	pair := fmt.Sprint(low, " ", high)
	if s.chains[pair] == nil {
		first, err := firstChainKey(s.Parties[low].Private, s.public[high], s.id, s.Parties[low].Public, s.Parties[high].Public)
		if err != nil {
			return nil, err
		}
		s.chains[pair] = [][]byte{first}
	}
	for uint64(len(s.chains[pair])) < round {
		last := s.chains[pair][len(s.chains[pair])-1]
		s.chains[pair] = append(s.chains[pair], expand(last, "hushsum/1 ratchet", 64)[:32])
	}
	return s.chains[pair][round-1], nil
}

// pairSecret returns r_ab,ℓ (§5.2).
func (s *session) pairSecret(a, b int, round uint64) ([]byte, error) {
	chain, err := s.chainKey(a, b, round)
	if err != nil {
		return nil, err
	}
	return expand(chain, "hushsum/1 ratchet", 64)[32:], nil
}

// channel returns the key for shares of the given purpose (§5.3).
func (s *session) channel(purpose, from, to int, round uint64) ([]byte, error) {
	chain, err := s.chainKey(from, to, round)
	if err != nil {
		return nil, err
	}
	at := 64 * purpose
	if from > to {
		at += 32
	}
	return expand(chain, "hushsum/1 channels", 128)[at : at+32], nil
}

// openShare opens a sealed share (§6.3).
func (s *session) openShare(sealed []byte, purpose, from, to int, round uint64, context []byte) ([]byte, error) {
	channel, err := s.channel(purpose, from, to, round)
	if err != nil {
		return nil, err
	}
	data := bytes.Join([][]byte{[]byte("hushsum/1 share"), s.id, u64(round), {byte(purpose)}, u32(from), u32(to), context}, nil)
	share, err := open(channel, sealed, data)
	if err != nil {
		return nil, err
	}
	_, err = decodeScalar(share)
	return share, err
}

// rebuild opens all shares of a secret, combines them, and checks the
// commitment (§6).
func (s *session) rebuild(sealed [][]byte, holders []int, purpose, owner int, round uint64, context, commitment []byte) ([]byte, []point, error) {
	var points []point
	for i, holder := range holders {
		share, err := s.openShare(sealed[i], purpose, owner, holder, round, context)
		if err != nil {
			return nil, nil, err
		}
		points = append(points, point{holder, share})
	}
	secret, err := combine(points, s.threshold)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(hash("hushsum/1 commitment", []byte{byte(purpose)}, s.id, u64(round), u32(owner), secret), commitment) {
		return nil, nil, fail("a commitment of party %d", owner)
	}
	return secret, points, nil
}

// takeUpload checks a party's recovery material (§6.5).
func (s *session) takeUpload(party int, after uint64, m *material) error {
	if m.round == 0 || m.round > 1<<16 || m.round != s.next(s.id, after, party) {
		return fail("material for round %d", m.round)
	}
	neighbours := s.neighbours(s.id, m.round, party)
	k, shares, err := s.rebuild(m.shares, neighbours, 1, party, m.round, make([]byte, 32), m.commitment)
	if err != nil {
		return err
	}
	at := key(party, m.round)
	if s.raw[at] == nil { // else it is sent again and nothing is drawn
		if err := s.checkDraws(party, k, m.blob[:24], shares); err != nil {
			return err
		}
	}
	blob, err := open(derive(k, "hushsum/1 blob key", 32), m.blob, hash("hushsum/1 blob", s.id, u64(m.round), u32(party)))
	if err != nil {
		return err
	}
	for i, peer := range neighbours {
		secret, err := s.pairSecret(party, peer, m.round)
		if err != nil {
			return err
		}
		if !bytes.Equal(blob[32*i:32*i+32], secret) {
			return fail("the blob of party %d", party)
		}
	}
	raw := bytes.Join(append([][]byte{m.commitment, m.blob}, m.shares...), nil)
	if s.raw[at] != nil && !bytes.Equal(s.raw[at], raw) {
		return fail("party %d has two versions of its material for round %d", party, m.round)
	}
	s.uploads[at], s.raw[at], s.secrets[at] = m, raw, k
	return nil
}

// message checks one message.
func (s *session) message(from, to int, name string, lost bool, message []byte) error {
	h, body, err := parseHeader(message)
	if err != nil {
		return err
	}
	byServer := h.kind == keys || h.kind == begin || h.kind == invite || h.kind == survivors || h.kind == certificate
	party, sender := from, uint32(from)
	if byServer {
		party, sender = to, server
	}
	if names[h.kind] != name || h.sender != sender || byServer != (from == -1) || byServer == (to == -1) || party < 0 || party >= s.n {
		return fail("type, sender or receiver")
	}
	if want := s.id; h.kind == announce || h.kind == keys {
		if !bytes.Equal(h.session, s.digest) || h.round != 0 {
			return fail("session or round")
		}
	} else if want == nil || !bytes.Equal(h.session, want) {
		return fail("session")
	}
	switch h.kind {
	case announce:
		return s.announce(party, body)
	case keys:
		return s.keys(body)
	case upload:
		m := body.material(s.degree)
		if err := body.end(); err != nil {
			return err
		}
		return s.takeUpload(party, h.round, m)
	case invite:
		if s.now == nil || h.round != s.now.Round {
			return fail("an invitation after round %d", h.round)
		}
		return body.end()
	case begin:
		return s.begin(h.round, party, body, lost)
	}
	if s.now == nil || h.round != s.now.Round {
		return fail("round %d is not open", h.round)
	}
	switch h.kind {
	case masked:
		return s.now.masked(s, party, body, lost)
	case survivors:
		return s.now.survivors(s, party, body, lost)
	case signature:
		return s.now.signature(s, party, body, lost)
	case certificate:
		return s.now.certificate(s, party, body, lost)
	default:
		return s.now.reveal(s, party, body, lost)
	}
}

func (s *session) announce(party int, body *reader) error {
	public, sig := body.take(32), body.take(64)
	if err := body.end(); err != nil {
		return err
	}
	if !bytes.Equal(public, s.public[party]) {
		return fail("the key of party %d", party)
	}
	if !verify(s.Parties[party].Public, signed("hushsum/1 key", s.digest, u32(party), public), sig) {
		return fail("the signature of party %d", party)
	}
	s.announced[party] = append(bytes.Clone(public), sig...)
	return nil
}

func (s *session) keys(body *reader) error {
	want := bytes.Join(s.announced, nil)
	if len(want) != 96*s.n || !bytes.Equal(body.rest, want) {
		return fail("the list of keys")
	}
	s.id = hash("hushsum/1 session", s.digest, want)
	if !bytes.Equal(s.id, s.SessionID) {
		return fail("session identifier")
	}
	return nil
}

// begin checks a Begin; the first of a round opens it (§9.5).
func (s *session) begin(number uint64, party int, body *reader, lost bool) error {
	broadcast := body.take(32)
	participants, err := body.set(s.n)
	if err != nil {
		return err
	}
	if s.now == nil || number != s.now.Round {
		if err := s.finish(); err != nil {
			return err
		}
		if err := s.open(number, broadcast, participants); err != nil {
			return err
		}
	}
	if !bytes.Equal(broadcast, s.now.digest) || !bytes.Equal(participants, s.now.participants) || !participants.has(party) {
		return fail("the participants or the broadcast of the round")
	}
	if s.recovery {
		for _, owner := range s.now.near(s, party) {
			share := body.take(72)
			m := s.uploads[key(owner, number)]
			if m == nil || !bytes.Equal(share, m.shares[slices.Index(s.neighbours(s.id, number, owner), party)]) {
				return fail("a share of party %d", owner)
			}
		}
	}
	if !lost {
		s.now.begun = append(s.now.begun, party)
	}
	return body.end()
}
