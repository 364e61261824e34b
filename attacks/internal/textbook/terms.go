package textbook

import (
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/labels"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// Terms are the numbers of a session (§3) with the defaults filled in.
type Terms struct {
	Roster       *keyexchange.Roster
	Layout       masking.Layout
	Parties      int      // n
	MinMembers   int      // the fewest that a session is among
	Members      wire.Set // M: before set-up all
	MaxSkip      uint64
	Recovery     bool
	Colluders    int // c
	Threshold    int // t
	Quorum       int // q
	MinSurvivors int // m
	Digest       [32]byte

	recovery *protocol.Recovery
}

// NewTerms reads a configuration; without [ValidConfig] it takes what it gets. It
// fails with [protocol.ErrConfig].
func NewTerms(config *protocol.Config, without Defence) (*Terms, error) {
	n := config.Roster.Len()
	t := &Terms{
		Roster:     config.Roster,
		Layout:     config.Layout,
		Parties:    n,
		MinMembers: config.MinMembers,
		Members:    wire.FullSet(n),
		MaxSkip:    config.MaxSkip,
		Recovery:   config.Recovery != nil,
		Colluders:  config.Colluders,
		recovery:   config.Recovery,
	}
	if t.MinMembers == 0 {
		t.MinMembers = n
	}
	if t.MaxSkip == 0 {
		t.MaxSkip = min(1000, 1<<27/uint64(n-1))
	}
	if config.PerRound != 0 && config.PerRound != n || !config.Classical {
		return nil, fmt.Errorf("%w: textbook has all members in every round, and classical keys",
			protocol.ErrConfig)
	}
	if r := config.Recovery; r != nil && r.Degree != 0 && r.Degree != n-1 {
		return nil, fmt.Errorf("%w: textbook has complete graphs only", protocol.ErrConfig)
	}
	for size := n; size >= t.MinMembers; size-- {
		if _, err := t.among(size, without); err != nil {
			return nil, err
		}
	}
	recovery := []byte{0}
	if r := config.Recovery; r != nil {
		recovery = []byte{1 + byte(r.Adversary)}
		for _, x := range []int{n - 1, r.Threshold, r.MinSurvivors} {
			recovery = append(recovery, u32(x)...)
		}
	}
	layout := u32(len(t.Layout))
	for _, s := range t.Layout {
		layout = append(append(layout, u32(s.Length)...), byte(s.Bits))
	}
	roster := t.Roster.Digest()
	t.Digest = hash(labels.Config,
		[]byte{byte(len(config.Label))}, []byte(config.Label), u64(config.Number), roster[:],
		u32(t.MinMembers), u32(t.Colluders), []byte{0}, u64(t.MaxSkip), u32(n), config.Seed[:],
		layout, recovery)
	return t.among(n, without)
}

// Among returns the numbers of a session among some of the roster.
func (t *Terms) Among(members wire.Set, without Defence) (*Terms, error) {
	terms, err := t.among(members.Len(), without)
	if err != nil {
		return nil, err
	}
	terms.Members = members
	return terms, nil
}

// among returns the numbers of a session among n.
func (t *Terms) among(n int, without Defence) (*Terms, error) {
	own := *t
	t = &own
	t.MinSurvivors = n
	sound := t.Colluders >= 0 && t.Colluders <= n-2
	if r := t.recovery; r != nil {
		h := n - 1
		curious := r.Adversary == protocol.CuriousServer
		t.Threshold, t.MinSurvivors = r.Threshold, r.MinSurvivors
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
		if curious {
			sound = sound && t.Threshold > t.Colluders
		} else {
			sound = sound && 2*t.Threshold > h+t.Colluders
		}
		sound = sound && t.Threshold <= h && least <= t.MinSurvivors && t.MinSurvivors <= n
	}
	if !sound && !without.has(ValidConfig) {
		return nil, fmt.Errorf("%w: t = %d, c = %d, q = %d, m = %d of %d parties",
			protocol.ErrConfig, t.Threshold, t.Colluders, t.Quorum, t.MinSurvivors, n)
	}
	// What is lacking from here on is lacking in secret.
	if without.has(MajorityQuorum) {
		t.Quorum = t.Threshold
	}
	if without.has(Quorum) {
		t.Quorum = 0
	}
	return t, nil
}

// Others returns the neighbours of a party: all members but itself, in ascending order.
func (t *Terms) Others(party int) []int {
	var others []int
	for i := range t.Members.All() {
		if i != party {
			others = append(others, i)
		}
	}
	return others
}

// maxMessage is the length of the longest message (§12).
func (t *Terms) maxMessage() int {
	n, h, packed := t.Parties, t.Parties-1, t.Layout.PackedSize()
	body := max((n+7)/8+96*n, 32+(n+7)/8+72*h, 68*n, packed)
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

// sized returns a body of exactly n bytes, or an error; without [Strict] it pads or truncates the
// body to n bytes.
func sized(without Defence, body []byte, n int) ([]byte, error) {
	if without.has(Strict) {
		return fit(body, n), nil
	}
	return body, wire.Exactly(body, n)
}

// readHeader takes a message apart; without [Strict] it takes whatever bytes are there.
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

// readKeys takes a list of keys.
func readKeys(without Defence, body []byte, n int) (*wire.Keys, error) {
	members, rest, err := readSet(without, body, n)
	if err != nil {
		return nil, err
	}
	if rest, err = sized(without, rest, members.Len()*wire.KeyEntrySize(false)); err != nil {
		return nil, err
	}
	body = append(slices.Clone(members.Bytes()), rest...)
	return wire.ParseKeys(body, n, false, func(*wire.Keys) (int, error) { return 0, nil })
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
