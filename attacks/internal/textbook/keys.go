package textbook

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// hash is H of §1.
func hash(label string, parts ...[]byte) [32]byte {
	b := []byte(label)
	for _, part := range parts {
		b = append(b, part...)
	}
	return sha256.Sum256(b)
}

func u32(x int) []byte    { return binary.BigEndian.AppendUint32(nil, uint32(x)) }
func u64(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }

// SessionID names the session of a list of keys, whose owners are its members (§4).
func SessionID(config [32]byte, keys *wire.Keys) [32]byte {
	digest := hash(labels.Keys, config[:], keys.AppendShared(nil))
	return hash(labels.Session, digest[:], keys.Announced.Bytes())
}

// HoldersDigest names the parties that recovery material is for (§5.2).
func HoldersDigest(holders wire.Set) [32]byte { return hash(labels.Holders, holders.Bytes()) }

// BroadcastDigest returns the digest of a broadcast that Begin carries (§5.2).
func BroadcastDigest(broadcast []byte) [32]byte { return hash(labels.Broadcast, broadcast) }

// Context returns the digest of what the participants of a round agree on (§5.2),
// except for what is left out.
func Context(
	without Defence, session [32]byte, round uint64, broadcast [32]byte,
	holders, participants wire.Set,
) [32]byte {
	set := participants.Bytes()
	if without.has(RoundAgreed) {
		round = 0
	}
	if without.has(BroadcastAgreed) {
		broadcast = [32]byte{}
	}
	if without.has(ParticipantsAgreed) {
		set = make([]byte, len(set))
	}
	return hash(labels.Context, session[:], u64(round), broadcast[:], holders.Bytes(), set)
}

// Statement returns the bytes that a survivor signs (§2.3).
func Statement(context [32]byte, survivors wire.Set) []byte {
	return append(context[:], survivors.Bytes()...)
}

// ShareData returns the associated data of a sealed share (§6.3).
func ShareData(
	purpose keyexchange.Purpose, session [32]byte, round uint64, from, to int,
	binding [32]byte,
) []byte {
	b := append([]byte(labels.Share), session[:]...)
	b = append(append(b, u64(round)...), byte(purpose))
	b = append(append(b, u32(from)...), u32(to)...)
	return append(b, binding[:]...)
}

// Commitment binds a party to a secret (§6.4).
func Commitment(
	purpose keyexchange.Purpose, session [32]byte, round uint64, owner int,
	secret shamir.Secret,
) [32]byte {
	return hash(labels.Commitment,
		[]byte{byte(purpose)}, session[:], u64(round), u32(owner), secret[:])
}

// OpenBlob opens a recovery blob with its owner's secret (§6.5) and returns the
// pair secrets in it, by the owner's neighbours.
func OpenBlob(
	secret shamir.Secret, blob []byte, session [32]byte, round uint64, owner int,
) ([]keyexchange.PairSecret, error) {
	key := blobKey(secret)
	b, err := keyexchange.Open(&key, blob, blobData(session, round, owner))
	if err != nil {
		return nil, err
	}
	var pairs []keyexchange.PairSecret
	for ; len(b) >= 32; b = b[32:] {
		pairs = append(pairs, keyexchange.PairSecret(b))
	}
	return pairs, nil
}

func blobData(session [32]byte, round uint64, owner int) []byte {
	d := hash(labels.BlobPlace, session[:], u64(round), u32(owner))
	return d[:]
}

func blobKey(secret shamir.Secret) keyexchange.SealKey {
	return keyexchange.SealKey(derive(secret, labels.BlobKey, 32))
}

// SelfMaskSeed returns the seed of the mask that a secret makes (§5.4).
func SelfMaskSeed(secret shamir.Secret) masking.Seed {
	return masking.Seed(derive(secret, labels.SelfMask, 28))
}

func derive(secret shamir.Secret, label string, n int) []byte {
	b, err := hkdf.Key(sha256.New, secret[:], nil, label, n)
	if err != nil {
		panic("textbook: " + err.Error()) // lengths are constants
	}
	return b
}

// Index returns where a party's shares are taken from the polynomial (§6.2).
func Index(party int) uint32 { return uint32(party) + 1 }
