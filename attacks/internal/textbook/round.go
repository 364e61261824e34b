package textbook

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

func (c *Client) receiveBegin(h wire.Header, body []byte) ([]byte, error) {
	if c.without.has(Current) {
		h.Round = c.Last + 1
	}
	switch {
	case c.without.has(SingleUse) && h.Round <= c.Last:
	case h.Round == c.Last && c.Last != 0:
		return nil, protocol.ErrReplay
	case h.Round <= c.Last:
		return nil, protocol.ErrStale
	case h.Round-c.Last-1 > c.Terms.MaxSkip && !c.without.has(SkipLimit):
		return nil, protocol.ErrSkip
	}
	if c.without.has(Strict) {
		body = fit(body, max(32, len(body)))
	} else if len(body) < 32 {
		return nil, protocol.ErrTruncated
	}
	r := &Exchange{Broadcast: [32]byte(body)}
	var rest []byte
	var err error
	if r.Participants, rest, err = readSet(c.without, body[32:], c.Terms.Parties); err != nil {
		return nil, err
	}
	r.Near = r.Participants.Of(c.Terms.Others(c.Self))
	boxes := 0
	if c.Terms.Recovery {
		boxes = len(r.Near)
	}
	shares, err := readShares(c.without, rest, boxes)
	if err != nil {
		return nil, err
	}
	if err := c.checkParticipants(r); err != nil {
		return nil, err
	}
	if c.Terms.Recovery && c.Upload.Round != h.Round && !c.without.has(SingleUse) {
		return nil, fmt.Errorf("%w: round %d without this party's material",
			protocol.ErrParticipants, h.Round)
	}
	r.Context = Context(c.without, c.Session, h.Round, r.Broadcast, c.Terms.Members, r.Participants)
	if err := c.moveChains(h.Round); err != nil {
		return nil, err
	}
	c.Last, c.Open = h.Round, r
	for i := range shares {
		channels, _, err := c.keysOf(r.Near[i], c.Last)
		if err != nil {
			return nil, err
		}
		share := c.OpenShare(shares[i], r.Near[i], channels, keyexchange.RecoveryShare,
			HoldersDigest(c.Terms.Members))
		r.Channels = append(r.Channels, channels)
		r.Recovery = append(r.Recovery, share)
	}
	return nil, nil
}

func (c *Client) checkParticipants(r *Exchange) error {
	switch n := r.Participants.Len(); {
	case c.without.has(Participants):
	case !r.Participants.Has(c.Self), !c.Terms.Recovery && n < c.Terms.Members.Len(),
		!r.Participants.Within(c.Terms.Members):
		return protocol.ErrParticipants
	case n < c.Terms.MinSurvivors, len(r.Near) < c.Terms.Threshold:
		return protocol.ErrTooFew
	}
	return nil
}

func (c *Client) receiveInvite(h wire.Header, body []byte) ([]byte, error) {
	holders, rest, err := readSet(c.without, body, c.Terms.Parties)
	if err == nil {
		_, err = sized(c.without, rest, 0)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case c.without.has(Current):
		h.Round = c.Last
	case h.Round < c.Last:
		return nil, protocol.ErrStale
	case h.Round-c.Last > c.Terms.MaxSkip && !c.without.has(SkipLimit):
		return nil, protocol.ErrSkip
	}
	if !holders.Equal(c.Terms.Members) && !c.without.has(Participants) { // it knows no others
		return nil, protocol.ErrParticipants
	}
	answer, err := c.uploadAfter(h.Round)
	if err != nil {
		return nil, err
	}
	if err := c.moveChains(h.Round + 1); err != nil {
		return nil, err
	}
	c.Last, c.Open = h.Round, nil
	return answer, nil
}

// checkRound refuses what is not of the present round or not due in it.
func (c *Client) checkRound(h wire.Header, want Phase) error {
	current := h.Round == c.Last || c.without.has(Current)
	switch {
	case !current && h.Round < c.Last:
		return protocol.ErrStale
	case !current, c.Open == nil:
		return protocol.ErrPhase
	case c.without.has(Ordered):
		return nil
	case c.Open.Phase < want:
		return protocol.ErrPhase
	case c.Open.Phase > want:
		return protocol.ErrReplay
	}
	return nil
}

func (c *Client) receiveSurvivors(h wire.Header, body []byte) ([]byte, error) {
	if err := c.checkRound(h, Submitted); err != nil {
		return nil, err
	}
	r := c.Open
	survivors, rest, err := readSet(c.without, body, c.Terms.Parties)
	if err != nil {
		return nil, err
	}
	sealed, err := readShares(c.without, rest, len(survivors.Of(r.Near)))
	if err != nil {
		return nil, err
	}
	switch {
	case c.without.has(Lists):
	case !survivors.Has(c.Self), !survivors.Within(r.Participants):
		return nil, protocol.ErrSurvivors
	case survivors.Len() < c.Terms.MinSurvivors:
		return nil, protocol.ErrTooFew
	}
	signature, err := keyexchange.Sign(c.identity, labels.Survivors, Statement(r.Context, survivors))
	if err != nil {
		return nil, err
	}
	r.Survivors, r.Sealed, r.Phase = survivors, sealed, Signed
	return append(c.header(wire.TypeSigned, c.Session, c.Last), signature[:]...), nil
}

func (c *Client) receiveCertificate(h wire.Header, body []byte) ([]byte, error) {
	if err := c.checkRound(h, Signed); err != nil {
		return nil, err
	}
	r := c.Open
	body = readList(c.without, body, 68, c.Terms.Parties)
	certificate, err := wire.ParseCertificate(body, c.Terms.Parties)
	if err != nil {
		return nil, err
	}
	if err := c.checkCertificate(r, certificate); err != nil {
		return nil, err
	}
	var reveal wire.Reveal
	sealed := r.Sealed
	for i, owner := range r.Near {
		share := r.Recovery[i]
		if r.Survivors.Has(owner) {
			share = c.OpenShare(
				sealed[0], owner, r.Channels[i], keyexchange.SelfMaskShare, r.Context)
			sealed = sealed[1:]
		}
		if share != nil {
			reveal = append(reveal, wire.OwnedShare{Owner: owner, Share: *share})
		}
	}
	r.Phase = Over
	if !c.without.has(RoundErased) {
		c.Open = nil
	}
	return reveal.Append(c.header(wire.TypeReveal, c.Session, c.Last)), nil
}

// checkCertificate verifies signatures on the survivors that this party has signed.
func (c *Client) checkCertificate(r *Exchange, certificate wire.Certificate) error {
	if len(certificate) < c.Terms.Quorum {
		return protocol.ErrCertificate
	}
	if c.without.has(Certificates) {
		return nil
	}
	statement := Statement(r.Context, r.Survivors)
	for i := range certificate {
		signer := certificate[i].Party
		if !r.Survivors.Has(signer) {
			return fmt.Errorf("%w: party %d", protocol.ErrCertificate, signer)
		}
		key := c.Terms.Roster.Key(signer)
		err := keyexchange.Verify(key, labels.Survivors, statement, &certificate[i].Signature)
		if err != nil {
			return fmt.Errorf("party %d: %w", signer, err)
		}
	}
	return nil
}

// Snapshot describes all that a message could change.
func (c *Client) Snapshot() string {
	b := fmt.Appendf(slices.Clone(c.Session[:]), "%d", c.Last)
	for _, peer := range slices.Sorted(maps.Keys(c.Chains)) {
		b, _ = c.Chains[peer].AppendBinary(fmt.Append(b, peer)) // never fails
	}
	if c.Upload != nil {
		b = c.Upload.Append(b)
	}
	if r := c.Open; r != nil {
		b = fmt.Appendf(b, "%d %x %x %x %v %x", r.Phase, r.Broadcast, r.Participants.Bytes(),
			r.Context, r.Near, r.Survivors.Bytes())
		for i := range r.Sealed {
			b = append(b, r.Sealed[i][:]...)
		}
		for i := range r.Channels {
			b, _ = r.Channels[i].AppendBinary(b)
			if r.Recovery[i] != nil {
				b = append(b, r.Recovery[i][:]...)
			}
		}
	}
	return string(b)
}
