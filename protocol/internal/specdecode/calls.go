package specdecode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The bounds of numbers in a series (§10.5).
const (
	mostNumber = 1<<62 - 1
	mostJump   = 1 << 40
)

// callScript is a script of calls (§14).
type callScript struct {
	About, Label string
	Configs      []json.RawMessage
	Parties      []struct {
		Identity octets `json:"identity_seed"`
		Random   octets `json:"random_seed"`
	}
	Steps []callStep
}

// callStep is one call of it, with what becomes of it.
type callStep struct {
	At       int
	Call, Of string
	Session  *int
	From     *int
	Message  octets
	Input    []values
	Error    string
	Answer   octets
	Messages []struct {
		To      int
		Message octets
	}
	Sum      []values
	Included []int
	Least    uint64
}

// VerifyCalls checks the vectors of calls (§14) as far as possible without being a server: which
// numbers a series takes, that parties are given what the server sent them and the server, where
// it is taken, what they made or a change of it, and the sums.
func VerifyCalls(data []byte) error {
	var scripts []*callScript
	if err := json.Unmarshal(data, &scripts); err != nil {
		return fmt.Errorf("specdecode: %w", err)
	}
	for _, s := range scripts {
		r := &callRun{script: s, sent: map[string]bool{}, made: map[string]int{},
			inputs: map[int][]values{}, least: map[int]uint64{}}
		for i := range s.Steps {
			if err := r.step(&s.Steps[i]); err != nil {
				return fmt.Errorf("%s, step %d (%s): %w", s.About, i, s.Steps[i].Call, err)
			}
		}
	}
	return nil
}

// callRun is the state of VerifyCalls in one script.
type callRun struct {
	script *callScript
	sent   map[string]bool  // messages of the server, by receiver
	made   map[string]int   // messages of parties, without their body: how often
	inputs map[int][]values // of the open round, by party
	least  map[int]uint64   // of each side's series
	layout []segment        // of the session that was begun last
}

func (r *callRun) step(c *callStep) error {
	if c.At < -1 || c.At >= len(r.script.Parties) {
		return fail("there is no party %d", c.At)
	}
	for _, m := range c.Messages {
		r.sent[fmt.Sprint(m.To, string(m.Message))] = true
	}
	if len(c.Answer) > 0 {
		h, _, err := parseHeader(c.Answer)
		if err != nil || int(h.sender) != c.At {
			return fail("what party %d sends", c.At)
		}
		r.made[string(c.Answer[:46])]++
	}
	switch {
	case c.Call == "Succeed":
		return r.succeed(c)
	case c.Call == "Receive" && c.At >= 0:
		if !r.sent[fmt.Sprint(c.At, string(c.Message))] {
			return fail("the server has not sent this")
		}
	case c.Call == "Receive":
		if c.From == nil || len(c.Message) < 46 || r.made[string(c.Message[:46])] == 0 {
			return fail("the party has not sent this")
		}
	case c.Call == "Begin" && c.Error == "":
		clear(r.inputs)
	case c.Call == "Submit" && c.Error == "":
		r.inputs[c.At] = c.Input
	case c.Call == "Sum" && c.Error == "":
		return r.sum(c)
	}
	return nil
}

// succeed is §10.5's rule of numbers.
func (r *callRun) succeed(c *callStep) error {
	if c.Session == nil || *c.Session < 0 || *c.Session >= len(r.script.Configs) {
		return fail("there is no such session")
	}
	s, err := deriveText(r.script.Configs[*c.Session])
	if err != nil {
		return err
	}
	want, least, number := "", r.least[c.At], s.Config.Number
	switch {
	case s.Config.Label != r.script.Label:
		want = "ErrConfig"
	case number > mostNumber, number < least, c.At >= 0 && number-least > mostJump:
		want = "ErrNumber"
	default:
		r.least[c.At] = number + 1
		if c.At < 0 {
			r.layout = s.layout
		}
	}
	if c.Error != want || c.Least != r.least[c.At] {
		return fail("number %d: %q and least %d, want %q and %d", number, c.Error, c.Least, want,
			r.least[c.At])
	}
	if want == "" && c.At >= 0 && (len(c.Answer) < 46 || !bytes.Equal(c.Answer[2:34], s.digest)) {
		return fail("the announcement is not for the session")
	}
	return nil
}

// sum compares a sum with the inputs of those who are in it.
func (r *callRun) sum(c *callStep) error {
	if len(c.Included) == 0 || !slices.IsSorted(c.Included) || len(c.Sum) != len(r.layout) {
		return fail("whose inputs are in the sum")
	}
	for k, segment := range r.layout {
		for x := range segment.Length {
			var want uint64
			for _, i := range c.Included {
				if r.inputs[i] == nil {
					return fail("party %d has not submitted", i)
				}
				want += r.inputs[i][k][x]
			}
			if want &= ^uint64(0) >> (64 - segment.Bits); c.Sum[k][x] != want {
				return fail("the sum is %d, want %s", c.Sum[k][x], fmt.Sprint(want))
			}
		}
	}
	return nil
}
