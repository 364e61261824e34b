package cost_test

import (
	"fmt"

	"github.com/hushsum/hushsum/simulation/cost"
)

// What a session of a thousand parties, each with 64 neighbours, keeps in memory.
func ExampleSession_ServerMemory() {
	s := cost.Session{Parties: 1000, Neighbours: 64, Length: 100_000, Bits: 32, Recovery: true}
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"a party", s.PartyMemory()},
		{"the server", s.ServerMemory()},
		{"the server in set-up, besides", s.SetUpMemory()},
	} {
		fmt.Printf("%s: %.1f MB\n", part.name, float64(part.bytes)/1e6)
	}
	// Output:
	// a party: 0.8 MB
	// the server: 21.2 MB
	// the server in set-up, besides: 77.5 MB
}
