package session

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

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
	next     []*wire.Upload // by party, for the round after
	views    map[int]*partyView
	signed   map[string]wire.Certificate // by statement
	refusals []error                     // of honest parties in the round

	pairs  map[[2]int]keyexchange.PairSecret // known, of the round
	shares map[shareOf]map[int][32]byte      // known, by holder

	singleMasked bool // ignore self masks: go for parties that have none
	forge        bool // fill certificates up with signatures that are none
}

// partyView holds the messages that one party was told in a round, and those it sent.
type partyView struct {
	context   [32]byte
	near      []int // the other participants that it was told of
	masked    *wire.Masked
	survivors wire.Set
	statement string // what it signed
}

// newCheater makes the server of a session of the target's parties.
func newCheater(
	t target, config *protocol.Config, signers []crypto.Signer, colluders ...int,
) (*cheater, error) {
	terms, err := textbook.NewTerms(config, t.without|textbook.ValidConfig)
	if err != nil {
		return nil, err
	}
	parties, err := t.parties(config, signers, colluders...)
	if err != nil {
		return nil, err
	}
	c := &cheater{
		terms:   terms,
		without: t.without,
		parties: parties,
		signers: signers,
		uploads: make([]*wire.Upload, terms.Parties),
	}
	c.forget()
	return c, nil
}

// newSession is newCheater, with an honest set-up.
func newSession(
	t target, config *protocol.Config, signers []crypto.Signer, colluders ...int,
) (*cheater, error) {
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
	count := 0
	for _, err := range c.refusals {
		count += indicator(errors.Is(err, target))
	}
	return count
}

// announced returns the announcements of all parties.
func (c *cheater) announced() ([]wire.Announce, error) {
	keys := make([]wire.Announce, len(c.parties))
	for i, party := range c.parties {
		_, body, err := wire.ParseHeader(party.Announce())
		if err != nil {
			return nil, err
		}
		announced, err := wire.ParseAnnounce(body, false)
		if err != nil {
			return nil, err
		}
		keys[i] = *announced
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

// header makes the header of a message of the round.
func (c *cheater) header(kind wire.Type) []byte {
	h := wire.Header{Type: kind, Session: c.session, Round: c.round, Sender: wire.ServerIndex}
	return h.Append(nil)
}

// set makes a set of parties.
func (c *cheater) set(parties []int) wire.Set { return wire.SetOf(c.terms.Parties, parties) }

// beginMessage tells a party the participants and the digest of the broadcast.
func (c *cheater) beginMessage(party int, participants []int, broadcast []byte) []byte {
	begin := &wire.Begin{
		Broadcast:    textbook.BroadcastDigest(broadcast),
		Participants: c.set(participants),
	}
	if c.terms.Recovery {
		for _, owner := range except(participants, party) {
			var sealed wire.SealedShare
			if upload := c.uploads[owner]; upload != nil {
				sealed = upload.Shares[slices.Index(c.terms.Others(owner), party)]
			}
			begin.Shares = append(begin.Shares, sealed)
		}
	}
	return begin.Append(c.header(wire.TypeBegin))
}

// begin tells a party that the round begins.
func (c *cheater) begin(party int, participants []int, broadcast []byte) error {
	message := c.beginMessage(party, participants, broadcast)
	if _, err := c.parties[party].Receive(message); err != nil {
		return err
	}
	c.views[party] = &partyView{
		near: except(participants, party),
		context: textbook.Context(c.without, c.session, c.round,
			textbook.BroadcastDigest(broadcast), c.terms.Members, c.set(participants)),
	}
	return nil
}

// submit has a party mask its input.
func (c *cheater) submit(party int, broadcast []byte, input segments) error {
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
		masked, err = wire.ParseMasked(body, c.terms.Layout.PackedSize(),
			len(c.views[party].near), c.terms.Parties-1)
		if err != nil {
			return err
		}
		c.next[party] = masked.Next
	}
	c.views[party].masked = masked
	return nil
}

// enter has a party begin the round, without a broadcast, and submit its input.
func (c *cheater) enter(party int, participants []int, input segments) error {
	if err := c.begin(party, participants, nil); err != nil {
		return err
	}
	return c.submit(party, nil, input)
}

// agree is enter, after which the party signs a list of survivors.
func (c *cheater) agree(
	party int, participants []int, input segments, survivors []int,
) error {
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

// survivorsMessage tells a party which parties are in the sum.
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
	c.signed[v.statement] = append(c.signed[v.statement], wire.PartySignature{
		Party:     party,
		Signature: [64]byte(body),
	})
	return nil
}

// certificate returns all signatures on what a party has signed, those of the
// colluders included.
func (c *cheater) certificate(party int, colluders []int) (wire.Certificate, error) {
	v := c.views[party]
	statement := []byte(v.statement)
	list := slices.Clone(c.signed[v.statement])
	for _, i := range colluders {
		signature, err := keyexchange.Sign(c.signers[i], labels.Survivors, statement)
		if err != nil {
			return nil, err
		}
		list = append(list, wire.PartySignature{Party: i, Signature: signature})
	}
	for i := range v.survivors.All() {
		signed := slices.ContainsFunc(list, func(s wire.PartySignature) bool {
			return s.Party == i
		})
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
		v := c.views[i]
		if v.statement == "" || !v.survivors.Equal(c.views[party].survivors) {
			continue
		}
		for _, s := range c.signed[v.statement] {
			if s.Party == i {
				list = append(list, s)
			}
		}
	}
	return ofSurvivors(list, c.views[party].survivors)
}

// ofSurvivors leaves of a list the signatures of survivors, in order.
func ofSurvivors(list wire.Certificate, survivors wire.Set) wire.Certificate {
	list = slices.DeleteFunc(list, func(s wire.PartySignature) bool {
		return !survivors.Has(s.Party)
	})
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
