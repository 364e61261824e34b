package protocol

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// configJSON is the JSON form of a Config, which is also that of the test
// vectors (SPEC.md §3.3). Byte strings are in lower-case hexadecimal digits, and
// zeros and fields that are left out stand for the defaults.
type configJSON struct {
	Label      string        `json:"label"`
	Number     uint64        `json:"number"`
	Roster     []memberJSON  `json:"roster"`
	MinMembers int           `json:"min_members"`
	Layout     []segmentJSON `json:"layout"`
	Colluders  int           `json:"colluders"`
	Recovery   *recoveryJSON `json:"recovery"` // null without
	PerRound   int           `json:"per_round"`
	Seed       *string       `json:"seed"` // null: zero
	MaxSkip    uint64        `json:"max_skip"`
	Classical  bool          `json:"classical"`
}

type memberJSON struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

type segmentJSON struct {
	Length int `json:"length"`
	Bits   int `json:"bits"`
}

type recoveryJSON struct {
	Adversary    Adversary `json:"adversary"`
	Threshold    int       `json:"threshold"`
	MinSurvivors int       `json:"min_survivors"`
	Degree       int       `json:"degree"`

	CorruptNeighbours int `json:"corrupt_neighbours,omitempty"`
}

// MarshalJSON writes the configuration as it is, without filling in defaults. It fails with
// [ErrConfig] if the configuration is not valid.
func (c Config) MarshalJSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	seed := hex.EncodeToString(c.Seed[:])
	j := configJSON{
		Label:      c.Label,
		Number:     c.Number,
		MinMembers: c.MinMembers,
		Colluders:  c.Colluders,
		PerRound:   c.PerRound,
		Seed:       &seed,
		MaxSkip:    c.MaxSkip,
		Classical:  c.Classical,
	}
	for i := range c.Roster.Len() {
		j.Roster = append(j.Roster, memberJSON{c.Roster.Name(i), hex.EncodeToString(c.Roster.Key(i))})
	}
	for _, s := range c.Layout {
		j.Layout = append(j.Layout, segmentJSON(s))
	}
	if r := c.Recovery; r != nil {
		recovery := recoveryJSON(*r)
		j.Recovery = &recovery
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes. It fails with [ErrConfig] if there is an unknown
// field, anything after the end, or an invalid configuration, and then leaves c unchanged.
func (c *Config) UnmarshalJSON(b []byte) error {
	fail := func(err error) error { return fmt.Errorf("%w: %w", ErrConfig, err) }
	var j configJSON
	if err := strict.JSON(b, &j); err != nil {
		return fail(err)
	}
	out := Config{
		Label:      j.Label,
		Number:     j.Number,
		MinMembers: j.MinMembers,
		Colluders:  j.Colluders,
		PerRound:   j.PerRound,
		MaxSkip:    j.MaxSkip,
		Classical:  j.Classical,
	}
	if j.Seed != nil {
		seed, err := hex.DecodeString(*j.Seed)
		if err != nil || len(seed) != len(out.Seed) {
			return fmt.Errorf("%w: the seed is not 64 hexadecimal digits; leave it out for zero", ErrConfig)
		}
		copy(out.Seed[:], seed)
	}
	var err error
	members := make([]keyexchange.Entry, 0, len(j.Roster))
	for i, m := range j.Roster {
		key, err := hex.DecodeString(m.Key)
		if err == nil && len(key) != ed25519.PublicKeySize { // before a roster of many is made
			err = fmt.Errorf("%w: party %d", keyexchange.ErrIdentityKey, i)
		}
		if err != nil {
			return fail(err)
		}
		members = append(members, keyexchange.Entry{Name: m.Name, Key: key})
	}
	if out.Roster, err = keyexchange.NewRoster(members); err != nil {
		return fail(err)
	}
	for _, s := range j.Layout {
		out.Layout = append(out.Layout, masking.Segment(s))
	}
	if r := j.Recovery; r != nil {
		recovery := Recovery(*r)
		out.Recovery = &recovery
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*c = out
	return nil
}
