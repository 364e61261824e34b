package protocol

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/shamir"
)

// errUnknown is an attacker's own: it lacks what it needs.
var errUnknown = errors.New("attack: not known to server and colluders")

// cheater is a cheating server, with parties that collude with it. It tells
// every party what it likes, keeps what it is told, and takes off a submission
// whatever masks it can.
type cheater struct {
	config  *settled
	without defence // what the parties lack, which the attacker knows
	parties []attackParty
	signers []crypto.Signer // of the colluders, who sign anything

	session  [32]byte
	topology *topology
	round    uint64
	uploads  []*wire.Upload // by party, for the round
	views    map[int]*partyView
	next     []*wire.Upload // by party, for the round after
	signed   map[string]wire.Certificate

	pairs  map[[2]int]keyexchange.PairSecret // known, of the round
	shares map[shareOf]map[int][32]byte      // known, by holder

	singleMasked bool // ignore self masks: go for parties that have none
	result       attackResult
}

// partyView is what one party was told in a round, and what it sent.
type partyView struct {
	begin     *wire.Begin
	context   [32]byte
	near      []int // neighbours among the participants
	masked    *wire.Masked
	survivors wire.Set
	statement string
}

// shareOf names a shared secret of the round.
type shareOf struct {
	purpose keyexchange.Purpose
	owner   int
}

func newCheater(config *Config, parties []attackParty, signers []crypto.Signer, without defence) (*cheater, error) {
	own, err := config.settle()
	if err != nil {
		return nil, err
	}
	c := &cheater{config: own, without: without, parties: parties, signers: signers, uploads: make([]*wire.Upload, own.parties)}
	c.forget()
	return c, nil
}

// forget drops what is known of a round.
func (c *cheater) forget() {
	c.views = make(map[int]*partyView)
	c.next = make([]*wire.Upload, c.config.parties)
	c.signed = make(map[string]wire.Certificate)
	c.pairs = make(map[[2]int]keyexchange.PairSecret)
	c.shares = make(map[shareOf]map[int][32]byte)
	c.result = attackResult{}
}

// refused notes what an honest party says to the server.
func (c *cheater) refused(err error) {
	if err != nil {
		c.result.refusals = append(c.result.refusals, err)
	}
}

// setUp is the honest set-up.
func (c *cheater) setUp() error {
	keys := make(wire.Keys, c.config.parties)
	for i, p := range c.parties {
		_, body, err := wire.ParseHeader(p.Announce())
		if err != nil {
			return err
		}
		a, err := wire.ParseAnnounce(body)
		if err != nil {
			return err
		}
		keys[i] = *a
	}
	for i := range c.parties {
		if err := c.sendKeys(i, keys); err != nil {
			return err
		}
	}
	return nil
}

// sendKeys tells one party a list of keys. The session is that of the last list.
func (c *cheater) sendKeys(party int, keys wire.Keys) error {
	h := wire.Header{Type: wire.TypeKeys, Session: c.config.digest, Sender: wire.Server}
	body := keys.Append(nil)
	answer, err := c.parties[party].Receive(append(h.Append(nil), body...))
	if err != nil {
		return err
	}
	c.session = sessionID(c.config.digest, body)
	c.topology = newTopology(c.config, c.session, -1)
	if !c.config.recovery {
		return nil
	}
	if _, body, err = wire.ParseHeader(answer); err != nil {
		return err
	}
	c.uploads[party], err = wire.ParseUpload(body, c.config.degree)
	return err
}

// nextRound goes on to the next round number.
func (c *cheater) nextRound() {
	if c.round > 0 {
		c.uploads = slices.Clone(c.next)
	}
	c.forget()
	c.round++
}

func (c *cheater) header(kind wire.Type) *wire.Header {
	return &wire.Header{Type: kind, Session: c.session, Round: c.round, Sender: wire.Server}
}

// begin tells a party who takes part and what the broadcast is.
func (c *cheater) begin(party int, participants []int, broadcast []byte) error {
	begin := &wire.Begin{Broadcast: broadcastDigest(broadcast), Participants: c.topology.set(participants)}
	near := begin.Participants.Of(c.topology.neighbours(c.round, party))
	if c.config.recovery {
		for _, owner := range near {
			var sealed wire.SealedShare
			if u := c.uploads[owner]; u != nil {
				at, _ := slices.BinarySearch(c.topology.neighbours(c.round, owner), party)
				sealed = u.Shares[at]
			}
			begin.Shares = append(begin.Shares, sealed)
		}
	}
	if _, err := c.parties[party].Receive(begin.Append(c.header(wire.TypeBegin).Append(nil))); err != nil {
		return err
	}
	c.views[party] = &partyView{begin: begin, near: near, context: contextWithout(c.without, c.session, c.round, begin)}
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
	if c.config.recovery {
		masked, err = wire.ParseMasked(body, c.config.Layout.PackedSize(), len(c.views[party].near), c.config.degree)
		if err != nil {
			return err
		}
		c.next[party] = masked.Next
	}
	c.views[party].masked = masked
	return nil
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

// survivors tells a party who is in the sum, and keeps its signature.
func (c *cheater) survivors(party int, list []int) error {
	v := c.views[party]
	m := wire.Survivors{Survivors: c.topology.set(list)}
	for _, owner := range m.Survivors.Of(v.near) {
		m.Shares = append(m.Shares, c.sealedFor(owner, party))
	}
	answer, err := c.parties[party].Receive(m.Append(c.header(wire.TypeSurvivors).Append(nil)))
	if err != nil {
		return err
	}
	_, body, err := wire.ParseHeader(answer)
	if err != nil {
		return err
	}
	v.survivors = m.Survivors
	v.statement = string(survivorsStatement(v.context, m.Survivors))
	c.signed[v.statement] = append(c.signed[v.statement], wire.PartySignature{Party: party, Signature: [64]byte(body)})
	return nil
}

// certificate returns all signatures on what a party has signed, those of the
// colluders included.
func (c *cheater) certificate(party int, colluders []int) (wire.Certificate, error) {
	v := c.views[party]
	list := slices.Clone(c.signed[v.statement])
	for _, i := range colluders {
		signature, err := keyexchange.Sign(c.signers[i], labelSurvivors, []byte(v.statement))
		if err != nil {
			return nil, err
		}
		list = append(list, wire.PartySignature{Party: i, Signature: signature})
	}
	slices.SortFunc(list, func(a, b wire.PartySignature) int { return a.Party - b.Party })
	list = slices.DeleteFunc(list, func(e wire.PartySignature) bool { return !v.survivors.Has(e.Party) })
	c.result.signatory = max(c.result.signatory, len(list))
	return list, nil
}

// reveal sends a party a certificate and keeps the shares that it answers with.
func (c *cheater) reveal(party int, certificate wire.Certificate) error {
	answer, err := c.parties[party].Receive(certificate.Append(c.header(wire.TypeCertificate).Append(nil)))
	if err != nil {
		return err
	}
	_, body, err := wire.ParseHeader(answer)
	if err != nil {
		return err
	}
	m, err := wire.ParseReveal(body, c.config.parties)
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
	inside := insideOf(c.parties[colluder])
	for peer, chain := range inside.chains {
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
	inside := insideOf(c.parties[colluder])
	for k, owner := range inside.open.neighbours {
		if share := inside.open.recovery[k]; share != nil {
			c.learn(keyexchange.RecoveryShare, owner, colluder, *share)
		}
		if v := c.views[owner]; v != nil {
			sealed := c.sealedFor(owner, colluder)
			share := inside.openShare(&sealed, owner, inside.open.channels[k], keyexchange.SelfMaskShare, c.round, v.context)
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
		shares = append(shares, shamir.Share{Index: shareIndex(holder), Value: known[holder]})
	}
	if len(shares) < c.config.threshold {
		return shamir.Secret{}, fmt.Errorf("%w: secret %d of party %d, %d shares of %d", errUnknown, purpose, owner, len(shares), c.config.threshold)
	}
	return shamir.Combine(c.config.threshold, shares[:c.config.threshold])
}

// pair returns what two parties share: from a colluder, or from the recovery
// blob of either.
func (c *cheater) pair(i, j int) (keyexchange.PairSecret, error) {
	if secret, known := c.pairs[pairOf(i, j)]; known {
		return secret, nil
	}
	var last error = errUnknown
	for _, owner := range []int{i, j} {
		if c.uploads[owner] == nil {
			continue
		}
		secret, err := c.rebuild(keyexchange.RecoveryShare, owner)
		if err != nil {
			last = err
			continue
		}
		key := blobKey(secret)
		secrets, err := keyexchange.Open(&key, c.uploads[owner].Blob, blobData(c.session, c.round, owner))
		if err != nil {
			last = err
			continue
		}
		at, _ := slices.BinarySearch(c.topology.neighbours(c.round, owner), i+j-owner)
		return keyexchange.PairSecret(secrets[32*at:]), nil
	}
	return keyexchange.PairSecret{}, last
}

// unmask takes the masks off what the targets submitted and notes the sum: self
// masks that can be rebuilt, and pair masks with parties that are not targets.
// Pair masks among the targets should cancel.
func (c *cheater) unmask(targets []int) *attackResult {
	r := &c.result
	r.of = targets
	sum, err := c.stripped(targets)
	if err != nil {
		r.obstacle = err
		return r
	}
	r.sum = sum.Values()
	return r
}

func (c *cheater) stripped(targets []int) (*masking.Vector, error) {
	sum, err := masking.NewVector(c.config.Layout)
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
		if c.config.recovery && !c.singleMasked {
			secret, err := c.rebuild(keyexchange.SelfMaskShare, i)
			if err != nil {
				return nil, err
			}
			seed := selfMask(secret)
			sum.SubMask(&seed)
		}
		for _, j := range v.near {
			if slices.Contains(targets, j) {
				continue
			}
			secret, err := c.pair(i, j)
			if err != nil {
				return nil, err
			}
			seed := masking.Seed(secret.MaskSeed(v.context))
			sum.MaskPair(&seed, j, i) // what j would have added takes away what i added
		}
	}
	return sum, nil
}

// packedDifference is that of two submissions.
func (c *cheater) packedDifference(a, b []byte) ([][]uint64, error) {
	v, err := masking.ParsePacked(c.config.Layout, a)
	if err != nil {
		return nil, err
	}
	w, err := masking.ParsePacked(c.config.Layout, b)
	if err != nil {
		return nil, err
	}
	if err := v.Sub(w); err != nil {
		return nil, err
	}
	return v.Values(), nil
}

// upTo is the parties 0 to n − 1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// except is a list without some parties.
func except(list []int, out ...int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool { return slices.Contains(out, i) })
}
