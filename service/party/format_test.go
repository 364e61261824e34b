package party

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// old is what a party of format 1 left when it was killed in round 2 of a session, between the
// saving of its submission and the sending, with the server as it was then.
type old struct {
	State, Counter, Broadcast []byte
	Server                    [][]byte // of cheat.save
	Submitted                 [][]uint64
}

// A party that has a state of format 1 sends the submission that is in it, goes on with the
// session, and answers none of the rounds that it knows of again.
func TestFormat1(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "format1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var in old
	if err := json.Unmarshal(b, &in); err != nil {
		t.Fatal(err)
	}
	c := newCheat(few(t), round(2), round(2), round(1), round(3))
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
