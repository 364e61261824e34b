package committee

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/shamir"
)

// runComplaints has a colluder put the encapsulated keys of an honest party's boxes into
// its own. Members who prove that a box is bad by its Diffie-Hellman secret show what
// opens the honest party's.
func runComplaints(r *runner) error {
	const victim, bad = 1, parties - 1
	var found [2]bool
	for i, lacks := range []defence{secretive, 0} {
		w, err := newWorld(r.o.Seed, lacks, lacks == 0)
		if err != nil {
			return err
		}
		target, err := w.submit(victim)
		if err != nil {
			return err
		}
		copied, err := w.copyKeys(target, bad, w.partyKeys[bad])
		if err != nil {
			return err
		}
		var shares []shamir.PackedShare
		for k, m := range w.members[:honest] {
			answer, err := m.Receive(w.batch(1, k, []*dealing{copied}))
			if err != nil {
				continue
			}
			// A list of disputes, and what else there is.
			plain := open(target.boxes[k], w.keys[k], w.info(lacks, victim, k),
				answer[wire.HeaderSize+4+1:])
			if plain != nil {
				shares = append(shares, w.share(k, plain))
			}
		}
		if len(shares) < w.figures.Threshold {
			continue
		}
		secrets, _, err := shamir.CombinePackedVarTime(w.packing(), 0, shares)
		if err != nil {
			return err
		}
		found[i] = slices.Equal(w.read(target.masked, unpack(secrets)), w.inputs[victim])
	}
	r.counts("E copied from an honest party's boxes", "inputs recovered exactly", found[0], found[1])
	return nil
}

// copyKeys deals boxes with the encapsulated keys of another dealing and nothing that
// opens.
func (w *world) copyKeys(from *dealing, party int, key ed25519.PrivateKey) (*dealing, error) {
	d := &dealing{party: party, masked: make([]byte, w.packedSize())}
	for _, box := range from.boxes {
		d.leaves = append(d.leaves, make([]byte, 32))
		d.boxes = append(d.boxes, append(slices.Clone(box[:32]), make([]byte, len(box)-32)...))
	}
	return d, w.sign(d, key)
}

// open opens a box by the Diffie-Hellman secret of its encapsulated key with the member's
// (RFC 9180 §§4.1 and 5.1, single shot), or returns nil.
func open(box, member, info, secret []byte) []byte {
	enc, ciphertext := box[:32], box[32:]
	kem := []byte("KEM\x00\x20")
	shared := expand(kem, extract(kem, nil, "eae_prk", secret), "shared_secret",
		slices.Concat(enc, member), 32)
	suite := []byte("HPKE\x00\x20\x00\x01\x00\x03")
	context := slices.Concat([]byte{0}, extract(suite, nil, "psk_id_hash", nil),
		extract(suite, nil, "info_hash", info))
	prk := extract(suite, shared, "secret", nil)
	aead, err := chacha20poly1305.New(expand(suite, prk, "key", context, 32))
	if err != nil {
		panic(err) // the key has its length
	}
	plain, err := aead.Open(nil, expand(suite, prk, "base_nonce", context, 12), ciphertext, nil)
	if err != nil {
		return nil
	}
	return plain
}

// extract and expand are LabeledExtract and LabeledExpand (RFC 9180 §4).
func extract(suite, salt []byte, label string, ikm []byte) []byte {
	prk, err := hkdf.Extract(sha256.New, slices.Concat([]byte("HPKE-v1"), suite, []byte(label), ikm),
		salt)
	if err != nil {
		panic(err) // only FIPS mode refuses
	}
	return prk
}

func expand(suite, prk []byte, label string, info []byte, size int) []byte {
	labelled := slices.Concat(binary.BigEndian.AppendUint16(nil, uint16(size)), []byte("HPKE-v1"),
		suite, []byte(label), info)
	key, err := hkdf.Expand(sha256.New, prk, string(labelled), size)
	if err != nil {
		panic(err) // the sizes are constants
	}
	return key
}
