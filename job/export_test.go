package job

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// RosterOf makes a roster of n parties, for the tests on both sides of the package.
func RosterOf(t *testing.T, n int) *keyexchange.Roster { return rosterOf(t, n, 0) }

// CommitteeOf makes a committee of n members, of whom none is a party.
func CommitteeOf(t *testing.T, n int) *keyexchange.Roster { return rosterOf(t, n, 1) }

func rosterOf(t *testing.T, n int, kind byte) *keyexchange.Roster {
	t.Helper()
	var members []keyexchange.Entry
	for i := range n {
		seed := make([]byte, ed25519.SeedSize)
		binary.BigEndian.PutUint32(seed, uint32(i+1))
		seed[4] = kind
		key := ed25519.NewKeyFromSeed(seed)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i+1),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster
}

// WithMetrics and MetricOf are tested by themselves.
func WithMetrics(s *Settled, u Update[float64]) ([]float64, error) { return withMetrics(s, u) }

func (s *Settled) MetricOf(loss, accuracy float64, parties int) *Metric {
	return s.metricOf(loss, accuracy, parties)
}
