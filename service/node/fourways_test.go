package node_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/party"
)

// A federation that is held in four ways.
const (
	waysParties = 5
	waysRounds  = 3
	waysLength  = 37
)

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
	var byNodes, byTCP *hushsum.Settled
	t.Run("Service", func(t *testing.T) {
		var got *held
		byNodes, got = waysByNodes(t)
		checkMeans(t, &got.means, stepOfJob)
		checkVirtual(t, byNodes, got)
	})
	t.Run("TCP", func(t *testing.T) {
		var got *held
		byTCP, got = waysByTCP(t)
		checkMeans(t, &got.means, stepOfJob)
		checkVirtual(t, byTCP, got)
	})
	t.Run("Python", func(t *testing.T) {
		means := waysByPython(t)
		checkMeans(t, &means, stepOfJob)
	})
	if byNodes == nil || byTCP == nil {
		return
	}
	if a, b := byNodes.Layout(), byTCP.Layout(); !reflect.DeepEqual(a, b) {
		t.Errorf("the layouts are %v and %v", a, b)
	}
	folder := t.TempDir()
	declareWays(t, folder)
	file, err := jobs.Load(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for of, settled := range map[string]*hushsum.Settled{"nodes": byNodes, "TCP": byTCP} {
		if got, want := settled.Job().Digest(), file.Digest(); got != want {
			t.Errorf("the digest of the job is %x for %s, and %x of the file", got, of, want)
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
func checkVirtual(t *testing.T, settled *hushsum.Settled, h *held) {
	t.Helper()
	w := jobtest.New(t, 1, jobtest.Options{
		Parties:   waysParties,
		Survivors: waysParties,
		Rounds:    waysRounds,
		Hybrid:    true,
		Layout:    settled.Layout(),
		Vector: func(i int, round uint64) [][]uint64 {
			return h.submitted[round-1][i]
		},
	})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	if len(w.Sums) != waysRounds {
		t.Fatalf("%d sums in virtual time", len(w.Sums))
	}
	for r, sum := range w.Sums {
		if !reflect.DeepEqual(sum.Values, h.sums[r]) {
			t.Errorf("the sum of round %d is another in virtual time", r+1)
		}
	}
}

// declareWays writes the job that is held.
func declareWays(t *testing.T, folder string) {
	t.Helper()
	declare(t, folder, waysRounds, waysLength, "1m", "sum.recovery = true", "")
}

// waysByNodes has three nodes of the service hold the federation, with a process each.
func waysByNodes(t *testing.T) (*hushsum.Settled, *held) {
	t.Helper()
	folder := t.TempDir()
	j := job{Parties: waysParties, Length: waysLength, Silence: 3 * time.Second}
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	prepareJob(t, folder, waysRounds, j)
	declareWays(t, folder)
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
		got.means[round-1], err = fed.Settled.Decode(files[round-1], s.Sum, len(s.Parties))
		if err != nil {
			t.Fatal(err)
		}
	}
	return fed.Settled, got
}

// waysByTCP has a Coordinator and Participants hold the federation.
func waysByTCP(t *testing.T) (*hushsum.Settled, *held) {
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
	folder := t.TempDir()
	declareWays(t, folder)
	declared, err := jobs.Load(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	settled, err := declared.Settle(jobs.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	own := identities[waysParties]
	listener, err := hushsum.ListenTCP("127.0.0.1:0", own, roster)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	got := new(held)
	c := hushsum.Coordinator{
		Job:      settled,
		Listener: listener,
		Apply: func(r hushsum.Round, model []float64) ([]float64, error) {
			if len(r.Parties) != waysParties {
				t.Errorf("the sum of round %d is of parties %v", r.Number, r.Parties)
			}
			got.sums[r.Number-1], got.means[r.Number-1] = r.Sum.Values(), r.Mean
			return model, nil
		},
	}
	var group sync.WaitGroup
	for i, identity := range identities[:waysParties] {
		p := hushsum.Participant{
			Job:      settled,
			Identity: identity,
			Dialer: &hushsum.TCPDialer{
				Address:     listener.Address(),
				Identity:    identity,
				Coordinator: own.Public().(ed25519.PublicKey),
			},
			Work: func(_ context.Context, round uint64, _ []float64) ([]float64, error) {
				return waysVector(i, int(round)), nil
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

// waysByPython has Python's package hold the federation.
func waysByPython(t *testing.T) (means [waysRounds][]float64) {
	t.Helper()
	folder := t.TempDir()
	declareWays(t, folder)
	var given struct {
		Job     string                             `json:"job"`
		Vectors [waysRounds][waysParties][]float64 `json:"vectors"`
	}
	given.Job = filepath.Join(folder, "federation.toml")
	for r := range given.Vectors {
		for i := range given.Vectors[r] {
			given.Vectors[r][i] = waysVector(i, r+1)
		}
	}
	var got struct {
		Digest string
		Means  [][]float64
	}
	runPython(t, "fourways.py", given, &got)
	declared, err := jobs.Load(given.Job)
	if err != nil {
		t.Fatal(err)
	}
	if want := declared.Digest(); got.Digest != hex.EncodeToString(want[:]) {
		t.Errorf("Python's digest of the job is %s, the file's %x", got.Digest, want)
	}
	copy(means[:], got.Means)
	return means
}

// runPython runs a program of testdata with Python's package, by programs of this tree, and reads
// what it prints; both sides are JSON. Without NumPy the test skips, unless
// HUSHSUM_REQUIRE_PYTHON=1.
func runPython(t *testing.T, program string, in, out any) {
	t.Helper()
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import numpy").Run() == nil {
			python = name
			break
		}
	}
	switch {
	case python != "":
	case os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1":
		t.Fatal("there is no python3 with numpy")
	default:
		t.Skip("needs python3 with numpy, which is not there")
	}
	binary := filepath.Join(t.TempDir(), "hushsum")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..", "cmd", "hushsum")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	given, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(filepath.Join("..", "..", "python"))
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{module, os.Getenv("PYTHONPATH")}, string(os.PathListSeparator))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, python, filepath.Join("testdata", program))
	run.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1",
		"HUSHSUM_BINARY="+binary)
	run.Stdin = bytes.NewReader(given)
	var complaint bytes.Buffer
	run.Stderr = &complaint
	printed, err := run.Output()
	if err == nil {
		err = json.Unmarshal(printed, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, complaint.Bytes())
	}
}
