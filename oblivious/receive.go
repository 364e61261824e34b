package oblivious

import "github.com/hushsum/hushsum/protocol"

// Receive takes a message of a peer, and returns the answer if there is one. A
// message that is refused changes nothing, and the error says why; only [ErrCheck]
// ends the session. Errors that concern a peer are a [PeerError].
func (t *Transfer) Receive(message []byte) ([]protocol.Envelope, error) {
	if t.dead != nil {
		return nil, t.dead
	}
	h, sealed, err := parseHeader(message)
	if err != nil {
		return nil, err
	}
	if h.to != uint32(t.party) || h.from >= uint32(len(t.peers)) || h.from == h.to {
		return nil, ErrSender
	}
	from := int(h.from)
	answer, err := t.receive(h, from, sealed)
	if err != nil {
		err = &PeerError{from, err}
		return nil, err
	}
	return answer, nil
}

func (t *Transfer) receive(h header, from int, sealed []byte) ([]protocol.Envelope, error) {
	p := t.peers[from]
	switch {
	case t.stage == stageNew:
		return nil, ErrPhase
	case h.kind == typeSetup && p.ready, h.kind == typeChoice && h.round == t.round && p.answered,
		h.kind == typeOffer && h.round == t.round && p.taken:
		return nil, ErrDuplicate
	case h.kind != typeSetup && (t.stage != stageRound || h.round != t.round):
		return nil, ErrRound
	}
	body, err := t.open(p, h, sealed)
	if err != nil {
		return nil, err
	}
	defer clear(body)
	switch h.kind {
	case typeSetup:
		return nil, t.receiveSetup(p, from, body)
	case typeChoice:
		return t.receiveChoice(p, from, body)
	}
	return nil, t.receiveOffer(p, body)
}

func (t *Transfer) receiveSetup(p *peer, from int, body []byte) error {
	point, pairs, err := parseSetup(body)
	if err != nil {
		return err
	}
	chosen, err := p.base.keys(t.context(0, t.party, from), point)
	if err != nil {
		return err
	}
	both, err := p.other.keys(t.context(0, from, t.party), pairs)
	if err != nil {
		return err
	}
	p.offers = extSender{p.base.choices, chosen}
	p.takes.seeds = both
	p.eraseSetup()
	p.ready = true
	if len(t.Missing()) == 0 {
		t.stage, t.at = stageIdle, 1
		for _, p := range t.peers {
			if p != nil {
				p.advance()
			}
		}
	}
	return nil
}

// receiveChoice answers a peer's choices with two masked terms for each.
func (t *Transfer) receiveChoice(p *peer, from int, body []byte) ([]protocol.Envelope, error) {
	count, bits := t.config.transfers(), t.config.Bits
	zero, one, err := p.offers.pads(t.context(t.round, t.party, from), count, body)
	if err != nil {
		t.Erase()
		t.dead = &PeerError{from, err}
		return nil, err
	}
	defer clear(zero)
	defer clear(one)
	terms, err := t.candidates(count)
	if err != nil {
		return nil, err
	}
	masks, err := drawWords(t.random, count, bits)
	if err != nil {
		return nil, err
	}
	defer clear(masks)
	for k, s := range masks {
		terms[0][k] = (terms[0][k] + s + zero[k]) & mask(bits)
		terms[1][k] = (terms[1][k] + s + one[k]) & mask(bits)
	}
	message, err := t.seal(p, header{typeOffer, t.round, uint32(t.party), uint32(from)},
		t.config.packOffer(terms))
	if err != nil {
		return nil, err
	}
	for k, s := range masks {
		t.add(k, -s)
	}
	p.answered = true
	return []protocol.Envelope{{To: from, Message: message}}, nil
}

// candidates draws both terms of each transfer.
func (t *Transfer) candidates(count int) (terms [2][]uint64, err error) {
	if t.terms == nil {
		if terms[0], err = drawWords(t.random, count, 1); err != nil {
			return [2][]uint64{}, err
		}
		terms[1] = make([]uint64, count)
		for k, coin := range terms[0] {
			terms[1][k] = 1 - coin
		}
		return terms, nil
	}
	for c := range terms {
		if terms[c], err = drawTerms(t.terms, count, t.config.Bits); err != nil {
			return [2][]uint64{}, err
		}
	}
	return terms, nil
}

// receiveOffer takes the chosen terms.
func (t *Transfer) receiveOffer(p *peer, body []byte) error {
	terms, err := t.config.parseOffer(body)
	if err != nil {
		return err
	}
	for k := range terms[0] {
		chosen := uint64(p.choices[k>>3]>>(k&7)) & 1
		term := terms[0][k] ^ (terms[0][k]^terms[1][k])&-chosen
		t.add(k, term-p.pads[k])
	}
	p.taken = true
	clear(p.choices)
	clear(p.pads)
	return nil
}

// add adds to the coordinate that a transfer belongs to.
func (t *Transfer) add(transfer int, x uint64) {
	k := transfer / max(1, t.config.Coins)
	t.sum[k] = (t.sum[k] + x) & mask(t.config.Bits)
}
