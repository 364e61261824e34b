package node_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// A federation that is held in four ways.
const (
	waysParties = 5
	waysRounds  = 3
	waysLength  = 37
)

// ways holds it. Its sums are pairwise, or by a committee of this many members.
type ways struct{ members int }

// waysVector returns what a party submits in a round, shorter than the clip of 1.
func waysVector(i, round int) []float64 {
	v := make([]float64, waysLength)
	for k := range v {
		v[k] = math.Sin(float64(100*round+10*i+k)) / 7
	}
	return v
}

// held holds what came of a federation: by round, and of submissions by party.
type held struct {
	mutex     sync.Mutex
	submitted [waysRounds][waysParties][][]uint64
	sums      [waysRounds][][]uint64
	means     [waysRounds][]float64
}

// keep keeps a submission.
func (h *held) keep(round, i int, values [][]uint64) {
	var kept [][]uint64
	for _, v := range values {
		kept = append(kept, slices.Clone(v))
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.submitted[round-1][i] = kept
}

// TestFourWays: one federation, with the same vectors of the same parties, is held by three nodes
// of the service, by a Coordinator over TCP, by package drive in virtual time, and by Python. All
// give the same sums. Those in virtual time are the service's, and the Coordinator's, to the bit,
// of the submissions that those were of. Between the service, the Coordinator and Python the same
// vectors give the same means to a step of the encoding, and no closer: parties round by chance.
// All hold the same job, with one digest, that of the file.
func TestFourWays(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes its time to form, and a program to be built
	ways{}.hold(t)
}

// TestFourWaysOneshot is TestFourWays, with a committee and one message of each party a round.
func TestFourWaysOneshot(t *testing.T) {
	suite.OnlyLong(t)
	ways{members: jobMembers}.hold(t)
}

func (h ways) hold(t *testing.T) {
	var byNodes, byTCP *hushsum.Settled
	t.Run("Service", func(t *testing.T) {
		var got *held
		byNodes, got = h.byNodes(t)
		checkMeans(t, &got.means, stepOfJob)
		h.checkVirtual(t, byNodes, got)
	})
	t.Run("TCP", func(t *testing.T) {
		var got *held
		byTCP, got = h.byTCP(t)
		checkMeans(t, &got.means, stepOfJob)
		h.checkVirtual(t, byTCP, got)
	})
	t.Run("Python", func(t *testing.T) {
		means := h.byPython(t)
		checkMeans(t, &means, stepOfJob)
	})
	if byNodes == nil || byTCP == nil {
		return
	}
	if a, b := byNodes.Layout(), byTCP.Layout(); !reflect.DeepEqual(a, b) {
		t.Errorf("the layouts are %v and %v", a, b)
	}
	file := h.declare(t, t.TempDir())
	for of, settled := range map[string]*hushsum.Settled{"nodes": byNodes, "TCP": byTCP} {
		if got, want := settled.Job().Digest(), file.Digest(); got != want {
			t.Errorf("the digest of the job is %x for %s, and %x of the file", got, of, want)
		}
		if got, want := settled.Job().Explain(), file.Explain(); !reflect.DeepEqual(got, want) {
			t.Errorf("the plan is %q for %s, and %q of the file", got, of, want)
		}
	}
}

// stepOfJob is the most that a mean is off, of a job with sum.fraction_bits = 20: each coordinate
// of a submission is rounded to a step. The last places are of floating-point numbers.
var stepOfJob = math.Sqrt(waysLength)*0x1p-20 + 1e-12

// checkMeans compares the means of the rounds with those of the vectors.
func checkMeans(t *testing.T, means *[waysRounds][]float64, step float64) {
	t.Helper()
	if step > 1e-5 {
		t.Fatalf("a step of %v tells nothing of vectors", step)
	}
	worst := 0.
	for r, mean := range means {
		if len(mean) != waysLength {
			t.Fatalf("round %d has a mean of %d numbers", r+1, len(mean))
		}
		off := 0.
		for k, x := range mean {
			want := 0.
			for i := range waysParties {
				want += waysVector(i, r+1)[k] / waysParties
			}
			off += (x - want) * (x - want)
		}
		if off = math.Sqrt(off); !(off <= step) {
			t.Errorf("the mean of round %d is %v off, a step of the encoding is %v", r+1, off, step)
		}
		worst = max(worst, off)
	}
	t.Logf("means are %.2g off at most, a step of the encoding is %.2g", worst, step)
}

// checkVirtual holds the rounds once more in virtual time, with what parties have submitted, and
// compares the sums.
func (h ways) checkVirtual(t *testing.T, settled *hushsum.Settled, of *held) {
	t.Helper()
	sums := h.virtual(t, settled, of)
	if len(sums) != waysRounds {
		t.Fatalf("%d sums in virtual time", len(sums))
	}
	for r, sum := range sums {
		if !reflect.DeepEqual(sum, of.sums[r]) {
			t.Errorf("the sum of round %d is another in virtual time", r+1)
		}
	}
}

func (h ways) virtual(t *testing.T, settled *hushsum.Settled, of *held) (sums [][][]uint64) {
	t.Helper()
	layout := settled.Layout()
	if h.members > 0 {
		terms := settled.Oneshot().Terms
		w := jobtest.NewCouncil(t, 1, jobtest.CouncilOptions{
			Parties:   waysParties,
			Members:   h.members,
			Survivors: waysParties,
			Rounds:    waysRounds,
			Terms:     terms,
			Vector: func(i int, round uint64) []int64 {
				return masking.Signed(layout, of.submitted[round-1][i])
			},
		})
		for _, seat := range slices.Concat(w.Members, w.Parties) {
			seat.Start()
		}
		w.Run(w.Ended)
		for round := range uint64(len(w.Values)) {
			sums = append(sums, masking.FromSigned(layout, w.Values[round+1]))
		}
		return sums
	}
	w := jobtest.New(t, 1, jobtest.Options{
		Parties:   waysParties,
		Survivors: waysParties,
		Rounds:    waysRounds,
		Hybrid:    true,
		Layout:    layout,
		Vector: func(i int, round uint64) [][]uint64 {
			return of.submitted[round-1][i]
		},
	})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	for _, sum := range w.Sums {
		sums = append(sums, sum.Values)
	}
	return sums
}

// declare writes the job that is held, and reads it.
func (h ways) declare(t *testing.T, folder string) *jobs.Job {
	t.Helper()
	sum := "recovery = true"
	if h.members > 0 {
		sum = fmt.Sprintf(`protocol = "oneshot", committee = "committee.txt", members = %d`, h.members)
	}
	declare(t, folder, waysRounds, waysLength, "1m",
		fmt.Sprintf("parties.count = %d\nsum = { %s }", waysParties, sum), "")
	file, err := jobs.Load(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// byNodes has three nodes of the service hold the federation, with a process each.
func (h ways) byNodes(t *testing.T) (*hushsum.Settled, *held) {
	t.Helper()
	folder := t.TempDir()
	j := job{Parties: waysParties, Length: waysLength, Members: h.members, Silence: 3 * time.Second}
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	prepareJob(t, folder, waysRounds, j)
	h.declare(t, folder)
	prepareCluster(t, folder)
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p := &process{
			role:        "server",
			folder:      folder,
			environment: []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)},
		}
		p.start(t)
		t.Cleanup(func() { p.kill() })
	}
	startJobMembers(t, folder, h.members)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got := new(held)
	var files [waysRounds][]byte
	var group sync.WaitGroup
	for i := range waysParties {
		k := i % len(j.Doors)
		doors := strings.Join(slices.Concat(j.Doors[k:], j.Doors[:k]), ",")
		p, err := loadParty(folder, i, fed, doors)
		if err != nil {
			t.Fatal(err)
		}
		p.Submitted = func(round int, values [][]uint64) { got.keep(round, i, values) }
		p.Trainer = party.TrainerFunc(func(_ context.Context, w *party.Work) (*party.Update, error) {
			if i == 0 {
				files[w.Round-1] = slices.Clone(w.File)
			}
			return &party.Update{Vector: waysVector(i, w.Round)}, nil
		})
		group.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	group.Wait()
	names, err := os.ReadDir(filepath.Join(folder, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		number, _, _ := strings.Cut(name.Name(), "-")
		round, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		var s summed
		if err := find(folder, "sums/"+name.Name(), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Parties) != waysParties {
			t.Errorf("the sum of round %d is of parties %v", round, s.Parties)
		}
		got.sums[round-1] = s.Sum
		total, err := fed.Settled.Decode(jobs.BroadcastDigest(files[round-1]), s.Sum, len(s.Parties))
		got.means[round-1] = total.Mean
		if err != nil {
			t.Fatal(err)
		}
	}
	return fed.Settled, got
}

// byTCP has a Coordinator and Participants hold the federation.
func (h ways) byTCP(t *testing.T) (*hushsum.Settled, *held) {
	t.Helper()
	var identities []ed25519.PrivateKey
	var members []keyexchange.Entry
	for i := range waysParties + 1 { // the last is the coordinator's
		identity, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		identities = append(identities, identity)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: identity.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(members[:waysParties])
	if err != nil {
		t.Fatal(err)
	}
	files := jobs.Files{Roster: roster}
	var helpers []ed25519.PrivateKey
	if h.members > 0 {
		helpers, files.Committee = newPeople(t, "member-", h.members)
	}
	settled, err := h.declare(t, t.TempDir()).Settle(files)
	if err != nil {
		t.Fatal(err)
	}
	own := identities[waysParties]
	// meet listens for those of a roster, and returns how each dials.
	meet := func(list *keyexchange.Roster) (
		*hushsum.TCPListener, func(identity ed25519.PrivateKey) hushsum.Dialer,
	) {
		listener, err := hushsum.ListenTCP("127.0.0.1:0", own, list)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		return listener, func(identity ed25519.PrivateKey) hushsum.Dialer {
			return &hushsum.TCPDialer{Address: listener.Address(), Identity: identity,
				Coordinator: own.Public().(ed25519.PublicKey)}
		}
	}
	listener, dialer := meet(roster)
	var group, helping sync.WaitGroup
	defer helping.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got := new(held)
	c := hushsum.Coordinator[float64]{
		Job:      settled,
		Listener: listener,
		Apply: func(d hushsum.Done[float64]) ([]float64, error) {
			if len(d.Parties) != waysParties {
				t.Errorf("the sum of round %d is of parties %v", d.Number, d.Parties)
			}
			got.sums[d.Number-1], got.means[d.Number-1] = d.Sum.Values(), d.Mean
			return d.Model, nil
		},
	}
	if h.members > 0 {
		meetings, dialer := meet(files.Committee)
		c.Committee = meetings
		for _, identity := range helpers {
			m := hushsum.Member{Job: settled, Identity: identity, Dialer: dialer(identity)}
			helping.Go(func() { _ = m.Run(ctx) }) // or it has not heard of the end
		}
	}
	for i, identity := range identities[:waysParties] {
		p := hushsum.Participant[float64]{
			Job:      settled,
			Identity: identity,
			Dialer:   dialer(identity),
			Work: func(
				_ context.Context, r hushsum.Round[float64],
			) (hushsum.Update[float64], error) {
				return hushsum.Update[float64]{Vector: waysVector(i, int(r.Number))}, nil
			},
			Submitted: func(round uint64, values [][]uint64) { got.keep(int(round), i, values) },
		}
		group.Go(func() {
			if _, err := p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	result, err := c.Run(ctx)
	group.Wait()
	if err != nil || result.Rounds != waysRounds || result.Lost != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	return settled, got
}
