package fuzz

import (
	"math/rand/v2"
	"testing"

	"github.com/hushsum/hushsum/drive/partytest"
)

// IntN makes a schedule the choices of a world.
func (s *schedule) IntN(n int) int {
	i := s.next()
	if n > 256 {
		i = i<<8 | s.next()
	}
	return i % n
}

// FuzzParty runs a job whose coordinator cheats by a schedule, against one party, whose process
// is killed and whose program answers otherwise than it should. Package partytest has the events,
// and what must hold after each: what leaves was counted before, in a state that was durable, and
// is no more than the job and the budget allow.
func FuzzParty(f *testing.F) {
	for i := range uint64(8) {
		schedule := make([]byte, 600)
		rng := rand.New(rand.NewPCG(i, 3))
		for k := range schedule {
			schedule[k] = byte(rng.Uint32())
		}
		f.Add(schedule)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := schedule(input)
		w := partytest.New(t, &s, 0, 1)
		w.Cheat(mostOperations, func() bool { return len(s) > 0 })
	})
}
