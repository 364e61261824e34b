package cost_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"runtime"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// alone is one party of a session on the complete graph. The others are stand-ins: they
// sign as themselves, but share one key of each kind, and make nothing but what reaches
// this party, put together by SPEC.md. The party has all its work.
type alone struct {
	t       testing.TB
	config  *protocol.Config
	signers []ed25519.PrivateKey
	self    int
	client  *protocol.Client
	all     wire.Set
	digest  [32]byte // of the configuration
	session [32]byte
	chains  []*keyexchange.Chain // by peer: the other end
	took    time.Duration
	up      int64
	down    int64
}

func (a *alone) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// work has the party work, and counts what it answers.
func (a *alone) work(step func() ([]byte, error)) []byte {
	a.t.Helper()
	begin := worked()
	answer, err := step()
	a.took += worked().Sub(begin)
	a.must(err)
	a.up += int64(len(answer))
	return answer
}

// take has the party take a message of the server with the given body.
func (a *alone) take(kind wire.Type, round uint64, body []byte) []byte {
	a.t.Helper()
	h := wire.Header{Type: kind, Session: a.session, Round: round, Sender: wire.ServerIndex}
	message := append(h.Append(make([]byte, 0, wire.HeaderSize+len(body))), body...)
	a.down += int64(len(message))
	return a.work(func() ([]byte, error) { return a.client.Receive(message) })
}

// hashed is SHA-256 over a label and parts (SPEC.md §2).
func hashed(label string, parts ...[]byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(label))
	for _, part := range parts {
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

func number(v int) []byte     { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func round64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

// branch returns the root of a hash tree over this many leaves, all of them zero but one,
// and the path from that one (RFC 9162 §2.1). It keeps the roots of trees of zeros.
func branch(leaf [32]byte, at, of int, zeros map[int][32]byte) (root [32]byte, path [][32]byte) {
	if of == 1 {
		return leaf, nil
	}
	node := func(l, r [32]byte) [32]byte { return hashed("\x01", l[:], r[:]) }
	left := 1 << (bits.Len(uint(of-1)) - 1)
	if at < left {
		root, path = branch(leaf, at, left, zeros)
		other := barren(of-left, zeros)
		return node(root, other), append(path, other)
	}
	root, path = branch(leaf, at-left, of-left, zeros)
	other := barren(left, zeros)
	return node(other, root), append(path, other)
}

// barren is the root over this many zeros.
func barren(of int, zeros map[int][32]byte) [32]byte {
	if root, ok := zeros[of]; ok {
		return root
	}
	root, _ := branch([32]byte{}, 0, of, zeros)
	zeros[of] = root
	return root
}

// setUp takes the party through set-up.
func (a *alone) setUp() {
	n := len(a.signers)
	roster := a.config.Roster
	a.work(func() (_ []byte, err error) {
		a.client, err = protocol.NewClient(a.config, a.signers[a.self], nil)
		return nil, err
	})
	a.session = a.digest
	hello := a.work(func() ([]byte, error) { return a.client.Announce(), nil })
	announced, err := wire.ParseAnnounce(hello[wire.HeaderSize:], true)
	a.must(err)
	private, err := keyexchange.GenerateKey(nil)
	a.must(err)
	public, err := private.Public()
	a.must(err)
	decapsulation, err := keyexchange.GenerateDecapsulationKey(nil)
	a.must(err)
	text, err := decapsulation.Public()
	a.must(err)
	digest := keyexchange.EncapsulationDigest(text)
	keys := &wire.Keys{Hybrid: true, Announced: a.all}
	for i, signer := range a.signers {
		entry := wire.KeyEntry{Key: public, Digest: digest}
		if i == a.self {
			entry = wire.KeyEntry{
				Key:       announced.Key,
				Digest:    keyexchange.EncapsulationDigest(announced.Encapsulation),
				Signature: announced.Signature,
			}
		} else {
			entry.Signature, err = keyexchange.SignKey(signer, a.digest, i, public, &digest)
			a.must(err)
		}
		if keys.Entries = append(keys.Entries, entry); i > a.self {
			keys.Encapsulation = append(keys.Encapsulation, text)
		}
	}
	answer := a.take(wire.TypeKeys, 0, keys.Append(nil))
	sent, err := wire.ParseEncapsulate(answer[wire.HeaderSize:], n-1-a.self)
	a.must(err)
	keysDigest := hashed(labels.Keys, a.digest[:], keys.AppendShared(nil))

	peer, err := keyexchange.ParsePublicKey(announced.Key[:])
	a.must(err)
	agreed, err := private.Agree(peer)
	a.must(err)
	below := agreed.Clone()
	own, err := keyexchange.ParseEncapsulationKey(announced.Encapsulation)
	a.must(err)
	ciphertext, err := below.Encapsulate(own, nil)
	a.must(err)
	members, zeros := &wire.Members{Members: a.all}, map[int][32]byte{}
	leaf := hashed("\x00", number(a.self), ciphertext)
	for i := range a.self {
		root, path := branch(leaf, a.self-i-1, n-1-i, zeros)
		signature, err := keyexchange.Sign(a.signers[i], labels.Ciphertexts,
			append(append(keysDigest[:], number(i)...), root[:]...))
		a.must(err)
		members.Lower = append(members.Lower,
			wire.SignedCiphertext{Ciphertext: ciphertext, Path: path, Signature: signature})
	}
	session := hashed(labels.Session, keysDigest[:], a.all.Bytes())
	a.take(wire.TypeMembers, 0, members.Append(nil))
	a.session = session
	a.chains = make([]*keyexchange.Chain, n)
	for i := range n {
		pair := below
		if i > a.self {
			pair = agreed.Clone()
			a.must(pair.Decapsulate(decapsulation, sent.Ciphertexts[i-a.self-1]))
		}
		if i != a.self {
			a.chains[i] = pair.Chain(session, roster, i, a.self)
		}
	}
}

// shares returns what all others have sealed for the party, of secrets that are zero.
func (a *alone) shares(purpose keyexchange.Purpose, binding [32]byte) (out []wire.SealedShare) {
	for i, chain := range a.chains {
		if chain == nil {
			continue
		}
		data := append([]byte(labels.Share), a.session[:]...)
		data = append(append(data, round64(1)...), byte(purpose))
		data = append(append(append(data, number(i)...), number(a.self)...), binding[:]...)
		box, err := keyexchange.Seal(new(keyexchange.Nonce), chain.Channels().Key(purpose, i, a.self),
			make([]byte, 32), data)
		a.must(err)
		out = append(out, wire.SealedShare(box))
	}
	return out
}

// submit takes the party into the first round, up to its submission.
func (a *alone) submit(input []uint64) (context [32]byte) {
	begin := wire.Begin{Broadcast: hashed(labels.Broadcast), Participants: a.all}
	context = hashed(labels.Context, a.session[:], round64(1), begin.Broadcast[:], a.all.Bytes(),
		a.all.Bytes())
	begin.Shares = a.shares(keyexchange.RecoveryShare, hashed(labels.Holders, a.all.Bytes()))
	a.take(wire.TypeBegin, 1, begin.Append(nil))
	a.work(func() ([]byte, error) { return a.client.Submit(nil, input) })
	return context
}

// reveal takes the party from its submission to the end of the round.
func (a *alone) reveal(context [32]byte, quorum int) {
	survivors := wire.Survivors{
		Survivors: a.all,
		Shares:    a.shares(keyexchange.SelfMaskShare, context),
	}
	a.take(wire.TypeSurvivors, 1, survivors.Append(nil))
	var certificate wire.Certificate
	for i, signer := range a.signers[:quorum] {
		signed, err := keyexchange.Sign(signer, labels.Survivors,
			append(context[:], a.all.Bytes()...))
		a.must(err)
		certificate = append(certificate, wire.PartySignature{Party: i, Signature: signed})
	}
	revealed := a.take(wire.TypeCertificate, 1, certificate.Append(nil))
	if got, want := len(revealed), wire.HeaderSize+36*(len(a.signers)-1); got != want {
		a.t.Fatalf("%d bytes of shares, want %d", got, want)
	}
}

// measureAlone measures the party in the middle of the roster.
func measureAlone(t testing.TB, config *protocol.Config, signers []ed25519.PrivateKey) measured {
	n := len(signers)
	a := &alone{t: t, config: config, signers: signers, self: n / 2, all: wire.FullSet(n)}
	var err error
	a.digest, err = config.Digest()
	a.must(err)
	var m measured
	next := func() (took time.Duration, up, down int64) {
		took, up, down = a.took, a.up, a.down
		a.took, a.up, a.down = 0, 0, 0
		return took, up, down
	}
	a.setUp()
	m.setUp, m.bytes.SetUpSent, m.bytes.SetUpReceived = next()
	context := a.submit(make([]uint64, config.Layout[0].Length))
	whole := heap()
	a.reveal(context, config.Recovery.Threshold)
	m.round, m.bytes.RoundSent, m.bytes.RoundReceived = next()
	runtime.KeepAlive(a.client)
	chains := a.chains
	*a = alone{}
	m.party = whole - heap()
	runtime.KeepAlive(chains)
	return m
}
