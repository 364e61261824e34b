package protocol

import (
	"crypto"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/noise"
)

// BenchmarkParty measures the cost of a sum among n parties to one of them and the server, for
// comparison with BenchmarkParty of package oneshot in the same run: 100,000 coordinates of
// 33 bits with noise, hybrid keys, 5 % of the parties gone before they submit; against a
// cheating server on a complete graph ("pairwise"), and against a semi-malicious one on a
// sparse graph ("sparse"). It reports milliseconds of a party's set-up ("setup-ms") and
// round ("party-ms"), the kilobytes that it sends in the round ("up-kB"), and the
// milliseconds of the server from the shares to the sum ("server-ms", of "masks" masks).
//
// One party is real, the middle one, and gets what the others would send; the server's end
// of a round is real, of parties whose secrets are and whose submissions are not. A complete
// graph of 10,000 has no "server-ms": 4.8 million masks and 10,000 secrets of 10,000 shares
// each take minutes and gigabytes.
func BenchmarkParty(b *testing.B) {
	for _, n := range []int{30, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d/pairwise", n), func(b *testing.B) {
			benchmarkParty(b, n, &Recovery{})
		})
		if n < 1000 { // there is no sparse graph for these fractions
			continue
		}
		b.Run(fmt.Sprintf("n=%d/sparse", n), func(b *testing.B) {
			p, err := Parameters(Sizes{n, n, n * 95 / 100, n / 20}, 0, 40+60, 30, SemiMaliciousServer)
			if err != nil {
				b.Fatal(err)
			}
			benchmarkParty(b, n, &Recovery{Adversary: SemiMaliciousServer, Degree: p.Neighbours,
				Threshold: p.Threshold})
		})
	}
}

func benchmarkParty(b *testing.B, n int, recovery *Recovery) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	signers, roster := parties(b, n)
	config := &Config{Label: "benchmark", Roster: roster, Recovery: recovery, Colluders: 2,
		Layout: masking.Layout{{Length: 100_000, Bits: 33}}}
	law, err := noise.DiscreteGaussian(big.NewRat(100, 1))
	must(err)
	table, err := noise.NewTable(law)
	must(err)
	m, client := setUpOfOne(b, config, signers)
	share, values := make([]int64, 100_000), make([]uint64, 100_000)
	up := 0
	var took time.Duration
	for round := uint64(1); b.Loop(); round++ {
		messages, _, _ := roundOfOthers(b, client, signers, round)
		start := time.Now()
		must(table.NewSampler(nil).Fill(share))
		for i, x := range share {
			values[i] = uint64(x) & (1<<33 - 1)
		}
		sent, revealed := roundOfOne(b, client, messages, [][]uint64{values})
		took += time.Since(start)
		up = sent + revealed
	}
	b.ReportMetric(m.party.Seconds()*1e3, "setup-ms")
	b.ReportMetric(took.Seconds()*1e3/float64(b.N), "party-ms")
	b.ReportMetric(float64(up)/1e3, "up-kB")
	b.ReportMetric(0, "ns/op")
	if n > 1000 && recovery.Degree == 0 {
		return
	}
	server := serverAtReveal(b, config)
	masks := server.open.masks()
	start := time.Now()
	_, err = server.Sum()
	must(err)
	b.ReportMetric(time.Since(start).Seconds()*1e3, "server-ms")
	b.ReportMetric(float64(masks), "masks")
}

// masks returns the number of masks that the server takes off the sum: each survivor's own,
// and one for each survivor and each neighbour of it that has dropped out.
func (r *serverRound) masks() int {
	masks := 0
	for owner := range r.participants.All() {
		if r.survivors.Has(owner) {
			masks++
		} else {
			masks += len(r.survivors.Of(r.near[owner]))
		}
	}
	return masks
}

// setUpOfOne runs the set-up of the middle party. The others announce real keys, and
// encapsulate to that party alone: for their other ciphertexts there are zeros in the tree.
func setUpOfOne(b *testing.B, config *Config, signers []crypto.Signer) (m toll, client *Client) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	self := len(signers) / 2
	timed := func(f func() error) {
		start := time.Now()
		must(f())
		m.party += time.Since(start)
	}
	own, err := config.settle()
	must(err)
	keys := &wire.Keys{Hybrid: own.hybrid, Announced: wire.FullSet(len(signers))}
	encapsulation := make([][]byte, len(signers))
	for i, signer := range signers {
		make1 := func() error {
			c, err := NewClient(config, signer, nil)
			if err != nil {
				return err
			}
			keys.Entries = append(keys.Entries, keyEntry(&c.announce))
			encapsulation[i] = c.announce.Encapsulation
			if i == self {
				client = c
			}
			return nil
		}
		if i == self {
			timed(make1)
		} else {
			must(make1())
		}
	}
	t := newTopology(own, keysDigest(own.digest, keys), keys.Announced, self)
	if own.hybrid {
		for _, i := range t.higher(self) {
			keys.Encapsulation = append(keys.Encapsulation, encapsulation[i])
		}
	}
	header := func(kind wire.Type) []byte {
		h := wire.Header{Type: kind, Session: own.digest, Sender: wire.ServerIndex}
		return h.Append(nil)
	}
	m.up += len(client.Announce())
	take := func(message []byte) {
		m.down += len(message)
		timed(func() error {
			answer, err := client.Receive(message)
			m.up += len(answer)
			return err
		})
	}
	take(keys.Append(header(wire.TypeKeys)))
	if !own.hybrid {
		return m, client
	}
	ek, err := keyexchange.ParseEncapsulationKey(client.announce.Encapsulation)
	must(err)
	members := &wire.Members{Members: keys.Announced}
	for _, i := range t.lower(self) {
		var agreed keyexchange.Agreement
		ct, err := agreed.Encapsulate(ek, nil)
		must(err)
		at, of := t.place(i, self)
		path := make([][32]byte, pathLength(at, of))
		root := climb(leafHash(self, ct), at, of, path)
		signature, err := keyexchange.Sign(signers[i], labels.Ciphertexts,
			ciphertextsStatement(t.keys, i, root))
		must(err)
		members.Lower = append(members.Lower,
			wire.SignedCiphertext{Ciphertext: ct, Path: path, Signature: signature})
	}
	take(members.Append(header(wire.TypeMembers)))
	return m, client
}

// absent reports whether a party drops out in benchmarks: every twentieth.
func absent(party int) bool { return party%20 == 19 }

// roundOfOthers makes what a party receives in a round, in order, from others of whom the
// absent ones drop out, with that party's own keys: a pair's are the same on both sides. It
// returns what the survivors sign besides, and their signatures.
func roundOfOthers(b *testing.B, client *Client, signers []crypto.Signer, round uint64) (
	messages [3][]byte, statement []byte, certificate wire.Certificate,
) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	n := len(signers)
	all := wire.FullSet(n)
	survivors := slices.DeleteFunc(slices.Collect(all.All()), absent)
	near := client.topology.neighbours(round, client.self)
	signing := survivors
	if client.config.sparse {
		signing = wire.SetOf(n, survivors).Of(near)
	}
	begin := wire.Begin{Broadcast: broadcastDigest(nil), Participants: all}
	list := wire.Survivors{Survivors: wire.SetOf(n, survivors)}
	context := roundContext(client.session, round, &begin, all)
	for _, peer := range near {
		channels, _, err := client.chains[peer].Ahead(round)
		must(err)
		seal := func(purpose keyexchange.Purpose, binding [32]byte) wire.SealedShare {
			box, err := keyexchange.Seal(new(keyexchange.Nonce), channels.Key(purpose, peer, client.self),
				make([]byte, 32),
				shareData(purpose, client.session, round, peer, client.self, binding))
			must(err)
			return wire.SealedShare(box)
		}
		begin.Shares = append(begin.Shares, seal(keyexchange.RecoveryShare, holdersDigest(all)))
		if !absent(peer) {
			list.Shares = append(list.Shares, seal(keyexchange.SelfMaskShare, context))
		}
	}
	statement = survivorsStatement(context, list.Survivors)
	for _, i := range signing[:client.topology.terms.quorum] {
		signature, err := keyexchange.Sign(signers[i], labels.Survivors, statement)
		must(err)
		certificate = append(certificate, wire.PartySignature{Party: i, Signature: signature})
	}
	message := func(kind wire.Type, body []byte) []byte {
		h := wire.Header{Type: kind, Session: client.session, Round: round, Sender: wire.ServerIndex}
		return append(h.Append(nil), body...)
	}
	return [3][]byte{message(wire.TypeBegin, begin.Append(nil)),
		message(wire.TypeSurvivors, list.Append(nil)),
		message(wire.TypeCertificate, certificate.Append(nil))}, statement, certificate
}

// roundOfOne is a party's round with those messages. It returns the bytes that it submits
// and signs, and those that it reveals.
func roundOfOne(
	b *testing.B, client *Client, messages [3][]byte, values [][]uint64,
) (sent, revealed int) {
	take := func(answer []byte, err error) int {
		if err != nil {
			b.Fatal(err)
		}
		return len(answer)
	}
	take(client.Receive(messages[0]))
	sent = take(client.Submit(nil, values...))
	sent += take(client.Receive(messages[1]))
	return sent, take(client.Receive(messages[2]))
}
