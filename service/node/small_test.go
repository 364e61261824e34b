package node_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// small is a node and four parties in this process.
type small struct {
	t      *testing.T
	in     *network // nil: sockets
	folder string
	fed    *federation.Federation
	node   *node.Node
	log    *safeBuffer
	group  sync.WaitGroup

	witness bool             // the first party is one
	last    [20]atomic.Int64 // rounds that parties have made submissions in
}

const smallParties = 4

// startSmall declares a federation of this many rounds of a short vector, each step of which
// waits for so long, or 10 s. A party that is not heard from counts as absent soon, where a test
// does not say otherwise.
func startSmall(t *testing.T, rounds int, step string, c node.Options) *small {
	t.Helper()
	if c.Hooks().Grace == 0 {
		c.Hooks().Grace = 500 * time.Millisecond
	}
	folder := t.TempDir()
	j := job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5, Step: step}
	prepareJob(t, folder, rounds, j)
	return startIn(t, folder, c)
}

// startIn starts a node without TLS with the federation that a folder declares.
func startIn(t *testing.T, folder string, c node.Options) *small {
	t.Helper()
	c.Hooks().Plain, c.PerSecond = true, testRate
	return startNodeIn(t, folder, c)
}

// startNodeIn starts a node with the federation that a folder declares.
func startNodeIn(t *testing.T, folder string, c node.Options) *small {
	t.Helper()
	s := &small{t: t, folder: folder, log: new(safeBuffer)}
	var err error
	var files *federation.Files
	s.fed, files, err = federation.ReadFiles(filepath.Join(s.folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	c.Folder = filepath.Join(s.folder, "node")
	c.Listen = "127.0.0.1:0"
	c.Log = slog.New(slog.NewTextHandler(s.log, nil))
	if s.node, err = node.Start(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	created, err := s.node.Create(context.Background(), *files)
	if err != nil {
		t.Fatal(err)
	}
	s.fed.Key = created.Key
	return s
}

// trainTime is how long parties train in a bubble, where rounds would take no time else.
const trainTime = 200 * time.Millisecond

// run has a party take part until ctx ends or the federation does.
func (s *small) run(ctx context.Context, i int, now func() time.Time, log *safeBuffer,
	train func() error,
) *party.Party {
	s.t.Helper()
	p, err := loadParty(s.folder, i, s.fed, s.node.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.in.server(p.Server).Now = now
	p.Log = slog.New(slog.NewTextHandler(log, nil))
	p.Witness = s.witness && i == 0
	p.Submitted = func(round int, _ [][]uint64) { s.last[i].Store(int64(round)) }
	p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
		if s.in != nil {
			time.Sleep(trainTime)
		}
		if err := train(); err != nil {
			return nil, err
		}
		return &party.Update{Vector: loadVector(i, 5)}, nil
	})
	s.group.Add(1)
	go func() {
		defer s.group.Done()
		_, err := p.Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, party.ErrAbsent) {
			s.t.Errorf("party %d: %v", i, err)
		}
	}()
	return p
}

// await waits until the federation's status is as it should be.
func (s *small) await(what string, is func(*runner.Status) bool) *runner.Status {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		status, err := s.node.Status(context.Background(), s.fed.ID)
		if err == nil && is(status) {
			return status
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s does not come: %+v, %v", what, status, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// become waits until the node is as it should be.
func (s *small) become(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("the node does not become %s", what)
		}
	}
}

func trains() error { return nil }

// The node's clock is an hour off: nobody is let in, everybody hears both times and asks
// again, and once the clock is right all rounds are held.
func TestClockOfServer(t *testing.T) {
	inTurn(t)
	inBubble(t, clockOfServer)
}

func clockOfServer(t *testing.T, in *network) {
	var off atomic.Int64
	off.Store(int64(time.Hour))
	s := in.small(startSmall(t, 2, "", in.node(node.With(node.Options{}, node.Hooks{
		Now: func() time.Time { return time.Now().Add(time.Duration(off.Load())) },
	}))))
	defer s.node.Close()
	parties := new(safeBuffer)
	here, there := time.Now().UTC(), time.Now().Add(time.Hour).UTC()
	for i := range smallParties {
		s.run(context.Background(), i, nil, parties, trains)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if parties.has("(401, clock)") && s.log.has("clocks differ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody says that clocks differ")
		}
	}
	for _, at := range []time.Time{here, there} {
		day := at.Format("2006-01-02T15:")
		next := at.Add(time.Minute).Format("2006-01-02T15:")
		if !parties.has(day) && !parties.has(next) {
			t.Errorf("the refusal does not tell %s", day)
		}
	}
	status := s.await("a status", func(*runner.Status) bool { return true })
	if status.Round != 0 || status.Session != 0 {
		t.Errorf("with a clock an hour off: %+v", status)
	}
	off.Store(0)
	status = s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Round != 2 || status.Lost != 0 {
		t.Errorf("%d rounds, %d lost", status.Round, status.Lost)
	}
}

// One party's clock is an hour off: rounds go on without it, and it joins once its clock
// is right.
func TestClockOfParty(t *testing.T) {
	inTurn(t)
	inBubble(t, clockOfParty)
}

func clockOfParty(t *testing.T, in *network) {
	const rounds = 400
	s := in.start(t, rounds)
	defer s.node.Close()
	var off atomic.Int64
	off.Store(int64(-time.Hour))
	late := new(safeBuffer)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range smallParties {
		now, log := time.Now, new(safeBuffer)
		if i == 1 {
			now, log = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }, late
		}
		s.run(ctx, i, now, log, trains)
	}
	status := s.await("a round", func(s *runner.Status) bool { return len(s.History) > 1 })
	if n := status.History[0].Parties; n != smallParties-1 || status.Lost > 0 {
		t.Errorf("the first round is of %d parties, %d are lost", n, status.Lost)
	}
	if !late.has("(401, clock)") {
		t.Error("the party does not say why it is out")
	}
	off.Store(0)
	s.await("the party whose clock was off", func(s *runner.Status) bool {
		return len(s.History) > 0 && s.History[len(s.History)-1].Parties == smallParties
	})
	cancel()
	s.group.Wait()
}

// All parties fail in training, without noise: they say so and are not waited for, rounds are
// lost, and after five the federation pauses and says why; resumed, it goes on.
func TestAllFailInTraining(t *testing.T) {
	inTurn(t)
	inBubble(t, allFailInTraining)
}

func allFailInTraining(t *testing.T, in *network) {
	folder := t.TempDir()
	prepareJob(t, folder, 8,
		job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5, Step: "1h"})
	declare(t, folder, 8, 5, "1h", "parties.drop_out = 0.25", "")
	s := in.small(startIn(t, folder, in.node(node.With(node.Options{},
		node.Hooks{Grace: 500 * time.Millisecond}))))
	defer s.node.Close()
	var broken atomic.Bool
	broken.Store(true)
	var trained atomic.Int64
	for i := range smallParties {
		s.run(context.Background(), i, nil, new(safeBuffer), func() error {
			trained.Add(1)
			if broken.Load() {
				return errors.New("no disk space left")
			}
			return nil
		})
	}
	// Who has said that it is absent is not waited for: the pause would come after hours.
	status := s.await("the pause", func(s *runner.Status) bool { return s.State == "paused" })
	if status.Lost != 1 || status.Round != 1 || !strings.Contains(status.Why, "nobody submitted") ||
		!strings.Contains(status.Why, "0 parties submitted") {
		t.Errorf("paused after %d rounds, %d lost: %q", status.Round, status.Lost, status.Why)
	}
	if n := trained.Load(); n > smallParties {
		t.Errorf("%d trainings of %d parties in a round", n, smallParties)
	}
	time.Sleep(time.Second)
	if now := s.await("a status", func(*runner.Status) bool { return true }); now.Round != 1 {
		t.Errorf("paused, round %d", now.Round)
	}
	broken.Store(false)
	asked := page.Order{What: "resume", Who: "a test"}
	if _, err := s.node.Do(context.Background(), s.fed.ID, asked); err != nil {
		t.Fatal(err)
	}
	status = s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Round != 8 || status.Lost != 1 {
		t.Errorf("%d rounds, %d lost", status.Round, status.Lost)
	}
}

// A party that hangs is left out by an operator's order, in the audit log: the round ends without
// it, and so do those that follow, until it is readmitted. Who is not in the roster is refused.
func TestExclude(t *testing.T) {
	inTurn(t)
	inBubble(t, exclude)
}

func exclude(t *testing.T, in *network) {
	folder := t.TempDir()
	prepareJob(t, folder, 5, job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5,
		Step: "1h"})
	s := in.small(startIn(t, folder, in.node(node.With(node.Options{},
		node.Hooks{Grace: 500 * time.Millisecond}))))
	defer s.node.Close()
	ctx := context.Background()
	hangs := make(chan struct{})
	for i := range smallParties {
		s.run(ctx, i, nil, new(safeBuffer), func() error {
			if i == 2 {
				<-hangs
			}
			return nil
		})
	}
	s.await("a round", func(s *runner.Status) bool { return s.Round == 1 })
	asked := page.Order{What: "exclude", Party: "nobody", Who: "a test"}
	if _, err := s.node.Do(ctx, s.fed.ID, asked); !errors.Is(err, runner.ErrParty) {
		t.Errorf("nobody is excluded: %v", err)
	}
	asked = page.Order{What: "exclude", Party: "party-2", Who: "ann"}
	status, err := s.node.Do(ctx, s.fed.ID, asked)
	if err != nil || status.Parties[2].State != "left out" {
		t.Fatalf("%+v, %v", status, err)
	}
	status = s.await("three sums", func(s *runner.Status) bool { return len(s.History) >= 3 })
	for _, p := range status.History {
		if p.Lost != "" || p.Parties != smallParties-1 {
			t.Errorf("round %d has %d parties: %s", p.Round, p.Parties, p.Lost)
		}
	}
	close(hangs)
	asked = page.Order{What: "readmit", Party: "party-2", Who: "ann"}
	if _, err := s.node.Do(ctx, s.fed.ID, asked); err != nil && !errors.Is(err, runner.ErrState) {
		t.Fatal(err)
	}
	s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	lines, err := s.node.LastLines(ctx, s.fed.ID, 200)
	if err != nil || !slices.ContainsFunc(lines, func(l record.Line) bool {
		return l.Event == "left out" && l.Note == "party-2 by ann"
	}) {
		t.Errorf("the audit log has %+v, %v", lines, err)
	}
}
