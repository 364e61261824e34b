package oblivious

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"io"

	"github.com/hushsum/hushsum/internal/labels"
)

// Transfers of a round are extended from the base transfers by the protocol of
// (Ishai, Kilian, Nissim, Petrank 2003): the receiver, who holds both keys of each
// base transfer, expands them to columns t_i and t'_i and sends u_i = t_i ⊕ t'_i ⊕ x
// with its choice bits x; the sender, who holds the key of bit Δ_i, gets q_i = t_i ⊕
// Δ_i·x. Row j then is q_j = t_j ⊕ x_j·Δ, and H(q_j), H(q_j ⊕ Δ) pad the two terms.
//
// A cheating receiver could send columns that disagree on x. Against it both sides apply one
// linear universal hash to their columns (multiplier.hash; its key is a hash of the u_i, so that
// it is known only when they are fixed), the receiver sends the hash of x and a digest of the
// hashes of the t_i, and the sender compares with its own. 128 random bits at the end of every
// column hide x. This is the check of (Roy 2022), "SoftSpokenOT", at its smallest field, which
// that paper also sets against the row-wise one of (Keller, Orsini, Scholl 2015), whose security
// it found to be less than proved. It asks no more of the base transfers than they give. A
// receiver that passes by guessing bits of Δ has won as many bits as it took luck to pass; a
// check that fails ends the session for good.
//
// After every round the seeds are replaced by a hash of themselves.

// choiceSize is the length of the body of a choice message for the given number of transfers.
func choiceSize(transfers int) int { return kappa*columnSize(transfers) + blockSize + sha256.Size }

// columnSize is the length of a column: the transfers rounded up to whole blocks,
// and one block of padding.
func columnSize(transfers int) int { return ((transfers+kappa-1)/kappa + 1) * blockSize }

// extReceiver is the side that chooses.
type extReceiver struct{ seeds [2][kappa][32]byte }

// choose makes a choice message on fresh random choices. It returns the choices,
// one bit per transfer in the order of bytes and from the lowest bit, and the pads
// of the terms chosen.
func (e *extReceiver) choose(
	context [32]byte, transfers int, random io.Reader,
) (message, choices []byte, pads []uint64, err error) {
	size := columnSize(transfers)
	choices, err = draw(random, size)
	if err != nil {
		return nil, nil, nil, err
	}
	message = make([]byte, 0, choiceSize(transfers))
	columns := make([]byte, kappa*size)
	for i := range kappa {
		t := columns[i*size : (i+1)*size]
		stream(t, &e.seeds[0][i])
		u := make([]byte, size)
		stream(u, &e.seeds[1][i])
		subtle.XORBytes(u, u, t)
		subtle.XORBytes(u, u, choices)
		message = append(message, u...)
	}
	hash := checkKey(context, message)
	x := hash.hash(choices)
	proof := sha256.New()
	proof.Write([]byte(labels.ObliviousProof))
	proof.Write(context[:])
	for i := range kappa {
		proof.Write(hash.hash(columns[i*size : (i+1)*size]).bytes())
	}
	message = append(message, x.bytes()...)
	message = proof.Sum(message)
	pads = make([]uint64, transfers)
	for j := range pads {
		pads[j] = pad(context, j, row(columns, size, j))
	}
	clear(columns)
	return message, choices, pads, nil
}

func (e *extReceiver) ratchet() {
	for c := range e.seeds {
		ratchetSeeds(&e.seeds[c])
	}
}

func (e *extReceiver) erase() { clear(e.seeds[:]) }

// extSender is the side that offers.
type extSender struct {
	delta element
	seeds [kappa][32]byte
}

// pads returns both pads of each transfer, given the receiver's choice message of
// the right length, or [ErrCheck].
func (e *extSender) pads(
	context [32]byte, transfers int, message []byte,
) (zero, one []uint64, err error) {
	size := columnSize(transfers)
	u, rest := message[:kappa*size], message[kappa*size:]
	x := elementOf(rest)
	hash := checkKey(context, u)
	proof := sha256.New()
	proof.Write([]byte(labels.ObliviousProof))
	proof.Write(context[:])
	columns := make([]byte, kappa*size)
	defer clear(columns)
	for i := range kappa {
		q, bit := columns[i*size:(i+1)*size], e.delta.bit(i)
		stream(q, &e.seeds[i])
		for k := range q {
			q[k] ^= u[i*size+k] & -byte(bit)
		}
		proof.Write(hash.hash(q).add(x.times(bit)).bytes())
	}
	if subtle.ConstantTimeCompare(proof.Sum(nil), rest[blockSize:]) == 0 {
		return nil, nil, ErrCheck
	}
	zero, one = make([]uint64, transfers), make([]uint64, transfers)
	for j := range zero {
		q := row(columns, size, j)
		zero[j], one[j] = pad(context, j, q), pad(context, j, q.add(e.delta))
	}
	return zero, one, nil
}

func (e *extSender) ratchet() { ratchetSeeds(&e.seeds) }

func (e *extSender) erase() { *e = extSender{} }

// stream fills a column from its seed: AES-256 in counter mode.
func stream(column []byte, seed *[32]byte) {
	key := digest(labels.ObliviousStream, seed[:])
	defer clear(key[:])
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("oblivious: " + err.Error()) // the length is ours
	}
	clear(column)
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(column, column)
}

func ratchetSeeds(seeds *[kappa][32]byte) {
	for i := range seeds {
		seeds[i] = digest(labels.ObliviousSeed, seeds[i][:])
	}
}

// checkKey is the key of the hash of the columns, made from what was sent.
func checkKey(context [32]byte, u []byte) *multiplier {
	h := digest(labels.ObliviousCheck, context[:], u)
	return newMultiplier(elementOf(h[:]))
}

// row is row j of the matrix with the given columns of size bytes.
func row(columns []byte, size, j int) (r element) {
	for i := range kappa {
		bit := uint64(columns[i*size+j>>3]>>(j&7)) & 1
		r[i>>6] |= bit << (i & 63)
	}
	return r
}

// pad is H, a hash that is tweaked by the transfer's place, so that no two inputs
// of it are related but by the secret Δ.
func pad(context [32]byte, j int, q element) uint64 {
	var b [len(labels.ObliviousPad) + 32 + 8 + 16]byte
	copy(b[:], labels.ObliviousPad)
	rest := b[len(labels.ObliviousPad):]
	copy(rest, context[:])
	binary.BigEndian.PutUint64(rest[32:], uint64(j))
	binary.LittleEndian.PutUint64(rest[40:], q[0])
	binary.LittleEndian.PutUint64(rest[48:], q[1])
	h := sha256.Sum256(b[:])
	return binary.LittleEndian.Uint64(h[:])
}
