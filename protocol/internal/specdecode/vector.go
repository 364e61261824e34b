package specdecode

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// octets are bytes that the vectors write in hexadecimal digits.
type octets []byte

func (o *octets) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	*o = b
	return err
}

// numbers are the values of one segment, which the vectors write in decimal.
type numbers []uint64

func (n *numbers) UnmarshalJSON(text []byte) error {
	var digits []string
	if err := json.Unmarshal(text, &digits); err != nil {
		return err
	}
	for _, d := range digits {
		x, err := strconv.ParseUint(d, 10, 64)
		if err != nil {
			return err
		}
		*n = append(*n, x)
	}
	return nil
}

type segment struct{ Length, Bits int }

// vector is a recorded session (§14).
type vector struct {
	Config struct {
		Label    string
		Layout   []segment
		PerRound int `json:"per_round"`
		Seed     octets
		MaxSkip  uint64 `json:"max_skip"`
		Recovery *struct {
			Adversary, Colluders, Threshold, Degree int
			MinSurvivors                            int `json:"min_survivors"`
		}
	}
	Parties []struct {
		Name     string
		Identity octets `json:"identity_seed"`
		Public   octets `json:"identity_key"`
		Private  octets `json:"x25519_private"`
		Random   octets `json:"random_seed"`
	}
	RosterDigest octets `json:"roster_digest"`
	ConfigDigest octets `json:"config_digest"`
	SessionID    octets `json:"session_id"`
	Messages     []struct {
		From, To int
		Type     string
		Lost     bool
		Message  octets
	}
	Rounds []*round
}

// round is what the vector says of one round.
type round struct {
	Round        uint64
	Broadcast    octets
	Scheduled    []int
	Participants []int
	Context      octets
	Pairs        []struct {
		Low, High int
		ChainKey  octets `json:"chain_key"`
		Channels  []octets
		Secret    octets `json:"pair_secret"`
		MaskSeed  octets `json:"mask_seed"`
	}
	Inputs   []input
	Included []int
	Sum      []numbers
}

// input is what a party puts into a round.
type input struct {
	Party    int
	Input    []numbers
	SelfMask octets `json:"b"`
	Recovery octets `json:"k"`
}
