package committee

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/ring"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/shamir"
)

// The world of the attacks: five parties, of whom the last collude; a committee of
// seven, of whom the last colludes; exact sums, so that what is recovered is recovered
// exactly.
const (
	parties = 5
	members = 7
	honest  = members - 1
	length  = 4
	degree  = 2048
	model   = "model"
)

// The types of messages.
const (
	typeInvite wire.Type = 64 + iota
	typeKey
	typeOpening
	typeSubmission
	typeBatch
	typeDisputes
	typeSettled
	typeClosing
	typeSigned
	typeCertificate
	typePart
)

// member is a member of the committee, real or textbook.
type member interface {
	Receive(message []byte) ([]byte, error)
}

// world is a round that is open.
type world struct {
	config     *oneshot.Config
	figures    oneshot.Figures
	digest     [32]byte
	partyKeys  []ed25519.PrivateKey
	memberKeys []ed25519.PrivateKey
	members    []member
	round      uint64
	keys       [][]byte // the members' public keys
	opening    []byte
	context    [32]byte
	inputs     [][]int64
}

func identities(kind byte, n int) ([]ed25519.PrivateKey, *keyexchange.Roster, error) {
	var keys []ed25519.PrivateKey
	var list []keyexchange.Entry
	for i := range n {
		key := ed25519.NewKeyFromSeed(append(make([]byte, 30), kind, byte(i)))
		keys = append(keys, key)
		list = append(list, keyexchange.Entry{Name: fmt.Sprintf("%c%d", kind, i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(list)
	return keys, roster, err
}

// newWorld opens a round with members that lack a defence, or real ones.
func newWorld(seed uint64, lacks defence, real bool) (*world, error) {
	w := &world{round: 1}
	var roster, committee *keyexchange.Roster
	var err error
	if w.partyKeys, roster, err = identities('p', parties); err != nil {
		return nil, err
	}
	if w.memberKeys, committee, err = identities('m', members); err != nil {
		return nil, err
	}
	w.config = &oneshot.Config{Label: "attacks", Roster: roster, Committee: committee,
		Terms: oneshot.Terms{
			Length:        length,
			Bits:          8,
			MinSurvivors:  3,
			Colluders:     1,
			Faults:        1,
			PerPolynomial: 1,
			KEM:           oneshot.KEMX25519,
		}}
	if w.figures, err = w.config.Parameters(); err != nil {
		return nil, err
	}
	if w.digest, err = w.config.Digest(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 1))
	for range parties {
		input := make([]int64, length)
		for k := range input {
			input[k] = random.Int64N(256) - 128
		}
		w.inputs = append(w.inputs, input)
	}
	for k, key := range w.memberKeys {
		var m member = &textbook{world: w, self: k, signer: key, lacks: lacks}
		if k == honest {
			m = &textbook{world: w, self: k, signer: key, lacks: everything&^named | lacks}
		} else if real {
			if m, err = oneshot.NewMember(w.config, key, nil); err != nil {
				return nil, err
			}
		}
		w.members = append(w.members, m)
	}
	return w, w.open(model)
}

// open opens the round, the server making the opening itself.
func (w *world) open(model string) error {
	set := wire.FullSet(members)
	body := slices.Concat(h(labels.OneshotBroadcast, []byte(model)), set.Bytes())
	hashed := [][]byte{w.digest[:], u64(w.round), body}
	var signed []byte
	for _, m := range w.members {
		answer, err := m.Receive(w.header(typeInvite, &w.digest))
		if err != nil {
			return err
		}
		key := answer[wire.HeaderSize:]
		signed = append(signed, key...)
		w.keys = append(w.keys, key[:32])
		hashed = append(hashed, key[:32])
	}
	w.context = [32]byte(h(labels.OneshotContext, hashed...))
	w.opening = slices.Concat(w.header(typeOpening, &w.digest), body, signed)
	for _, m := range w.members {
		if _, err := m.Receive(w.opening); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) header(kind wire.Type, session *[32]byte) []byte {
	header := wire.Header{Type: kind, Session: *session, Round: w.round, Sender: wire.ServerIndex}
	return header.Append(nil)
}

// submit has an honest party submit.
func (w *world) submit(i int) (*dealing, error) {
	p, err := oneshot.NewParty(w.config, w.partyKeys[i], nil)
	if err != nil {
		return nil, err
	}
	message, err := p.Submit(w.opening, []byte(model), w.inputs[i])
	if err != nil {
		return nil, err
	}
	return w.parse(i, message[wire.HeaderSize:]), nil
}

// dealing is a submission, taken apart.
type dealing struct {
	party     int
	masked    []byte
	leaves    [][]byte
	boxes     [][]byte
	signature []byte
}

func (w *world) plainSize() int  { return 32*w.figures.Polynomials + 32 }
func (w *world) boxSize() int    { return 32 + w.plainSize() + 16 }
func (w *world) packedSize() int { return ((length+w.figures.Spare)*w.figures.ModulusBits + 7) / 8 }

func (w *world) parse(party int, body []byte) *dealing {
	d := &dealing{party: party, masked: body[:w.packedSize()]}
	body = body[w.packedSize():]
	for range members {
		d.leaves, body = append(d.leaves, body[:32]), body[32:]
	}
	for range members {
		d.boxes, body = append(d.boxes, body[:w.boxSize()]), body[w.boxSize():]
	}
	d.signature = body
	return d
}

// statement returns the bytes that the party signs.
func (w *world) statement(d *dealing) []byte {
	root := d.level()[3][0]
	return slices.Concat(w.context[:], u32(d.party), root, h(labels.OneshotMasked, d.masked))
}

// level returns the tree over the leaves, of which there are eight.
func (d *dealing) level() [][][]byte {
	levels := [][][]byte{append(slices.Clone(d.leaves), make([]byte, 32))}
	for len(levels[len(levels)-1]) > 1 {
		low := levels[len(levels)-1]
		var up [][]byte
		for k := 0; k < len(low); k += 2 {
			up = append(up, h(labels.OneshotNode, low[k], low[k+1]))
		}
		levels = append(levels, up)
	}
	return levels
}

// batch is a message to member k with the dealings, by ascending party.
func (w *world) batch(number, k int, dealings []*dealing) []byte {
	b := append(w.header(typeBatch, &w.context), u32(number)...)
	for _, d := range dealings {
		b = slices.Concat(b, u32(d.party), d.signature, h(labels.OneshotMasked, d.masked))
		at := k
		for _, level := range d.level()[:3] {
			b = append(b, level[at^1]...)
			at /= 2
		}
		b = append(b, d.boxes[k]...)
	}
	return b
}

// sum takes members through batches of dealings, all of which are in, and returns the
// key's sum, if enough of them answer. Refusals are no error: they are the defence.
func (w *world) sum(who []int, batches ...[]*dealing) ([]int64, bool, error) {
	// The server takes what it gets: it needs no faults corrected.
	secrets, _, err := shamir.CombinePackedVarTime(w.packing(), 0, w.answers(who, batches...))
	if err != nil {
		return nil, false, nil
	}
	return unpack(secrets), true, nil
}

// answers returns the parts of those members that answer.
func (w *world) answers(who []int, batches ...[]*dealing) (shares []shamir.PackedShare) {
	chain, count := w.context[:], 0
	for _, batch := range batches {
		for _, d := range batch {
			chain = h(labels.OneshotChain, chain, w.statement(d))
			count++
		}
	}
	signatures := make(wire.Certificate, 0, members)
	closing := slices.Concat(w.header(typeClosing, &w.context), u32(len(batches)), u32(count), chain)
	for _, k := range who {
		m := w.members[k]
		for number, batch := range batches {
			if _, err := m.Receive(w.batch(number+1, k, batch)); err != nil {
				continue
			}
			in := wire.FullSet(len(batch))
			_, _ = m.Receive(slices.Concat(w.header(typeSettled, &w.context), u32(number+1), in.Bytes()))
		}
		answer, err := m.Receive(closing)
		if err != nil {
			continue
		}
		signatures = append(signatures,
			wire.PartySignature{Party: k, Signature: [64]byte(answer[wire.HeaderSize:])})
	}
	for _, k := range who {
		part, err := w.members[k].Receive(signatures.Append(w.header(typeCertificate, &w.context)))
		if err != nil {
			continue
		}
		shares = append(shares, w.share(k, part[wire.HeaderSize:]))
	}
	return shares
}

// share reads the body of a member's part.
func (w *world) share(member int, part []byte) shamir.PackedShare {
	share := shamir.PackedShare{Index: uint32(member) + 1}
	for range w.figures.Polynomials {
		share.Values, part = append(share.Values, [32]byte(part)), part[32:]
	}
	return share
}

func (w *world) packing() shamir.Packing {
	return shamir.Packing{PerPolynomial: w.figures.PerPolynomial, Privacy: 1}
}

// read takes a key off masked values and returns the inputs that are under it.
func (w *world) read(masked []byte, key []int64) []int64 {
	r := ring.New(degree, w.figures.Modulus)
	return w.reduce(r, w.unmasked(r, masked, key))
}

// unmasked takes a key off masked values, and leaves their errors.
func (w *world) unmasked(r *ring.Ring, masked []byte, key []int64) []uint64 {
	y := make([]uint64, length+w.figures.Spare)
	r.AddPacked(y, masked)
	mask := make([]uint64, degree)
	ringKey := [32]byte(h(labels.OneshotRing, w.context[:]))
	r.NewExpander(&ringKey).Expand(mask, 0)
	r.MulInto(mask, mask, r.NewFactor(key))
	r.SubFrom(y, mask[:len(y)])
	return y
}

// reduce returns the inputs without the noise that T multiplies.
func (w *world) reduce(r *ring.Ring, y []uint64) []int64 {
	var out []int64
	t := w.figures.Scale
	for _, x := range y[:length] {
		out = append(out, (r.Centred(x)+t/2)&(t-1)-t/2)
	}
	return out
}

// unpack reads lanes off scalars.
func unpack(secrets []shamir.Secret) []int64 {
	order, _ := new(big.Int).
		SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	offset := new(big.Int)
	for range 13 {
		offset.Lsh(offset, 19).Or(offset, big.NewInt(1<<18))
	}
	var key []int64
	for _, secret := range secrets {
		b := bytes.Clone(secret[:])
		slices.Reverse(b)
		v := new(big.Int).SetBytes(b)
		if v.BitLen() > 251 {
			v.Sub(v, order)
		}
		v.Add(v, offset)
		for range 13 {
			key = append(key, new(big.Int).And(v, big.NewInt(1<<19-1)).Int64()-1<<18)
			v.Rsh(v, 19)
		}
	}
	return key[:degree]
}

// minus returns the difference of two keys.
func minus(a, b []int64) []int64 {
	out := slices.Clone(a)
	for i := range out {
		out[i] -= b[i]
	}
	return out
}

func h(label string, parts ...[]byte) []byte {
	d := sha256.Sum256(append([]byte(label), slices.Concat(parts...)...))
	return d[:]
}

func u32(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
func u64(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

// split deals shares of a key.
func (w *world) split(key []int64) ([]shamir.PackedShare, error) {
	order, _ := new(big.Int).
		SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	var secrets []shamir.Secret
	for lanes := range slices.Chunk(key, 13) {
		x := new(big.Int)
		for l := len(lanes) - 1; l >= 0; l-- {
			x.Lsh(x, 19).Add(x, big.NewInt(lanes[l]))
		}
		secret := shamir.Secret(x.Mod(x, order).FillBytes(make([]byte, 32)))
		slices.Reverse(secret[:])
		secrets = append(secrets, secret)
	}
	return shamir.SplitPacked(nil, w.packing(), secrets, upTo(members))
}

// add returns the packed sum of what the dealings mask.
func (w *world) add(dealings ...*dealing) []byte {
	r := ring.New(degree, w.figures.Modulus)
	sum := make([]uint64, length+w.figures.Spare)
	for _, d := range dealings {
		r.AddPacked(sum, d.masked)
	}
	return r.AppendPacked(nil, sum)
}
