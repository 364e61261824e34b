package protocol

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
)

// numbered returns a configuration of the series "series" among n parties.
func numbered(t *testing.T, n int, number uint64) *Config {
	_, roster := parties(t, n)
	config := testConfig(roster)
	config.Label, config.Number = "series", number
	return config
}

// resumeOneByOne saves the sessions of a series one by one, as those do that keep no
// series, and puts it together from them.
func resumeOneByOne(t *testing.T, s *ClientSeries) *ClientSeries {
	t.Helper()
	key := keyexchange.SealKey{9}
	load := func(c *Client) *Client {
		if c == nil {
			return nil
		}
		state, err := c.Save(&key)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadClient(&c.config.Config, s.identity, nil, &key, state)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	out, err := ResumeClientSeries(s.label, s.least, s.identity, nil, load(s.present),
		load(s.successor))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// resumeServerOneByOne is resumeOneByOne of a server.
func resumeServerOneByOne(t *testing.T, s *ServerSeries) *ServerSeries {
	t.Helper()
	key := keyexchange.SealKey{9}
	load := func(server *Server) *Server {
		if server == nil {
			return nil
		}
		state, err := server.Save(&key)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadServer(&server.config.Config, &key, state)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	out, err := ResumeServerSeries(s.label, s.least, load(s.present), load(s.successor))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever the caller says, a series that is put together again uses no number of its
// sessions twice.
func TestResumedLeast(t *testing.T) {
	signers, _ := parties(t, 3)
	client := func(number uint64) *Client {
		c, err := NewClient(numbered(t, 3, number), signers[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	server := func(number uint64) *Server {
		s, err := NewServer(numbered(t, 3, number))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, c := range []struct {
		least, want uint64
		number      uint64
	}{{0, 8, 7}, {7, 8, 7}, {8, 8, 7}, {9, 9, 7}, {0, 1 << 62, MaxNumber}} {
		s, err := ResumeClientSeries("series", c.least, signers[0], nil, nil, client(c.number))
		if err != nil || s.Least() != c.want {
			t.Errorf("client, %d and session %d: %v, %v", c.least, c.number, s, err)
		}
		server, err := ResumeServerSeries("series", c.least, nil, server(c.number))
		if err != nil || server.Least() != c.want {
			t.Errorf("server, %d and session %d: %v, %v", c.least, c.number, server, err)
		}
	}
	if s, err := ResumeClientSeries("series", 3, signers[0], nil, nil, nil); err != nil ||
		s.Least() != 3 || s.Present() != nil || s.Successor() != nil {
		t.Errorf("a client without sessions: %v", err)
	}
	draws := new(stream)
	s, err := ResumeClientSeries("series", 3, signers[0], draws, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Succeed(numbered(t, 3, 3)); err != nil || len(draws.reads) == 0 {
		t.Errorf("a client with a source of its own: %d draws, %v", len(draws.reads), err)
	}
	if s, err := ResumeServerSeries("series", 3, nil, nil); err != nil || s.Least() != 3 ||
		s.Present() != nil || s.Successor() != nil {
		t.Errorf("a server without sessions: %v", err)
	}
}

// ready returns a session of three parties that is set up.
func ready(t *testing.T, number uint64) *Local {
	t.Helper()
	signers, _ := parties(t, 3)
	l, err := NewLocal(numbered(t, 3, number), signers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Sessions that cannot be those of one series, or stand where they cannot, are refused.
func TestResumeRefusals(t *testing.T) {
	signers, _ := parties(t, 3)
	four, five := ready(t, 4), ready(t, 5)
	setUp := func(number uint64) (*Client, *Server) {
		config := numbered(t, 3, number)
		client, err := NewClient(config, signers[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		server, err := NewServer(config)
		if err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	early, earlyServer := setUp(3)
	late, lateServer := setUp(6)
	high, highServer := setUp(MaxNumber + 1)
	begun := ready(t, 6)
	if _, err := begun.Server.Begin(nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		label              string
		present, successor *Client
		servers            [2]*Server
		want               error
	}{
		"another label": {"other", four.Clients[0], nil, [2]*Server{four.Server}, ErrConfig},
		"another label of the successor": {"other", nil, five.Clients[0],
			[2]*Server{nil, five.Server}, ErrConfig},
		"falling numbers": {"series", four.Clients[0], early, [2]*Server{four.Server, earlyServer},
			ErrNumber},
		"one session twice": {"series", four.Clients[0], four.Clients[0],
			[2]*Server{four.Server, four.Server}, ErrNumber},
		"a number beyond":         {"series", nil, high, [2]*Server{nil, highServer}, ErrNumber},
		"a present one in set-up": {"series", late, nil, [2]*Server{lateServer}, ErrPhase},
	} {
		if _, err := ResumeClientSeries(c.label, 0, signers[0], nil, c.present,
			c.successor); !errors.Is(err, c.want) {
			t.Errorf("client, %s: %v", name, err)
		}
		if _, err := ResumeServerSeries(c.label, 0, c.servers[0],
			c.servers[1]); !errors.Is(err, c.want) {
			t.Errorf("server, %s: %v", name, err)
		}
	}
	if _, err := ResumeServerSeries("series", 0, four.Server,
		begun.Server); !errors.Is(err, ErrPhase) {
		t.Errorf("a server's successor with a round: %v", err)
	}
	for name, owners := range map[string][2]int{"the present one": {0, 1}, "the successor": {1, 0}} {
		if _, err := ResumeClientSeries("series", 0, signers[1], nil, four.Clients[owners[0]],
			five.Clients[owners[1]]); !errors.Is(err, ErrIdentity) {
			t.Errorf("another's identity, %s: %v", name, err)
		}
	}
	if _, err := ResumeClientSeries("series", 0, nil, nil, nil, nil); !errors.Is(err, ErrIdentity) {
		t.Errorf("no identity: %v", err)
	}
}

// A successor that a round of it has reached is the present session, and the one before is
// erased, as if the series had received that message.
func TestResumeTakesOver(t *testing.T) {
	signers, _ := parties(t, 3)
	before, after := ready(t, 4), ready(t, 5)
	envelopes, err := after.Server.Begin(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Clients[0].Receive(envelopes[0].Message); err != nil {
		t.Fatal(err)
	}
	s, err := ResumeClientSeries("series", 0, signers[0], nil, before.Clients[0], after.Clients[0])
	if err != nil {
		t.Fatal(err)
	}
	if s.Present() != after.Clients[0] || s.Successor() != nil {
		t.Error("the session that has begun is not the present one")
	}
	if round, due := s.Due(); !due || round != 1 {
		t.Errorf("round %d, due: %v", round, due)
	}
	for _, chain := range before.Clients[0].chains {
		b, err := chain.AppendBinary(nil)
		if err == nil && slices.ContainsFunc(b[8:], func(x byte) bool { return x != 0 }) {
			t.Error("the session before keeps its keys")
		}
	}
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
