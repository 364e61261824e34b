package hushsum

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
)

// This file runs the party of spec/reference, which is written from the pages alone.

// referencePython returns a Python that can run it. Without one the test skips, unless
// HUSHSUM_REQUIRE_PYTHON=1.
func referencePython(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import cryptography").Run() == nil {
			return name
		}
	}
	if os.Getenv("HUSHSUM_REQUIRE_PYTHON") == "1" {
		t.Fatal("there is no python3 with cryptography")
	}
	t.Skip("needs python3 with cryptography, which is not there")
	return ""
}

// The party of spec/reference computes every vector of a party.
func TestReferenceVectors(t *testing.T) {
	python := referencePython(t)
	out, err := exec.Command(python, "-B", "spec/reference/check.py", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// Two parties in Python and three in Go take part in a job over TCP, one of which drops out of a
// round after it has begun: sums are exact, and all are told the same model. In the long form the
// coordinator is stopped after the first round, and runs again.
func TestReferenceParties(t *testing.T) {
	python := referencePython(t)
	t.Run("hybrid keys", func(t *testing.T) {
		plan := testJob()
		plan.Parties.DropOut = 0.2
		liveReference(t, python, plan, 5)
	})
	t.Run("noise", func(t *testing.T) {
		plan := testJob()
		plan.Sum.Classical, plan.Privacy.Noise = true, "discrete-gaussian"
		plan.Privacy.Multiplier = 1e-3 // so little that means show what was encoded
		plan.Parties.DropOut = 0.2
		liveReference(t, python, plan, 5)
	})
	t.Run("sparse graph", func(t *testing.T) {
		suite.OnlyLong(t)
		plan := testJob()
		plan.Sum.Sparse, plan.Sum.Adversary, plan.Parties.DropOut = true, "curious", 0.05
		liveReference(t, python, plan, 60)
	})
}

func liveReference(t *testing.T, python string, plan *job.Job, n int) {
	const inPython = 2
	leaver := n - 1
	plan.Rounds, plan.Parties.Colluders, plan.Time.BeginWith = 3, 1, n
	if suite.Long() {
		plan.Rounds = 30
	}
	j := newJob(t, plan, n)
	coordinator, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := ListenTCP("127.0.0.1:0", coordinator, j.settled.Roster())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	key := coordinator.Public().(ed25519.PublicKey)
	address := listener.Address()

	folder := t.TempDir()
	write := func(name string, text []byte, err error) string {
		name = filepath.Join(folder, name)
		if err == nil {
			err = os.WriteFile(name, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	roster, err := j.settled.Roster().MarshalText()
	rosterFile := write("roster.txt", roster, err)
	declared := map[string]any{"declared": json.RawMessage(j.settled.Job().Canonical())}
	if j.settled.Mechanism() != nil || plan.Sum.Sparse {
		declared["settled"] = j.settled.Numbers()
	}
	text, err := json.Marshal(declared)
	jobFile := write("job.json", text, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type outcome struct {
		party int
		model []float64
		err   error
	}
	ended := make(chan outcome, n)
	vectorOf := func(i int) []float64 { // of which the second is longer than the clip
		y := 60 * float64(i)
		return []float64{1.5 + y, -2.25 - y, 0.1, y, y}
	}
	submitted := func(i int) string { return filepath.Join(folder, fmt.Sprint("submitted-", i)) }
	for i := range inPython {
		text, err := json.Marshal(vectorOf(i))
		vectorFile := write(fmt.Sprintf("vector-%d.json", i), text, err)
		identity := filepath.Join(folder, fmt.Sprintf("%d.pem", i))
		if err := keyfile.WriteIdentity(identity, j.signers[i].(ed25519.PrivateKey)); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(ctx, python, "-B", "spec/reference/party.py", "--job", jobFile,
			"--roster", rosterFile, "--identity", identity, "--vector", vectorFile,
			"--coordinator", address, "--key", hex.EncodeToString(key),
			"--submitted", submitted(i))
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			out := outcome{party: i, err: c.Wait()}
			if out.err == nil {
				out.err = json.Unmarshal(stdout.Bytes(), &out.model)
			}
			if out.err != nil {
				out.err = fmt.Errorf("%w: %s", out.err, stderr.Bytes())
			}
			ended <- out
		}()
	}
	for i := inPython; i < n; i++ {
		p := j.participant(i, nil)
		p.Dialer = &TCPDialer{Address: address, Identity: j.signers[i], Coordinator: key}
		own, leave := context.WithCancel(ctx)
		defer leave()
		if work := p.Work; i == leaver {
			p.Work = func(ctx context.Context, r Round[float64]) (Update[float64], error) {
				if r.Number == 2 {
					leave()
					<-ctx.Done()
					return Update[float64]{}, ctx.Err()
				}
				return work(ctx, r)
			}
		}
		go func() {
			model, err := p.Run(own)
			if i == leaver {
				model, err = nil, nil
			}
			ended <- outcome{i, model, err}
		}()
	}
	c, stopped := j.coordinator(new(MemoryStore)), errors.New("stopped")
	c.Listener, c.StepTime = listener, 0
	c.Round = func(d Done[float64]) (bool, error) {
		if d.Number == 1 && suite.Long() {
			return false, stopped
		}
		return false, nil
	}
	result, err := c.Run(ctx)
	if errors.Is(err, stopped) {
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if c.Listener, err = ListenTCP(address, coordinator, j.settled.Roster()); err != nil {
			t.Fatal(err)
		}
		j.rounds, c.Round = nil, nil // the first round is told of again
		result, err = c.Run(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		switch out := <-ended; {
		case out.err != nil:
			t.Errorf("party %d: %v", out.party, out.err)
		case out.party != leaver && !slices.Equal(out.model, result.Model):
			t.Errorf("party %d has %v, the coordinator %v", out.party, out.model, result.Model)
		}
	}
	for i := range inPython {
		text, err := os.ReadFile(submitted(i))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var of struct {
				Round  uint64
				Values [][]uint64
			}
			if err := json.Unmarshal(line, &of); err != nil {
				t.Fatal(err)
			}
			if j.settled.Mechanism() == nil {
				want, err := j.settled.Encode([32]byte{}, Update[float64]{Vector: vectorOf(i)}, nil)
				if err != nil || !slices.EqualFunc(of.Values, want, slices.Equal) {
					t.Errorf("party %d submits %v, want %v, %v", i, of.Values, want, err)
				}
			}
			j.submitted[of.Round][i] = of.Values
		}
	}
	j.check()
	for k, r := range j.rounds {
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		if k > 0 {
			want = want[:leaver]
		}
		if r.Number != uint64(k+1) || !slices.Equal(r.Parties, want) {
			t.Errorf("the sum of round %d has %v, want %v", r.Number, r.Parties, want)
		}
		for x, mean := range r.Mean {
			sum := 0.0
			for _, i := range r.Parties {
				of := slices.Repeat([]float64{float64(i + 1)}, len(r.Mean))
				if i < inPython {
					of = vectorOf(i)
				}
				clipped, _, err := aggregation.Clip(of, plan.Privacy.Clip)
				if err != nil {
					t.Fatal(err)
				}
				sum += clipped[x]
			}
			// With noise a mean deviates by some 0.03, so that this fails by chance less than once in
			// 10^60 runs.
			if want := sum / float64(len(r.Parties)); math.Abs(mean-want) > 0.6 {
				t.Errorf("round %d has the mean %v at %d, want %v", r.Number, mean, x, want)
			}
		}
	}
	if len(j.rounds) != plan.Rounds || result.Lost != 0 {
		t.Errorf("%d sums in %d rounds, %d lost", len(j.rounds), plan.Rounds, result.Lost)
	}
	t.Logf("%d exact sums", len(j.rounds))
}
