package protocol

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/shamir"
)

// This file has what a client does so that a round survives drop-outs
// (Bonawitz 2017 §4, with one recovery key a round in the place of its
// Diffie-Hellman key; SPEC.md has the argument).

// uploadAfter returns the message with this party's recovery material for its
// next round after the given one, for the given holders, or nil without recovery.
// Material is made once a round: asked again, it sends the same. It fails with
// [ErrReplay] if that is for other holders.
func (c *Client) uploadAfter(round uint64, holders wire.Set) ([]byte, error) {
	if !c.config.recovery {
		return nil, nil
	}
	if c.upload == nil || c.upload.Round <= round {
		upload, err := c.newUpload(round, holders)
		if err != nil {
			return nil, err
		}
		c.upload, c.holders = upload, holders
	} else if !c.holders.Equal(holders) {
		return nil, fmt.Errorf("%w: material for round %d was made for other holders", ErrReplay,
			c.upload.Round)
	}
	h := wire.Header{Type: wire.TypeUpload, Session: c.session, Round: round, Sender: uint32(c.self)}
	return c.upload.Append(h.Append(nil)), nil
}

// newUpload makes recovery material for the next round after the given one, for
// those neighbours that are holders: a fresh recovery key, the pair secrets of that
// round sealed under it, and its shares, sealed for the neighbours under that round's
// channel keys.
func (c *Client) newUpload(after uint64, holders wire.Set) (*wire.Upload, error) {
	round, err := c.topology.next(c.self, after)
	if err != nil {
		return nil, err
	}
	neighbours := holders.Of(c.topology.neighbours(round, c.self))
	secret, err := shamir.GenerateSecret(c.random)
	if err != nil {
		return nil, err
	}
	defer clear(secret[:])
	upload := &wire.Upload{
		Round:      round,
		Commitment: commitment(keyexchange.RecoveryShare, c.session, round, c.self, secret),
	}
	secrets := make([]byte, 0, 32*len(neighbours))
	channels := make([]*keyexchange.Channels, len(neighbours))
	defer func() {
		clear(secrets)
		for _, ch := range channels {
			if ch != nil {
				ch.Erase()
			}
		}
	}()
	for i, peer := range neighbours {
		ahead, pair, err := c.chains[peer].Ahead(round)
		if err != nil {
			return nil, err
		}
		channels[i] = ahead
		secrets = append(secrets, pair[:]...)
		clear(pair[:])
	}
	// All that is sealed here is sealed under different keys: one nonce will do.
	nonce, err := keyexchange.GenerateNonce(c.random)
	if err != nil {
		return nil, err
	}
	key := blobKey(secret)
	defer clear(key[:])
	upload.Blob, err = keyexchange.Seal(&nonce, &key, secrets, blobData(c.session, round, c.self))
	if err != nil {
		return nil, err
	}
	p := sealing{purpose: keyexchange.RecoveryShare, round: round, binding: holdersDigest(holders)}
	upload.Shares, err = c.sealShares(p, c.config.terms(holders.Len()).threshold, &nonce, secret,
		neighbours, channels)
	if err != nil {
		return nil, err
	}
	return upload, nil
}

// sealing says what shares are sealed for.
type sealing struct {
	purpose keyexchange.Purpose
	round   uint64
	binding [32]byte // see shareData
}

// sealShares splits a secret among neighbours and seals each share for its
// holder.
func (c *Client) sealShares(
	s sealing, threshold int, nonce *keyexchange.Nonce, secret shamir.Secret, neighbours []int,
	channels []*keyexchange.Channels,
) ([]wire.SealedShare, error) {
	indices := make([]uint32, len(neighbours))
	for i, peer := range neighbours {
		indices[i] = shareIndex(peer)
	}
	shares, err := shamir.Split(c.random, secret, threshold, indices)
	if err != nil {
		return nil, err
	}
	sealed := make([]wire.SealedShare, len(shares))
	for i, peer := range neighbours {
		data := shareData(s.purpose, c.session, s.round, c.self, peer, s.binding)
		box, err := keyexchange.Seal(nonce, channels[i].Key(s.purpose, c.self, peer), shares[i].Value[:],
			data)
		clear(shares[i].Value[:])
		if err != nil {
			return nil, err
		}
		sealed[i] = wire.SealedShare(box)
	}
	return sealed, nil
}

// openShare opens a share that peer sealed for this party; nil if it does not
// open or is not a share.
func (c *Client) openShare(
	s sealing, sealed *wire.SealedShare, peer int, channels *keyexchange.Channels,
) *[32]byte {
	data := shareData(s.purpose, c.session, s.round, peer, c.self, s.binding)
	value, err := keyexchange.Open(channels.Key(s.purpose, peer, c.self), sealed[:], data)
	if err != nil {
		return nil
	}
	if _, err := shamir.ParseSecret(value); err != nil {
		return nil
	}
	return (*[32]byte)(value)
}

// openRecoveryShares derives the channels of the round and opens the shares of
// the neighbours' recovery keys. One that does not open is left out: it is
// missed only if its owner drops out.
func (c *Client) openRecoveryShares(open *clientRound, round uint64, sealed []wire.SealedShare) {
	open.channels = make([]*keyexchange.Channels, len(open.neighbours))
	open.recovery = make([]*[32]byte, len(open.neighbours))
	p := sealing{
		purpose: keyexchange.RecoveryShare,
		round:   round,
		binding: holdersDigest(open.holders),
	}
	for i, peer := range open.neighbours {
		open.channels[i] = c.chains[peer].Channels()
		open.recovery[i] = c.openShare(p, &sealed[i], peer, open.channels[i])
	}
}

// prepareRecovery draws the secret of this party's self mask for the round,
// seals its shares, and makes the upload for the next round.
func (c *Client) prepareRecovery(masked *wire.Masked, self *shamir.Secret) error {
	if _, err := c.topology.next(c.self, c.last); err != nil {
		return err // before anything is drawn
	}
	secret, err := shamir.GenerateSecret(c.random)
	if err != nil {
		return err
	}
	masked.Commitment = commitment(keyexchange.SelfMaskShare, c.session, c.last, c.self, secret)
	nonce, err := keyexchange.GenerateNonce(c.random)
	if err != nil {
		return err
	}
	masked.Nonce = nonce
	masked.Shares, err = c.sealShares(c.selfMaskSealing(), c.open.terms.threshold, &nonce, secret,
		c.open.neighbours, c.open.channels)
	if err == nil {
		masked.Next, err = c.newUpload(c.last, c.open.holders)
	}
	if err != nil {
		clear(secret[:])
		return err
	}
	*self = secret
	return nil
}

// selfMaskSealing names the purpose for which shares of self masks of the open round are sealed.
func (c *Client) selfMaskSealing() sealing {
	return sealing{purpose: keyexchange.SelfMaskShare, round: c.last, binding: c.open.context}
}

// receiveInvite gives up rounds that are over and answers with the recovery
// material for this party's next one, for the holders that the server names.
func (c *Client) receiveInvite(h wire.Header, body []byte) ([]byte, error) {
	holders, err := wire.ParseSet(body, c.config.parties)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Round < c.last:
		return nil, fmt.Errorf("%w: round %d after round %d", ErrStale, h.Round, c.last)
	case h.Round-c.last > c.config.maxSkip:
		return nil, fmt.Errorf("%w: round %d after round %d, at most %d may be missed", ErrSkip, h.Round,
			c.last, c.config.maxSkip)
	}
	if err := c.checkHolders(holders); err != nil {
		return nil, err
	}
	answer, err := c.uploadAfter(h.Round, holders)
	if err != nil {
		return nil, err
	}
	if err := c.moveChains(h.Round + 1); err != nil {
		return nil, err
	}
	c.closeRound()
	c.last = h.Round
	c.topology.forget(h.Round)
	return answer, nil
}

// checkHolders refuses holders among which no round could keep the session's
// promises. Each member of a round has its own numbers by how many they are.
func (c *Client) checkHolders(holders wire.Set) error {
	switch n := holders.Len(); {
	case !holders.Has(c.self):
		return partyError(c.config.Roster, c.self, ErrParticipants)
	case !holders.Within(c.topology.members):
		return fmt.Errorf("%w: a holder is not in the session", ErrParticipants)
	case !c.config.gathers() && !holders.Equal(c.topology.members):
		return fmt.Errorf("%w: in a session with a schedule or a sparse graph all members are holders",
			ErrParticipants)
	case n < c.config.minMembers:
		return fmt.Errorf("%w: %d holders, the session needs %d", ErrTooFew, n, c.config.minMembers)
	}
	return nil
}

// receiveSurvivors signs who is in the sum, once a round.
func (c *Client) receiveSurvivors(h wire.Header, body []byte) ([]byte, error) {
	if err := c.checkRound(h, phaseSubmitted); err != nil {
		return nil, err
	}
	m, err := wire.ParseSurvivors(body, c.config.parties, func(survivors wire.Set) int {
		return len(survivors.Of(c.open.neighbours))
	})
	if err != nil {
		return nil, err
	}
	switch n := m.Survivors.Len(); {
	case !m.Survivors.Has(c.self):
		return nil, partyError(c.config.Roster, c.self, ErrSurvivors)
	case !m.Survivors.Within(c.open.participants):
		return nil, fmt.Errorf("%w: a party did not take part", ErrSurvivors)
	case n < c.open.terms.minSurvivors:
		return nil, fmt.Errorf("%w: %d survivors, the session needs %d", ErrTooFew, n,
			c.open.terms.minSurvivors)
	}
	signature, err := keyexchange.Sign(c.identity, labels.Survivors,
		survivorsStatement(c.open.context, m.Survivors))
	if err != nil {
		return nil, err
	}
	c.open.survivors, c.open.sealed, c.open.phase = m.Survivors, m.Shares, phaseSigned
	answer := wire.Header{
		Type:    wire.TypeSigned,
		Session: c.session,
		Round:   c.last,
		Sender:  uint32(c.self),
	}
	return append(answer.Append(nil), signature[:]...), nil
}

// survivorsStatement returns the bytes that a survivor signs. The context has the session, the
// round, the participants and the broadcast in it.
func survivorsStatement(context [32]byte, survivors wire.Set) []byte {
	return append(context[:], survivors.Bytes()...)
}

// receiveCertificate reveals, if enough parties have signed that they see the
// same survivors: of every survivor the share of its self mask, of every other
// participant that of its recovery key, and never both.
func (c *Client) receiveCertificate(h wire.Header, body []byte) ([]byte, error) {
	if err := c.checkRound(h, phaseSigned); err != nil {
		return nil, err
	}
	certificate, err := wire.ParseCertificate(body, c.config.parties)
	if err != nil {
		return nil, err
	}
	signers := c.open.survivors
	if c.config.sparse {
		signers = c.topology.set(c.open.survivors.Of(c.open.neighbours))
	}
	if quorum := c.open.terms.quorum; len(certificate) < quorum {
		return nil, fmt.Errorf("%w: %d signatures, the session needs %d", ErrCertificate,
			len(certificate), quorum)
	}
	statement := survivorsStatement(c.open.context, c.open.survivors)
	by := make([]int, len(certificate))
	for i := range certificate {
		by[i] = certificate[i].Party
	}
	if err := c.eachPeer(by, func(i int) error {
		if !signers.Has(by[i]) {
			return ErrCertificate
		}
		return keyexchange.Verify(c.config.Roster.Key(by[i]), labels.Survivors, statement,
			&certificate[i].Signature)
	}); err != nil {
		return nil, err
	}
	var reveal wire.Reveal
	sealed := c.open.sealed
	for i, peer := range c.open.neighbours {
		share := c.open.recovery[i]
		if c.open.survivors.Has(peer) {
			share = c.openShare(c.selfMaskSealing(), &sealed[0], peer, c.open.channels[i])
			sealed = sealed[1:]
		}
		if share != nil {
			reveal = append(reveal, wire.OwnedShare{Owner: peer, Share: *share})
		}
	}
	c.closeRound()
	answer := wire.Header{
		Type:    wire.TypeReveal,
		Session: c.session,
		Round:   c.last,
		Sender:  uint32(c.self),
	}
	return reveal.Append(answer.Append(nil)), nil
}

// checkRound refuses a message that is not for the present round, or not due in
// it.
func (c *Client) checkRound(h wire.Header, want phase) error {
	switch {
	case h.Round < c.last:
		return fmt.Errorf("%w: round %d after round %d", ErrStale, h.Round, c.last)
	case h.Round > c.last, c.open == nil, c.open.phase < want:
		return fmt.Errorf("%w: %v of round %d", ErrPhase, h.Type, h.Round)
	case c.open.phase > want:
		return fmt.Errorf("%w: %v of round %d", ErrReplay, h.Type, h.Round)
	}
	return nil
}
