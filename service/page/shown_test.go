package page_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// shown is a federation as the page gets it.
type shown struct {
	mutex  sync.Mutex
	status runner.Status
	done   []string
	who    string // gave the last order
	fails  error  // what orders fail with
	breaks error  // what backups break off with

	// The audit log: its lines, nil for some; what it lacks; after how many lines it breaks off; how
	// many it gave.
	log                 []record.Line
	missing, cut, given int
	reads               *record.Records // not nil: the log is there

	declare sync.Once
	known   door.Known
}

// about has the unit and the adversary of the federation.
func about() accounting.Statement {
	terms := accounting.Terms{Unit: accounting.RecordUnit, Server: accounting.CheatingServer,
		Colluders: 2}
	s, err := terms.Statement()
	if err != nil {
		panic(err)
	}
	return s
}

func spentOf(epsilon float64) *accounting.Claim {
	c := accounting.NewClaim(about(), accounting.Figures{Bound: accounting.Bound{Upper: epsilon},
		Delta: 1e-5})
	return &c
}

func budgetOf(epsilon float64) *accounting.Budget {
	b, err := accounting.NewBudget(about(), epsilon, 1e-5)
	if err != nil {
		panic(err)
	}
	return &b
}

func newShown() *shown {
	s := &shown{status: runner.Status{
		Name: "study", ID: strings.Repeat("ab", 32), State: "running", Stage: "submitting", Session: 1,
		Round: 7, Rounds: 20, Lost: 1, Spent: spentOf(3.2), Budget: budgetOf(8), Least: 7,
		Leader:    "node-1",
		Decisions: 41, Head: strings.Repeat("3f", 32), Orders: "3-ab", BytesIn: 123456,
		Parties: []runner.PartyStatus{
			{Name: "north", State: "here"}, {Name: "south", State: "late"}, {Name: "east", State: "gone"},
			{Name: "<script>alert(1)</script>", State: "never"},
		},
		Committee: []runner.PartyStatus{
			{Name: "notary", State: "here", Awaited: true}, {Name: "court", State: "here"},
		},
	}}
	for i := range 7 {
		p := runner.Past{Round: i + 1, Session: 1, Parties: 9, Seconds: 1.5, Share: 0.05 * float64(i+1),
			Accuracy: 0.6 + 0.03*float64(i), Began: time.Now()}
		if i == 3 {
			p = runner.Past{Round: 4, Lost: "too few parties"}
		}
		s.status.History = append(s.status.History, p)
	}
	return s
}

func (s *shown) Listing(context.Context) []*runner.Status {
	first, _ := s.Status(context.Background(), s.status.ID)
	all := []*runner.Status{first}
	if first.Why != "several" {
		return all
	}
	for i, state := range []string{"running", "waiting", "paused", runner.Leaderless, "ended",
		"ended"} {
		other := *first
		other.Name = []string{"diabetes-2026", "stroke-follow-up", "telemetry", "icu-mortality",
			"sepsis-pilot", "ward-survey"}[i]
		other.ID, other.State, other.Round = fmt.Sprintf("%064d", i), state, 3*i
		if other.Spent = spentOf(float64(i) + 0.123456); state == "ended" {
			other.Round, other.Lost = other.Rounds, i-4
		}
		all = append(all, &other)
	}
	return all
}

func (s *shown) Signals(ctx context.Context) page.Signals {
	out := page.Signals{Ready: true, Decides: true, DiskFree: 3 << 30, DiskSize: 7 << 30,
		OpenFiles: 40, MostFiles: 1024, Known: 12, Strangers: 3, MostConnections: 400,
		CertificateEnd: time.Unix(1800000000, 0)}
	for _, f := range s.Listing(ctx) {
		out.Federations = append(out.Federations, page.Figures{Name: f.Name, Led: f.Recorded == nil,
			Status: f})
	}
	return out
}

func (s *shown) Health(context.Context) *page.Health {
	copies := []record.Copy{{Node: "node-2", Current: true}, {Node: "node-3", Offline: true}}
	return &page.Health{
		Name: "node-1", Door: "https://10.0.0.1:8443", Fingerprint: strings.Repeat("cd", 32),
		NotReady: "node: nobody leads study", DiskFree: 3 << 30, DiskSize: 7 << 30, OpenFiles: 40,
		MostFiles: 1024, Leads: 1, Federations: 2, Where: "in the nodes' processes, in a cluster",
		Group: &record.Group{Leader: "node-2", Nodes: 3, Quorum: 2},
		Record: &record.Health{Bytes: 12_345_678, Streams: []record.Stream{
			{Name: "KV_hushsum-federations", Leader: "node-1", Wanted: 3, Copies: copies, Messages: 7,
				Bytes: 4321},
			{Name: "OBJ_hushsum-objects-abababababababab", Wanted: 3, Copies: copies},
			{Name: "HUSHSUM-DECIDED", Leader: "node-2", Wanted: 3, Messages: 40, Bytes: 9000,
				Copies: []record.Copy{{Node: "node-1", Current: true}, {Node: "node-3", Current: true}}},
		}},
	}
}

func (s *shown) Status(_ context.Context, id string) (*runner.Status, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if id != s.status.ID {
		return nil, record.ErrNone
	}
	out := s.status
	return &out, nil
}

func (s *shown) Do(
	ctx context.Context, id string, o page.Order,
) (*runner.Status, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if o.Seen != "" && o.Seen != s.status.Orders {
		return nil, runner.ErrStale
	}
	s.mutex.Lock()
	s.done, s.who = append(s.done, strings.TrimSpace(o.What+" "+o.Party)), o.Who
	if o.Party == "" {
		s.status.State = map[string]string{"pause": "paused", "resume": "running",
			"end": "ended"}[o.What]
	}
	s.mutex.Unlock()
	return s.Status(ctx, id)
}

func (s *shown) Answers(_ context.Context, id string) (*federation.Asked, error) {
	if id != s.status.ID {
		return nil, record.ErrNone
	}
	if s.status.Asks == 0 {
		return nil, federation.ErrAsks
	}
	return answered(s.status.State == "ended")
}

func (s *shown) Model(context.Context, string) ([]byte, error) { return []byte("model"), nil }

func (s *shown) Known(string) (door.Known, bool) {
	if s.status.Asks > 0 {
		return door.Known{Federation: questions()}, true
	}
	s.declare.Do(func() {
		var roster strings.Builder
		for i, name := range []string{"north", "south", "east", "west"} {
			fmt.Fprintf(&roster, "%s %x\n", name, []byte(partyKey(byte(i))))
		}
		files := federation.Files{Roster: []byte(roster.String()), Text: []byte(`name = "study"
rounds = 20
seed = 1
parties.roster = "roster.txt"
parties.drop_out = 0.25
sum.adversary = "curious"
privacy.clip = 1.0
privacy.noise = "discrete-gaussian"
privacy.epsilon = 8.0
privacy.delta = 1e-5
privacy.bits = 32
[[model.tensor]]
name = "w"
shape = [4]
`)}
		f, err := federation.New(files)
		if err != nil {
			panic(err)
		}
		s.known = door.Known{Federation: f, Files: files}
	})
	return s.known, true
}

// partyKey makes the public key of a party.
func partyKey(number byte) ed25519.PublicKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = number
	key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return key
}

func (s *shown) After(context.Context, string) (*federation.Files, error) {
	return &federation.Files{Text: []byte("rounds = 2"), Roster: []byte("a")}, nil
}

// logged are the lines of the audit log.
func (s *shown) logged() []record.Line {
	if s.log != nil {
		return s.log
	}
	return []record.Line{
		{Time: time.Unix(0, 0), Event: "created", Note: "by ann"},
		{Time: time.Unix(1, 0), Event: "begun", Round: 7, Parties: 9},
		{Time: time.Unix(2, 0), Event: "summed", Round: 7, Parties: 9, Spent: spentOf(3.2)},
		{Time: time.Unix(9, 0), Event: "paused", Round: 7, Note: "by ann"},
	}
}

func (s *shown) AuditLog(ctx context.Context, id string, from int, each func(record.Line) bool) (
	record.Log, error,
) {
	if s.reads != nil {
		return s.reads.AuditLog(ctx, id, from, each)
	}
	lines := s.logged()
	log := record.Log{Lines: len(lines) + s.missing}
	for i := from - 1; i < len(lines); i++ {
		if s.cut > 0 && i == s.cut {
			return log, record.ErrUnavailable
		}
		s.given++
		lines[i].Number = i + 1
		if !each(lines[i]) {
			return log, nil
		}
	}
	log.Missing = s.missing
	return log, nil
}

func (s *shown) Charges(context.Context, string) ([]accounting.Claim, error) {
	return []accounting.Claim{*spentOf(3.2), *spentOf(1.1)}, nil
}

func (s *shown) Head(context.Context, string) ([]byte, error) { return []byte("a note\n"), nil }

func (s *shown) Chain(context.Context, string) ([]byte, error) { return []byte("a line\n"), nil }

func (s *shown) Check(context.Context) ([]page.Checked, error) {
	return []page.Checked{{Name: "study", Checked: record.Checked{ID: s.status.ID, Entries: 41,
		Problems: []string{"JetStream lacks 2 of 41 decisions"}}}}, nil
}

func (s *shown) ReadLost(_ context.Context, backup io.Reader) (map[string]int, error) {
	b, err := io.ReadAll(backup)
	return map[string]int{"objects": len(b)}, err
}

func (s *shown) Choose(_ context.Context, _, last, by string) error {
	if last != "77" {
		return record.ErrHistory
	}
	s.done = append(s.done, "choose by "+by)
	return nil
}

func (s *shown) LastLines(_ context.Context, _ string, most int) ([]record.Line, error) {
	lines := s.logged()
	return slices.Clone(lines[max(0, len(lines)-most):]), nil
}

func (s *shown) Declare(_ context.Context, _ string, files federation.Files) (string, error) {
	if string(files.Text) == "bad" {
		return "", &job.ConfigError{Line: 3, Path: "rounds", Reason: "0 is too few"}
	}
	return s.status.ID, nil
}

func (s *shown) WriteBackup(_ context.Context, w io.Writer) error {
	if s.fails != nil {
		return s.fails
	}
	_, err := io.WriteString(w, "sealed")
	if err == nil {
		err = s.breaks
	}
	return err
}

func (s *shown) Keys(context.Context) ([]page.Key, error) {
	return []page.Key{{Name: "0123456789abcdef", Seals: true, Objects: 3}}, s.fails
}

func (s *shown) Rewrite(ctx context.Context) ([]page.Key, error) { return s.Keys(ctx) }

func (s *shown) Nodes(context.Context) (*page.Nodes, error) {
	return &page.Nodes{Nodes: []page.Node{{Name: "node-1", Member: true, Here: true}}, Members: 1,
		Quorum: 1, Revision: 4}, s.fails
}

func (s *shown) RemoveNode(ctx context.Context, o page.NodeOrder) (*page.Nodes, error) {
	switch {
	case o.Seen != nil && *o.Seen != 4:
		return nil, page.ErrStale
	case o.Name != "node-1":
		return nil, page.ErrNode
	case !o.Force:
		return nil, page.ErrQuorum
	}
	return s.Nodes(ctx)
}

func (s *shown) ReadBackup(_ context.Context, r io.Reader) ([]string, error) {
	b, err := io.ReadAll(r)
	if err == nil && s.fails == nil && string(b) != "sealed" {
		err = record.ErrAltered
	}
	return []string{s.status.ID}, errors.Join(err, s.fails)
}
