package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// numbered returns a configuration of the series "series" among n parties.
func numbered(t *testing.T, n int, number uint64) *Config {
	_, roster := parties(t, n)
	config := testConfig(roster)
	config.Label, config.Number = "series", number
	return config
}

// checkNumber checks that a number was refused, saying why, or accepted if why is empty.
func checkNumber(t *testing.T, name string, err error, why string) {
	t.Helper()
	if why == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if !errors.Is(err, ErrNumber) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v, want %q", name, err, why)
	}
}

// A session's number is below 2^62, and a party follows no jump above 2^40: one number
// that somebody lied about does not use the series up. The state is as it was.
func TestNumberBounds(t *testing.T) {
	signers, _ := parties(t, 3)
	const least = 1000
	for name, c := range map[string]struct {
		number         uint64
		client, server string // in the error; empty: accepted
	}{
		"below":         {least - 1, "has been used", "has been used"},
		"least":         {least, "", ""},
		"widest jump":   {least + MaxNumberJump, "", ""},
		"beyond it":     {least + MaxNumberJump + 1, "too far above", ""},
		"highest":       {MaxNumber, "too far above", ""},
		"beyond all":    {MaxNumber + 1, "at most", "at most"},
		"of 64 bits":    {1<<64 - 1, "at most", "at most"},
		"next to that":  {1<<64 - 2, "at most", "at most"},
		"of 63 bits":    {1 << 63, "at most", "at most"},
		"zero":          {0, "has been used", "has been used"},
		"within a jump": {least + 1<<20, "", ""},
	} {
		client := NewClientSeries("series", least, signers[0], nil)
		server := NewServerSeries("series", least)
		if _, err := client.Succeed(numbered(t, 3, least)); err != nil {
			t.Fatal(err)
		}
		if err := server.Succeed(numbered(t, 3, least)); err != nil {
			t.Fatal(err)
		}
		client.least, server.least = least, least
		first, firstServer := client.successor, server.successor
		config := numbered(t, 3, c.number)
		_, err := client.Succeed(config)
		checkNumber(t, "client, "+name, err, c.client)
		if c.client != "" && (client.least != least || client.successor != first ||
			first.stage != stageAnnounce || first.key == nil) {
			t.Errorf("client, %s: the state has changed", name)
		}
		err = server.Succeed(config)
		checkNumber(t, "server, "+name, err, c.server)
		if c.server != "" && (server.least != least || server.successor != firstServer) {
			t.Errorf("server, %s: the state has changed", name)
		}
	}
	// The bounds do not wrap around, and a series that has reached the last number ends.
	for _, least := range []uint64{MaxNumber, MaxNumber + 1, 1<<64 - 1} {
		client := NewClientSeries("series", least, signers[0], nil)
		_, err := client.Succeed(numbered(t, 3, MaxNumber))
		want := "has been used"
		if least == MaxNumber {
			want = ""
		}
		checkNumber(t, "the last number", err, want)
		if _, err := client.Succeed(numbered(t, 3, client.least)); !errors.Is(err, ErrNumber) {
			t.Errorf("after the last number: %v", err)
		}
	}
}

// Doubts that are carried to another session have there what they had in the one before:
// they add up with those of its own, and name whom they name together.
func TestDoubtsGoOn(t *testing.T) {
	signers, roster := parties(t, 5)
	config := testConfig(roster)
	config.Recovery, config.MinMembers = &Recovery{Adversary: CuriousServer, Threshold: 2}, 3
	l, err := NewLocal(config, signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := l.Server
	if got := s.Doubts(); len(got) != 0 {
		t.Errorf("a new session has the doubts %v", got)
	}
	for name, pairs := range map[string][][2]int{
		"below":        {{0, 1}, {-1, 2}},
		"beyond":       {{0, 1}, {2, 5}},
		"beyond first": {{0, 1}, {5, 2}},
		"itself":       {{0, 1}, {3, 3}},
	} {
		if err := s.Doubt(pairs); !errors.Is(err, ErrMembers) {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.Doubts(); len(got) != 0 {
			t.Errorf("%s: left %v", name, got)
		}
	}
	if err := s.Doubt([][2]int{{3, 1}, {1, 3}}); err != nil {
		t.Fatal(err)
	}
	if got := s.Doubts(); !slices.Equal(got, [][2]int{{1, 3}}) || len(s.Excluded()) != 0 {
		t.Errorf("doubts %v, excluded %v", got, s.Excluded())
	}
	// With c = 0 one party may be at fault: it is the one that is in both pairs.
	if err := s.Doubt([][2]int{{3, 4}}); err != nil {
		t.Fatal(err)
	}
	if got := s.Excluded(); !slices.Equal(got, []int{3}) {
		t.Errorf("excluded %v, want party 3", got)
	}
	// Another session takes them from this one.
	next, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Doubt(s.Doubts()); err != nil {
		t.Fatal(err)
	}
	if got := next.Doubts(); !slices.Equal(got, [][2]int{{1, 3}, {3, 4}}) ||
		!slices.Equal(next.Excluded(), []int{3}) {
		t.Errorf("the next session: %v, excluded %v", got, next.Excluded())
	}
	s.Doubts()[0] = [2]int{0, 4} // a copy
	if got := s.Doubts(); !slices.Equal(got, [][2]int{{1, 3}, {3, 4}}) {
		t.Errorf("doubts %v after a caller changed its list", got)
	}
}

// As many may be at fault as the configuration says, also before set-up is over.
func TestDoubtsGoOnAmongColluders(t *testing.T) {
	_, roster := parties(t, 8)
	config := testConfig(roster)
	config.Colluders, config.Recovery = 2, &Recovery{}
	s, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Doubt([][2]int{{0, 1}, {0, 2}}); err != nil || len(s.Excluded()) != 0 {
		t.Errorf("two pairs: excluded %v, %v", s.Excluded(), err)
	}
	if err := s.Doubt([][2]int{{0, 3}}); err != nil || !slices.Equal(s.Excluded(), []int{0}) {
		t.Errorf("three pairs: excluded %v, %v", s.Excluded(), err)
	}
}
