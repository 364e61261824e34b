package simulation

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// EffectiveRecovery returns Recovery with all defaults filled in, as they are for
// that many Clients, and nil without recovery. It fails with an [OptionError] if
// no session of so many parties can have it.
func (o *Options) EffectiveRecovery() (*protocol.Recovery, error) {
	return effectiveRecovery(o.Clients, o.Recovery, o.Colluders)
}

func effectiveRecovery(clients int, recovery *protocol.Recovery, colluders int) (*protocol.Recovery, error) {
	if recovery == nil {
		return nil, nil
	}
	config, err := sessionOf(clients)
	if err != nil {
		return nil, &OptionError{Option: "Clients", Reason: err.Error(), Err: err}
	}
	effective := func(r protocol.Recovery, colluders int) (*protocol.Recovery, error) {
		config.Recovery, config.Colluders = &r, colluders
		return config.EffectiveRecovery()
	}
	whole, err := effective(*recovery, colluders)
	if err == nil {
		return whole, nil
	}

	// Say which of the numbers is wrong, and what it may be.
	try := *recovery
	try.MinSurvivors = 0
	if r, failed := effective(try, colluders); failed == nil {
		return nil, &OptionError{
			Option: "Recovery.MinSurvivors",
			Reason: fmt.Sprintf("%d is outside %d to %d", recovery.MinSurvivors, r.MinSurvivors, clients),
			Advice: fmt.Sprintf("use 0 for the least that withstands a %v and %d colluders", r.Adversary, colluders),
			Err:    err,
		}
	}
	most := -1
	for c := range clients {
		if _, failed := effective(try, c); failed != nil {
			break
		}
		most = c
	}
	if most >= 0 {
		return nil, &OptionError{
			Option: "Colluders",
			Reason: fmt.Sprintf("%d is outside 0 to %d", colluders, most),
			Advice: fmt.Sprintf("that is what %d parties withstand with a %v", clients, recovery.Adversary),
			Err:    err,
		}
	}
	return nil, &OptionError{Option: "Recovery", Reason: err.Error(), Err: err}
}

// validateRecovery checks Recovery and Drop together.
func (o *Options) validateRecovery() error {
	if o.Recovery == nil && o.Drop > 0 {
		return &OptionError{
			Option: "Drop",
			Reason: "without recovery every party must submit, and none may drop out",
			Advice: "set Recovery, or use 0",
		}
	}
	_, err := o.EffectiveRecovery()
	return err
}

// sessionOf returns the configuration of some session of n parties: whether
// recovery is possible depends on their number only.
func sessionOf(n int) (*protocol.Config, error) {
	members := make([]keyexchange.Member, n)
	for i := range members {
		var seed [ed25519.SeedSize]byte // nobody's: nothing is ever signed
		binary.BigEndian.PutUint64(seed[:], uint64(i))
		key := ed25519.NewKeyFromSeed(seed[:])
		members[i] = keyexchange.Member{Name: partyName(i), Key: key.Public().(ed25519.PublicKey)}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return nil, err
	}
	return &protocol.Config{Label: sessionLabel, Roster: roster, Layout: masking.Layout{{Length: 1, Bits: 1}}}, nil
}

// moment is when a party drops out of a round.
type moment int

const (
	beforeSubmit moment = iota
	beforeSign
	beforeReveal
	never
)

// dropOuts draws who drops out of which round, and when.
type dropOuts struct {
	rng  *rand.Rand
	each int // parties that drop out of each round
}

// streamDrop keeps the draws apart from others that are made from the same seed.
const streamDrop = 0x64726f70

func newDropOuts(o *Options) *dropOuts {
	return &dropOuts{rng: rand.New(rand.NewPCG(o.Seed, streamDrop)), each: o.DropOuts()}
}

// next returns, for the next round, when each of n parties leaves it.
func (d *dropOuts) next(n int) []moment {
	leaves := make([]moment, n)
	for i := range leaves {
		leaves[i] = never
	}
	for _, i := range d.rng.Perm(n)[:d.each] {
		leaves[i] = moment(d.rng.IntN(int(never)))
	}
	return leaves
}
