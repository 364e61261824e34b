// Package conform tests another implementation of a party of pairwise sums against SPEC.md: it
// plays the sessions of the vectors with that implementation, behind a pipe, and with a
// [protocol.Client], and gives both the same messages, as they were recorded and as they were
// altered. Both must give the same answers, byte for byte, and refuse with the same errors.
//
// The pipe has a line of JSON for each call and for each answer; spec/reference/pipe.py describes
// it, and answers for the party of spec/reference. Randomness is that of SPEC.md §14.
package conform

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/protocol/testdata"
)

// ErrPipe: the program does not speak as the pipe asks, or ended.
var ErrPipe = errors.New("conform: the program does not answer as the pipe asks")

// Options of a test. The zero value alters each message four times, in the same ways each time.
type Options struct {
	Sessions []string             // which are played; nil: all of [Sessions]
	Altered  int                  // how often each recorded message is altered; 0: 4
	Seed     uint64               // of the ways in which it is
	Progress func(session string) // called before each session; nil: it is not
}

// Result counts what was tested of one requirement.
type Result struct {
	Page        string `json:"page"`        // and section, such as SPEC.md §11.1
	Requirement string `json:"requirement"` // such as Begin, or ErrTruncated
	Checked     int    `json:"checked"`
	Failed      int    `json:"failed"`
	First       string `json:"first,omitempty"` // the first failure
}

// Report has the results by requirement, in the order of pages and names.
type Report []Result

// Failed returns how many checks have failed.
func (r Report) Failed() (failed int) {
	for _, one := range r {
		failed += one.Failed
	}
	return failed
}

// Sessions lists the vectors that are played: those of SPEC.md §14 without mistakes in their
// configuration.
func Sessions() []string {
	return []string{"plain", "recovery", "sparse", "missing", "some", "classical", "scheduled"}
}

// sections are where the pages say what a party answers.
var sections = map[wire.Type]struct{ name, section string }{
	wire.TypeKeys:        {"Keys", "§4.2"},
	wire.TypeMembers:     {"Members", "§4.2"},
	wire.TypeInvite:      {"Invite", "§10.2"},
	wire.TypeBegin:       {"Begin", "§10"},
	wire.TypeSurvivors:   {"Survivors", "§10.2"},
	wire.TypeCertificate: {"Certificate", "§10.2"},
}

// refusals are the errors by which a party refuses a message (SPEC.md §11.1).
var refusals = map[string]error{
	"ErrTruncated": protocol.ErrTruncated, "ErrTrailing": protocol.ErrTrailing,
	"ErrOversized": protocol.ErrOversized, "ErrVersion": protocol.ErrVersion,
	"ErrType": protocol.ErrType, "ErrEncoding": protocol.ErrEncoding,
	"ErrSession": protocol.ErrSession, "ErrSender": protocol.ErrSender,
	"ErrDuplicate": protocol.ErrDuplicate, "ErrSignature": protocol.ErrSignature,
	"ErrPublicKey": protocol.ErrPublicKey, "ErrEncapsulationKey": protocol.ErrEncapsulationKey,
	"ErrOwnKey": protocol.ErrOwnKey, "ErrReplay": protocol.ErrReplay,
	"ErrStale": protocol.ErrStale, "ErrSkip": protocol.ErrSkip,
	"ErrParticipants": protocol.ErrParticipants, "ErrTooFew": protocol.ErrTooFew,
	"ErrMembers": protocol.ErrMembers, "ErrSurvivors": protocol.ErrSurvivors,
	"ErrCertificate": protocol.ErrCertificate, "ErrPhase": protocol.ErrPhase,
}

// refusal returns the name of an error, and the party that it names, -1: none.
func refusal(err error) (name string, party int) {
	for name, is := range refusals {
		if errors.Is(err, is) {
			party := -1
			var p *protocol.PartyError
			if errors.As(err, &p) {
				party = p.Party
			}
			return name, party
		}
	}
	return err.Error(), -1
}

type digits []byte

func (d digits) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(d)), nil }

func (d *digits) UnmarshalText(text []byte) (err error) {
	*d, err = hex.DecodeString(string(text))
	return err
}

// session has the parts of a session of the vectors that a party takes part in.
type session struct {
	Config  *protocol.Config `json:"config"`
	Parties []struct {
		Identity digits `json:"identity_seed"`
		Random   digits `json:"random_seed"`
	} `json:"parties"`
	Messages []struct {
		From    int    `json:"from"` // -1 is the server
		To      int    `json:"to"`
		Lost    bool   `json:"lost"`
		Message digits `json:"message"`
	} `json:"messages"`
	Rounds []struct {
		Round     uint64 `json:"round"`
		Broadcast digits `json:"broadcast"`
		Inputs    []struct {
			Party int        `json:"party"`
			Input [][]string `json:"input"`
		} `json:"inputs"`
	} `json:"rounds"`
}

// call is a call over the pipe, and answer its answer.
type call struct {
	Call      string           `json:"call"`
	Party     string           `json:"party"`
	Config    *protocol.Config `json:"config,omitempty"`
	Identity  digits           `json:"identity_seed,omitempty"`
	Random    digits           `json:"random_seed,omitempty"`
	Message   digits           `json:"message"`
	Broadcast digits           `json:"broadcast"`
	Input     [][]string       `json:"input,omitempty"`
}

type answer struct {
	Answer  digits `json:"answer"`
	Error   string `json:"error"`
	Party   *int   `json:"party"`
	Changed bool   `json:"changed"`
	Fault   string `json:"fault"`
}

// stream is the source of randomness of SPEC.md §14: block j is SHA-256(seed ‖ j).
type stream struct {
	seed [32]byte
	next uint64
	rest []byte
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) < len(p) {
		block := sha256.Sum256(binary.BigEndian.AppendUint64(s.seed[:], s.next))
		s.rest = append(s.rest, block[:]...)
		s.next++
	}
	copy(p, s.rest)
	s.rest = s.rest[len(p):]
	return len(p), nil
}

// tester plays sessions with a program.
type tester struct {
	to      *json.Encoder
	from    *bufio.Reader
	options Options
	rng     *rand.Rand
	results map[[2]string]*Result
}

// Party tests the program at the other end of a pipe, which reads calls and writes answers, and
// returns what was found. It fails with [ErrPipe] if the program does not speak as it should,
// and with ctx.Err() between two messages once ctx ends.
func Party(ctx context.Context, pipe io.ReadWriter, o Options) (Report, error) {
	if o.Altered == 0 {
		o.Altered = 4
	}
	t := &tester{json.NewEncoder(pipe), bufio.NewReader(pipe), o, rand.New(rand.NewPCG(o.Seed, 1)),
		make(map[[2]string]*Result)}
	if o.Sessions == nil {
		o.Sessions = Sessions()
	}
	for _, name := range o.Sessions {
		if o.Progress != nil {
			o.Progress(name)
		}
		if err := t.play(ctx, name); err != nil {
			return t.report(), err
		}
	}
	return t.report(), nil
}

func (t *tester) report() (out Report) {
	for _, r := range t.results {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Page, b.Page), cmp.Compare(a.Requirement, b.Requirement))
	})
	return out
}

// check counts a check of a requirement, and notes the failure if wrong says how it failed.
func (t *tester) check(section, requirement string, wrong string) {
	at := [2]string{section, requirement}
	r := t.results[at]
	if r == nil {
		r = &Result{Page: "SPEC.md " + section, Requirement: requirement}
		t.results[at] = r
	}
	r.Checked++
	if wrong != "" {
		if r.Failed++; r.First == "" {
			r.First = wrong
		}
	}
}

// ask makes a call.
func (t *tester) ask(c call) (a answer, err error) {
	if err := t.to.Encode(c); err != nil {
		return a, fmt.Errorf("%w: %w", ErrPipe, err)
	}
	line, err := t.from.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	switch {
	case err != nil:
		return a, fmt.Errorf("%w: %.200q after %s: %w", ErrPipe, line, c.Call, err)
	case a.Fault != "":
		return a, fmt.Errorf("%w: it takes %s for no call: %.200s", ErrPipe, c.Call, a.Fault)
	}
	return a, nil
}

// play plays a session of the vectors.
func (t *tester) play(ctx context.Context, name string) error {
	b, err := testdata.Vectors.ReadFile(name + ".json")
	if err != nil {
		return err
	}
	s := new(session)
	if err := json.Unmarshal(b, s); err != nil {
		return err
	}
	own := make([]*protocol.Client, len(s.Parties))
	for i := range s.Parties {
		c, _, err := s.client(i, 0)
		if err != nil {
			return err
		}
		own[i] = c
		p := &s.Parties[i]
		a, err := t.ask(call{Call: "new", Party: strconv.Itoa(i), Config: s.Config,
			Identity: p.Identity, Random: p.Random})
		if err != nil {
			return err
		}
		t.check("§4.2", "Announce", differs(name, 0, a, c.Announce(), nil))
	}
	for k, m := range s.Messages {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch kind := wire.Type(m.Message[1]); {
		case m.From >= 0 && kind == wire.TypeMasked:
			broadcast, input := s.input(binary.BigEndian.Uint64(m.Message[34:]), m.From)
			a, err := t.ask(call{Call: "submit", Party: strconv.Itoa(m.From), Broadcast: broadcast,
				Input: input})
			if err != nil {
				return err
			}
			want, failed := own[m.From].Submit(broadcast, values(input)...)
			t.check("§8.4", "Masked", differs(name, k, a, want, failed))
		case m.From < 0 && !m.Lost:
			if err := t.altered(s, name, k); err != nil {
				return err
			}
			a, err := t.ask(call{Call: "receive", Party: strconv.Itoa(m.To), Message: m.Message})
			if err != nil {
				return err
			}
			want, failed := own[m.To].Receive(m.Message)
			at := sections[kind]
			t.check(cmp.Or(at.section, "§11.1"), cmp.Or(at.name, fmt.Sprintf("type %d", kind)),
				differs(name, k, a, want, failed))
		}
	}
	return nil
}

// differs says how an answer differs from what a Client answers, if it does.
func differs(session string, message int, got answer, want []byte, failed error) string {
	at := fmt.Sprintf("%s.json, message %d: ", session, message)
	names := -1
	if got.Party != nil {
		names = *got.Party
	}
	if failed == nil {
		switch {
		case got.Error != "":
			return fmt.Sprintf("%srefused with %s, answered by a Client", at, got.Error)
		case !bytes.Equal(got.Answer, want):
			return fmt.Sprintf("%sanswered with %.40x… of %d bytes, want %.40x… of %d", at,
				[]byte(got.Answer), len(got.Answer), want, len(want))
		}
		return ""
	}
	name, party := refusal(failed)
	switch {
	case got.Error == "":
		return fmt.Sprintf("%sanswered, want %s", at, name)
	case got.Error != name || names != party:
		return fmt.Sprintf("%srefused with %s of party %d, want %s of %d", at, got.Error, names, name,
			party)
	case got.Changed:
		return at + "refused, and the party is not as it was"
	}
	return ""
}

// altered gives both sides message k as it was altered in several ways.
func (t *tester) altered(s *session, name string, k int) error {
	to := s.Messages[k].To
	var c *protocol.Client
	var random *stream
	var before stream
	for range t.options.Altered {
		if c == nil {
			var err error
			if c, random, err = s.client(to, k); err != nil {
				return err
			}
			before = *random
		}
		*random = before
		message := s.alter(t.rng, k)
		a, err := t.ask(call{Call: "try", Party: strconv.Itoa(to), Message: message})
		if err != nil {
			return err
		}
		want, failed := c.Receive(message)
		wrong := differs(name, k, a, want, failed)
		if wrong != "" {
			wrong += fmt.Sprintf(", altered to %.60x…", message)
		}
		if failed == nil {
			c = nil // it is not what it was
			t.check("§11.1", "taken although altered", wrong)
			continue
		}
		is, _ := refusal(failed)
		t.check("§11.1", is, wrong)
	}
	return nil
}

// client returns a party as it is after the first messages of a session, and what it draws from.
func (s *session) client(party, messages int) (*protocol.Client, *stream, error) {
	random := &stream{seed: [32]byte(s.Parties[party].Random)}
	c, err := protocol.NewClient(s.Config, ed25519.NewKeyFromSeed(s.Parties[party].Identity), random)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range s.Messages[:messages] {
		switch {
		case m.To == party && m.From < 0 && !m.Lost:
			_, err = c.Receive(m.Message)
		case m.From == party && wire.Type(m.Message[1]) == wire.TypeMasked:
			broadcast, input := s.input(binary.BigEndian.Uint64(m.Message[34:]), party)
			_, err = c.Submit(broadcast, values(input)...)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return c, random, nil
}

// input returns the broadcast of a round, and what a party submits in it.
func (s *session) input(round uint64, party int) (broadcast digits, input [][]string) {
	for _, r := range s.Rounds {
		for _, in := range r.Inputs {
			if r.Round == round && in.Party == party {
				return r.Broadcast, in.Input
			}
		}
	}
	return nil, nil
}

func values(input [][]string) (out [][]uint64) {
	for _, segment := range input {
		var xs []uint64
		for _, text := range segment {
			x, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				panic("conform: " + err.Error()) // the vectors are ours
			}
			xs = append(xs, x)
		}
		out = append(out, xs)
	}
	return out
}

// alter changes a message in one of the ways in which it may go wrong, or be made wrong.
func (s *session) alter(rng *rand.Rand, k int) []byte {
	m := bytes.Clone(s.Messages[k].Message)
	other := s.Messages[rng.IntN(len(s.Messages))].Message
	size := (len(s.Parties) + 7) / 8
	switch rng.IntN(15) {
	case 0:
		return m[:rng.IntN(len(m)+1)]
	case 1:
		return append(m, make([]byte, 1+rng.IntN(100))...)
	case 2: // a bit of the header
		m[rng.IntN(wire.HeaderSize)] ^= 1 << rng.IntN(8)
	case 3: // the round
		binary.BigEndian.PutUint64(m[34:], uint64(rng.IntN(8)))
	case 4: // the type
		m[1] = byte(rng.IntN(14))
	case 5: // another message of the session, of whichever sender
		return bytes.Clone(other)
	case 6: // another message's body
		return append(m[:wire.HeaderSize], other[wire.HeaderSize:]...)
	case 7: // a set at the beginning of the body
		for i := wire.HeaderSize; i < min(len(m), wire.HeaderSize+size); i++ {
			m[i] = byte(rng.Uint32())
		}
	case 8: // a party more or less in a set, of Begin behind the digest
		at := wire.HeaderSize
		if m[1] == byte(wire.TypeBegin) {
			at += 32
		}
		if party := rng.IntN(len(s.Parties)); at+party/8 < len(m) {
			m[at+party/8] ^= 1 << (party % 8)
		}
	case 9: // bytes left out, or twice
		from := rng.IntN(len(m))
		to := from + rng.IntN(min(len(m)-from, 200)+1)
		if rng.IntN(2) == 0 {
			return slices.Delete(m, from, to)
		}
		return slices.Insert(m, from, m[from:to]...)
	case 10: // two parts of the body exchanged
		for i := 0; i < 32 && len(m) > wire.HeaderSize+64; i++ {
			half := wire.HeaderSize + (len(m)-wire.HeaderSize)/2
			m[half-32+i], m[half+i] = m[half+i], m[half-32+i]
		}
	case 11: // the version
		m[0] = byte(rng.IntN(4))
	default: // bits of the body
		for range 1 + rng.IntN(2) {
			m[rng.IntN(len(m))] ^= 1 << rng.IntN(8)
		}
	}
	return m
}
