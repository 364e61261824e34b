package hushsum

import (
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/store"
)

// opened holds all that a participant, or a member of the committee, goes on from.
type opened struct {
	part   drive.Part
	keeper *host.PartVault
	vault  *store.Vault // nil without a store
}

// openPart makes the part of what is in its store. The caller closes the result, whatever the
// error.
func openPart(
	s Store, key *keyexchange.SealKey, counter Counter, owner string, settings drive.PartSettings,
) (o opened, err error) {
	var state []byte
	if o.vault, state, err = open(s, key, counter, owner, settings.Spent > 0); err == nil {
		o.part, o.keeper, err = host.OpenPart(o.vault, key, state, settings)
	}
	return o, err
}

func (o *opened) close() { o.vault.Close() }
