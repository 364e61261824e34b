package oblivious

import (
	"fmt"
	"io"
	"math/big"

	"github.com/hushsum/hushsum/noise"
)

// Candidates are the two masked terms that one party offers another, for each
// coordinate: η^b = s + (γ − γ̄)^b.
type Candidates [2][]uint64

func (c *Candidates) fits(config *Config) bool {
	for _, v := range c {
		if len(v) != config.Length {
			return false
		}
		for _, x := range v {
			if x&^mask(config.Bits) != 0 {
				return false
			}
		}
	}
	return true
}

func (c *Candidates) clone() Candidates {
	return Candidates{append([]uint64(nil), c[0]...), append([]uint64(nil), c[1]...)}
}

// Published is one party of the thesis's Protocol 1, as published: it offers every other party
// two masked noise terms per coordinate, adds one of every two terms that it is offered, by
// secret bits, and subtracts its masks. It exists to be attacked and NEVER protects a release:
// the package comment lists its faults.
//
// The server that carries the offers is a [PublishedServer]; [RunPublished] carries
// them within one process.
type Published struct {
	config  Config
	party   int
	zeroSum bool
	random  io.Reader

	masks    [][]uint64   // s_ij by j; with the zero-sum form s_ii as well
	terms    []Candidates // unmasked, by j
	own      []uint64
	received []Candidates // by sender
	choices  [][]byte     // by sender, 0 or 1 per coordinate
}

// NewPublished draws a party's noise terms and masks for one round. With zeroSum it is the form of
// the thesis's appendix for misbehaving parties: the masks are additive shares of zero, and the
// party keeps and adds one of them; the masked input is the same, and nothing is detected.
// Randomness comes from random (nil: crypto/rand). It fails with [ErrConfig] (Coins must be zero)
// or [ErrRandom].
func NewPublished(config *Config, party int, zeroSum bool, random io.Reader) (*Published, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	random = noise.Expand(random)
	terms, err := config.Noise.publishedSampler(config, random)
	if err != nil {
		return nil, err
	}
	return newPublished(config, party, zeroSum, random, terms)
}

// publishedSampler is sampler, for a configuration without coins.
func (n Noise) publishedSampler(config *Config, random io.Reader) (filler, error) {
	if config.Coins != 0 {
		return nil, configError("Published takes no Coins")
	}
	return n.sampler(config.Parties, random)
}

func newPublished(
	config *Config, party int, zeroSum bool, random io.Reader, terms filler,
) (*Published, error) {
	if party < 0 || party >= config.Parties {
		return nil, configError("there is no party %d of %d", party, config.Parties)
	}
	p := &Published{config: config.copy(), party: party, zeroSum: zeroSum, random: random}
	n, d := config.Parties, config.Length
	p.masks, p.terms = make([][]uint64, n), make([]Candidates, n)
	p.received, p.choices = make([]Candidates, n), make([][]byte, n)
	var err error
	if p.own, err = drawTerms(terms, d, config.Bits); err != nil {
		return nil, err
	}
	kept := make([]uint64, d)
	for j := range n {
		if j == party {
			continue
		}
		if p.masks[j], err = drawWords(p.random, d, config.Bits); err != nil {
			return nil, err
		}
		for c := range p.terms[j] {
			if p.terms[j][c], err = drawTerms(terms, d, config.Bits); err != nil {
				return nil, err
			}
		}
		for k, s := range p.masks[j] {
			kept[k] = (kept[k] - s) & mask(config.Bits)
		}
	}
	if zeroSum {
		p.masks[party] = kept
	}
	return p, nil
}

// Offer returns the candidates for another party, the same ones in every call. It fails with
// [ErrSender].
func (p *Published) Offer(to int) (Candidates, error) {
	if to < 0 || to >= p.config.Parties || to == p.party {
		return Candidates{}, ErrSender
	}
	offer := p.terms[to].clone()
	for _, v := range offer {
		for k, s := range p.masks[to] {
			v[k] = (v[k] + s) & mask(p.config.Bits)
		}
	}
	return offer, nil
}

// Receive takes the candidates that another party offered, as the server passed
// them on. It fails with [ErrSender], [ErrDuplicate] or [ErrLength].
func (p *Published) Receive(from int, offer Candidates) error {
	switch {
	case from < 0 || from >= p.config.Parties || from == p.party:
		return ErrSender
	case p.received[from][0] != nil:
		return ErrDuplicate
	case !offer.fits(&p.config):
		return ErrLength
	}
	p.received[from] = offer.clone()
	return nil
}

// Choose draws fresh secret bits. Calling it again for a later round, on the same candidates, is
// the thesis's reuse of the draws of its Setup, which averages the noise away; make a new
// Published for each round to have fresh terms. It fails with [ErrRandom].
func (p *Published) Choose() error {
	choices := make([][]byte, p.config.Parties)
	for j := range choices {
		if j == p.party {
			continue
		}
		b, err := draw(p.random, p.config.Length)
		if err != nil {
			return err
		}
		for k := range b {
			b[k] &= 1
		}
		choices[j] = b
	}
	p.choices = choices
	return nil
}

// Correction returns what the party adds to its input, Length values of the ring.
// It fails with [ErrMissing] before all offers are received, and with [ErrPhase]
// before [Published.Choose].
func (p *Published) Correction() ([]uint64, error) {
	out := append([]uint64(nil), p.own...)
	for j := range p.config.Parties {
		if j == p.party {
			continue
		}
		if p.received[j][0] == nil {
			return nil, fmt.Errorf("%w: of party %d", ErrMissing, j)
		}
		if p.choices[j] == nil {
			return nil, ErrPhase
		}
		for k, c := range p.choices[j] {
			out[k] += p.received[j][c][k]
			if !p.zeroSum {
				out[k] -= p.masks[j][k]
			}
		}
	}
	for k := range out {
		if p.zeroSum {
			out[k] += p.masks[p.party][k]
		}
		out[k] &= mask(p.config.Bits)
	}
	return out, nil
}

// PublishedView holds all that a party knows, by the index of the other party and, within that,
// by coordinate: what colluders pool. It shares memory with the party.
type PublishedView struct {
	Own      []uint64     // its own noise term
	Masks    [][]uint64   // s_ij
	Terms    []Candidates // the unmasked terms that it offered
	Received []Candidates // what it was offered: the two differ by the terms' difference
	Choices  [][]byte     // its bits; nil before Choose
}

// View returns what the party knows.
func (p *Published) View() PublishedView {
	return PublishedView{p.own, p.masks, p.terms, p.received, p.choices}
}

// Claim fails with [ErrNoBound]: a receiver that can see both candidates knows their
// difference, and senders that pool their masks with the receivers' bits leave of
// the party's terms no more than a mixture with known components.
func (p *Published) Claim(*big.Rat) (Claim, error) {
	return Claim{}, fmt.Errorf("%w: the published protocol shows receivers the difference of the "+
		"candidates; use Transfer", ErrNoBound)
}

// PublishedServer carries the offers: it swaps the two candidates of an offer or leaves them in
// place, and adds one random number to both.
type PublishedServer struct {
	config     Config
	random     io.Reader
	correction []uint64
	swaps      [][][]byte
}

// NewPublishedServer makes the server. Randomness comes from random (nil:
// crypto/rand). It fails with [ErrConfig].
func NewPublishedServer(config *Config, random io.Reader) (*PublishedServer, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &PublishedServer{
		config:     config.copy(),
		random:     noise.Expand(random),
		correction: make([]uint64, config.Length),
	}
	s.swaps = make([][][]byte, config.Parties)
	for i := range s.swaps {
		s.swaps[i] = make([][]byte, config.Parties)
	}
	return s, nil
}

// Relay permutes and randomises an offer on its way. The number that it adds must be the same for
// both candidates, or it could not be subtracted without knowing the bit; so their difference
// goes through. It fails with [ErrSender], [ErrDuplicate], [ErrLength] or [ErrRandom].
func (s *PublishedServer) Relay(from, to int, offer Candidates) (Candidates, error) {
	n := s.config.Parties
	switch {
	case from < 0 || from >= n || to < 0 || to >= n || from == to:
		return Candidates{}, ErrSender
	case s.swaps[from][to] != nil:
		return Candidates{}, ErrDuplicate
	case !offer.fits(&s.config):
		return Candidates{}, ErrLength
	}
	swaps, err := draw(s.random, s.config.Length)
	if err != nil {
		return Candidates{}, err
	}
	randomisers, err := drawWords(s.random, s.config.Length, s.config.Bits)
	if err != nil {
		return Candidates{}, err
	}
	out := offer.clone()
	for k, r := range randomisers {
		swaps[k] &= 1
		c := swaps[k]
		out[0][k] = (offer[c][k] + r) & mask(s.config.Bits)
		out[1][k] = (offer[1-c][k] + r) & mask(s.config.Bits)
		s.correction[k] = (s.correction[k] - r) & mask(s.config.Bits)
	}
	s.swaps[from][to] = swaps
	return out, nil
}

// Correction returns what the server adds to the sum to remove its own random numbers, Length
// values of the ring.
func (s *PublishedServer) Correction() []uint64 { return append([]uint64(nil), s.correction...) }

// Swaps returns the permutations, by sender, receiver and coordinate: 1 where the
// candidates changed places. It shares memory with the server.
func (s *PublishedServer) Swaps() [][][]byte { return s.swaps }

// Exchange relays the offers of all parties, by index, to each other and has them
// choose. It fails as [Published.Offer], [PublishedServer.Relay], [Published.Receive]
// and [Published.Choose] do.
func (s *PublishedServer) Exchange(parties []*Published) error {
	for i, from := range parties {
		for j, to := range parties {
			if i == j {
				continue
			}
			offer, err := from.Offer(j)
			if err == nil {
				offer, err = s.Relay(i, j, offer)
			}
			if err == nil {
				err = to.Receive(i, offer)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, p := range parties {
		if err := p.Choose(); err != nil {
			return err
		}
	}
	return nil
}

// RunPublished makes a server and all parties, carries every offer and has the
// parties choose. It fails as the constructors do.
func RunPublished(
	config *Config, zeroSum bool, random io.Reader,
) ([]*Published, *PublishedServer, error) {
	server, err := NewPublishedServer(config, random)
	if err != nil {
		return nil, nil, err
	}
	// One source for all: preparing it takes a while.
	random = noise.Expand(random)
	terms, err := config.Noise.publishedSampler(config, random)
	if err != nil {
		return nil, nil, err
	}
	parties := make([]*Published, config.Parties)
	for i := range parties {
		if parties[i], err = newPublished(config, i, zeroSum, random, terms); err != nil {
			return nil, nil, err
		}
	}
	if err := server.Exchange(parties); err != nil {
		return nil, nil, err
	}
	return parties, server, nil
}
