package protocol

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	gohash "hash"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// hash is SHA-256 over a label and parts. The label fixes the lengths of all parts but the last.
func hash(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

func uint64Bytes(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }
func uint32Bytes(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }

// commitment binds a party to its secret of a round, without telling it: the
// secret has 252 bits of entropy.
func commitment(
	purpose keyexchange.Purpose, session [32]byte, round uint64, party int, secret shamir.Secret,
) [32]byte {
	return hash(labels.Commitment, []byte{byte(purpose)}, session[:], uint64Bytes(round),
		uint32Bytes(party), secret[:])
}

// keysDigest returns a hash over the configuration, the parties that announced in time, and what
// each of them announced.
func keysDigest(config [32]byte, keys *wire.Keys) [32]byte {
	return hash(labels.Keys, config[:], keys.AppendShared(nil))
}

// sessionID names the session: a hash over the configuration, the roster in it,
// all keys, and who is in the session.
func sessionID(keys [32]byte, members wire.Set) [32]byte {
	return hash(labels.Session, keys[:], members.Bytes())
}

// NewBroadcastHash returns a hash for a broadcast that is made or arrives in pieces: write the
// broadcast to the hash, and give its sum to [Server.BeginDigest] and [Client.SubmitVector].
func NewBroadcastHash() gohash.Hash {
	h := sha256.New()
	h.Write([]byte(labels.Broadcast))
	return h
}

// broadcastDigest returns the digest of the broadcast that Begin carries.
func broadcastDigest(broadcast []byte) [32]byte { return hash(labels.Broadcast, broadcast) }

// holdersDigest names the parties that recovery material is made for.
func holdersDigest(holders wire.Set) [32]byte { return hash(labels.Holders, holders.Bytes()) }

// roundContext is a digest of all that the participants of a round must agree on.
func roundContext(session [32]byte, round uint64, begin *wire.Begin, holders wire.Set) [32]byte {
	return hash(labels.Context, session[:], uint64Bytes(round), begin.Broadcast[:], holders.Bytes(),
		begin.Participants.Bytes())
}

// shareData is the associated data that a share is sealed with. binding is the
// context of the round for shares of self masks, which must not be of use to a
// holder that was told other things than the owner; shares of recovery keys are made
// before the round begins, for a set of holders, and have its digest.
func shareData(
	purpose keyexchange.Purpose, session [32]byte, round uint64, from, to int, binding [32]byte,
) []byte {
	b := make([]byte, 0, len(labels.Share)+32+8+1+4+4+32)
	b = append(b, labels.Share...)
	b = append(b, session[:]...)
	b = binary.BigEndian.AppendUint64(b, round)
	b = append(b, byte(purpose))
	b = binary.BigEndian.AppendUint32(b, uint32(from))
	b = binary.BigEndian.AppendUint32(b, uint32(to))
	return append(b, binding[:]...)
}

// blobData is the associated data of a party's recovery blob.
func blobData(session [32]byte, round uint64, party int) []byte {
	d := hash(labels.BlobPlace, session[:], uint64Bytes(round), uint32Bytes(party))
	return d[:]
}

// blobKey is the key that a recovery secret opens a blob with.
func blobKey(secret shamir.Secret) keyexchange.SealKey {
	var key keyexchange.SealKey
	derive(key[:], secret, labels.BlobKey)
	return key
}

// selfMask is the seed of a party's own mask.
func selfMask(secret shamir.Secret) masking.Seed {
	var seed masking.Seed
	derive(seed[:], secret, labels.SelfMask)
	return seed
}

// derive is HKDF-SHA256 (RFC 5869) without salt.
func derive(out []byte, secret shamir.Secret, label string) {
	okm, err := hkdf.Key(sha256.New, secret[:], nil, label, len(out))
	if err != nil {
		// Only an output longer than 255 hashes fails; ours are constants.
		panic("protocol: " + err.Error())
	}
	copy(out, okm)
	clear(okm)
}

// shareIndex is the index of a party as a holder of shares: 0 is the secret's.
func shareIndex(party int) uint32 { return uint32(party) + 1 }
