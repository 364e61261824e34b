package simulate

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// effectiveRecovery fills in what follows from the number of parties, and says of a recovery that
// cannot be which number is wrong, and what it may be.
func effectiveRecovery(
	parties int, recovery protocol.Recovery, colluders int,
) (*protocol.Recovery, error) {
	config, err := sessionOf(parties)
	if err != nil {
		return nil, err
	}
	effective := func(r protocol.Recovery, colluders int) (*protocol.Recovery, error) {
		config.Recovery, config.Colluders = &r, colluders
		return config.EffectiveRecovery()
	}
	whole, err := effective(recovery, colluders)
	if err == nil {
		return whole, nil
	}

	// Say which of the numbers is wrong, and what it may be.
	try := recovery
	try.MinSurvivors = 0
	if r, failed := effective(try, colluders); failed == nil {
		return nil, &job.ConfigError{
			Path:   "parties.drop_out",
			Reason: fmt.Sprintf("%d is outside %d to %d", recovery.MinSurvivors, r.MinSurvivors, parties),
			Advice: fmt.Sprintf("use 0 for the least that withstands a %v and %d colluders", r.Adversary,
				colluders),
			Err: err,
		}
	}
	most := -1
	for c := range parties {
		if _, failed := effective(try, c); failed != nil {
			break
		}
		most = c
	}
	if most >= 0 {
		return nil, &job.ConfigError{
			Path:   "parties.colluders",
			Reason: fmt.Sprintf("%d is outside 0 to %d", colluders, most),
			Advice: fmt.Sprintf("use 0 to %d, with which %d parties withstand a %v", most, parties,
				recovery.Adversary),
			Err: err,
		}
	}
	return nil, &job.ConfigError{Path: "parties.drop_out", Reason: fault.Reason(err), Err: err}
}

// sessionOf returns the configuration of some session of n parties: whether
// recovery is possible depends on their number only.
func sessionOf(n int) (*protocol.Config, error) {
	members := make([]keyexchange.Entry, n)
	for i := range members {
		var seed [ed25519.SeedSize]byte // nobody's: nothing is ever signed
		binary.BigEndian.PutUint64(seed[:], uint64(i))
		key := ed25519.NewKeyFromSeed(seed[:])
		members[i] = keyexchange.Entry{Name: fmt.Sprintf("party-%d", i+1),
			Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	return &protocol.Config{Roster: roster,
		Layout: masking.Layout{{Length: 1, Bits: 1}}}, nil
}
