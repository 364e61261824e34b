package party

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
)

// old holds the files that a party of format 1 left when it was killed in round 2 of a session,
// between the saving of its submission and the sending, with the server as it was then.
type old struct {
	State, Counter, Broadcast []byte
	Server                    [][]byte // of cheat.save
	Submitted                 [][]uint64
}

func readOld(t *testing.T) (in old) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "format1.json"))
	if err == nil {
		err = json.Unmarshal(b, &in)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// fewBefore is few by a file of an earlier release, of which states of format 1 are.
func fewBefore(t *testing.T) *federation.Federation {
	t.Helper()
	return fewOf(t, `name = "few"
roster = "r"
rounds = 3
[[model.tensor]]
name = "w"
shape = [3]
[recovery]
drop_out = 0.25
adversary = "curious"
[privacy]
clip = 1.0
`+noise)
}

// A party that has a state of format 1 sends the submission that is in it, goes on with the
// session, and answers none of the rounds that it knows of again.
func TestFormat1(t *testing.T) {
	in := readOld(t)
	c := newCheat(fewBefore(t), round(2), round(2), round(1), round(3))
	c.folder = t.TempDir()
	for name, b := range map[string][]byte{fileState: in.State, fileCounter: in.Counter} {
		if err := os.WriteFile(filepath.Join(c.folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.load(in.Server); err != nil {
		t.Fatal(err)
	}
	c.number, c.begun, c.file = 1, true, in.Broadcast
	c.play(t, nil, nil)
	c.check(t)
	if len(c.released) != 2 || c.told != 3 || !slices.Equal(c.declined, []uint64{2, 1}) {
		t.Errorf("%d submissions, told of round %d, declined %v", len(c.released), c.told, c.declined)
	}
	if len(c.sums[2]) == 0 || !slices.Equal(c.sums[2][0][0], in.Submitted[0]) || len(c.sums[3]) != 1 {
		t.Errorf("sums %v, submitted %v in round 2", c.sums, in.Submitted)
	}
}

// What format 1 counted is spent too, where it is more than the rounds that the party knows of:
// somebody has declared a loss.
func TestFormat1Declared(t *testing.T) {
	in := readOld(t)
	p := member(t, fewBefore(t), "http://127.0.0.1:1", t.TempDir())
	r := &running{Party: *p}
	var err error
	if r.store, err = openStore(p.Folder, p.Key, kindParty, p.Federation.ID, p.Identity); err != nil {
		t.Fatal(err)
	}
	defer r.store.Close()
	v, err := r.store.open(in.State)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ submitted, spent int }{{2, 2}, {3, 3}, {9, 3}, {-1, 2}} {
		v.Submitted = c.submitted
		config := drive.PartyConfig{
			Limits:  drive.Limits{Rounds: uint64(p.Federation.Settled.Rounds())},
			Session: p.Federation.Settled.Config,
			Label:   p.Federation.Settled.Config(1).Label,
		}
		party, err := r.loadSeries(config, v)
		if err != nil {
			t.Fatal(err)
		}
		guard := party.Guard()
		if guard.Last() != uint64(c.spent) {
			t.Errorf("%d submissions: all up to %d are spent, want %d", c.submitted, guard.Last(), c.spent)
		}
	}
}

// A state of a format that is not known is refused, whoever sealed it.
func TestFormatUnknown(t *testing.T) {
	s, err := openStore(t.TempDir(), &keyexchange.SealKey{2}, kindParty, "f", seedOf(0))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, format := range []int{-1, 0, savedFormat + 1} {
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(saved{Format: format}); err != nil {
			t.Fatal(err)
		}
		nonce, err := keyexchange.GenerateNonce(nil)
		if err != nil {
			t.Fatal(err)
		}
		box, err := keyexchange.Seal(&nonce, s.key, b.Bytes(), s.owner)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.open(box); !errors.Is(err, ErrStored) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}
