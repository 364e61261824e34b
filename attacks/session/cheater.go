package session

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/shamir"
)

// errUnknown is an attacker's own: it lacks what it needs.
var errUnknown = errors.New("attacks: not known to server and colluders")

// cheater is a cheating server, with parties that collude with it. It tells
// every party what it likes, keeps what it is told, and takes off a submission
// whatever masks it can.
type cheater struct {
	terms   *textbook.Terms
	without textbook.Defence // what the parties lack, which the attacker knows
	parties []textbook.Party
	signers []crypto.Signer // of the colluders, who sign anything

	session  [32]byte
	round    uint64
	uploads  []*wire.Upload // by party, for the round
	views    map[int]*partyView
	next     []*wire.Upload // by party, for the round after
	signed   map[string]wire.Certificate
	refusals []error // of honest parties in the round

	pairs  map[[2]int]keyexchange.PairSecret // known, of the round
	shares map[shareOf]map[int][32]byte      // known, by holder

	singleMasked bool // ignore self masks: go for parties that have none
	forge        bool // fill certificates up with signatures that are none
}

// partyView is what one party was told in a round, and what it sent.
type partyView struct {
	context   [32]byte
	near      []int // the other participants that it was told of
	masked    *wire.Masked
	survivors wire.Set
	statement string // what it signed
}

// shareOf names a shared secret of the round.
type shareOf struct {
	purpose keyexchange.Purpose
	owner   int
}

// newCheater makes the server of a session of the target's parties.
func newCheater(t target, config *protocol.Config, signers []crypto.Signer, colluders ...int) (*cheater, error) {
	terms, err := textbook.NewTerms(config, t.without|textbook.ValidConfig)
	if err != nil {
		return nil, err
	}
	parties, err := t.parties(config, signers, colluders...)
	if err != nil {
		return nil, err
	}
	c := &cheater{terms: terms, without: t.without, parties: parties, signers: signers, uploads: make([]*wire.Upload, terms.Parties)}
	c.forget()
	return c, nil
}

// newSession is newCheater, with an honest set-up.
func newSession(t target, config *protocol.Config, signers []crypto.Signer, colluders ...int) (*cheater, error) {
	c, err := newCheater(t, config, signers, colluders...)
	if err != nil {
		return nil, err
	}
	keys, err := c.announced()
	if err != nil {
		return nil, err
	}
	for i := range c.parties {
		if err := c.sendKeys(i, keys); err != nil {
			return nil, fmt.Errorf("set-up: party %d: %w", i, err)
		}
	}
	return c, nil
}

// forget drops what is known of a round.
func (c *cheater) forget() {
	c.views = make(map[int]*partyView)
	c.next = make([]*wire.Upload, c.terms.Parties)
	c.signed = make(map[string]wire.Certificate)
	c.pairs = make(map[[2]int]keyexchange.PairSecret)
	c.shares = make(map[shareOf]map[int][32]byte)
	c.refusals = nil
}

// refused notes what an honest party says to the server.
func (c *cheater) refused(err error) {
	if err != nil {
		c.refusals = append(c.refusals, err)
	}
}

// refusedWith counts the refusals with a given error.
func (c *cheater) refusedWith(target error) int {
	n := 0
	for _, err := range c.refusals {
		n += one(errors.Is(err, target))
	}
	return n
}

// announced is what all parties announce.
func (c *cheater) announced() ([]wire.Announce, error) {
	keys := make([]wire.Announce, len(c.parties))
	for i, p := range c.parties {
		_, body, err := wire.ParseHeader(p.Announce())
		if err != nil {
			return nil, err
		}
		a, err := wire.ParseAnnounce(body, false)
		if err != nil {
			return nil, err
		}
		keys[i] = *a
	}
	return keys, nil
}

// sendKeys tells one party a list of keys. The session is that of the last list.
func (c *cheater) sendKeys(party int, announced []wire.Announce) error {
	keys := keysOf(announced)
	h := wire.Header{Type: wire.TypeKeys, Session: c.terms.Digest, Sender: wire.ServerIndex}
	answer, err := c.parties[party].Receive(keys.Append(h.Append(nil)))
	if err != nil {
		return err
	}
	c.session = textbook.SessionID(c.terms.Digest, keys)
	if !c.terms.Recovery {
		return nil
	}
	_, body, err := wire.ParseHeader(answer)
	if err != nil {
		return err
	}
	c.uploads[party], err = wire.ParseUpload(body, c.terms.Parties-1)
	return err
}

// keysOf is the list of what all parties announce.
func keysOf(announced []wire.Announce) *wire.Keys {
	keys := &wire.Keys{Announced: wire.FullSet(len(announced))}
	for _, a := range announced {
		keys.Entries = append(keys.Entries, wire.KeyEntry{Key: a.Key, Signature: a.Signature})
	}
	return keys
}

// nextRound goes on to the next round number.
func (c *cheater) nextRound() {
	if c.round > 0 {
		c.uploads = c.next
	}
	c.forget()
	c.round++
}

func (c *cheater) header(kind wire.Type) []byte {
	h := wire.Header{Type: kind, Session: c.session, Round: c.round, Sender: wire.ServerIndex}
	return h.Append(nil)
}

func (c *cheater) set(parties []int) wire.Set { return wire.SetOf(c.terms.Parties, parties) }

// beginMessage is what tells a party who takes part and what the broadcast is.
func (c *cheater) beginMessage(party int, participants []int, broadcast []byte) []byte {
	begin := &wire.Begin{Broadcast: textbook.BroadcastDigest(broadcast), Participants: c.set(participants)}
	if c.terms.Recovery {
		for _, owner := range except(participants, party) {
			var sealed wire.SealedShare
			if u := c.uploads[owner]; u != nil {
				sealed = u.Shares[slices.Index(c.terms.Others(owner), party)]
			}
			begin.Shares = append(begin.Shares, sealed)
		}
	}
	return begin.Append(c.header(wire.TypeBegin))
}

// begin tells a party that the round begins.
func (c *cheater) begin(party int, participants []int, broadcast []byte) error {
	if _, err := c.parties[party].Receive(c.beginMessage(party, participants, broadcast)); err != nil {
		return err
	}
	context := textbook.Context(c.without, c.session, c.round, textbook.BroadcastDigest(broadcast), c.terms.Members, c.set(participants))
	c.views[party] = &partyView{near: except(participants, party), context: context}
	return nil
}

// submit has a party mask its input.
func (c *cheater) submit(party int, broadcast []byte, input [][]uint64) error {
	message, err := c.parties[party].Submit(broadcast, input...)
	if err != nil {
		return err
	}
	_, body, err := wire.ParseHeader(message)
	if err != nil {
		return err
	}
	masked := &wire.Masked{Packed: body}
	if c.terms.Recovery {
		masked, err = wire.ParseMasked(body, c.terms.Layout.PackedSize(), len(c.views[party].near), c.terms.Parties-1)
		if err != nil {
			return err
		}
		c.next[party] = masked.Next
	}
	c.views[party].masked = masked
	return nil
}

// enter has a party begin the round, without a broadcast, and submit its input.
func (c *cheater) enter(party int, participants []int, input [][]uint64) error {
	if err := c.begin(party, participants, nil); err != nil {
		return err
	}
	return c.submit(party, nil, input)
}

// agree is enter, after which the party signs a list of survivors.
func (c *cheater) agree(party int, participants []int, input [][]uint64, survivors []int) error {
	if err := c.enter(party, participants, input); err != nil {
		return err
	}
	return c.survivors(party, survivors)
}

// sealedFor returns the share of owner's self mask that is for a holder, or one
// that does not open if the owner was not told of the holder.
func (c *cheater) sealedFor(owner, holder int) wire.SealedShare {
	v := c.views[owner]
	if v == nil || v.masked == nil {
		return wire.SealedShare{}
	}
	at, found := slices.BinarySearch(v.near, holder)
	if !found {
		return wire.SealedShare{}
	}
	return v.masked.Shares[at]
}

// survivorsMessage is what tells a party who is in the sum.
func (c *cheater) survivorsMessage(party int, list []int) []byte {
	m := wire.Survivors{Survivors: c.set(list)}
	for _, owner := range except(list, party) {
		if v := c.views[party]; v == nil || slices.Contains(v.near, owner) {
			m.Shares = append(m.Shares, c.sealedFor(owner, party))
		}
	}
	return m.Append(c.header(wire.TypeSurvivors))
}

// survivors tells a party who is in the sum, and keeps its signature.
func (c *cheater) survivors(party int, list []int) error {
	v := c.views[party]
	answer, err := c.parties[party].Receive(c.survivorsMessage(party, list))
	if err != nil {
		return err
	}
	_, body, err := wire.ParseHeader(answer)
	if err != nil {
		return err
	}
	v.survivors = c.set(list)
	v.statement = string(textbook.Statement(v.context, v.survivors))
	c.signed[v.statement] = append(c.signed[v.statement], wire.PartySignature{Party: party, Signature: [64]byte(body)})
	return nil
}

// certificate returns all signatures on what a party has signed, those of the
// colluders included.
func (c *cheater) certificate(party int, colluders []int) (wire.Certificate, error) {
	v := c.views[party]
	list := slices.Clone(c.signed[v.statement])
	for _, i := range colluders {
		signature, err := keyexchange.Sign(c.signers[i], textbook.LabelSurvivors, []byte(v.statement))
		if err != nil {
			return nil, err
		}
		list = append(list, wire.PartySignature{Party: i, Signature: signature})
	}
	for i := range v.survivors.All() {
		signed := slices.ContainsFunc(list, func(e wire.PartySignature) bool { return e.Party == i })
		if c.forge && !signed {
			list = append(list, wire.PartySignature{Party: i})
		}
	}
	return ofSurvivors(list, v.survivors), nil
}

// acrossViews returns all signatures on lists like that of a party, whatever else
// their signers were told.
func (c *cheater) acrossViews(party int) wire.Certificate {
	var list wire.Certificate
	for _, i := range slices.Sorted(maps.Keys(c.views)) {
		if v := c.views[i]; v.statement != "" && v.survivors.Equal(c.views[party].survivors) {
			for _, e := range c.signed[v.statement] {
				if e.Party == i {
					list = append(list, e)
				}
			}
		}
	}
	return ofSurvivors(list, c.views[party].survivors)
}

func ofSurvivors(list wire.Certificate, survivors wire.Set) wire.Certificate {
	list = slices.DeleteFunc(list, func(e wire.PartySignature) bool { return !survivors.Has(e.Party) })
	slices.SortFunc(list, func(a, b wire.PartySignature) int { return a.Party - b.Party })
	return list
}

// reveal sends a party a certificate and keeps the shares that it answers with.
func (c *cheater) reveal(party int, certificate wire.Certificate) error {
	answer, err := c.parties[party].Receive(certificate.Append(c.header(wire.TypeCertificate)))
	if err != nil {
		return err
	}
	_, body, err := wire.ParseHeader(answer)
	if err != nil {
		return err
	}
	m, err := wire.ParseReveal(body, c.terms.Parties)
	if err != nil {
		return err
	}
	for _, s := range m {
		purpose := keyexchange.RecoveryShare
		if c.views[party].survivors.Has(s.Owner) {
			purpose = keyexchange.SelfMaskShare
		}
		c.learn(purpose, s.Owner, party, s.Share)
	}
	return nil
}

func (c *cheater) learn(purpose keyexchange.Purpose, owner, holder int, share [32]byte) {
	of := shareOf{purpose, owner}
	if c.shares[of] == nil {
		c.shares[of] = make(map[int][32]byte)
	}
	c.shares[of][holder] = share
}

// poolSecrets takes from a colluder what it shares with others in the round. It
// is called between the colluder's begin and its submit.
func (c *cheater) poolSecrets(colluder int) error {
	for peer, chain := range c.parties[colluder].(*textbook.Client).Chains {
		_, secret, err := chain.Ahead(c.round)
		if err != nil {
			return err
		}
		c.pairs[pairOf(colluder, peer)] = secret
	}
	return nil
}

// poolShares takes from a colluder all shares that it holds: of self masks and
// of recovery keys alike, whatever the honest would give.
func (c *cheater) poolShares(colluder int) {
	inside := c.parties[colluder].(*textbook.Client)
	if inside.Open == nil {
		return
	}
	for k, owner := range inside.Open.Near {
		if share := inside.Open.Recovery[k]; share != nil {
			c.learn(keyexchange.RecoveryShare, owner, colluder, *share)
		}
		if v := c.views[owner]; v != nil {
			share := inside.OpenShare(c.sealedFor(owner, colluder), owner, inside.Open.Channels[k], keyexchange.SelfMaskShare, v.context)
			if share != nil {
				c.learn(keyexchange.SelfMaskShare, owner, colluder, *share)
			}
		}
	}
}

func pairOf(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// rebuild makes a secret from the shares that are known, if they are enough.
func (c *cheater) rebuild(purpose keyexchange.Purpose, owner int) (shamir.Secret, error) {
	known := c.shares[shareOf{purpose, owner}]
	var shares []shamir.Share
	for _, holder := range slices.Sorted(maps.Keys(known)) {
		shares = append(shares, shamir.Share{Index: textbook.Index(holder), Value: known[holder]})
	}
	t := c.terms.Threshold
	if len(shares) < t {
		return shamir.Secret{}, fmt.Errorf("%w: secret %d of party %d, %d shares of %d", errUnknown, purpose, owner, len(shares), t)
	}
	return shamir.Combine(t, shares[:t])
}

// pair returns what two parties share: from a colluder, or from the recovery
// blob of either.
func (c *cheater) pair(i, j int) (keyexchange.PairSecret, error) {
	if secret, known := c.pairs[pairOf(i, j)]; known {
		return secret, nil
	}
	last := errUnknown
	for _, owner := range []int{i, j} {
		if c.uploads[owner] == nil {
			continue
		}
		secret, err := c.rebuild(keyexchange.RecoveryShare, owner)
		if err == nil {
			var pairs []keyexchange.PairSecret
			if pairs, err = textbook.OpenBlob(secret, c.uploads[owner].Blob, c.session, c.round, owner); err == nil {
				return pairs[slices.Index(c.terms.Others(owner), i+j-owner)], nil
			}
		}
		last = err
	}
	return keyexchange.PairSecret{}, last
}

// unmask takes the masks off what the targets submitted: self masks that can be
// rebuilt, and pair masks with parties that are not targets. Pair masks among the
// targets should cancel. It fails with errUnknown.
func (c *cheater) unmask(targets []int) ([][]uint64, error) {
	sum, err := masking.NewVector(c.terms.Layout)
	if err != nil {
		return nil, err
	}
	for _, i := range targets {
		v := c.views[i]
		if v == nil || v.masked == nil {
			return nil, fmt.Errorf("%w: party %d submitted nothing", errUnknown, i)
		}
		if err := sum.AddPacked(v.masked.Packed); err != nil {
			return nil, err
		}
		if c.terms.Recovery && !c.singleMasked {
			secret, err := c.rebuild(keyexchange.SelfMaskShare, i)
			if err != nil {
				return nil, err
			}
			seed := textbook.SelfMaskSeed(secret)
			sum.SubMask(&seed)
		}
		for _, j := range except(v.near, targets...) {
			secret, err := c.pair(i, j)
			if err != nil {
				return nil, err
			}
			seed := masking.Seed(secret.MaskSeed(v.context))
			sum.MaskPair(&seed, j, i) // what j would have added takes away what i added
		}
	}
	return sum.Values(), nil
}

// recovers is 1 if the sum of the targets' inputs comes out, bit for bit.
func (c *cheater) recovers(in [][][]uint64, targets ...int) int {
	sum, err := c.unmask(targets)
	return one(err == nil && equal(sum, sumOf(c.terms.Layout, in, targets)))
}
