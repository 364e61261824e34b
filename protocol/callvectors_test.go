package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
)

// The vectors of testdata/calls.json: what a server and parties are called and given, step
// by step, and what becomes of it, refused calls among them (SPEC.md §14).
type (
	callScript struct {
		About   string       `json:"about"`
		Label   string       `json:"label"`
		Configs []*Config    `json:"configs"` // of the series' sessions
		Parties []callPerson `json:"parties"` // in the order of every roster
		Steps   []callStep   `json:"steps"`
	}
	callPerson struct {
		Identity hexBytes `json:"identity_seed"`
		Random   hexBytes `json:"random_seed"`
	}
	callStep struct {
		At   int    `json:"at"` // who is called: -1 is the server
		Call string `json:"call"`
		// Whose call of the server's it is: "present" or "successor".
		Of string `json:"of,omitempty"`

		Session   *int       `json:"session,omitempty"` // Succeed: of configs
		From      *int       `json:"from,omitempty"`    // Receive at the server
		Message   hexBytes   `json:"message,omitempty"` // Receive
		Broadcast *string    `json:"broadcast,omitempty"`
		Input     [][]string `json:"input,omitempty"`
		Parties   []int      `json:"parties,omitempty"` // Gather, Exclude, Readmit
		Pairs     [][2]int   `json:"pairs,omitempty"`   // Doubt

		Error    string        `json:"error,omitempty"`
		Names    *int          `json:"names,omitempty"`    // the party of a PartyError
		Missing  []int         `json:"missing,omitempty"`  // the parties of a MissingError
		Answer   hexBytes      `json:"answer,omitempty"`   // what a party sends
		Messages []callMessage `json:"messages,omitempty"` // what the server sends
		Sum      [][]string    `json:"sum,omitempty"`
		Included []int         `json:"included,omitempty"`
		Excluded []int         `json:"excluded,omitempty"` // after the server's call
		Doubts   [][2]int      `json:"doubts,omitempty"`   // the same
		Awaits   []int         `json:"awaits,omitempty"`   // the same: Server.Missing
		Least    uint64        `json:"least,omitempty"`    // after Succeed
	}
	callMessage struct {
		To      int      `json:"to"`
		Message hexBytes `json:"message"`
	}
)

// callErrors are the errors of calls, next to those of messages.
var callErrors = map[string]error{"ErrNumber": ErrNumber, "ErrConfig": ErrConfig,
	"ErrMaterial": ErrMaterial, "ErrBroadcast": ErrBroadcast, "ErrLength": ErrLength,
	"ErrRange": ErrRange}

// play runs a script and writes down what happens.
type play struct {
	*testing.T
	script  *callScript
	server  *ServerSeries
	clients []*ClientSeries
	keys    []ed25519.PublicKey
	tamper  func(from int, message []byte) // changes what a party sends
}

// newPlay makes the parties of a script, and its configurations by change.
func newPlay(
	t *testing.T, about, label string, n int, sessions ...func(c *Config),
) *play {
	t.Helper()
	p := &play{T: t, script: &callScript{About: about, Label: label},
		server: NewServerSeries(label, 0)}
	var members []keyexchange.Entry
	for i := range n {
		seed := sha256.Sum256(fmt.Appendf(nil, "hushsum vectors %s identity %d", label, i))
		random := &stream{seed: sha256.Sum256(fmt.Appendf(nil, "hushsum vectors %s random %d", label, i))}
		p.script.Parties = append(p.script.Parties, callPerson{seed[:], random.seed[:]})
		key := ed25519.NewKeyFromSeed(seed[:])
		p.keys = append(p.keys, key.Public().(ed25519.PublicKey))
		p.clients = append(p.clients, NewClientSeries(label, 0, key, random))
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i), Key: p.keys[i]})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range sessions {
		config := &Config{Label: label, Roster: roster, MinMembers: max(3, n-2), Classical: true,
			Layout:   masking.Layout{{Length: 2, Bits: 20}},
			Recovery: &Recovery{Adversary: CuriousServer, Threshold: 2}}
		change(config)
		p.script.Configs = append(p.script.Configs, config)
	}
	return p
}

// add ends a step.
func (p *play) add(step callStep, err error) {
	p.Helper()
	if err != nil {
		for _, known := range []map[string]error{callErrors, refusalErrors} {
			for name, e := range known {
				if errors.Is(err, e) {
					step.Error = name
				}
			}
		}
		if step.Error == "" && errors.Is(err, ErrMissing) {
			step.Error = "ErrMissing" // else it is ErrTooFew as well
		}
		if step.Error == "" {
			p.Fatal(err)
		}
		var party *PartyError
		if errors.As(err, &party) {
			step.Names = &party.Party
		}
		var missing *MissingError
		if errors.As(err, &missing) {
			step.Missing = missing.Parties
		}
	}
	p.script.Steps = append(p.script.Steps, step)
}

// session returns the server of a session.
func (p *play) session(of string) *Server {
	if of == "present" {
		return p.server.Present()
	}
	return p.server.Successor()
}

// succeed begins a session at the server and at parties, who announce.
func (p *play) succeed(session int, parties ...int) {
	p.Helper()
	err := p.server.Succeed(p.script.Configs[session])
	p.add(callStep{At: -1, Call: "Succeed", Session: &session, Least: p.server.Least()}, err)
	for _, i := range parties {
		p.join(i, session)
	}
}

// join begins a session at a party, whose announcement goes to the server.
func (p *play) join(party, session int) {
	p.Helper()
	message, err := p.clients[party].Succeed(p.script.Configs[session])
	p.add(callStep{At: party, Call: "Succeed", Session: &session, Answer: message,
		Least: p.clients[party].Least()}, err)
	p.send(party, message)
}

// send gives the server a party's message, if it is one.
func (p *play) send(party int, message []byte) {
	p.Helper()
	if message == nil {
		return
	}
	if p.tamper != nil {
		message = bytes.Clone(message)
		p.tamper(party, message)
	}
	err := p.server.Receive(p.keys[party], message)
	p.add(callStep{At: -1, Call: "Receive", From: &party, Message: message}, err)
}

// call calls the server, and has who is there take what it sends.
func (p *play) call(
	of string, step callStep, call func(s *Server) ([]Envelope, error), absent ...int,
) {
	p.Helper()
	s := p.session(of)
	envelopes, err := call(s)
	step.At, step.Of = -1, of
	for _, e := range envelopes {
		step.Messages = append(step.Messages, callMessage{e.To, bytes.Clone(e.Message)})
	}
	step.Excluded, step.Doubts, step.Awaits = s.Excluded(), s.Doubts(), s.Missing()
	p.add(step, err)
	for _, e := range envelopes {
		if slices.Contains(absent, e.To) {
			continue
		}
		answer, err := p.clients[e.To].Receive(e.Message)
		p.add(callStep{At: e.To, Call: "Receive", Message: bytes.Clone(e.Message),
			Answer: bytes.Clone(answer)}, err)
		p.send(e.To, answer)
	}
}

func (p *play) hand(of string, absent ...int) {
	p.call(of, callStep{Call: "Keys"}, (*Server).Keys, absent...)
}

func (p *play) begin(of, broadcast string, absent ...int) {
	p.call(of, callStep{Call: "Begin", Broadcast: &broadcast},
		func(s *Server) ([]Envelope, error) { return s.Begin([]byte(broadcast)) }, absent...)
}

func (p *play) plain(of, name string, absent ...int) {
	p.call(of, callStep{Call: name}, map[string]func(*Server) ([]Envelope, error){
		"Members": (*Server).Members, "Invite": (*Server).Invite, "Survivors": (*Server).Survivors,
		"Certificate": (*Server).Certificate,
		"Skip":        func(s *Server) ([]Envelope, error) { return nil, s.Skip() },
		"TakeOver":    func(*Server) ([]Envelope, error) { return nil, p.server.TakeOver() },
	}[name], absent...)
}

func (p *play) gather(of string, parties ...int) {
	p.call(of, callStep{Call: "Gather", Parties: parties},
		func(s *Server) ([]Envelope, error) { return s.Gather(parties) })
}

func (p *play) on(name string, party int) {
	p.call("present", callStep{Call: name, Parties: []int{party}},
		func(s *Server) ([]Envelope, error) {
			map[string]func(int){"Exclude": s.Exclude, "Readmit": s.Readmit}[name](party)
			return nil, nil
		})
}

func (p *play) doubt(pairs ...[2]int) {
	p.call("present", callStep{Call: "Doubt", Pairs: pairs},
		func(s *Server) ([]Envelope, error) { return nil, s.Doubt(pairs) })
}

// submit has parties submit, and the server take what they send.
func (p *play) submit(broadcast string, values []uint64, parties ...int) {
	p.Helper()
	for _, i := range parties {
		input := [][]uint64{values}
		message, err := p.clients[i].Submit([]byte(broadcast), input...)
		p.add(callStep{At: i, Call: "Submit", Broadcast: &broadcast, Input: decimal(input),
			Answer: message}, err)
		p.send(i, message)
	}
}

// sum ends a round.
func (p *play) sum(of string) {
	p.Helper()
	s := p.session(of)
	sum, err := s.Sum()
	step := callStep{At: -1, Of: of, Call: "Sum", Excluded: s.Excluded(), Doubts: s.Doubts(),
		Awaits: s.Missing()}
	if err == nil {
		step.Sum, step.Included = decimal(sum), s.Included()
	}
	p.add(step, err)
}

func everybody(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// playCalls goes through the calls of a server, in and out of turn.
func playCalls(t *testing.T) *callScript {
	p := newPlay(t, "the server's calls, in and out of turn", "vectors/calls", 5, func(*Config) {})
	p.succeed(0, 0, 1)
	for _, name := range []string{"Members", "Invite", "Skip", "Survivors", "Certificate",
		"TakeOver"} {
		p.plain("successor", name)
	}
	p.begin("successor", "")
	p.sum("successor")
	p.gather("successor", 0, 1, 2)
	p.hand("successor")
	p.join(2, 0)
	p.join(3, 0)
	p.send(3, p.clients[3].Successor().Announce())
	p.hand("successor", 3) // party 3 does not get it
	p.join(4, 0)
	p.plain("successor", "Members")
	p.plain("successor", "TakeOver")
	p.plain("present", "TakeOver")
	p.begin("present", "model") // 0, 1 and 2 have sent material
	for _, name := range []string{"Invite", "Skip", "Certificate"} {
		p.plain("present", name)
	}
	p.gather("present", 0, 1, 2)
	p.submit("another model", []uint64{1, 2}, 0)
	p.submit("model", []uint64{1 << 20, 2}, 0)
	p.submit("model", []uint64{1}, 0)
	p.submit("model", []uint64{1, 2}, 0, 1)
	p.submit("model", []uint64{1, 2}, 1)
	p.send(0, p.clients[0].Present().Output())
	p.plain("present", "Survivors") // two of three: the round is lost
	p.hand("present")               // party 3 is sent the end of set-up again
	p.plain("present", "Invite")
	p.begin("present", "")
	p.submit("", []uint64{3, 4}, 0, 1, 2, 3)
	p.plain("present", "Survivors", 3)
	p.plain("present", "Survivors")
	p.plain("present", "Certificate", 2)
	p.sum("present")
	p.sum("present")
	p.plain("present", "Skip")
	p.gather("present", 0, 1, 9)
	p.gather("present", 0, 1, 4)
	p.gather("present", 0, 1)
	p.gather("present", 0, 1, 3)
	p.begin("present", "")
	p.submit("", []uint64{5, 6}, 0, 1, 3)
	p.plain("present", "Survivors", 0, 1)
	p.plain("present", "Certificate") // one of two: the round is lost
	p.plain("present", "Skip")
	p.begin("present", "") // what came with the submissions was for the round before
	p.plain("present", "Invite", 0)
	p.begin("present", "")
	p.submit("", []uint64{5, 6}, 3)
	return p.script
}

// playExclusions has parties spoil rounds.
func playExclusions(t *testing.T) *callScript {
	p := newPlay(t, "party 6 reveals wrong shares and is left out; party 5 is by its recovery blob; "+
		"both are readmitted", "vectors/exclusions", 7, func(c *Config) { c.MinMembers = 3 })
	p.succeed(0, everybody(7)...)
	p.tamper = func(from int, message []byte) {
		if from == 5 && message[1] == byte(wire.TypeUpload) {
			message[wire.HeaderSize+8+32+24] ^= 1 // the blob of round 1
		}
	}
	p.hand("successor")
	p.plain("successor", "TakeOver")
	p.begin("present", "")
	p.submit("", []uint64{1, 1}, 0, 1, 2, 3, 4, 6)
	p.plain("present", "Survivors")
	p.plain("present", "Certificate")
	p.sum("present") // lost: the blob of party 5 does not open
	p.tamper = func(from int, message []byte) {
		if from == 6 && message[1] == byte(wire.TypeReveal) {
			message[wire.HeaderSize+4] ^= 1
			message[wire.HeaderSize+36+4] ^= 1
		}
	}
	p.plain("present", "Invite")
	p.begin("present", "")
	p.submit("", []uint64{1, 1}, 0, 1, 2, 3, 4, 6)
	p.plain("present", "Survivors")
	p.plain("present", "Certificate")
	p.sum("present") // corrected, and two owners doubt party 6
	p.tamper = nil
	p.plain("present", "Invite")
	p.on("Readmit", 5)
	p.on("Readmit", 6)
	p.plain("present", "Invite")
	p.on("Exclude", 0)
	p.begin("present", "")
	p.submit("", []uint64{2, 1}, 1, 2, 3, 4, 5, 6)
	p.plain("present", "Survivors")
	p.plain("present", "Certificate")
	p.sum("present")
	p.doubt([2]int{1, 7})
	p.doubt([2]int{2, 2})
	p.doubt([2]int{3, 1})
	p.doubt([2]int{1, 4})
	return p.script
}

// playSeries has one session follow another in the middle of rounds.
func playSeries(t *testing.T) *callScript {
	numbered := func(number uint64) func(*Config) {
		return func(c *Config) { c.Number = number }
	}
	p := newPlay(t, "two sessions of a series, and numbers that cannot be used", "vectors/series", 4,
		numbered(3), numbered(3), numbered(2), numbered(4+MaxNumberJump+1), numbered(MaxNumber+1),
		numbered(1<<64-1), func(c *Config) { c.Label, c.Number = "another", 9 },
		numbered(4+MaxNumberJump))
	p.succeed(0, 0, 1, 2)
	p.hand("successor")
	p.plain("successor", "TakeOver")
	for session := 1; session <= 6; session++ {
		p.join(3, 0) // refused from the second time on
		_, err := p.clients[0].Succeed(p.script.Configs[session])
		p.add(callStep{At: 0, Call: "Succeed", Session: &session, Least: p.clients[0].Least()}, err)
		if session != 3 {
			p.succeed(session)
		}
	}
	p.begin("present", "model")
	p.submit("model", []uint64{1, 2}, 0, 1)
	p.succeed(7, 0, 1, 2, 3) // while the round goes on
	p.hand("successor")
	p.submit("model", []uint64{1, 3}, 2)
	p.plain("present", "Survivors")
	p.plain("present", "TakeOver") // a round is open
	p.plain("present", "Certificate")
	p.sum("present")
	p.plain("present", "TakeOver")
	p.begin("present", "model 2") // with which the parties leave the session before
	p.send(3, p.clients[3].Present().Output())
	p.submit("model 2", []uint64{7, 8}, 0, 1, 2, 3)
	p.plain("present", "Survivors")
	p.plain("present", "Certificate")
	p.sum("present")
	return p.script
}

// playWhole has a session without recovery, in which a round is lost.
func playWhole(t *testing.T) *callScript {
	p := newPlay(t, "without recovery, hybrid keys: a round that is lost, and one that is not",
		"vectors/calls-whole", 3, func(c *Config) {
			c.Recovery, c.Classical, c.MinMembers = nil, false, 2
		})
	p.succeed(0, 0, 1, 2)
	p.plain("successor", "Members")
	p.hand("successor", 2)
	p.begin("successor", "")
	p.plain("successor", "Members", 1)
	p.hand("successor")
	p.plain("successor", "TakeOver")
	p.plain("present", "Members")
	p.begin("present", "")
	p.plain("present", "Survivors")
	p.submit("", []uint64{1, 2}, 0)
	p.sum("present")
	p.plain("present", "Invite")
	p.gather("present", 0, 1)
	p.begin("present", "")
	p.submit("", []uint64{1, 2}, 0, 1)
	p.sum("present")
	return p.script
}

// The code still makes all that testdata/calls.json says.
func TestCallVectors(t *testing.T) {
	scripts := []*callScript{playCalls(t), playExclusions(t), playSeries(t), playWhole(t)}
	found := map[string]bool{}
	for _, script := range scripts {
		for _, step := range script.Steps {
			found[step.Call+" "+step.Error] = true
		}
	}
	for _, want := range []string{"Sum ErrMaterial", "Sum ErrMissing", "Sum ErrPhase", "Sum ",
		"Survivors ErrTooFew", "Certificate ErrTooFew", "Gather ErrTooFew", "Gather ErrMembers",
		"Gather ErrConfig", "Keys ErrTooFew", "Succeed ErrNumber", "Succeed ErrConfig", "Succeed ",
		"TakeOver ErrPhase", "Submit ErrBroadcast", "Submit ErrRange", "Submit ErrLength",
		"Submit ErrPhase", "Begin ErrTooFew", "Doubt ErrMembers", "Receive ErrDuplicate",
		"Receive ErrStale", "Skip ErrPhase", "Invite ErrPhase", "Members ErrPhase"} {
		if !found[want] {
			t.Errorf("no step is %q", want)
		}
	}
	checkGolden(t, "calls", scripts)
}
