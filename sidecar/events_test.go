package sidecar

import (
	"math"
	"strings"
	"testing"
)

// unfit are vectors that cannot be submitted.
var unfit = map[string][]float64{
	"none":     nil,
	"NaN":      {1, math.NaN(), 3},
	"overflow": {math.Inf(1), 2, 3},
}

// submits has a party submit a vector, and returns the answer.
func (s *sitting) submits(party int, round uint64, broadcast string, vector []float64) *answer {
	s.Helper()
	return s.try("party.submit", map[string]any{"party": s.parties[party], "round": round,
		"broadcast": digestOf(broadcast)}, floatBlob(vector))
}

// With noise, calls of a party whose training has made no vector give a message as long as any
// other, which counts as any other; the program alone is told why. Without noise they fail.
func TestEventsOfCalls(t *testing.T) {
	for name, vector := range unfit {
		c := start(t)
		settled, seeds := c.parties(3, countedJob)
		s := c.sit(settled, 1, seeds)
		s.begin("one")
		want := s.submits(0, 1, "one", []float64{1, 2, 3})
		got := s.submits(1, 1, "one", vector)
		if want.Error != nil || got.Error != nil {
			t.Fatalf("%s: %+v, %+v", name, want.Error, got.Error)
		}
		if len(got.bytes) != 1 || len(got.bytes[0]) != len(want.bytes[0]) {
			t.Errorf("%s: %d bytes, want %d", name, len(got.bytes[0]), len(want.bytes[0]))
		}
		if strings.Contains(string(want.Result), "unfit") ||
			!strings.Contains(string(got.Result), `"unfit":"`) {
			t.Errorf("%s: the program is told %s", name, got.Result)
		}
		last := s.submits(2, 1, "one", vector)
		for i, a := range []*answer{want, got, last} {
			s.receive(i, a.bytes[0])
		}
		s.step("server.survivors", "")
		s.step("server.certificate", "")
		s.call("server.sum", map[string]any{"server": s.server, "broadcast": digestOf("one")})
		s.begin("again")
		s.refuses(1, 1, "again", "repeated")

		settled, seeds = c.parties(3, clearJob)
		s = c.sit(settled, 2, seeds)
		s.begin("two")
		kind := "not-finite"
		if vector == nil {
			kind = "length"
		}
		if a := s.submits(0, 1, "two", vector); a.Error == nil || a.Error.Kind != kind {
			t.Errorf("%s, without noise: %+v, want kind %s", name, a.Error, kind)
		}
	}
}
