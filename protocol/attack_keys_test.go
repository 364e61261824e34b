package protocol

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
)

// attackKeySubstitution has the server stand in for everybody towards a victim:
// it gives the victim keys of its own in the places of all others, signed as
// forge says, and so shares all of the victim's chains.
func (c *cheater) attackKeySubstitution(victim int, input [][]uint64, forge func(party int, key keyexchange.PublicKey) wire.Announce) *attackResult {
	c.nextRound()
	fail := func(err error) *attackResult {
		c.refused(err)
		c.result.obstacle = err
		return &c.result
	}
	_, body, err := wire.ParseHeader(c.parties[victim].Announce())
	if err != nil {
		return fail(err)
	}
	announced, err := wire.ParseAnnounce(body)
	if err != nil {
		return fail(err)
	}
	private := make([]*keyexchange.PrivateKey, c.config.parties)
	keys := make(wire.Keys, c.config.parties)
	for i := range keys {
		if private[i], err = keyexchange.GenerateKey(nil); err != nil {
			return fail(err)
		}
		public, err := private[i].Public()
		if err != nil {
			return fail(err)
		}
		keys[i] = forge(i, public)
	}
	keys[victim] = *announced
	if err := c.sendKeys(victim, keys); err != nil {
		return fail(err)
	}
	if err := c.begin(victim, upTo(c.config.parties), nil); err != nil {
		return fail(err)
	}
	if err := c.submit(victim, nil, input); err != nil {
		return fail(err)
	}
	for i := range keys {
		if i == victim {
			continue
		}
		chain, err := private[i].NewChain(c.session, c.config.Roster, i, victim, announced.Key)
		if err != nil {
			return fail(err)
		}
		channels, secret, err := chain.Ahead(c.round)
		if err != nil {
			return fail(err)
		}
		c.pairs[pairOf(i, victim)] = secret
		if !c.config.recovery {
			continue
		}
		sealed := c.sealedFor(victim, i)
		data := shareData(keyexchange.SelfMaskShare, c.session, c.round, victim, i, c.views[victim].context)
		share, err := keyexchange.Open(channels.Key(keyexchange.SelfMaskShare, victim, i), sealed[:], data)
		if err != nil {
			return fail(err)
		}
		c.learn(keyexchange.SelfMaskShare, victim, i, [32]byte(share))
	}
	return c.unmask([]int{victim})
}

// A server that swaps keys recovers an input exactly if parties do not verify
// the signatures on them, self masks or not. Real parties refuse, whatever
// signature the swapped key comes with.
func TestAttackKeySubstitution(t *testing.T) {
	const n, victim = 5, 1
	in, _ := inputs(attackSeed(t), attackLayout, n)
	for _, recovery := range []*Recovery{nil, {}} {
		signers, config := attackConfig(t, n, recovery)
		name := "without recovery"
		if recovery != nil {
			name = "with recovery"
		}
		var parties []attackParty
		forgeries := map[string]func(party int, key keyexchange.PublicKey) wire.Announce{
			"no signature": func(_ int, key keyexchange.PublicKey) wire.Announce { return wire.Announce{Key: key} },
			"the signature of the genuine key": func(party int, key keyexchange.PublicKey) wire.Announce {
				genuine := parties[party].Announce()
				return wire.Announce{Key: key, Signature: [64]byte(genuine[len(genuine)-64:])}
			},
			"the signature of a colluder": func(party int, key keyexchange.PublicKey) wire.Announce {
				signature, err := keyexchange.SignKey(signers[n-1], digestOf(config), party, key)
				if err != nil {
					t.Fatal(err)
				}
				return wire.Announce{Key: key, Signature: signature}
			},
		}
		for forged, forge := range forgeries {
			for _, without := range []defence{keySignatures, 0} {
				parties = attackTarget(t, config, signers, without)
				c, err := newCheater(config, parties, signers, without)
				if err != nil {
					t.Fatal(err)
				}
				r := c.attackKeySubstitution(victim, in[victim], forge)
				if without != 0 {
					r.mustRecover(t, fmt.Sprintf("%s, %s, signatures not verified", name, forged), attackLayout, in, victim)
				} else {
					r.mustFail(t, fmt.Sprintf("%s, %s", name, forged), ErrSignature)
				}
			}
		}

		// The victim's own key is the other half of the swap: the list that the
		// victim is shown must have the key that it announced.
		parties = attackTarget(t, config, signers, 0)
		c, err := newCheater(config, parties, signers, 0)
		if err != nil {
			t.Fatal(err)
		}
		keys := make(wire.Keys, n)
		for i, p := range parties {
			keys[i] = wire.Announce{Key: [32]byte(p.Announce()[wire.HeaderSize:])}
		}
		keys[victim].Key[0] ^= 1
		if err := c.sendKeys(victim, keys); !errors.Is(err, ErrOwnKey) {
			t.Errorf("%s: a list with another own key: got %v, want ErrOwnKey", name, err)
		}
	}
}

// A server that has parties take t = 1, or a roster of its own, recovers inputs
// exactly: with t = 1 from the shares of a single colluder, which nobody has to
// help; with its own roster as the sum less what its own clients put in. Nothing
// that it sends can do either to real parties: t = 1 is no valid configuration,
// and a configuration that differs in anything is another session.
func TestAttackThresholdDowngrade(t *testing.T) {
	const n, victim, colluder = 5, 0, 4
	seed := attackSeed(t)
	in, _ := inputs(seed, attackLayout, n)
	signers, config := attackConfig(t, n, &Recovery{Colluders: 1})

	for _, without := range []defence{ownThresholds, 0} {
		parties := attackTarget(t, config, signers, without)
		c, err := newCheater(config, parties, signers, without)
		if err != nil {
			t.Fatal(err)
		}
		if without != 0 {
			c.config.threshold = 1
		}
		if err := c.setUp(); err != nil {
			t.Fatal(err)
		}
		r := c.attackSplit(splitPlan{
			colluders:    []int{colluder},
			participants: func(int) []int { return upTo(n) },
			input:        func(i int, _ []byte) [][]uint64 { return in[i] },
			targets:      []int{victim},
		})
		if without != 0 {
			r.mustRecover(t, "t = 1 taken from the server, one colluder", attackLayout, in, victim)
		} else {
			r.mustFail(t, "the session's own t, one colluder", nil)
		}
	}

	// Validate refuses t ≤ c for every adversary, and for those that cheat
	// whatever does not exceed half of holders and colluders.
	for adversary := CheatingServer; adversary <= CuriousServer; adversary++ {
		low := *config
		low.Recovery = &Recovery{Adversary: adversary, Colluders: 1, Threshold: 1}
		if err := low.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("t = 1 against one colluder and a %v: got %v, want ErrConfig", adversary, err)
		}
		if _, err := NewClient(&low, signers[0], nil); !errors.Is(err, ErrConfig) {
			t.Errorf("a client with t = 1: got %v, want ErrConfig", err)
		}
	}

	// A valid but weaker configuration, and a roster of the server's making: each
	// is a session that real parties are not in.
	weaker := *config
	weaker.Recovery = &Recovery{Adversary: CuriousServer, Colluders: 1, Threshold: 2}
	sybils := &Config{Label: config.Label, Layout: config.Layout, Recovery: &Recovery{Colluders: 1}, Roster: sybilRoster(t, signers[victim], n)}
	lower := *config
	lower.Recovery = &Recovery{} // the same t, a smaller quorum
	for name, theirs := range map[string]*Config{"a weaker configuration": &weaker, "a smaller quorum": &lower, "a roster of the server's": sybils} {
		refuseConfig(t, name, config, theirs, signers)
	}

	// Without the party's own roster: n − 1 of its n parties are the server.
	sybilSigners := sybilSigners(t, signers[victim], n)
	l, err := NewLocal(sybils, sybilSigners, attackRandom(t))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := l.Round(nil, in)
	if err != nil {
		t.Fatal(err)
	}
	r := attackSybil(sum, in, victim)
	r.mustRecover(t, "roster taken from the server", attackLayout, in, victim)
}

// attackSybil subtracts the inputs of the server's own clients from a sum.
func attackSybil(sum [][]uint64, in [][][]uint64, victim int) *attackResult {
	own := sumOf(attackLayout, in, except(upTo(len(in)), victim))
	out := make([][]uint64, len(sum))
	for j, s := range attackLayout {
		for k := range sum[j] {
			out[j] = append(out[j], (sum[j][k]-own[j][k])&(^uint64(0)>>(64-s.Bits)))
		}
	}
	return &attackResult{of: []int{victim}, sum: out}
}

// sybilSigners is the victim and n − 1 identities that the server made up.
func sybilSigners(t *testing.T, victim crypto.Signer, n int) []crypto.Signer {
	t.Helper()
	signers := []crypto.Signer{victim}
	random := attackRandom(t)
	for range n - 1 {
		identity, err := keyexchange.GenerateIdentity(random)
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, identity)
	}
	return signers
}

func sybilRoster(t *testing.T, victim crypto.Signer, n int) *keyexchange.Roster {
	t.Helper()
	var members []keyexchange.Member
	for i, s := range sybilSigners(t, victim, n) {
		members = append(members, keyexchange.Member{Name: fmt.Sprintf("sybil-%d", i), Key: s.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// refuseConfig checks that parties of ours and a server of theirs refuse each
// other, and that parties do so even if the server passes its messages off as of
// their session.
func refuseConfig(t *testing.T, name string, ours, theirs *Config, signers []crypto.Signer) {
	t.Helper()
	client, err := NewClient(ours, signers[0], attackRandom(t))
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(client)
	server, err := NewServer(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Receive(client.Announce()); !errors.Is(err, ErrSession) {
		t.Errorf("%s: the server takes the party's key: %v, want ErrSession", name, err)
	}
	// Keys of parties that did sign under the other configuration.
	keys := make(wire.Keys, theirs.Roster.Len())
	own := client.Announce()
	for i := range keys {
		key, err := keyexchange.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		public, err := key.Public()
		if err != nil {
			t.Fatal(err)
		}
		signature, err := keyexchange.SignKey(signers[i], digestOf(theirs), i, public)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = wire.Announce{Key: public, Signature: signature}
	}
	keys[0] = wire.Announce{Key: [32]byte(own[wire.HeaderSize:]), Signature: [64]byte(own[wire.HeaderSize+32:])}
	for session, want := range map[[32]byte]error{digestOf(theirs): ErrSession, digestOf(ours): ErrSignature} {
		h := wire.Header{Type: wire.TypeKeys, Session: session, Sender: wire.Server}
		if _, err := client.Receive(keys.Append(h.Append(nil))); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	if before != snapshot(client) {
		t.Errorf("%s: a refused message changed the party", name)
	}
}
