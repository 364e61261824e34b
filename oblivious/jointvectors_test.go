package oblivious

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/joint.json anew")

// A jointVector is a session with all its messages, as testdata/joint.json has it. Each party
// draws from ChaCha8 with the byte Seed + its number and 31 zeros as the seed.
type jointVector struct {
	Label    string          `json:"label"`
	Length   int             `json:"d"`
	Bound    uint64          `json:"bound"`
	Coins    []int           `json:"coins"`
	Roster   []jointIdentity `json:"roster"`
	Inputs   [][]uint64      `json:"inputs"`
	Seed     byte            `json:"seed"`
	Messages []string        `json:"messages"`
	Sum      []uint64        `json:"sum"`
}

type jointIdentity struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// jointVectors are the sessions, without messages.
func jointVectors() []*jointVector {
	return []*jointVector{
		{Label: "a count", Length: 1, Bound: 1, Coins: []int{2}, Inputs: [][]uint64{{1}, {0}},
			Seed: 100},
		{Label: "three parties", Length: 2, Bound: 5, Coins: []int{1, 0, 2},
			Inputs: [][]uint64{{5, 0}, {2, 4}, {1, 3}}, Seed: 110},
	}
}

// play fills in what a session comes to.
func (v *jointVector) play(t *testing.T) {
	t.Helper()
	parties := jointSession(t, JointConfig{Label: v.Label, Length: v.Length, Bound: v.Bound,
		Coins: v.Coins}, v.Inputs, nil)
	v.Roster, v.Messages = nil, nil
	for i, j := range parties {
		j.random = seeded(v.Seed + byte(i))
		roster := j.config.Roster
		v.Roster = append(v.Roster, jointIdentity{roster.Name(i), hex.EncodeToString(roster.Key(i))})
	}
	for parties[0].stage < stageSum {
		err := jointStep(t, parties, func(from, to int, message []byte) []byte {
			if to == (from+1)%len(parties) {
				v.Messages = append(v.Messages, hex.EncodeToString(message))
			}
			return message
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if v.Sum, err = parties[0].Sum(); err != nil {
		t.Fatal(err)
	}
}

// Sessions with known randomness send the bytes of testdata/joint.json, and no others.
func TestJointVectors(t *testing.T) {
	vectors := jointVectors()
	for _, v := range vectors {
		v.play(t)
	}
	b, err := json.MarshalIndent(vectors, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("testdata/joint.json", append(b, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile("testdata/joint.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != string(b)+"\n" {
		t.Error("the sessions are not those of testdata/joint.json: other bytes are sent")
	}
}

// receive says what a party that is not the sender makes of the messages: the sum, or the number
// of the first that it refuses.
func (v *jointVector) receive(t *testing.T) string {
	t.Helper()
	parties := jointSession(t, JointConfig{Label: v.Label, Length: v.Length, Bound: v.Bound,
		Coins: v.Coins}, v.Inputs, nil)
	for i, j := range parties {
		j.random = seeded(v.Seed + byte(i))
	}
	for at, text := range v.Messages {
		message, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		// A step has a message of each party in order; a turn is a step of its own.
		n := len(parties)
		from := at % n
		for _, j := range parties {
			if _, err := j.Next(); err != nil { // the same bytes
				t.Fatal(err)
			}
		}
		for i, j := range parties {
			if i == from {
				continue
			}
			if err := j.Receive(message); err != nil {
				return fmt.Sprint("refused ", at)
			}
		}
	}
	sum, err := parties[0].Sum()
	if err != nil {
		return fmt.Sprint("refused ", len(v.Messages))
	}
	return strings.Trim(fmt.Sprint(sum), "[]")
}

// testdata/joint.py, which was written from docs/joint-noise.md alone, comes to the sums of the
// vectors, and refuses the same messages of changed ones.
func TestJointPython(t *testing.T) {
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3, which is not there")
	}
	var lines strings.Builder
	var want []string
	add := func(v *jointVector) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(b, '\n'))
		want = append(want, v.receive(t))
	}
	vectors := jointVectors()
	for _, v := range vectors {
		v.play(t)
		add(v)
		if got := want[len(want)-1]; got != strings.Trim(fmt.Sprint(v.Sum), "[]") {
			t.Fatal(got)
		}
	}
	// Changes in the signed body are signed again, so that the proof has to fail.
	r := rand.New(rand.NewPCG(11, 12))
	for range suite.Size(10, 10, 60, 400) {
		v := *vectors[0]
		v.Messages = slices.Clone(v.Messages)
		v.resign(t, r.IntN(len(v.Messages)), r)
		add(&v)
	}
	command := exec.Command(name, "testdata/joint.py")
	command.Stdin = strings.NewReader(lines.String())
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatal(err, string(out))
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("there: %q\nhere:  %q", got, want)
	}
	t.Log(want)
}

// resign changes a bit of a message, and in most cases signs it again over what the session has
// come to.
func (v *jointVector) resign(t *testing.T, at int, r *rand.Rand) {
	t.Helper()
	parties := jointSession(t, JointConfig{Label: v.Label, Length: v.Length, Bound: v.Bound,
		Coins: v.Coins}, v.Inputs, nil)
	for i, j := range parties {
		j.random = seeded(v.Seed + byte(i))
	}
	n := len(parties)
	var step int // of the message: turns are a step each
	switch {
	case at < 2*n:
		step = at / n
	case at < 3*n:
		step = 2 + at - 2*n
	default:
		step = 2 + n + (at-3*n)/n
	}
	for range step {
		if err := jointStep(t, parties, nil); err != nil {
			t.Fatal(err)
		}
	}
	message, err := hex.DecodeString(v.Messages[at])
	if err != nil {
		t.Fatal(err)
	}
	m, err := parties[0].config.parseJoint(message)
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Clone(m.body)
	if len(body) == 0 || r.IntN(4) == 0 {
		message[r.IntN(len(message))] ^= 1 << r.IntN(8)
	} else {
		body[r.IntN(len(body))] ^= 1 << r.IntN(8)
		message = parties[m.from].forge(t, body)
	}
	v.Messages[at] = hex.EncodeToString(message)
}
