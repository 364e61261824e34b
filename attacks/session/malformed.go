package session

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/hushsum/hushsum/attacks"
	"github.com/hushsum/hushsum/attacks/internal/textbook"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

var malformed = compared(attacks.Attack{
	Name:      "Malformed",
	Adversary: anyone,
	About:     "cuts, lengthens and changes messages of every type",
	Defence:   "one encoding per message; nothing changes when one is refused",
}, malformedVariants)

// malformedLayout has bits to fill up.
var malformedLayout = masking.Layout{{Length: 5, Bits: 3}, {Length: 2, Bits: 64}}

// naiveReader reads fields without looking whether they are there, and so panics.
func naiveReader(parties int) func([]byte) error {
	return func(message []byte) error {
		kind, body := wire.Type(message[1]), message[46:]
		seen := byte(binary.BigEndian.Uint64(message[34:42]))
		switch kind {
		case wire.TypeAnnounce, wire.TypeSigned:
			seen ^= body[63]
		case wire.TypeKeys:
			for i := range parties {
				seen ^= body[(parties+7)/8+96*i+95]
			}
		case wire.TypeBegin:
			seen ^= body[32]
		}
		if seen == 0 {
			return protocol.ErrEncoding
		}
		return nil
	}
}

// malform runs a session of three rounds. One party drops out of the second round. Before each
// genuine message to and from two of the parties, malform delivers mutants of that message. A weak
// target gets them until it accepts one.
func malform(t target, recovery *protocol.Recovery, mutate mutation) (*probe, error) {
	const parties, dropped = 5, 4
	inputs := randomInputs(1, malformedLayout, parties)
	signers, config := attackConfig(parties, recovery, 1)
	config.Layout = malformedLayout
	terms, err := textbook.NewTerms(config, 0)
	if err != nil {
		return nil, err
	}
	p := newProbe(terms.Digest)
	p.first = t.without != 0 // so that the session goes on as well as it can
	s, err := t.session(config, signers)
	if err != nil {
		return nil, err
	}
	naive := naiveReader(parties)
	s.Carry = func(from, to int, message []byte) []byte {
		if party := max(from, to); party != 0 && party != dropped {
			return message
		}
		mutants := mutate(message, config)
		if t.lacks(textbook.Strict) {
			undefended := newProbe(terms.Digest)
			for _, mutant := range mutants {
				undefended.deliverOne(naive, mutant)
			}
			p.panics += undefended.panics
		}
		p.deliver(s, to, mutants, true)
		return message
	}
	if err := s.SetUp(); err != nil {
		return p, p.err
	}
	for round := range 3 {
		here, included := slices.Clone(inputs), upTo(parties)
		if round == 1 && recovery != nil {
			here[dropped], included = nil, except(included, dropped)
		}
		sum, err := s.Round(nil, here)
		exact := err == nil && equal(sum, sumOf(malformedLayout, inputs, included))
		p.exact += indicator(exact)
	}
	return p, p.err
}

// malformedVariants have messages of every type, cut, lengthened and changed, to both
// sides. Receivers that take what they can read accept them, and those that read what they
// expect panic; the others refuse them with a documented error and are as they were.
// Types are counted in a session with recovery, which has ten, and one without.
func malformedVariants(uint64) []variant {
	var variants []variant
	for _, mutated := range []struct {
		name   string
		mutate mutation
		lacks  textbook.Defence
		taken  bounds // types, where the defence is lacking
		faults bounds
		want   error // of every refusal, nil for any
	}{{
		name:   "cut",
		mutate: cut,
		lacks:  textbook.Strict,
		taken:  atLeast(3),
		faults: atLeast(1),
	}, {
		name:   "a byte too many",
		mutate: lengthened,
		lacks:  textbook.Strict,
		taken:  exactly(14),
		faults: unmeasured,
	}, {
		name:   "too long for any",
		mutate: oversized,
		lacks:  textbook.Strict,
		// All but Reveal, whose zeros are owners out of order.
		taken:  exactly(13),
		faults: unmeasured,
		want:   protocol.ErrOversized, // before it is read
	}, {
		name:   "a bit of the header",
		mutate: headers,
		lacks:  textbook.Strict,
		taken:  exactly(14),
		faults: unmeasured,
	}, {
		name:   "a bit of a signed key",
		mutate: flippedKeys,
		lacks:  textbook.KeySignatures | textbook.OwnKey,
		taken:  exactly(4),
		faults: unmeasured,
	}, {
		name:   "a bit of a signed list",
		mutate: flippedLists,
		lacks:  textbook.Certificates,
		taken:  exactly(2),
		faults: unmeasured,
	}, {
		name:   "another encoding",
		mutate: encodings,
		lacks:  textbook.Strict,
		taken:  atLeast(2),
		faults: unmeasured,
	}, {
		name:   "nobody in it",
		mutate: empties,
		lacks:  textbook.Participants | textbook.Lists | textbook.Quorum,
		taken:  atLeast(2),
		faults: unmeasured,
	}} {
		variants = append(variants, variant{
			name:  mutated.name,
			lacks: mutated.lacks,
			run: func(t target) (outcome, error) {
				return malformBoth(t, mutated.mutate, mutated.want)
			},
			metrics: []metric{
				{"types of messages accepted", mutated.taken, exactly(0)},
				{faultyRefusals, mutated.faults, exactly(0)},
				{"exact sums in the end, of 6", unmeasured, exactly(6)},
			},
		})
	}
	return variants
}

// malformBoth runs a session with recovery and one without. Refusals with another error
// than want are faults, if it is not nil.
func malformBoth(t target, mutate mutation, want error) (outcome, error) {
	delivered, taken, faults, exact := 0, 0, 0, 0
	for _, recovery := range []*protocol.Recovery{nil, {MinSurvivors: 4}} {
		p, err := malform(t, recovery, mutate)
		if err != nil {
			return outcome{}, err
		}
		delivered += p.delivered
		taken += len(p.taken)
		faults += p.faults()
		exact += p.exact
		for _, err := range p.refusals {
			faults += indicator(want != nil && !errors.Is(err, want))
		}
	}
	return counts(delivered, taken, faults, exact), nil
}
