package protocol

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// Two saves of one state are sealed with different nonces.
func TestStatesHaveNonces(t *testing.T) {
	l, _ := local(t, 3)
	signers, _ := parties(t, 2)
	client, server := NewClientSeries("series", 0, signers[0], nil), NewServerSeries("series", 0)
	var key keyexchange.SealKey
	saves := map[string]func() ([]byte, error){
		"series of a client": func() ([]byte, error) { return client.Save(&key) },
		"series of a server": func() ([]byte, error) { return server.Save(&key) },
		"client":             func() ([]byte, error) { return l.Clients[0].Save(&key) },
		"server":             func() ([]byte, error) { return l.Server.Save(&key) },
	}
	for name, save := range saves {
		one, err := save()
		if err != nil {
			t.Fatal(err)
		}
		two, err := save()
		if err != nil {
			t.Fatal(err)
		}
		const nonce = len(keyexchange.Nonce{})
		if bytes.Equal(one[:nonce], two[:nonce]) || bytes.Equal(one[:nonce], make([]byte, nonce)) {
			t.Errorf("%s: two states have the nonces %x and %x", name, one[:nonce], two[:nonce])
		}
	}
}

// A round with a party that the schedule leaves out is refused.
func TestParticipantsOutsideTheSchedule(t *testing.T) {
	signers, roster := parties(t, 8)
	config := testConfig(roster)
	config.PerRound, config.Recovery = 5, &Recovery{Threshold: 3, MinSurvivors: 4}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	envelopes, err := l.Server.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	scheduled := l.Server.topology.scheduled(1)
	outside := 0
	for slices.Contains(scheduled, outside) {
		outside++
	}
	for _, e := range envelopes {
		// One of the scheduled gives its place to one who is not: as many shares.
		begin, err := wire.ParseBegin(e.Message[wire.HeaderSize:], 8,
			func(p wire.Set) int { return p.Len() - 1 })
		if err != nil {
			t.Fatal(err)
		}
		for _, leaves := range scheduled {
			if leaves != e.To {
				begin.Participants.Remove(leaves)
				break
			}
		}
		begin.Participants.Add(outside)
		// So many of them are the recipient's neighbours, the stranger is none.
		begin.Shares = begin.Shares[:len(begin.Shares)-1]
		message := begin.Append(bytes.Clone(e.Message[:wire.HeaderSize]))
		_, err = l.Clients[e.To].Receive(message)
		var party *PartyError
		if !errors.Is(err, ErrParticipants) || errors.As(err, &party) {
			t.Errorf("party %d: %v", e.To, err)
		}
		if _, err := l.Clients[e.To].Receive(e.Message); err != nil {
			t.Errorf("party %d refuses the right one then: %v", e.To, err)
		}
	}
}

// In a sparse graph a certificate counts signatures of neighbours only, however right
// those of others are.
func TestSparseCertificateOfStrangers(t *testing.T) {
	signers, roster := parties(t, 12)
	config := testConfig(roster)
	config.Recovery = &Recovery{Adversary: SemiMaliciousServer, Degree: 4, Threshold: 3}
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := inputs(1, config.Layout, 12)
	tried := 0
	l.Carry = func(from, to int, message []byte) []byte {
		if from >= 0 || message[1] != byte(wire.TypeCertificate) {
			return message
		}
		client := l.Clients[to]
		statement := survivorsStatement(client.open.context, client.open.survivors)
		forged := wire.Certificate{}
		for i := range 12 {
			if !slices.Contains(client.open.neighbours, i) && i != to && len(forged) < 3 {
				signature, err := keyexchange.Sign(signers[i], labels.Survivors, statement)
				if err != nil {
					t.Fatal(err)
				}
				forged = append(forged, wire.PartySignature{Party: i, Signature: signature})
			}
		}
		_, err := client.Receive(forged.Append(bytes.Clone(message[:wire.HeaderSize])))
		var party *PartyError
		if !errors.Is(err, ErrCertificate) || !errors.As(err, &party) || party.Party != forged[0].Party {
			t.Errorf("party %d: %v", to, err)
		}
		tried++
		return message
	}
	if _, err := l.Round(nil, in); err != nil || tried != 12 {
		t.Fatalf("%d certificates, %v", tried, err)
	}
}

// secrets holds values that a client must not keep beyond a step, by reference.
type secrets struct {
	channels []*keyexchange.Channels
	shares   []*[32]byte
}

func secretsOf(c *Client) secrets {
	return secrets{slices.Clone(c.open.channels), slices.Clone(c.open.recovery)}
}

func (s secrets) erased(t *testing.T, when string) {
	t.Helper()
	for i, c := range s.channels {
		if *c != (keyexchange.Channels{}) {
			t.Errorf("%s: channel keys of neighbour %d are there", when, i)
		}
	}
	for i, share := range s.shares {
		if share != nil && *share != [32]byte{} {
			t.Errorf("%s: the share of neighbour %d is there", when, i)
		}
	}
}

// chainKeys returns a copy of all chains.
func chainKeys(t *testing.T, c *Client) map[int][]byte {
	t.Helper()
	keys := make(map[int][]byte)
	for peer, chain := range c.chains {
		b, err := chain.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		keys[peer] = b
	}
	return keys
}

// What opened a round is gone when the round is over for a party, by whichever way it
// ends; and every chain has moved past it, those to absent neighbours too.
func TestErasure(t *testing.T) {
	for name, end := range map[string]func(s *recoverySession, c *Client){
		"Reveal": func(s *recoverySession, c *Client) {
			s.arrive()
			s.run(afterMasked, afterReveal)
		},
		"Invite": func(s *recoverySession, c *Client) {
			s.arrive()
			s.Server.open = nil
			s.Server.uploads[0] = nil
			envelopes, err := s.Server.Invite()
			if err != nil {
				s.t.Fatal(err)
			}
			for _, e := range envelopes {
				if e.To == 0 {
					if _, err := c.Receive(e.Message); err != nil {
						s.t.Fatal(err)
					}
				}
			}
			if c.last != s.Server.round {
				s.t.Fatal("the invitation did not arrive")
			}
		},
		"the next Begin": func(s *recoverySession, c *Client) {
			s.arrive()
			envelopes, err := s.Server.Begin(nil)
			if err != nil {
				s.t.Fatal(err)
			}
			if _, err := c.Receive(envelopes[0].Message); err != nil {
				s.t.Fatal(err)
			}
		},
		"Erase": func(s *recoverySession, c *Client) { c.Erase() },
	} {
		t.Run(name, func(t *testing.T) {
			s := recoveryAt(t, afterMasked)
			c := s.Clients[0]
			held, before := secretsOf(c), chainKeys(t, c)
			for peer, chain := range c.chains {
				if chain.Round() != 2 {
					t.Errorf("after Submit the chain to %d gives keys of round %d", peer, chain.Round())
				}
			}
			end(s, c)
			held.erased(t, name)
			if name == "Erase" {
				for peer, chain := range chainKeys(t, c) {
					if bytes.Equal(chain[:32], before[peer][:32]) {
						t.Errorf("the chain key to %d is there", peer)
					}
				}
			}
		})
	}
}

// A party that submits moves its chains to neighbours that sit the round out, too:
// their keys for it would open what the neighbours were sent.
func TestChainsOfAbsentNeighboursMove(t *testing.T) {
	s := recoveryAt(t, afterSetUp)
	s.Server.uploads[dropped] = nil // it is not there
	s.run(afterSetUp, afterMasked-1)
	delete(s.toParty, dropped)
	c := s.Clients[0]
	if _, err := c.Receive(s.toParty[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(nil, s.in[0]...); err != nil {
		t.Fatal(err)
	}
	for peer, chain := range c.chains {
		if chain.Round() != 2 {
			t.Errorf("the chain to %d gives keys of round %d", peer, chain.Round())
		}
	}
}

// An invitation moves every chain past the rounds that it says are over.
func TestInviteMovesChains(t *testing.T) {
	s := recoveryAt(t, afterSetUp)
	for range 3 {
		if err := s.Server.Skip(); err != nil {
			t.Fatal(err)
		}
	}
	envelopes, err := s.Server.Invite()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range envelopes {
		c := s.Clients[e.To]
		if _, err := c.Receive(e.Message); err != nil {
			t.Fatal(err)
		}
		for peer, chain := range c.chains {
			if chain.Round() != 4 {
				t.Errorf("the chain of %d to %d gives keys of round %d, want 4", e.To, peer, chain.Round())
			}
		}
	}
	if len(envelopes) != 5 {
		t.Errorf("%d parties are invited", len(envelopes))
	}
}

// A begin may be MaxSkip rounds ahead, and no further.
func TestMaxSkipIsExact(t *testing.T) {
	signers, roster := parties(t, 3)
	config := testConfig(roster)
	config.MaxSkip = 5
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	envelopes, err := l.Server.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	ahead := func(round byte) []byte {
		message := bytes.Clone(envelopes[0].Message)
		message[wire.HeaderSize-5] = round // the last byte of the round
		return message
	}
	if _, err := l.Clients[0].Receive(ahead(7)); !errors.Is(err, ErrSkip) {
		t.Errorf("6 rounds ahead: %v", err)
	}
	if _, err := l.Clients[0].Receive(ahead(6)); err != nil {
		t.Errorf("5 rounds ahead: %v", err)
	}
}

// Keys of set-up are gone when it is over.
func TestSetUpKeysAreErased(t *testing.T) {
	for _, classical := range []bool{false, true} {
		signers, roster := parties(t, 3)
		config := testConfig(roster)
		config.Classical = classical
		l, err := NewLocal(config, signers, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range l.Clients {
			if _, err := c.key.Public(); !errors.Is(err, keyexchange.ErrErased) {
				t.Errorf("classical %v, party %d: the X25519 key is there: %v", classical, i, err)
			}
			if classical {
				continue
			}
			if _, err := c.decapsulation.Public(); !errors.Is(err, keyexchange.ErrErased) {
				t.Errorf("party %d: the ML-KEM key is there: %v", i, err)
			}
			if len(c.agreed) != 0 {
				t.Errorf("party %d keeps what it agreed on", i)
			}
		}
	}
}

// A share that opens and is not a canonical scalar is left out of what is revealed.
func TestShareThatIsNoScalar(t *testing.T) {
	s := recoveryAt(t, afterSetUp)
	owner, holder := s.Clients[dropped], s.Clients[0]
	upload := s.Server.uploads[dropped]
	channels, _, err := owner.chains[0].Ahead(1)
	if err != nil {
		t.Fatal(err)
	}
	nonce := keyexchange.Nonce(upload.Shares[0][:24])
	// The same box but for what is in it: the order of the field and more.
	value := bytes.Repeat([]byte{0xff}, 32)
	box, err := keyexchange.Seal(&nonce, channels.Key(keyexchange.RecoveryShare, dropped, 0), value,
		shareData(keyexchange.RecoveryShare, owner.session, 1, dropped, 0, holdersDigest(owner.holders)))
	if err != nil {
		t.Fatal(err)
	}
	upload.Shares[0] = wire.SealedShare(box)
	s.run(afterSetUp, afterBegin)
	if _, err := holder.Receive(s.toParty[0]); err != nil {
		t.Fatal(err)
	}
	if at := slices.Index(holder.open.neighbours, dropped); holder.open.recovery[at] != nil {
		t.Error("a share that is no scalar is kept")
	}
	delete(s.toParty, 0)
}

// Material of an excluded party is refused.
func TestUploadWhileExcluded(t *testing.T) {
	s := recoveryAt(t, afterSetUp)
	if err := s.Server.Skip(); err != nil {
		t.Fatal(err)
	}
	envelopes, err := s.Server.Invite()
	if err != nil {
		t.Fatal(err)
	}
	s.Server.Exclude(1)
	for _, e := range envelopes {
		answer, err := s.Clients[e.To].Receive(e.Message)
		if err != nil {
			t.Fatal(err)
		}
		want := error(nil)
		if e.To == 1 {
			want = ErrParticipants
		}
		if err := deliver(s.Server, answer); !errors.Is(err, want) {
			t.Errorf("party %d: %v, want %v", e.To, err, want)
		}
	}
}

// The shares of a holder that is at fault are not used as long as others suffice, and
// then as all others: what they give must be the secret.
func TestDistrustedHolders(t *testing.T) {
	r := newRebuilder(2, 1, []int{0, 1, 2, 3, 4}, doubts{})
	r.doubts.add(4, 0)
	r.doubts.add(4, 1) // with more than one: it is at fault
	r.distrust()
	secret, err := shamir.GenerateSecret(nil)
	if err != nil {
		t.Fatal(err)
	}
	shares, err := shamir.Split(nil, secret, 2, []uint32{1, 2, 5})
	if err != nil {
		t.Fatal(err)
	}
	var asked []shamir.Secret
	accept := func(s shamir.Secret) bool {
		asked = append(asked, s)
		return s == secret
	}
	got, err := r.secret(3, shares, accept)
	if err != nil || got != secret {
		t.Fatal(err)
	}
	if len(asked) != 1 {
		t.Errorf("%d secrets were tried where two trusted holders agree", len(asked))
	}
	// One trusted share is one too few, and the other is right.
	if got, err := r.secret(3, shares[1:], accept); err != nil || got != secret {
		t.Errorf("with a right share of a holder that is at fault: %v", err)
	}
	shares[2].Value[0] ^= 1
	if _, err := r.secret(3, shares[1:], accept); !errors.Is(err, ErrMaterial) {
		t.Errorf("with a wrong share of a holder that is at fault: %v", err)
	}
	// One wrong share of three cannot be corrected, but two others agree.
	if got, err := r.secret(3, shares, accept); err != nil || got != secret {
		t.Errorf("with a wrong share of a holder that is at fault among others: %v", err)
	}
	if _, err := r.secret(3, shares[:1], accept); err != errFewShares {
		t.Errorf("with one share: %v", err)
	}
}

// A holder that turns out to be at fault is not used for the secrets that come after,
// where its shares would take what could correct another's.
func TestDistrustedAtOnce(t *testing.T) {
	r := newRebuilder(2, 1, []int{0, 1, 2, 3, 4}, doubts{})
	const liar = 1 // its share index, among the first, which are tried before any correction
	for _, owner := range []int{3, 4} {
		secret, err := shamir.GenerateSecret(nil)
		if err != nil {
			t.Fatal(err)
		}
		shares, err := shamir.Split(nil, secret, 2, []uint32{liar, 2, 3, 4, 5})
		if err != nil {
			t.Fatal(err)
		}
		shares = slices.Delete(shares, owner, owner+1) // nobody holds a share of its own
		shares[0].Value[0] ^= 1
		got, err := r.secret(owner, shares, func(s shamir.Secret) bool { return s == secret })
		if err != nil || got != secret {
			t.Fatalf("the secret of %d: %v", owner, err)
		}
	}
	if slices.Contains(r.holders, liar) || len(r.holders) != 4 {
		t.Errorf("holders %v, and %d was wrong twice", r.holders, liar)
	}
}

// A series erases the sessions that another takes over from, gives up or follows, and no others.
func TestSeriesErases(t *testing.T) {
	signers, roster := parties(t, 3)
	config := testConfig(roster)
	config.Number = 9
	for _, c := range []struct {
		name   string
		ready  bool // the successor is set up
		do     func(s *ClientSeries) error
		erased [3]bool // present, formed, successor
	}{
		{"the present one goes on", true,
			func(s *ClientSeries) error { s.takeOver(s.present); return nil }, [3]bool{}},
		{"the one that is set up takes over", true,
			func(s *ClientSeries) error { s.takeOver(s.formed); return nil }, [3]bool{true, false, false}},
		{"the successor takes over", true,
			func(s *ClientSeries) error { s.takeOver(s.successor); return nil }, [3]bool{true, true, false}},
		{"another successor than one that is set up", true,
			func(s *ClientSeries) error { _, err := s.Succeed(config); return err },
			[3]bool{false, true, false}},
		{"another successor than one that is not", false,
			func(s *ClientSeries) error { _, err := s.Succeed(config); return err },
			[3]bool{false, false, true}},
		{"all", true, func(s *ClientSeries) error { s.Erase(); return nil }, [3]bool{true, true, true}},
	} {
		l, _ := local(t, 3) // whose clients stand for one party's sessions
		s := NewClientSeries(config.Label, 0, signers[0], nil)
		s.present, s.formed, s.successor = l.Clients[0], l.Clients[1], l.Clients[2]
		if !c.ready {
			s.successor.stage = stageEncapsulate
		}
		if err := c.do(s); err != nil {
			t.Fatal(err)
		}
		for i, client := range l.Clients {
			for _, chain := range client.chains {
				key, err := chain.AppendBinary(nil)
				if err != nil {
					t.Fatal(err)
				}
				if erased := bytes.Equal(key[8:], make([]byte, 32)); erased != c.erased[i] {
					t.Errorf("%s: session %d of three is erased: %v", c.name, i, erased)
				}
			}
			if kept := slices.Contains(s.Sessions(), client); kept == c.erased[i] && c.name != "all" {
				t.Errorf("%s: session %d of three is kept: %v", c.name, i, kept)
			}
		}
	}
}

// Nothing is left of a set-up that is given up, nor of an input for which there is no randomness.
func TestGivenUpErased(t *testing.T) {
	signers, roster := parties(t, 3)
	for _, classical := range []bool{false, true} {
		config := testConfig(roster)
		config.Classical = classical
		c, err := NewClient(config, signers[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Erase()
		if _, err := c.key.Public(); !errors.Is(err, keyexchange.ErrErased) {
			t.Errorf("the X25519 key is left: %v", err)
		}
		if classical {
			continue
		}
		if _, err := c.decapsulation.Public(); !errors.Is(err, keyexchange.ErrErased) {
			t.Errorf("the decapsulation key is left: %v", err)
		}
	}
	l, _, in := begun(t, 4)
	c := l.Clients[0]
	c.random = iotest.ErrReader(errors.New("no randomness"))
	_, err := c.Submit([]byte("model"), in[0]...)
	if !errors.Is(err, ErrRandom) {
		t.Fatal(err)
	}
	for _, segment := range c.vector.Values() {
		if slices.ContainsFunc(segment, func(x uint64) bool { return x != 0 }) {
			t.Errorf("of an input are left %v", segment)
		}
	}
}
