package protocol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
)

// twin is a party of spec/reference, which is written from SPEC.md alone, behind a pipe.
type twin struct {
	*testing.T
	to   io.WriteCloser
	from *bufio.Reader
}

// newTwin starts it. Without a Python that can run it the test skips, unless
// HUSHSUM_REQUIRE_PYTHON=1.
func newTwin(t *testing.T) *twin {
	t.Helper()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import cryptography").Run() == nil {
			python = name
			break
		}
	}
	if python == "" && os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1" {
		t.Fatal("there is no python3 with cryptography")
	}
	if python == "" {
		t.Skip("needs python3 with cryptography, which is not there")
	}
	c := exec.CommandContext(t.Context(), python, "-B", "../spec/reference/party.py", "--pipe")
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = to.Close()
		if err := c.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return &twin{t, to, bufio.NewReader(from)}
}

// twinCall is a call, in the words of spec/reference/pipe.py.
type twinCall struct {
	Call      string     `json:"call"`
	Party     string     `json:"party"`
	Config    *Config    `json:"config,omitempty"`
	Identity  hexBytes   `json:"identity_seed,omitempty"`
	Random    hexBytes   `json:"random_seed,omitempty"`
	Message   hexBytes   `json:"message"`
	Broadcast hexBytes   `json:"broadcast"`
	Input     [][]string `json:"input,omitempty"`
}

// twinAnswer is the answer to a call.
type twinAnswer struct {
	Answer  hexBytes `json:"answer"`
	Error   string   `json:"error"`
	Party   *int     `json:"party"`
	Changed bool     `json:"changed"`
	Fault   string   `json:"fault"`
}

// ask makes calls, and returns their answers.
func (w *twin) ask(calls ...twinCall) []twinAnswer {
	w.Helper()
	sent := make(chan error, 1)
	go func() {
		lines := json.NewEncoder(w.to)
		var err error
		for i := range calls {
			if err == nil {
				err = lines.Encode(calls[i])
			}
		}
		sent <- err
	}()
	answers := make([]twinAnswer, len(calls))
	for i := range answers {
		line, err := w.from.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &answers[i])
		}
		if err != nil || answers[i].Fault != "" {
			w.Fatalf("%s: %v", line, err)
		}
	}
	if err := <-sent; err != nil {
		w.Fatal(err)
	}
	return answers
}

// alter changes a message in one of the ways in which it may go wrong, or be made wrong.
func (s *vectorSession) alter(rng *rand.Rand, k int) []byte {
	m := bytes.Clone(s.Messages[k].Message)
	other := s.Messages[rng.IntN(len(s.Messages))].Message
	size := (len(s.Parties) + 7) / 8
	switch rng.IntN(14) {
	case 0:
		return m[:rng.IntN(len(m)+1)]
	case 1:
		return append(m, make([]byte, 1+rng.IntN(100))...)
	case 2: // a bit of the header
		m[rng.IntN(wire.HeaderSize)] ^= 1 << rng.IntN(8)
	case 3:
		binary.BigEndian.PutUint64(m[34:], uint64(rng.IntN(8)))
	case 4:
		m[1] = byte(rng.IntN(14))
	case 5: // another message of the session, of whichever sender
		return bytes.Clone(other)
	case 6: // another message's body
		return append(m[:wire.HeaderSize], other[wire.HeaderSize:]...)
	case 7: // a set at the beginning of the body
		for i := wire.HeaderSize; i < min(len(m), wire.HeaderSize+size); i++ {
			m[i] = byte(rng.Uint32())
		}
	case 8: // a party more or less in a set, or in what stands there, of Begin behind the digest
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
	default: // bits of the body
		for range 1 + rng.IntN(2) {
			m[rng.IntN(len(m))] ^= 1 << rng.IntN(8)
		}
	}
	return m
}

// A party that is written from SPEC.md alone refuses what a Client refuses, with the same error and
// the same party, and answers what a Client answers, byte for byte.
func TestReferenceTwin(t *testing.T) {
	perMessage := 4
	if suite.Long() {
		perMessage = 60
	}
	if suite.Longest() {
		perMessage = 300
	}
	w, rng := newTwin(t), rand.New(rand.NewPCG(1, 2))
	refused, taken := 0, 0
	errors := map[string]int{}
	for _, name := range []string{"plain", "recovery", "sparse", "missing", "some", "classical",
		"scheduled"} {
		s := readSession(t, name)
		for i, p := range s.Parties {
			answer := w.ask(twinCall{Call: "new", Party: fmt.Sprint(i), Config: s.Config,
				Identity: p.Identity, Random: p.Random})
			if answer[0].Error != "" {
				t.Fatal(name, answer)
			}
		}
		for k, m := range s.Messages {
			h, _ := headerOf(t, m.Message)
			switch {
			case m.From >= 0 && h.Type == wire.TypeMasked:
				round := s.round(h.Round)
				at := slices.IndexFunc(round.Inputs, func(in vectorInput) bool { return in.Party == m.From })
				w.ask(twinCall{Call: "submit", Party: fmt.Sprint(m.From), Broadcast: round.Broadcast,
					Input: round.Inputs[at].Input})
			case m.From < 0 && !m.Lost:
				a, b := s.compare(w, rng, k, perMessage, errors)
				refused, taken = refused+a, taken+b
				w.ask(twinCall{Call: "receive", Party: fmt.Sprint(m.To), Message: m.Message})
			}
		}
	}
	t.Logf("%d refused alike, %d taken alike: %v", refused, taken, errors)
	if refused == 0 || taken == 0 {
		t.Error("want some of either")
	}
}

// compare gives both sides a message as it was altered in several ways.
func (s *vectorSession) compare(
	w *twin, rng *rand.Rand, k, count int, errors map[string]int,
) (refused, taken int) {
	to := s.Messages[k].To
	var calls []twinCall
	for range count {
		calls = append(calls, twinCall{Call: "try", Party: fmt.Sprint(to), Message: s.alter(rng, k)})
	}
	answers := w.ask(calls...)
	var c *Client
	var before stream
	for i, call := range calls {
		if c == nil {
			c = s.clientAfter(w.T, to, k)
			before = *c.random.(*stream)
		}
		*c.random.(*stream) = before
		answer, err := c.Receive(call.Message)
		theirs, names := answers[i], -1
		if theirs.Party != nil {
			names = *theirs.Party
		}
		if err == nil {
			if theirs.Error != "" || !bytes.Equal(theirs.Answer, answer) {
				w.Errorf("message %d, %x: a Client answers %x, the twin %x, %s", k, call.Message, answer,
					theirs.Answer, theirs.Error)
			}
			taken++
			c = nil // it is not what it was
			continue
		}
		name, party := nameOf(err)
		if name != theirs.Error || party != names || theirs.Changed {
			w.Errorf("message %d, %x: a Client says %v, the twin %q of %d, changed %v", k, call.Message,
				err, theirs.Error, names, theirs.Changed)
		}
		refused++
		errors[name]++
	}
	return refused, taken
}
