package protocol

import (
	"crypto"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// Random coalitions of at most e parties deal wrong shares and shares that do not
// open, under right and wrong commitments and blobs, reveal wrong shares or none, and
// drop out at will; honest parties drop out too, as far as t + 2e neighbours of
// everybody and the quorum reveal. Nobody honest is ever left out, a round that ends
// gives the sum over its survivors, and at most e rounds do not.
func TestCoalition(t *testing.T) {
	sessions := uint64(suite.Size(16, 16, 120, 10_000))
	var spoilt, stopped int
	for seed := range sessions {
		a, b := coalitionSession(t, seed)
		spoilt, stopped = spoilt+a, stopped+b
	}
	t.Logf("%d coalitions spoilt %d rounds; %d spoilers were left out, and nobody else", sessions,
		spoilt, stopped)
	if spoilt < int(sessions)/2 {
		t.Errorf("only %d rounds were spoilt: the coalitions are too tame to tell anything", spoilt)
	}
}

// coalition is a session in which some parties spoil what they can.
type coalition struct {
	*testing.T
	rng      *rand.Rand
	signers  []crypto.Signer
	config   *Config
	terms    terms
	server   *Server
	clients  []*Client
	spoilers []int
	daring   float64 // how likely a spoiler does each of what it can
}

// coalitionSession runs one session and returns how many rounds were spoilt and how
// many parties left out.
func coalitionSession(t *testing.T, seed uint64) (spoilt, stopped int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	e := 1 + rng.IntN(3)
	// of whom enough are honest that t + 2e + 1 are without a single spoiler
	n := 7*e + 3 + rng.IntN(3)
	recovery := &Recovery{Threshold: (n-1+e)/2 + 1}
	if rng.IntN(2) == 0 {
		n = 4*e + 4 + rng.IntN(3)
		recovery = &Recovery{Adversary: CuriousServer, Threshold: e + 1}
	}
	signers, roster := parties(t, n)
	c := &coalition{T: t, rng: rng, signers: signers, daring: rng.Float64()}
	c.config = &Config{Label: "coalition", Roster: roster,
		Layout:   masking.Layout{{Length: 3, Bits: 16}},
		Recovery: recovery, Colluders: e, Classical: true}
	own, err := c.config.settle()
	if err != nil {
		t.Fatal(err)
	}
	c.terms = own.terms(n)
	c.spoilers = rng.Perm(len(signers))[:1+rng.IntN(e)]
	c.setUp()
	for range e + 3 {
		if c.round() {
			spoilt++
		}
		for _, party := range c.server.Excluded() {
			if !slices.Contains(c.spoilers, party) {
				t.Fatalf("session %d: honest party %d is left out; spoilers %v, pairs %v", seed, party,
					c.spoilers, c.server.doubts.pairs())
			}
		}
	}
	if spoilt > len(c.spoilers) {
		t.Fatalf("session %d: %d spoilers spoilt %d rounds", seed, len(c.spoilers), spoilt)
	}
	return spoilt, len(c.server.Excluded())
}

// send hands a message to the server, which must take it.
func (c *coalition) send(party int, message []byte, err error) {
	if err == nil {
		err = c.server.Receive(party, message)
	}
	if err != nil {
		c.Fatalf("party %d: %v", party, err)
	}
}

func (c *coalition) setUp() {
	var err error
	if c.server, err = NewServer(c.config); err != nil {
		c.Fatal(err)
	}
	for i, signer := range c.signers {
		client, err := NewClient(c.config, signer, nil)
		if err != nil {
			c.Fatal(err)
		}
		c.clients = append(c.clients, client)
		c.send(i, client.Announce(), nil)
	}
	envelopes, err := c.server.Keys()
	c.deliver(envelopes, err, nil, c.spoilUpload)
}

// deliver gives envelopes to the parties that are there and their answers, spoilt if
// they come from spoilers, to the server.
func (c *coalition) deliver(
	envelopes []Envelope, err error, absent []int, spoil func(*Client, []byte) []byte,
) {
	if err != nil {
		c.Fatal(err)
	}
	for _, e := range envelopes {
		if slices.Contains(absent, e.To) {
			continue
		}
		client := c.clients[e.To]
		answer, err := client.Receive(e.Message)
		if _, due := client.Due(); due && err == nil {
			answer, err = client.Submit(nil, []uint64{1, uint64(e.To), 3})
		}
		if err == nil && slices.Contains(c.spoilers, e.To) {
			answer = spoil(client, answer)
		}
		c.send(e.To, answer, err)
	}
}

// round runs a round and reports whether it was spoilt.
func (c *coalition) round() bool {
	if len(c.server.Missing()) > 0 {
		envelopes, err := c.server.Invite()
		c.deliver(envelopes, err, nil, c.spoilUpload)
	}
	// So many honest parties stay that t + 2e of them hold shares of any one.
	var present []int
	for _, i := range c.rng.Perm(len(c.signers)) {
		if !slices.Contains(c.spoilers, i) {
			present = append(present, i)
		}
	}
	stay := max(c.terms.threshold+2*c.server.config.spoilers()+1, c.terms.quorum, c.terms.minSurvivors)
	fickle := append(present[stay:], c.spoilers...)
	var absent []int
	leave := func() []int {
		for _, i := range fickle {
			if c.rng.IntN(6) == 0 && !slices.Contains(absent, i) {
				absent = append(absent, i)
			}
		}
		return absent
	}
	envelopes, err := c.server.Begin(nil)
	c.deliver(envelopes, err, leave(), c.spoilMasked)
	envelopes, err = c.server.Survivors()
	c.deliver(envelopes, err, leave(), func(_ *Client, answer []byte) []byte { return answer })
	envelopes, err = c.server.Certificate()
	c.deliver(envelopes, err, leave(), c.spoilReveal)
	sum, err := c.server.Sum()
	if err != nil {
		if !errors.Is(err, ErrMaterial) {
			c.Fatalf("spoilers %v: %v", c.spoilers, err)
		}
		return true
	}
	want := []uint64{0, 0, 0}
	for _, i := range c.server.Included() {
		want[0]++
		want[1] += uint64(i)
		want[2] += 3
	}
	if !slices.Equal(sum[0], want) {
		c.Fatalf("wrong sum %v, want %v", sum[0], want)
	}
	return false
}

// dares reports whether a spoiler does one of the things that it can do.
func (c *coalition) dares() bool { return c.rng.Float64() < c.daring }

// spoilShares replaces shares that a client deals, some by wrong ones under the right
// seal and some by what does not open.
func (c *coalition) spoilShares(
	client *Client, shares []wire.SealedShare, neighbours []int, round uint64,
	purpose keyexchange.Purpose, channels func(i int) *keyexchange.Channels, context [32]byte,
) {
	if !c.dares() {
		return
	}
	wrong, shut := c.rng.Float64(), c.rng.Float64()
	for i, peer := range neighbours {
		switch {
		case c.rng.Float64() < wrong:
			value, err := shamir.GenerateSecret(nil)
			if err != nil {
				c.Fatal(err)
			}
			nonce := keyexchange.Nonce(shares[i][:24])
			box, err := keyexchange.Seal(&nonce, channels(i).Key(purpose, client.self, peer), value[:],
				shareData(purpose, client.session, round, client.self, peer, context))
			if err != nil {
				c.Fatal(err)
			}
			shares[i] = wire.SealedShare(box)
		case c.rng.Float64() < shut:
			shares[i][40] ^= 1
		}
	}
}

// spoilMaterial spoils recovery material.
func (c *coalition) spoilMaterial(client *Client, upload *wire.Upload) {
	neighbours := client.topology.neighbours(upload.Round, client.self)
	c.spoilShares(client, upload.Shares, neighbours, upload.Round, keyexchange.RecoveryShare,
		func(i int) *keyexchange.Channels {
			channels, _, err := client.chains[neighbours[i]].Ahead(upload.Round)
			if err != nil {
				c.Fatal(err)
			}
			return channels
		}, holdersDigest(client.holders))
	if c.dares() && c.rng.IntN(4) == 0 {
		upload.Commitment[0] ^= 1
	}
	if c.dares() && c.rng.IntN(4) == 0 {
		upload.Blob[30] ^= 1
	}
	client.upload = upload
}

func (c *coalition) spoilUpload(client *Client, message []byte) []byte {
	upload, err := wire.ParseUpload(message[wire.HeaderSize:], c.terms.degree)
	if err != nil {
		c.Fatal(err)
	}
	c.spoilMaterial(client, upload)
	return upload.Append(slices.Clone(message[:wire.HeaderSize]))
}

func (c *coalition) spoilMasked(client *Client, message []byte) []byte {
	near := client.open.neighbours
	m, err := wire.ParseMasked(slices.Clone(message[wire.HeaderSize:]), c.config.Layout.PackedSize(),
		len(near), c.terms.degree)
	if err != nil {
		c.Fatal(err)
	}
	c.spoilShares(client, m.Shares, near, client.last, keyexchange.SelfMaskShare,
		func(i int) *keyexchange.Channels { return client.open.channels[i] }, client.open.context)
	if c.dares() && c.rng.IntN(4) == 0 {
		m.Commitment[0] ^= 1
	}
	c.spoilMaterial(client, m.Next)
	return m.Append(slices.Clone(message[:wire.HeaderSize]))
}

func (c *coalition) spoilReveal(client *Client, message []byte) []byte {
	if !c.dares() {
		return message
	}
	m, err := wire.ParseReveal(message[wire.HeaderSize:], len(c.signers))
	if err != nil {
		c.Fatal(err)
	}
	wrong, shut := c.rng.Float64(), c.rng.Float64()
	var spoilt wire.Reveal
	for _, share := range m {
		switch {
		case c.rng.Float64() < wrong:
			share.Share[0] ^= 1
		case c.rng.Float64() < shut:
			continue
		}
		spoilt = append(spoilt, share)
	}
	return spoilt.Append(slices.Clone(message[:wire.HeaderSize]))
}
