package node_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/internal/suite"
	declaration "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

const oneFileRounds = 3

// oneFile is a job, its file and who has rows of it.
type oneFile struct {
	*testing.T
	job  *declaration.Job
	path string
	text string
	rows []*learning.Dataset
	test *learning.Dataset
	keys []ed25519.PrivateKey // of parties, and behind them the coordinator's

	roster    *keyexchange.Roster
	helpers   []ed25519.PrivateKey // members of the committee, of a job that has one
	committee *keyexchange.Roster
}

func newOneFile(t *testing.T, more string) *oneFile {
	t.Helper()
	f := &oneFile{T: t, path: filepath.Join(t.TempDir(), "job.toml")}
	f.rows, f.test = rowsFor(t, false)
	f.text = fmt.Sprintf(`name = "one-file"
rounds = %d
seed = 7
parties = { count = %d, roster = "roster.txt", drop_out = 0.3 }
model = { name = "softmax", features = %d, classes = 2 }
`, oneFileRounds, len(f.rows), f.test.Features) + more
	if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
		t.Fatal(err)
	}
	var members []keyexchange.Entry
	for i := range len(f.rows) + 1 {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.keys = append(f.keys, key)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i),
			Key: key.Public().(ed25519.PublicKey)})
	}
	var err error
	if f.roster, err = keyexchange.NewRoster(members[:len(f.rows)]); err != nil {
		t.Fatal(err)
	}
	if f.job, err = declaration.Load(f.path); err != nil {
		t.Fatal(err)
	}
	if f.job.Oneshot() {
		f.helpers, f.committee = newPeople(t, "member-", jobMembers)
	}
	return f
}

// newPeople makes identities and their roster.
func newPeople(
	t *testing.T, prefix string, n int,
) (keys []ed25519.PrivateKey, list *keyexchange.Roster) {
	t.Helper()
	var members []keyexchange.Entry
	for k := range n {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint(prefix, k),
			Key: key.Public().(ed25519.PublicKey)})
	}
	list, err := keyexchange.NewRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	return keys, list
}

// same compares what two sides say of the job.
func (f *oneFile) same(where string, other *declaration.Job) {
	f.Helper()
	if got, want := other.Digest(), f.job.Digest(); got != want {
		f.Errorf("%s: the digest is %x, want %x", where, got, want)
	}
	if got, want := other.Explain(), f.job.Explain(); !reflect.DeepEqual(got, want) {
		f.Errorf("%s: the plan is %q, want %q", where, got, want)
	}
}

// simulated returns the model that the messages of a simulation come to.
func (f *oneFile) simulated() []float64 {
	f.Helper()
	settled, world, err := simulation.Settle(f.job, simulation.Rows{Parties: f.rows, Test: f.test})
	if err != nil {
		f.Fatal(err)
	}
	if got := settled.Job().World.Fidelity; got != simulation.Messages {
		f.Fatalf("it simulates %v", got)
	}
	result, err := simulation.Run(f.Context(), settled, world, nil)
	if err != nil {
		f.Fatal(err)
	}
	if slices.Equal(result.Model, world.Training.Model.Init(f.job.Seed)) {
		f.Error("nothing was learnt")
	}
	return result.Model
}

// served returns the model that a node of the service comes to, and who was in each sum.
func (f *oneFile) served() (model []float64, included [][]int) {
	f.Helper()
	out := trainBetweenMachines(f.T, f.text, f.rows, 0)
	f.same("service", out.fed.Settled.Job())
	return out.fed.Weights(out.model), out.included
}

// carried returns the same of a Coordinator and Participants over links.
func (f *oneFile) carried(
	where string, listener hushsum.Listener, dialer func(i int) hushsum.Dialer,
) (model []float64, included [][]int) {
	f.Helper()
	settled, err := f.job.Settle(declaration.Files{Roster: f.roster, Committee: f.committee})
	if err != nil {
		f.Fatal(err)
	}
	f.same(where, settled.Job())
	c := hushsum.Coordinator[float64]{Job: settled, Listener: listener}
	if c.Model, err = training.First(settled); err != nil {
		f.Fatal(err)
	}
	apply, err := training.Apply(settled)
	if err != nil {
		f.Fatal(err)
	}
	c.Apply = func(d hushsum.Done[float64]) ([]float64, error) {
		included = append(included, d.Parties)
		return apply(d)
	}
	var group, helping sync.WaitGroup
	meetings := new(hushsum.Memory)
	within, stop := context.WithCancel(f.Context())
	defer helping.Wait()
	defer stop()
	if f.committee != nil {
		c.Committee = meetings
	}
	for k, key := range f.helpers {
		m := hushsum.Member{Job: settled, Identity: key, Dialer: meetings.Dialer(k)}
		helping.Go(func() { _ = m.Run(within) }) // or it has not heard of the end
	}
	for i := range f.rows {
		p := hushsum.Participant[float64]{Job: settled, Identity: f.keys[i], Dialer: dialer(i)}
		if p.Work, err = training.Submit(settled, i, f.rows[i], nil); err != nil {
			f.Fatal(err)
		}
		group.Go(func() {
			if _, err := p.Run(f.Context()); err != nil {
				f.Errorf("%s: party %d: %v", where, i, err)
			}
		})
	}
	result, err := c.Run(f.Context())
	group.Wait()
	if err != nil {
		f.Fatalf("%s: %v", where, err)
	}
	return result.Model[:settled.Length()], included
}

// remembered has them meet in this process.
func (f *oneFile) remembered() (model []float64, included [][]int) {
	f.Helper()
	network := new(hushsum.Memory)
	return f.carried("links", network, func(i int) hushsum.Dialer { return network.Dialer(i) })
}

// byTCP has them meet on a port.
func (f *oneFile) byTCP() (model []float64, included [][]int) {
	f.Helper()
	own := f.keys[len(f.rows)]
	listener, err := hushsum.ListenTCP("127.0.0.1:0", own, f.roster)
	if err != nil {
		f.Fatal(err)
	}
	defer listener.Close()
	return f.carried("TCP", listener, func(i int) hushsum.Dialer {
		return &hushsum.TCPDialer{Address: listener.Address(), Identity: f.keys[i],
			Coordinator: own.Public().(ed25519.PublicKey)}
	})
}

// expected returns the model of the same parties in each sum: that of the messages, where all
// were in all. A machine that is busy may have been late with one.
func (f *oneFile) expected(simulated []float64, included [][]int) []float64 {
	f.Helper()
	all := len(included) == oneFileRounds
	for _, who := range included {
		all = all && len(who) == len(f.rows)
	}
	if all {
		return simulated
	}
	j := simulation.Exactly(f.job, len(f.rows))
	j.Rounds = len(included)
	settled, world, err := simulation.Settle(j, simulation.Rows{Parties: f.rows, Test: f.test})
	if err != nil {
		f.Fatal(err)
	}
	world.Replay = included
	result, err := simulation.Run(f.Context(), settled, world, nil)
	if err != nil {
		f.Fatal(err)
	}
	return result.Model
}

// TestOneFile: one file is simulated, held by the service, and run by a Coordinator and its
// Participants within a process and over TCP. All have the digest and the words that the file has,
// and so has Python. Without noise all come to the same model to the last bit.
func TestOneFile(t *testing.T) {
	inTurn(t)
	newOneFile(t, oneFileTraining).everywhere()
}

// TestOneFileOneshot is TestOneFile, with a committee and one message of each party a round.
func TestOneFileOneshot(t *testing.T) {
	inTurn(t)
	newOneFile(t, oneFileOneshot).everywhere()
}

// everywhere compares the model of each way with the simulated one.
func (f *oneFile) everywhere() {
	f.Helper()
	simulated := f.simulated()
	for _, way := range []struct {
		name string
		run  func() (model []float64, included [][]int)
	}{{"service", f.served}, {"links", f.remembered}, {"TCP", f.byTCP}} {
		model, included := way.run()
		f.equal(way.name, model, f.expected(simulated, included))
	}
}

// What the file says of training, and of noise.
const (
	oneFileTraining = `training = { rule = "scaffold", mask = "soft", steps = 4, rate = 0.3 }
server = { rule = "fedadam", beta1 = 0.9 }
`
	oneFileOneshot = `training = { rule = "fedprox", steps = 4, rate = 0.3 }
server = { rule = "fedadam", beta1 = 0.9 }
sum = { protocol = "oneshot", committee = "committee.txt", members = 5 }
`
	oneFileNoise = `training = { rule = "fedprox", steps = 4, rate = 0.3 }
privacy = { noise = "discrete-gaussian", multiplier = 0.02, clip = 1.0 }
`
	oneFileMembersNoise = `training = { rule = "fedprox", steps = 4, rate = 0.3 }
sum = { protocol = "oneshot", committee = "committee.txt", members = 5 }
privacy = { noise = "discrete-gaussian", multiplier = 0.02, clip = 1.0, bits = 24, noise_by = "committee" }
`
)

// equal compares a model with the simulated one, to the last bit.
func (f *oneFile) equal(where string, model, want []float64) {
	f.Helper()
	if len(model) != len(want) {
		f.Fatalf("%s: %d weights, simulated %d", where, len(model), len(want))
	}
	for k, w := range want {
		if math.Float64bits(model[k]) != math.Float64bits(w) {
			f.Fatalf("%s: weight %d is %v, simulated %v", where, k, model[k], w)
		}
	}
}

// near compares models of little noise: they differ, by less than what was learnt.
func (f *oneFile) near(models [][]float64) {
	f.Helper()
	far := func(a, b []float64) (square float64) {
		for k := range a {
			square += (a[k] - b[k]) * (a[k] - b[k])
		}
		return math.Sqrt(square)
	}
	for i, model := range models {
		if len(model) != len(models[0]) {
			f.Fatalf("%d weights, want %d", len(model), len(models[0]))
		}
		for _, other := range models[:i] {
			if slices.Equal(model, other) {
				f.Error("two ways drew the same noise")
			}
			learnt := far(other, make([]float64, len(other))) // from zeros
			if off := far(model, other); !(off < learnt/2) {
				f.Errorf("%v off, and %v were learnt", off, learnt)
			}
		}
	}
}

// With little noise they run, and come to models that differ, by less than what was learnt.
func TestOneFileWithNoise(t *testing.T) {
	inTurn(t)
	newOneFile(t, oneFileNoise).alike()
}

// With noise by the members of a committee they come to models as like.
func TestOneFileMembersNoise(t *testing.T) {
	inTurn(t)
	newOneFile(t, oneFileMembersNoise).alike()
}

// alike compares the models of all ways where there is little noise.
func (f *oneFile) alike() {
	f.Helper()
	models := [][]float64{f.simulated()}
	for _, run := range []func() ([]float64, [][]int){f.served, f.remembered, f.byTCP} {
		model, included := run()
		if len(included) == 0 {
			f.Fatal("there is no sum")
		}
		models = append(models, model)
	}
	f.near(models)
}

// pythonic holds what Python made of the file.
type pythonic struct {
	Digest           string
	Explain, Settled []string
	Carried, Tried   []float64
	Included         [][]int
}

// byPython has Python's package read the file, and hold the job.
func (f *oneFile) byPython() (got pythonic) {
	f.Helper()
	type rows struct {
		X []float64 `json:"x"`
		Y []int     `json:"y"`
	}
	var given struct {
		Job     string `json:"job"`
		Rows    []rows `json:"rows"`
		Members int    `json:"members"` // of a committee
	}
	given.Job, given.Members = f.path, len(f.helpers)
	for _, own := range f.rows {
		given.Rows = append(given.Rows, rows{own.X, own.Labels})
	}
	runPython(f.T, "onefile.py", given, &got)
	if digest := f.job.Digest(); got.Digest != hex.EncodeToString(digest[:]) {
		f.Errorf("the digest is %s, want %x", got.Digest, digest)
	}
	for _, words := range [][]string{got.Explain, got.Settled} {
		if !reflect.DeepEqual(words, f.job.Explain()) {
			f.Errorf("the plan is %q, want %q", words, f.job.Explain())
		}
	}
	return got
}

// Python reads the file as Go does, and holds it with rows of its own: tried out in a process, and
// over TCP, without noise to the same model to the last bit.
func TestOneFileOfPython(t *testing.T) {
	suite.OnlyLong(t) // a program has to be built
	f := newOneFile(t, oneFileTraining)
	got, simulated := f.byPython(), f.simulated()
	f.equal("Python, tried out", got.Tried, simulated)
	f.equal("Python over TCP", got.Carried, f.expected(simulated, got.Included))
	f = newOneFile(t, oneFileOneshot)
	got, simulated = f.byPython(), f.simulated()
	f.equal("Python over TCP with a committee", got.Carried, f.expected(simulated, got.Included))
	f = newOneFile(t, oneFileNoise)
	got, simulated = f.byPython(), f.simulated()
	f.near([][]float64{simulated, got.Tried, got.Carried})
}
