package specdecode

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// VerifyConfigurations checks the vectors of configurations (§14): which are accepted, and the
// digests and numbers of these. It does not check whether a key of a roster is acceptable.
func VerifyConfigurations(data []byte) error {
	var list []struct {
		About        string
		Config       json.RawMessage
		Accepted     bool
		RosterDigest octets `json:"roster_digest"`
		ConfigDigest octets `json:"config_digest"`
		MaxSkip      uint64 `json:"max_skip"`
		MaxMessage   int    `json:"max_message"`
		Sizes        []struct {
			Size, N int
			H       int `json:"h"`
			T       int `json:"t"`
			Q       int `json:"q"`
			M       int `json:"m"`
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("specdecode: %w", err)
	}
	for _, c := range list {
		s, err := deriveText(c.Config)
		if !c.Accepted {
			if err == nil {
				return fail("%q is accepted", c.About)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.About, err)
		}
		if !bytes.Equal(s.rosterDigest, c.RosterDigest) || !bytes.Equal(s.digest, c.ConfigDigest) {
			return fail("%q: the digests", c.About)
		}
		if s.maxSkip != c.MaxSkip || s.longest() != c.MaxMessage || len(c.Sizes) != s.n-s.minMembers+1 {
			return fail("%q: MaxSkip, MaxMessage or the sizes", c.About)
		}
		for i, size := range c.Sizes {
			got, err := s.numbers(size.Size)
			if err != nil || size.Size != s.minMembers+i ||
				got != (numbers{size.N, size.H, size.T, size.Q, size.M}) {
				return fail("%q: the numbers for size %d", c.About, size.Size)
			}
		}
	}
	return nil
}

// deriveText is derive for the JSON form of a configuration.
func deriveText(text []byte) (*setting, error) {
	v := new(vector)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v.Config); err != nil {
		return nil, fail("%v", err)
	}
	v.Parties = make([]vectorParty, len(v.Config.Roster))
	return v.derive()
}
