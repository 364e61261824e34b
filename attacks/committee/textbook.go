package committee

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// defence is something that a textbook member checks or does.
type defence uint

const (
	survivors  defence = 1 << iota // refuses sets of fewer than MinSurvivors
	signatures                     // adds only what its party signed
	once                           // takes a party once
	oneAnswer                      // answers once a round
	quorum                         // asks for as many signatures as make a set the only one
	named                          // leaf and box name their party
	erasing                        // erases its key with the answer
	secretive                      // disputes a box without a proof

	everything = 1<<iota - 1
)

var errRefused = errors.New("refused")

// textbook is a member, from the specification, less what it lacks.
type textbook struct {
	world  *world
	self   int
	signer ed25519.PrivateKey
	lacks  defence

	dh       *ecdh.PrivateKey
	private  hpke.PrivateKey
	seen     map[int]bool
	pending  []*dealt
	sum      shamir.PackedShare
	chain    []byte
	count    int
	answered bool
}

// dealt holds a member's shares of a party.
type dealt struct {
	share     shamir.PackedShare
	statement []byte
}

func (m *textbook) has(d defence) bool { return m.lacks&d == 0 }

func (m *textbook) Receive(message []byte) ([]byte, error) {
	header, body, err := wire.ParseHeader(message)
	if err != nil {
		return nil, err
	}
	if m.answered && header.Type >= typeBatch {
		if m.has(oneAnswer) {
			return nil, errRefused
		}
		m.reset()
	}
	switch header.Type {
	case typeInvite:
		return m.invite()
	case typeOpening:
		m.reset()
	case typeBatch:
		m.batch(body)
		return m.disputes(body)
	case typeSettled:
		return nil, m.settled()
	case typeClosing:
		return m.closing()
	case typeCertificate:
		return m.certificate(body)
	}
	return nil, nil
}

func (m *textbook) header(kind wire.Type, session *[32]byte) []byte {
	header := wire.Header{Type: kind, Session: *session, Round: m.world.round,
		Sender: 1<<31 + uint32(m.self)}
	return header.Append(nil)
}

func (m *textbook) invite() ([]byte, error) {
	var err error
	if m.dh, err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
		return nil, err
	}
	if m.private, err = hpke.NewDHKEMPrivateKey(m.dh); err != nil {
		return nil, err
	}
	key := m.private.PublicKey().Bytes()
	statement := slices.Concat(m.world.digest[:], u64(m.world.round), u32(m.self), key)
	signature, err := keyexchange.Sign(m.signer, labels.OneshotKey, statement)
	return slices.Concat(m.header(typeKey, &m.world.digest), key, signature[:]), err
}

func (m *textbook) reset() {
	m.seen, m.count, m.answered = make(map[int]bool), 0, false
	m.chain = m.world.context[:]
	m.sum = shamir.PackedShare{Index: uint32(m.self) + 1,
		Values: make([][32]byte, m.world.figures.Polynomials)}
}

// batch opens the boxes. A box that it does not take is nil.
func (m *textbook) batch(body []byte) {
	w := m.world
	size := 4 + 64 + 32 + 3*32 + w.boxSize()
	m.pending = nil
	for body = body[4:]; len(body) >= size; body = body[size:] {
		m.pending = append(m.pending, m.open(body[:size]))
	}
}

// disputes answers a batch of up to eight boxes; without secretive, with the
// Diffie-Hellman secret of the last that does not open.
func (m *textbook) disputes(body []byte) ([]byte, error) {
	var bad byte
	var proof []byte
	boxes := body[4:]
	for i, d := range m.pending {
		size := len(boxes) / len(m.pending)
		if d != nil {
			continue
		}
		bad |= 1 << i
		if !m.has(secretive) {
			enc, err := ecdh.X25519().NewPublicKey(boxes[i*size+196:][:32])
			if err != nil {
				return nil, err
			}
			if proof, err = m.dh.ECDH(enc); err != nil {
				return nil, err
			}
		}
	}
	return slices.Concat(m.header(typeDisputes, &m.world.context), body[:4], []byte{bad}, proof), nil
}

func (m *textbook) open(entry []byte) *dealt {
	w := m.world
	party := int(binary.BigEndian.Uint32(entry))
	signature, masked, path, box := [64]byte(entry[4:]), entry[68:100], entry[100:196], entry[196:]
	plain, err := hpke.Open(m.private, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(),
		w.info(m.lacks, party, m.self), box)
	if err != nil || m.seen[party] && m.has(once) {
		return nil
	}
	node, at := w.leaf(m.lacks, party, m.self, plain), m.self
	for ; len(path) > 0; path = path[32:] {
		if at%2 == 0 {
			node = h(labels.OneshotNode, node, path[:32])
		} else {
			node = h(labels.OneshotNode, path[:32], node)
		}
		at /= 2
	}
	statement := slices.Concat(w.context[:], u32(party), node, masked)
	if m.has(signatures) &&
		keyexchange.Verify(w.config.Roster.Key(party), labels.OneshotParty, statement,
			&signature) != nil {
		return nil
	}
	m.seen[party] = true
	d := &dealt{share: shamir.PackedShare{Index: m.sum.Index}, statement: statement}
	for range w.figures.Polynomials {
		d.share.Values, plain = append(d.share.Values, [32]byte(plain)), plain[32:]
	}
	return d
}

// info and leaf are those of a box. Without named they say nothing of the party.
func (w *world) info(lacks defence, party, member int) []byte {
	if lacks&named != 0 {
		party = 0
	}
	return slices.Concat([]byte(labels.OneshotBox), w.context[:], u32(party), u32(member))
}

func (w *world) leaf(lacks defence, party, member int, plain []byte) []byte {
	if lacks&named != 0 {
		party = 0
	}
	return h(labels.OneshotLeaf, w.context[:], u32(party), u32(member), plain)
}

func (m *textbook) settled() error {
	for _, d := range m.pending {
		if d == nil {
			m.answered = true // it lacks a part, and is out of the round
			return errRefused
		}
		if err := m.sum.Add(&d.share); err != nil {
			return err
		}
		m.chain = h(labels.OneshotChain, m.chain, d.statement)
		m.count++
	}
	m.pending = nil
	return nil
}

func (m *textbook) statement() []byte {
	return slices.Concat(m.world.context[:], m.chain, u32(m.count))
}

func (m *textbook) closing() ([]byte, error) {
	if m.has(survivors) && m.count < m.world.config.MinSurvivors {
		return nil, errRefused
	}
	signature, err := keyexchange.Sign(m.signer, labels.OneshotClosing, m.statement())
	return append(m.header(typeSigned, &m.world.context), signature[:]...), err
}

func (m *textbook) certificate(body []byte) ([]byte, error) {
	good := 0
	for ; len(body) >= 68; body = body[68:] {
		signature := [64]byte(body[4:])
		key := m.world.config.Committee.Key(int(binary.BigEndian.Uint32(body)))
		if keyexchange.Verify(key, labels.OneshotClosing, m.statement(), &signature) == nil {
			good++
		}
	}
	if m.has(quorum) && good < m.world.figures.Quorum {
		return nil, errRefused
	}
	m.answered = true
	out := m.header(typePart, &m.world.context)
	for i := range m.sum.Values {
		out = append(out, m.sum.Values[i][:]...)
	}
	if m.has(erasing) {
		m.private = nil
	}
	return out, nil
}

// deal makes a submission of a party from parts and masked values of the adversary's
// choice, signed by key.
func (w *world) deal(
	lacks defence, party int, masked []byte, parts []shamir.PackedShare, key ed25519.PrivateKey,
) (*dealing, error) {
	d := &dealing{party: party, masked: masked}
	for k, part := range parts {
		var plain []byte
		for i := range part.Values {
			plain = append(plain, part.Values[i][:]...)
		}
		plain = append(plain, make([]byte, 32)...)
		public, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(w.keys[k])
		if err != nil {
			return nil, err
		}
		box, err := hpke.Seal(public, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), w.info(lacks, party, k),
			plain)
		if err != nil {
			return nil, err
		}
		d.leaves, d.boxes = append(d.leaves, w.leaf(lacks, party, k, plain)), append(d.boxes, box)
	}
	return d, w.sign(d, key)
}

func (w *world) sign(d *dealing, key ed25519.PrivateKey) error {
	signature, err := keyexchange.Sign(key, labels.OneshotParty, w.statement(d))
	d.signature = signature[:]
	return err
}

// zero deals shares of a key of zeros, which the server knows.
func (w *world) zero(party int, key ed25519.PrivateKey) (*dealing, error) {
	parts, err := shamir.SplitPacked(nil, w.packing(), make([]shamir.Secret, w.figures.Polynomials),
		upTo(members))
	if err != nil {
		return nil, err
	}
	return w.deal(0, party, make([]byte, w.packedSize()), parts, key)
}

func upTo(n int) []uint32 {
	var out []uint32
	for i := range n {
		out = append(out, uint32(i)+1)
	}
	return out
}
