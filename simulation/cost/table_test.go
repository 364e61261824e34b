package cost

import (
	"fmt"
	"testing"
	"time"
)

// The table of docs/cost.md: go test ./simulation/cost -run Table -v.
func TestTable(t *testing.T) {
	degree := map[int]int{1000: 34, 10_000: 38, 100_000: 40, 1_000_000: 44}
	threshold := map[int]int{1000: 18, 10_000: 21, 100_000: 22, 1_000_000: 24}
	var before Bytes
	for _, d := range []int{105, 1_000_000} {
		for _, n := range []int{100, 1000, 10_000, 100_000, 1_000_000} {
			s := Session{
				Parties:    n,
				Neighbours: degree[n],
				Threshold:  threshold[n],
				Length:     d,
				Bits:       24,
				Recovery:   true,
			}
			u := Reference()
			party, server, bytes := s.Party(u), s.Server(u), s.Wire()
			t.Logf("| %d | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |", d, n,
				s.settled().Neighbours, short(bytes.SetUpSent+bytes.SetUpReceived),
				short(bytes.RoundSent+bytes.RoundReceived), shortTime(party.SetUp()),
				shortTime(party.Round()), short(s.PartyMemory()), shortTime(server.SetUp),
				shortTime(server.Round()), short(s.SetUpMemory()), short(s.ServerMemory()))
			if n > 100 && bytes.SetUpReceived <= before.SetUpReceived {
				t.Errorf("%d parties: %+v after %+v", n, bytes, before)
			}
			before = bytes
		}
		before = Bytes{}
	}
	// Without recovery and with classical keys everything is less.
	least := Session{Parties: 100, Length: 105, Bits: 24, Classical: true}
	most := Session{Parties: 100, Length: 105, Bits: 24, Recovery: true, Dropped: 5}
	if a, b := least.Party(Reference()), most.Party(Reference()); a.SetUp() >= b.SetUp() ||
		a.Round() >= b.Round() || least.Wire().RoundSent >= most.Wire().RoundSent ||
		least.Server(Reference()).Round() >= most.Server(Reference()).Round() ||
		least.ServerMemory() >= most.ServerMemory() || least.PartyMemory() >= most.PartyMemory() {
		t.Errorf("least %+v, most %+v", a, b)
	}
}

func short(b int64) string {
	x, unit := float64(b), ""
	for _, unit = range []string{"B", "kB", "MB", "GB", "TB"} {
		if x < 1000 {
			break
		}
		x /= 1000
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}

func shortTime(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	case d < 2*time.Hour:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g h", d.Hours())
}
