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
type values []uint64

func (n *values) UnmarshalJSON(text []byte) error {
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
		Label  string
		Number uint64
		Roster []struct {
			Name string
			Key  octets
		}
		MinMembers int `json:"min_members"`
		Layout     []segment
		Colluders  int
		Recovery   *struct {
			Adversary, Threshold, Degree int
			MinSurvivors                 int `json:"min_survivors"`
			CorruptNeighbours            int `json:"corrupt_neighbours"`
		}
		PerRound  int `json:"per_round"`
		Seed      octets
		MaxSkip   uint64 `json:"max_skip"`
		Classical bool
	}
	Parties      []vectorParty
	RosterDigest octets `json:"roster_digest"`
	ConfigDigest octets `json:"config_digest"`
	KeysDigest   octets `json:"keys_digest"`
	Enrolled     []int  `json:"members"`
	SessionID    octets `json:"session_id"`
	Messages     []struct {
		From, To int
		Type     string
		Lost     bool
		Message  octets
	}
	Rounds []*round
}

// vectorParty is a party's keys.
type vectorParty struct {
	Identity octets `json:"identity_seed"`
	Private  octets `json:"x25519_private"`
	MLKEM    octets `json:"mlkem_seed"`
	Random   octets `json:"random_seed"`
}

// round holds the vector's fields of one round.
type round struct {
	Round        uint64
	Broadcast    octets
	Scheduled    []int
	Holders      []int
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
	Wrong    []struct{ Holder, Owner int }
	Included []int
	Sum      []values
}

// input holds the values that a party puts into a round.
type input struct {
	Party    int
	Input    []values
	SelfMask octets `json:"b"`
	Recovery octets `json:"k"`
}
