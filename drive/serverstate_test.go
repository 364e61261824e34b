package drive_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"reflect"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/jobtest"
	"github.com/hushsum/hushsum/keyexchange"
)

// savedFault and savedServer have the fields of a server's state in format 1, side by side.
type savedFault struct {
	Excluded bool
	Stalls   int
	Lapse    uint64
	Caused   int
	Until    uint64
}

type savedServer struct {
	Format      int
	Round, Lost uint64
	InRow       int
	Fresh       [32]byte
	Begun       drive.Time
	Paused      bool
	Ended       string
	Stalled     bool
	Ledger      []byte
	Sessions    [2]drive.SessionStage
	Series      []byte
	Of          []int
	Sum         []byte
	Digest      []byte
	Faults      []savedFault
	Doubts      [][2]int
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

// A state of format 1 is read as one of today that says the same, and one of no known format is
// refused.
func TestServerStateFormats(t *testing.T) {
	server, _ := jobtest.Configs(t,
		jobtest.Options{Parties: 4, Survivors: 3, Rounds: 3, Budget: 2}, nil)
	key := &keyexchange.SealKey{7}
	old := savedServer{
		Format: 1, Round: 2, Lost: 1, InRow: 1, Fresh: [32]byte{1}, Begun: 9, Paused: true, Stalled: true,
		Faults: []savedFault{{}, {Excluded: true}, {Stalls: 1, Lapse: 4}, {Caused: 2, Until: 3}},
		Doubts: [][2]int{{0, 2}},
	}
	first, err := drive.NewServer(server, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		first.Connected(10, i, drive.Hello{Least: 1})
	}
	if err := first.Tick(10); err != nil {
		t.Fatal(err)
	}
	state, _, err := first.State(key)
	if err != nil {
		t.Fatal(err)
	}
	spent := server.Ledger.Clone()
	if err := spent.SpendRounds(server.Cost, 1, "party-1"); err != nil {
		t.Fatal(err)
	}
	var today struct {
		Job    drive.Recorded
		Series []byte
	}
	fromGob(t, state, &today)
	old.Sessions, old.Series = today.Job.Sessions, today.Series
	if old.Ledger, err = spent.MarshalJSON(); err != nil || old.Sessions[1].Stage != drive.Announcing {
		t.Fatalf("%+v, %v", today.Job, err)
	}

	loaded, err := drive.ReadServer(server, key, 10, gobOf(t, old), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(server.Ledger.Clients()); n > 0 {
		t.Errorf("the caller's ledger has %d accounts", n)
	}
	if state, _, err = loaded.State(key); err != nil {
		t.Fatal(err)
	}
	var again struct {
		Job    savedServer
		Faults []savedFault
		Doubts [][2]int
	}
	fromGob(t, state, &again)
	want := old
	want.Format, want.Series, want.Faults, want.Doubts = 0, nil, nil, nil
	if !reflect.DeepEqual(again.Job, want) || !reflect.DeepEqual(again.Faults, old.Faults) ||
		!reflect.DeepEqual(again.Doubts, old.Doubts) {
		t.Errorf("it is read as %+v, want %+v", again, old)
	}
	for _, old.Format = range []int{0, 3} {
		_, err := drive.ReadServer(server, key, 10, gobOf(t, old), nil)
		if !errors.Is(err, drive.ErrState) {
			t.Errorf("format %d: %v", old.Format, err)
		}
	}
}
