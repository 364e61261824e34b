package cost_test

import (
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation/cost"
)

// The short form takes some seconds, the long one some minutes and 5 GB.
var sizes = flag.String("sizes", "",
	"numbers of parties; with 10000 it takes minutes; empty: 100,600, with -long 100,1000")

// measured holds what the machines of a session took.
type measured struct {
	setUp, round             time.Duration // of a party, mean
	serverSetUp, serverRound time.Duration
	bytes                    cost.Bytes // of a party, mean
	party, server            float64    // bytes of memory, inside a round
}

// parallel calls work for 0 to n − 1 on all cores.
func parallel(n int, work func(i int) error) error {
	var wg sync.WaitGroup
	failures := make([]error, runtime.GOMAXPROCS(0))
	for w := range failures {
		wg.Go(func() {
			runtime.LockOSThread() // whose time is measured
			defer runtime.UnlockOSThread()
			for i := w; i < n && failures[w] == nil; i += len(failures) {
				failures[w] = work(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(failures...)
}

// worked is how long this thread has worked, which does not depend on what else the
// machine does.
func worked() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Unix(now.Unix())
}

// heap returns what is in use.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// uncollected has nothing collected until the function that it returns is called. A server's
// or a party's own heap is small: no time is to be spent on looking for garbage among what all
// parties of a session have. Nor is it to be spent on memory that is new to the process: what
// is needed meanwhile has been used before, as in a party that has been there for a while.
func uncollected() func() {
	used := make([][]byte, 1<<16)
	for i := range used {
		used[i] = make([]byte, 1<<10)
		used[i][0] = 1
	}
	used = nil
	runtime.GC()
	before := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(before) }
}

// people makes a roster, and those in it.
func people(t testing.TB, n int) (*keyexchange.Roster, []ed25519.PrivateKey) {
	t.Helper()
	members, signers := make([]keyexchange.Entry, n), make([]ed25519.PrivateKey, n)
	for i := range members {
		var err error
		if signers[i], err = keyexchange.GenerateIdentity(nil); err != nil {
			t.Fatal(err)
		}
		members[i] = keyexchange.Entry{
			Name: fmt.Sprint("party-", i),
			Key:  signers[i].Public().(ed25519.PublicKey),
		}
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return roster, signers
}

// sessionOf returns the session to measure: a session of package protocol against a curious server,
// on a sparse graph or the complete one.
func sessionOf(
	t testing.TB, n int, sparse bool,
) (*protocol.Config, []ed25519.PrivateKey, cost.Session) {
	t.Helper()
	roster, signers := people(t, n)
	config := &protocol.Config{
		Label:    "cost",
		Roster:   roster,
		Layout:   masking.Layout{{Length: 1000, Bits: 24}},
		Recovery: &protocol.Recovery{Adversary: protocol.CuriousServer, MinSurvivors: n * 9 / 10},
	}
	if sparse {
		sizes := protocol.Sizes{Least: n, Most: n, Survivors: n * 95 / 100, Colluders: n / 20}
		p, err := protocol.Parameters(sizes, 0, 40, 30, protocol.CuriousServer)
		if err != nil {
			t.Fatal(err)
		}
		config.Colluders, config.Recovery.CorruptNeighbours = n/20, p.CorruptNeighbours
		config.Recovery.Degree, config.Recovery.Threshold = p.Neighbours, p.Threshold
	} else {
		config.Recovery.Threshold = n/2 + 1
	}
	return config, signers, cost.Session{
		Parties:    n,
		Neighbours: config.Recovery.Degree,
		Threshold:  config.Recovery.Threshold,
		Length:     1000,
		Bits:       24,
		Recovery:   true,
	}
}

// measure runs set-up and one round.
func measure(t testing.TB, config *protocol.Config, signers []ed25519.PrivateKey) (m measured) {
	t.Helper()
	n := len(signers)
	before := heap()
	server, err := protocol.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	times, sent, got := make([]time.Duration, n+1), make([]int64, n), make([]int64, n)
	var mu sync.Mutex
	c := &protocol.Carrier[*protocol.Server, *protocol.Client]{
		Config:  config,
		Server:  server,
		Clients: make([]*protocol.Client, n),
		Each:    parallel,
		Work: func(party int) func() {
			begin := worked()
			return func() {
				took := worked().Sub(begin)
				mu.Lock()
				defer mu.Unlock()
				times[party+1] += took
			}
		},
		Carry: func(from, to int, message []byte) []byte {
			mu.Lock()
			defer mu.Unlock()
			if from >= 0 {
				sent[from] += int64(len(message))
			} else {
				got[to] += int64(len(message))
			}
			return message
		},
		Refused: func(_, _ int, err error) error { return err },
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mean := func() (party, server time.Duration, up, down int64) {
		for i := range n {
			party, up, down = party+times[i+1], up+sent[i], down+got[i]
		}
		server = times[0]
		clear(times)
		clear(sent)
		clear(got)
		return party / time.Duration(n), server, up / int64(n), down / int64(n)
	}
	fail(parallel(n, func(i int) (err error) {
		begin := worked()
		c.Clients[i], err = protocol.NewClient(config, signers[i], nil)
		times[i+1] += worked().Sub(begin)
		return err
	}))
	for i, client := range c.Clients {
		fail(c.ToServer(i, client.Announce()))
	}
	began := worked()
	fail(server.EndStep())
	times[0] += worked().Sub(began)
	// The messages of keys one after another: all of them are 13 GB for 10,000 parties.
	// They are put together here, as if they came through a network.
	const atOnce = 16
	for first := 0; first < n; first += atOnce {
		var envelopes []protocol.Envelope
		for i := first; i < min(n, first+atOnce); i++ {
			began := worked()
			for shared, own := range server.PendingParts(i) {
				times[0] += worked().Sub(began)
				message := slices.Concat(shared, own)
				envelopes = append(envelopes, protocol.Envelope{To: i, Message: message})
				began = worked()
			}
			times[0] += worked().Sub(began)
		}
		fail(c.Step(func() ([]protocol.Envelope, error) { return envelopes, nil }))
	}
	fail(c.Step(server.Members))
	m.setUp, m.serverSetUp, m.bytes.SetUpSent, m.bytes.SetUpReceived = mean()
	defer uncollected()()
	input := [][]uint64{make([]uint64, config.Layout[0].Length)}
	fail(c.Begin(nil))
	fail(c.Submit(nil, func(int) ([][]uint64, error) { return input, nil }))
	whole := heap()
	fail(c.Certify())
	began = worked()
	if _, err := server.Sum(); err != nil {
		t.Fatal(err)
	}
	times[0] += worked().Sub(began)
	m.round, m.serverRound, m.bytes.RoundSent, m.bytes.RoundReceived = mean()
	// Who holds what in a round: parties are forgotten, and a server is left as it was
	// in the middle of the next one.
	fail(c.Begin(nil))
	fail(c.Submit(nil, func(int) ([][]uint64, error) { return input, nil }))
	c.Clients = nil
	left := heap()
	m.party, m.server = (whole-left)/float64(n), left-before
	runtime.KeepAlive(server)
	return m
}

// row is a prediction next to what was measured.
type row struct {
	name      string
	predicted float64
	measured  float64
	within    float64
}

// ofParty are the rows of a party, its times apart.
func ofParty(session cost.Session, m *measured) []row {
	bytes := session.Wire()
	return []row{
		{"set-up, bytes sent", float64(bytes.SetUpSent), float64(m.bytes.SetUpSent), 0.02},
		{"set-up, bytes received", float64(bytes.SetUpReceived), float64(m.bytes.SetUpReceived), 0.02},
		{"round, bytes sent", float64(bytes.RoundSent), float64(m.bytes.RoundSent), 0.02},
		{"round, bytes received", float64(bytes.RoundReceived), float64(m.bytes.RoundReceived), 0.02},
		{"party, memory, kB", float64(session.PartyMemory()) / 1e3, m.party / 1e3, 0.25},
	}
}

// timesOfParty are the rows of the time that a party works.
func timesOfParty(session cost.Session, units cost.Units, m *measured) []row {
	party := session.Party(units)
	return []row{
		{"party, set-up, ms", ms(party.SetUp()), ms(m.setUp), 0.25},
		{"party, round, ms", ms(party.Round()), ms(m.round), 0.25},
	}
}

// ofServer are the rows of the server, its times apart.
func ofServer(session cost.Session, m *measured) []row {
	return []row{
		{"server, memory, kB", float64(session.ServerMemory()) / 1e3, m.server / 1e3, 0.25},
	}
}

// timesOfServer are the rows of the time that the server works.
func timesOfServer(session cost.Session, units cost.Units, m *measured) []row {
	server := session.Server(units)
	return []row{
		{"server, set-up, ms", ms(server.SetUp), ms(m.serverSetUp), 0.25},
		{"server, round, ms", ms(server.Round()), ms(m.serverRound), 0.25},
	}
}

// tries is how often units and sessions may be measured again: how fast a machine is
// changes with what else it does, between the two too. That only adds to times, so the
// least of all tries is kept of both, which come ever nearer to what they take alone. A
// wrong count of operations stays wrong.
const tries = 8

// observed is the least of each unit and of each time of a session so far.
type observed struct {
	units cost.Units
	measured
}

// again adds a try.
func (o *observed) again(units cost.Units, m measured) {
	if o.units == (cost.Units{}) {
		o.units, o.measured = units, m
		return
	}
	have, now := reflect.ValueOf(&o.units).Elem(), reflect.ValueOf(units)
	for i := range have.NumField() {
		have.Field(i).SetFloat(min(have.Field(i).Float(), now.Field(i).Float()))
	}
	o.best(m)
	o.bytes, o.party, o.server = m.bytes, m.party, m.server
}

// check compares until all rows are within what they may be off; rows measures units and
// sessions each time.
func check(t *testing.T, n int, rows func() []row) {
	t.Helper()
	for try := 1; ; try++ {
		wrong := 0
		for _, r := range rows() {
			off := r.predicted/r.measured - 1
			t.Logf("n = %6d  %-24s predicted %12.2f  measured %12.2f  %+5.1f %%", n, r.name,
				r.predicted, r.measured, 100*off)
			if !(math.Abs(off) <= r.within) {
				wrong++
				if try == tries || n > 5000 {
					t.Errorf("n = %d, %s: off by %.1f %%", n, r.name, 100*off)
				}
			}
		}
		if wrong == 0 || try == tries || n > 5000 {
			return
		}
	}
}

// best keeps the least time of each kind: what else the machine does adds to it.
func (m *measured) best(again measured) {
	m.setUp, m.round = min(m.setUp, again.setUp), min(m.round, again.round)
	m.serverSetUp = min(m.serverSetUp, again.serverSetUp)
	m.serverRound = min(m.serverRound, again.serverRound)
}

// measureUnits measures the units on this many cores at once, as parties work.
func measureUnits(t *testing.T, cores int) cost.Units {
	t.Helper()
	all := make([]cost.Units, cores)
	err := parallel(cores, func(i int) (err error) {
		all[i], err = cost.Measure(worked, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", all[0])
	return all[0]
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// eachSize has the thread's time measured, and runs for each size.
func eachSize(t *testing.T, run func(n int)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	list := *sizes
	if list == "" {
		list = fmt.Sprint("100,", suite.Size(600, 600, 1000, 1000))
	}
	for _, word := range strings.Split(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if n > 500 && testing.Short() {
			continue
		}
		run(n)
	}
}

// timed measures units, on this many cores at once, and a session three times, as units are,
// and adds both to what was observed.
func (o *observed) timed(t *testing.T, cores, sessions int, session func() measured) {
	t.Helper()
	units, m := measureUnits(t, cores), session()
	for range sessions - 1 {
		m.best(session())
	}
	o.again(units, m)
}

// Predictions are within a quarter of what is measured in the same run: memory of a party and
// of the server, and with -timing the time of one core of each; bytes are exact but for who is
// above whom in the roster. Nothing of the sessions is in the predictions: units are measured
// one by one. Up to 500 parties are on the complete graph, more on a sparse one, and all of
// them do all their work.
func TestPredictions(t *testing.T) {
	eachSize(t, func(n int) {
		if n > 5000 {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(5 << 30))
		}
		config, signers, session := sessionOf(t, n, n > 500)
		again := func() measured { return measure(t, config, signers) }
		var o observed
		check(t, n, func() []row {
			if !suite.Timing() {
				m := again()
				return append(ofParty(session, &m), ofServer(session, &m)...)
			}
			o.timed(t, runtime.GOMAXPROCS(0), 1+2*min(1, 1000/n), again)
			return slices.Concat(timesOfParty(session, o.units, &o.measured),
				ofParty(session, &o.measured), timesOfServer(session, o.units, &o.measured),
				ofServer(session, &o.measured))
		})
	})
}

// The same for a party on the complete graph, with stand-ins for all others and for the
// server.
func TestPredictionsComplete(t *testing.T) {
	eachSize(t, func(n int) {
		config, signers, session := sessionOf(t, n, false)
		again := func() measured { return measureAlone(t, config, signers) }
		var o observed
		check(t, n, func() []row {
			if !suite.Timing() {
				m := again()
				return ofParty(session, &m)
			}
			o.timed(t, 1, 3, again)
			return append(timesOfParty(session, o.units, &o.measured), ofParty(session, &o.measured)...)
		})
	})
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
