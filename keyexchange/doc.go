// Package keyexchange holds the identities of a session and the keys that two of its parties
// share: long-term Ed25519 identities in a [Roster], one signed X25519 key and one ML-KEM-768 key
// per party and session, and for every pair a [Chain] of keys that is reseeded one way, round by
// round.
//
// The package is the public-key half of the private sum and has no other use: most programs want
// package protocol, which drives it.
//
// # What it promises
//
// Against a server that carries every message and may change any of them, two honest parties with
// the same roster either hold the same chain, known to nobody else, or refuse. This rests on three
// checks made here:
//
//   - every X25519 key, with the digest of the ML-KEM key, is signed by an identity
//     of the roster, over the session's configuration ([SignKey], [VerifyKey]); a key
//     that the server made up does not verify (ciphertexts are signed in package
//     protocol);
//   - keys that are not canonical or of low order are refused ([ParsePublicKey]),
//     as is an all-zero secret (RFC 7748 §6.1);
//   - the session identifier, a hash over the configuration, the roster and all
//     signed keys, is the salt of the pair's first key, so that two parties
//     that saw different sessions share nothing.
//
// A chain key is replaced each round and the old one erased: a thief of a
// state learns nothing of the rounds before it. Erasing is best effort: the Go
// runtime and libraries may have copied a secret elsewhere.
//
// # Key schedule
//
// With X the X25519 shared secret, S that of ML-KEM-768 and ct its ciphertext, and lo,
// hi the Ed25519 keys of the two parties in roster order (HKDF-SHA256 of RFC 5869; ‖ is
// concatenation):
//
//	K            = Extract(salt: session, secret: S ‖ X)
//	CK_1         = Expand(K, "hushsum/1 chain" ‖ lo ‖ hi ‖ SHA-256(ct), 32)
//	CK_ℓ+1 ‖ r_ℓ = Expand(CK_ℓ, "hushsum/1 ratchet", 64)
//	channels of ℓ = Expand(CK_ℓ, "hushsum/1 channels", 128)
//	mask seed    = Expand(r_ℓ, "hushsum/1 mask" ‖ context, 28)
//
// Classical keys leave S and ct out. The lower party encapsulates to the higher
// ([Agreement]). The ratchet is the thesis's PRG reseeding, (r', s) = PRG(r): one key
// exchange serves every round.
//
// # Constant time
//
// Operations on secrets are those of the standard library, of
// golang.org/x/crypto and of github.com/cloudflare/circl (X25519 and ML-KEM) and are
// constant time where those are. Parsing and
// verifying handle public values and are not.
//
// "The thesis" is "A Practical Approach to Federated Learning" (Mugunthan 2022).
package keyexchange
