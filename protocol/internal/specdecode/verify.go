package specdecode

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/mlkem"
	"crypto/mlkem/mlkemtest"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
)

// server is the sender of the server's messages.
const server = 1<<32 - 1

// Verify checks a recorded session in the form of §14. It returns nil if every
// message and every value in it follow from the identities, the inputs and the
// parties' streams of randomness, and otherwise an ErrVector, or the error of
// JSON.
func Verify(data []byte) error {
	s := &session{
		uploads:       map[string]*material{},
		secrets:       map[string][]byte{},
		raw:           map[string][]byte{},
		chains:        map[string][][]byte{},
		announcements: map[int][]byte{},
		ciphertexts:   map[int][][]byte{},
		signatures:    map[int][]byte{},
		shared:        map[string]shared{},
		invited:       map[int]set{},
	}
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
	announcements map[int][]byte // as the entries of Keys are
	encapsulation [][]byte       // keys, by party
	public        [][]byte       // X25519, by party
	announcedSet  set            // A
	keysDigest    []byte
	ciphertexts   map[int][][]byte // by sender, in the order of its higher peers
	signatures    map[int][]byte   // on them
	shared        map[string]shared
	members       set // M
	invited       map[int]set
	id            []byte
	chains        map[string][][]byte  // CK_1, CK_2, … by pair
	uploads       map[string]*material // by party and round
	raw           map[string][]byte    // the same, as sent
	secrets       map[string][]byte    // k by party and round
	streams       []*stream
	now           *running
	done          int // rounds that are over
}

func key(party int, round uint64) string { return fmt.Sprint(party, " ", round) }

func pairKey(a, b int) string { return fmt.Sprint(min(a, b), " ", max(a, b)) }

func (s *session) checkParties() error {
	for i, p := range s.Parties {
		if len(p.Identity) != 32 ||
			!bytes.Equal(ed25519.NewKeyFromSeed(p.Identity)[32:], s.Config.Roster[i].Key) {
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
		if !s.hybrid {
			if len(p.MLKEM) != 0 {
				return fail("an ML-KEM key of party %d", i)
			}
			continue
		}
		if !bytes.Equal(s.streams[i].draw(64), p.MLKEM) {
			return fail("ML-KEM key of party %d is not drawn from its stream", i)
		}
		decapsulation, err := mlkem.NewDecapsulationKey768(p.MLKEM)
		if err != nil {
			return fail("ML-KEM key of party %d", i)
		}
		s.encapsulation = append(s.encapsulation, decapsulation.EncapsulationKey().Bytes())
	}
	return nil
}

// chainKey returns CK_ℓ of two parties (§5.1, §5.2).
func (s *session) chainKey(a, b int, round uint64) ([]byte, error) {
	low, high, pair := min(a, b), max(a, b), pairKey(a, b)
	if s.chains[pair] == nil {
		if s.hybrid && s.shared[pair].mlkem == nil {
			return nil, fail("parties %d and %d have no ciphertext", low, high)
		}
		first, err := firstChainKey(s.Parties[low].Private, s.public[high], s.shared[pair], s.id,
			s.Config.Roster[low].Key, s.Config.Roster[high].Key)
		if err != nil {
			return nil, err
		}
		s.chains[pair] = [][]byte{first}
	}
	for uint64(len(s.chains[pair])) < round {
		last := s.chains[pair][len(s.chains[pair])-1]
		s.chains[pair] = append(s.chains[pair], expand(last, labels.Ratchet, 64)[:32])
	}
	return s.chains[pair][round-1], nil
}

// pairSecret returns r_ab,ℓ (§5.2).
func (s *session) pairSecret(a, b int, round uint64) ([]byte, error) {
	chain, err := s.chainKey(a, b, round)
	if err != nil {
		return nil, err
	}
	return expand(chain, labels.Ratchet, 64)[32:], nil
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
	return expand(chain, labels.Channels, 128)[at : at+32], nil
}

// openShare opens a sealed share (§6.3).
func (s *session) openShare(
	sealed []byte, purpose, from, to int, round uint64, binding []byte,
) ([]byte, error) {
	channel, err := s.channel(purpose, from, to, round)
	if err != nil {
		return nil, err
	}
	data := bytes.Join([][]byte{[]byte(labels.Share), s.id, u64(round), {byte(purpose)},
		u32(from), u32(to), binding}, nil)
	share, err := open(channel, sealed, data)
	if err != nil {
		return nil, err
	}
	_, err = decodeScalar(share)
	return share, err
}

// rebuild opens all shares of a secret, combines them, and checks the
// commitment (§6).
func (s *session) rebuild(
	sealed [][]byte, holders []int, threshold, purpose, owner int, round uint64, binding,
	commitment []byte,
) ([]byte, []point, error) {
	var points []point
	for i, holder := range holders {
		share, err := s.openShare(sealed[i], purpose, owner, holder, round, binding)
		if err != nil {
			return nil, nil, err
		}
		points = append(points, point{holder, share})
	}
	secret, err := combine(points, threshold)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(hash(labels.Commitment, []byte{byte(purpose)}, s.id, u64(round), u32(owner),
		secret), commitment) {
		return nil, nil, fail("a commitment of party %d", owner)
	}
	return secret, points, nil
}

// takeUpload checks a party's recovery material (§6.5).
func (s *session) takeUpload(party int, after uint64, m *material) error {
	if m.round == 0 || m.round > 1<<16 || m.round != s.next(after, party) {
		return fail("material for round %d", m.round)
	}
	size, err := s.numbers(len(m.holders.all()))
	if err != nil {
		return err
	}
	neighbours := m.holders.of(s.neighbours(m.round, party))
	k, shares, err := s.rebuild(m.shares, neighbours, size.threshold, 1, party, m.round,
		holdersDigest(m.holders), m.commitment)
	if err != nil {
		return err
	}
	at := key(party, m.round)
	if s.raw[at] == nil { // else it is sent again and nothing is drawn
		if err := s.checkDraws(party, size.threshold, k, m.blob[:24], shares); err != nil {
			return err
		}
	}
	blob, err := open(derive(k, labels.BlobKey, 32), m.blob,
		hash(labels.BlobPlace, s.id, u64(m.round), u32(party)))
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
	raw := bytes.Join(append([][]byte{m.holders, m.commitment, m.blob}, m.shares...), nil)
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
	byServer := slices.Contains([]byte{keys, begin, invite, survivors, certificate, members}, h.kind)
	party, sender := from, uint32(from)
	if byServer {
		party, sender = to, server
	}
	if names[h.kind] != name || h.sender != sender || byServer != (from == -1) ||
		byServer == (to == -1) || party < 0 || party >= s.n {
		return fail("type, sender or receiver")
	}
	if want := s.id; h.kind == announce || h.kind == keys || h.kind == encapsulate ||
		h.kind == members {
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
		return s.keys(party, body)
	case encapsulate:
		return s.encapsulate(party, body)
	case members:
		return s.takeMembers(party, body)
	case upload:
		holders := s.members
		if h.round > 0 {
			holders = s.invited[party]
		}
		if holders == nil {
			return fail("an upload that nobody asked for")
		}
		m := body.material(s.degree(party, holders), holders)
		if err := body.end(); err != nil {
			return err
		}
		return s.takeUpload(party, h.round, m)
	case invite:
		holders, err := body.set(s.n)
		if err != nil {
			return err
		}
		if s.now == nil || h.round < s.now.Round || !holders.has(party) ||
			len(holders.all()) < s.minMembers ||
			len(s.members.of(holders.all())) != len(holders.all()) {
			return fail("an invitation after round %d", h.round)
		}
		if !lost {
			s.invited[party] = holders
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

func holdersDigest(holders set) []byte { return hash(labels.Holders, holders) }

// degree is the number of a party's neighbours in a round that it is scheduled in,
// among some holders.
func (s *session) degree(party int, holders set) int {
	if s.byRound {
		size, _ := s.numbers(len(s.members.all()))
		return size.degree
	}
	return len(holders.of(s.neighbours(1, party)))
}

// announce is §9.4.
func (s *session) announce(party int, body *reader) error {
	public := body.take(32)
	entry := bytes.Clone(public)
	if s.hybrid {
		ek := body.take(1184)
		if !bytes.Equal(ek, s.encapsulation[party]) {
			return fail("the encapsulation key of party %d", party)
		}
		entry = append(entry, hash("", ek)...)
	}
	sig := body.take(64)
	if err := body.end(); err != nil {
		return err
	}
	if !bytes.Equal(public, s.public[party]) {
		return fail("the key of party %d", party)
	}
	if !verify(s.Config.Roster[party].Key,
		signed(labels.AnnouncedKey, s.digest, u32(party), entry), sig) {
		return fail("the signature of party %d", party)
	}
	s.announcements[party] = append(entry, sig...)
	return nil
}

// keys is §9.4.
func (s *session) keys(party int, body *reader) error {
	announced, err := body.set(s.n)
	if err != nil {
		return err
	}
	entries := [][]byte{announced}
	for _, i := range announced.all() {
		entries = append(entries, s.announcements[i])
		if got := body.take(len(s.announcements[i])); s.announcements[i] == nil ||
			!bytes.Equal(got, s.announcements[i]) {
			return fail("the entry of party %d", i)
		}
	}
	digest := hash(labels.Keys, append([][]byte{s.digest}, entries...)...)
	if len(announced.all()) < s.minMembers || len(announced.all()) != len(s.announcements) ||
		!announced.has(party) {
		return fail("the parties of Keys")
	}
	if !bytes.Equal(digest, s.KeysDigest) {
		return fail("the digest of the keys")
	}
	s.announcedSet, s.keysDigest = announced, digest
	if !s.hybrid {
		if err := body.end(); err != nil {
			return err
		}
		return s.enroll(announced)
	}
	for _, peer := range s.peers(party) {
		if peer > party && !bytes.Equal(body.take(1184), s.encapsulation[peer]) {
			return fail("the encapsulation key of party %d", peer)
		}
	}
	return body.end()
}

func (s *session) enroll(members set) error {
	s.members = members
	s.id = hash(labels.Session, s.keysDigest, members)
	if !bytes.Equal(s.id, s.SessionID) {
		return fail("session identifier")
	}
	if !slices.Equal(members.all(), s.Enrolled) {
		return fail("the members")
	}
	return nil
}

func (s *session) higher(party int) []int {
	return slices.DeleteFunc(s.peers(party), func(i int) bool { return i < party })
}

func leaf(to int, ciphertext []byte) []byte { return join(u32(to), ciphertext) }

// encapsulate is §9.13: each ciphertext follows from the party's stream.
func (s *session) encapsulate(party int, body *reader) error {
	if s.announcedSet == nil || !s.announcedSet.has(party) || s.ciphertexts[party] != nil {
		return fail("ciphertexts of party %d", party)
	}
	var leaves [][]byte
	s.ciphertexts[party] = [][]byte{}
	for _, peer := range s.higher(party) {
		ct := body.take(1088)
		ek, err := mlkem.NewEncapsulationKey768(s.encapsulation[peer])
		if err != nil {
			return err
		}
		secret, want, err := mlkemtest.Encapsulate768(ek, s.streams[party].draw(32))
		if err != nil {
			return err
		}
		if !bytes.Equal(ct, want) {
			return fail("the ciphertext of party %d for party %d", party, peer)
		}
		decapsulation, err := mlkem.NewDecapsulationKey768(s.Parties[peer].MLKEM)
		if err != nil {
			return err
		}
		if opened, err := decapsulation.Decapsulate(ct); err != nil || !bytes.Equal(opened, secret) {
			return fail("the ciphertext of party %d for party %d does not open", party, peer)
		}
		s.shared[pairKey(party, peer)] = shared{secret, ct}
		s.ciphertexts[party] = append(s.ciphertexts[party], ct)
		leaves = append(leaves, leaf(peer, ct))
	}
	sig := body.take(64)
	if err := body.end(); err != nil {
		return err
	}
	if !verify(s.Config.Roster[party].Key,
		signed(labels.Ciphertexts, s.keysDigest, u32(party), root(leaves)), sig) {
		return fail("the signature of party %d on its ciphertexts", party)
	}
	s.signatures[party] = sig
	return nil
}

// takeMembers is §9.14.
func (s *session) takeMembers(party int, body *reader) error {
	list, err := body.set(s.n)
	if err != nil {
		return err
	}
	if !list.has(party) || len(list.all()) < s.minMembers ||
		s.members != nil && !bytes.Equal(list, s.members) {
		return fail("the members")
	}
	if err := s.enroll(list); err != nil {
		return err
	}
	for _, peer := range list.of(s.peers(party)) {
		if peer > party {
			continue
		}
		higher := s.higher(peer)
		at := slices.Index(higher, party)
		ct := body.take(1088)
		if s.ciphertexts[peer] == nil || !bytes.Equal(ct, s.ciphertexts[peer][at]) {
			return fail("the ciphertext of party %d", peer)
		}
		var path [][]byte
		for range depth(at, len(higher)) {
			path = append(path, body.take(32))
		}
		var leaves [][]byte
		for k, to := range higher {
			leaves = append(leaves, leaf(to, s.ciphertexts[peer][k]))
		}
		if !bytes.Equal(rootByPath(leaf(party, ct), at, len(higher), path), root(leaves)) {
			return fail("the path of party %d", peer)
		}
		if !bytes.Equal(body.take(64), s.signatures[peer]) {
			return fail("the signature of party %d on its ciphertexts", peer)
		}
	}
	return body.end()
}

// depth is the length of the path of leaf i of n.
func depth(i, n int) int {
	length := 0
	for last := n - 1; last > 0; i, last = i/2, last/2 {
		if i%2 == 1 || i < last {
			length++
		}
	}
	return length
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
	if !bytes.Equal(broadcast, s.now.digest) || !bytes.Equal(participants, s.now.participants) ||
		!participants.has(party) {
		return fail("the participants or the broadcast of the round")
	}
	if s.recovery {
		for _, owner := range s.now.near(s, party) {
			share := body.take(72)
			m := s.uploads[key(owner, number)]
			if m == nil || !bytes.Equal(share,
				m.shares[slices.Index(m.holders.of(s.neighbours(number, owner)), party)]) {
				return fail("a share of party %d", owner)
			}
		}
	}
	if !lost {
		s.now.begun = append(s.now.begun, party)
	}
	return body.end()
}
