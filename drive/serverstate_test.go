package drive_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
)

// savedFault and savedServer have the fields of a server's state.
type savedFault struct {
	Excluded bool
	Stalls   int
	Lapse    uint64
	Caused   int
	Until    uint64
}

type savedServer struct {
	Format int
	Job    drive.Recorded
	Series []byte
	Of     []int
	Sum    []byte
	Digest []byte
	Apart  string
	Faults []savedFault
	Doubts [][2]int
	Took   []drive.Time
}

func gobOf(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fromGob(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// A state comes back as it was saved, and one of another format is refused.
func TestServerState(t *testing.T) {
	server, _ := jobtest.Configs(t,
		jobtest.Options{Parties: 4, Survivors: 3, Rounds: 3, Budget: 2}, nil)
	key := &keyexchange.SealKey{7}
	first, err := drive.NewLead(server, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		first.Connected(10, aParty(i), drive.Hello{Least: 1})
	}
	if err := first.Tick(10); err != nil {
		t.Fatal(err)
	}
	state, err := drive.StateOf(first, key)
	if err != nil {
		t.Fatal(err)
	}
	spent := server.Ledger.Clone()
	if err := spent.SpendRounds(server.Cost, 1, "party-1"); err != nil {
		t.Fatal(err)
	}
	var want savedServer
	fromGob(t, state, &want)
	want.Job = drive.Recorded{Round: 2, Lost: 1, InRow: 1, Fresh: [32]byte{1}, Begun: 9, Paused: true,
		Sessions: want.Job.Sessions}
	if want.Job.Ledger, err = spent.MarshalJSON(); err != nil ||
		want.Job.Sessions[1].Stage != drive.Announcing {
		t.Fatalf("%+v, %v", want.Job, err)
	}
	want.Faults = []savedFault{{}, {Excluded: true}, {Stalls: 1, Lapse: 4}, {Caused: 2, Until: 3}}
	want.Doubts, want.Took[0] = [][2]int{{0, 2}}, 8

	loaded, err := drive.LoadLead(server, key, 10, gobOf(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(server.Ledger.Clients()); n > 0 {
		t.Errorf("the caller's ledger has %d accounts", n)
	}
	if state, err = drive.StateOf(loaded, key); err != nil {
		t.Fatal(err)
	}
	var again savedServer
	fromGob(t, state, &again)
	if again.Series = want.Series; !reflect.DeepEqual(again, want) { // it is sealed anew
		t.Errorf("it is read as %+v, want %+v", again, want)
	}
	for _, want.Format = range []int{0, 2} {
		_, err := drive.LoadLead(server, key, 10, gobOf(t, want))
		if !errors.Is(err, drive.ErrState) {
			t.Errorf("format %d: %v", want.Format, err)
		}
	}
}
