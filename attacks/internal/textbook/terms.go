package textbook

import (
	"fmt"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Terms are the numbers of a session (§3) with the defaults filled in.
type Terms struct {
	Roster       *keyexchange.Roster
	Layout       masking.Layout
	Parties      int // n
	MaxSkip      uint64
	Recovery     bool
	Colluders    int // c
	Threshold    int // t
	Quorum       int // q
	MinSurvivors int // m
	Digest       [32]byte
}

// NewTerms reads a configuration; without [ValidConfig] it takes what it gets. It
// fails with [protocol.ErrConfig].
func NewTerms(config *protocol.Config, without Defence) (*Terms, error) {
	t := &Terms{Roster: config.Roster, Layout: config.Layout, Parties: config.Roster.Len(), MaxSkip: config.MaxSkip}
	n := t.Parties
	if t.MaxSkip == 0 {
		t.MaxSkip = 1000
	}
	t.MinSurvivors = n
	if config.PerRound != 0 && config.PerRound != n {
		return nil, fmt.Errorf("%w: textbook has all parties in every round", protocol.ErrConfig)
	}
	recovery := []byte{0}
	if r := config.Recovery; r != nil {
		h := n - 1
		if r.Degree != 0 && r.Degree != h {
			return nil, fmt.Errorf("%w: textbook has complete graphs only", protocol.ErrConfig)
		}
		curious := r.Adversary == protocol.CuriousServer
		t.Recovery, t.Colluders, t.Threshold, t.MinSurvivors = true, r.Colluders, r.Threshold, r.MinSurvivors
		if t.Threshold == 0 {
			t.Threshold = 2*h/3 + 1
			if curious {
				t.Threshold = h/2 + 1
			}
		}
		t.Quorum = t.Threshold
		if !curious {
			t.Quorum = (n+t.Colluders)/2 + 1
		}
		least := max(t.Threshold+1, t.Quorum)
		if t.MinSurvivors == 0 {
			t.MinSurvivors = least
		}
		sound := 2*t.Threshold > h+t.Colluders
		if curious {
			sound = t.Threshold > t.Colluders
		}
		sound = sound && t.Colluders >= 0 && t.Threshold <= h && least <= t.MinSurvivors && t.MinSurvivors <= n
		if !sound && !without.has(ValidConfig) {
			return nil, fmt.Errorf("%w: t = %d, c = %d, q = %d, m = %d of %d parties", protocol.ErrConfig,
				t.Threshold, t.Colluders, t.Quorum, t.MinSurvivors, n)
		}
		recovery = []byte{1 + byte(r.Adversary)}
		for _, x := range []int{t.Colluders, t.Threshold, t.Quorum, t.MinSurvivors, h} {
			recovery = append(recovery, u32(x)...)
		}
	}
	layout := u32(len(t.Layout))
	for _, s := range t.Layout {
		layout = append(append(layout, u32(s.Length)...), byte(s.Bits))
	}
	roster := t.Roster.Digest()
	t.Digest = hash("hushsum/1 config", []byte{byte(len(config.Label))}, []byte(config.Label), roster[:],
		u64(t.MaxSkip), u32(n), config.Seed[:], layout, recovery)
	// What is lacking from here on is lacking in secret.
	if without.has(MajorityQuorum) {
		t.Quorum = t.Threshold
	}
	if without.has(Quorum) {
		t.Quorum = 0
	}
	return t, nil
}

// Others are the neighbours of a party: all but itself, in ascending order.
func (t *Terms) Others(party int) []int {
	var out []int
	for i := range t.Parties {
		if i != party {
			out = append(out, i)
		}
	}
	return out
}

// maxMessage is the length of the longest message (§12).
func (t *Terms) maxMessage() int {
	n, h, packed := t.Parties, t.Parties-1, t.Layout.PackedSize()
	body := max(96*n, 32+(n+7)/8+72*h, 68*n, packed)
	if t.Recovery {
		body = max(body, packed+136+128*h)
	}
	return wire.HeaderSize + body
}

// fit cuts a body to n bytes or fills it up with zeros, as a reader would that
// never looks how much it got.
func fit(body []byte, n int) []byte {
	out := make([]byte, n)
	copy(out, body)
	return out
}

// sized returns a body of exactly n bytes, or an error; without [Strict] it makes
// it so.
func sized(without Defence, body []byte, n int) ([]byte, error) {
	if without.has(Strict) {
		return fit(body, n), nil
	}
	return body, wire.Exactly(body, n)
}

// readHeader takes a message apart; without [Strict] whatever is there.
func readHeader(without Defence, most int, message []byte) (wire.Header, []byte, error) {
	if without.has(Strict) {
		message = fit(message, max(len(message), wire.HeaderSize))
		message[0] = wire.Version
	} else if len(message) > most {
		return wire.Header{}, nil, protocol.ErrOversized
	}
	return wire.ParseHeader(message)
}

// readSet takes a set from the head of a body. Without [Strict] it passes over
// the bits beyond the roster.
func readSet(without Defence, body []byte, n int) (wire.Set, []byte, error) {
	size := (n + 7) / 8
	if without.has(Strict) {
		body = fit(body, max(size, len(body)))
		if n%8 != 0 {
			body[size-1] &= 1<<(n%8) - 1
		}
	}
	if len(body) < size {
		return wire.Set{}, nil, protocol.ErrTruncated
	}
	set, err := wire.ParseSet(body[:size], n)
	return set, body[size:], err
}

// readShares takes n sealed shares, which are all of a body.
func readShares(without Defence, body []byte, n int) ([]wire.SealedShare, error) {
	body, err := sized(without, body, n*wire.SealedShareSize)
	if err != nil {
		return nil, err
	}
	out := make([]wire.SealedShare, n)
	for i := range out {
		out[i] = wire.SealedShare(body[i*wire.SealedShareSize:])
	}
	return out, nil
}

// readList cuts a list of entries to a whole number of them, at most n; with
// [Strict] the parser of the list says what is wrong.
func readList(without Defence, body []byte, entry, n int) []byte {
	if without.has(Strict) {
		body = body[:min(len(body)/entry, n)*entry]
	}
	return body
}
