package hushsum_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// trainees are the parties of a job that trains its model itself, with rows each.
type trainees struct {
	*testing.T
	written *job.Job
	settled *hushsum.Settled
	keys    []ed25519.PrivateKey
	members []ed25519.PrivateKey // of a committee
	rows    []*learning.Dataset
	test    *learning.Dataset
	key     *keyexchange.SealKey
	network hushsum.Memory
	within  hushsum.Memory // of the committee
}

const traineesRounds = 4

// newTrainees settles a job of five parties, of which all must be in a sum.
func newTrainees(t *testing.T, text string) *trainees {
	t.Helper()
	g := &trainees{T: t}
	all, _, err := learning.Census(300, 5)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 5)
	if err != nil {
		t.Fatal(err)
	}
	g.rows, g.test, err = learning.Partition("dirichlet-quantity", train, test,
		learning.PartitionOptions{Clients: 5, Seed: 5, Concentration: 5})
	if err != nil {
		t.Fatal(err)
	}
	roster := func(kind string, keys *[]ed25519.PrivateKey) *keyexchange.Roster {
		var members []keyexchange.Entry
		for i := range 5 {
			name := fmt.Sprintf("%s-%d", kind, i)
			seed := sha256.Sum256([]byte(name))
			key := ed25519.NewKeyFromSeed(seed[:])
			*keys = append(*keys, key)
			members = append(members,
				keyexchange.Entry{Name: name, Key: key.Public().(ed25519.PublicKey)})
		}
		r, err := keyexchange.NewRoster(members)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text = fmt.Sprintf("name = \"trained\"\nrounds = %d\nseed = 7\nparties.count = 5\n%s",
		traineesRounds, text)
	j, err := job.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	j.Sum.Recovery, j.Sum.Classical = !j.Oneshot(), true
	if j.Model.Name != "" {
		j.Model.Features, j.Model.Classes = g.test.Features, 2
	}
	g.written = j
	files := job.Files{Roster: roster("party", &g.keys), Committee: roster("member", &g.members)}
	if g.settled, err = j.Settle(files); err != nil {
		t.Fatal(err)
	}
	if g.key, err = keyexchange.GenerateSealKey(nil); err != nil {
		t.Fatal(err)
	}
	return g
}

// coordinator trains as the job says.
func (g *trainees) coordinator() *hushsum.Coordinator[float64] {
	g.Helper()
	first, err := training.First(g.settled)
	if err != nil {
		g.Fatal(err)
	}
	c := &hushsum.Coordinator[float64]{Job: g.settled, Listener: &g.network, Model: first}
	if c.Apply, err = training.Apply(g.settled); err != nil {
		g.Fatal(err)
	}
	if g.settled.Oneshot() != nil {
		c.Committee = &g.within
	}
	return c
}

// participant trains on its rows.
func (g *trainees) participant(i int) *hushsum.Participant[float64] {
	g.Helper()
	work, err := training.Submit(g.settled, i, g.rows[i], nil)
	if err != nil {
		g.Fatal(err)
	}
	return &hushsum.Participant[float64]{Job: g.settled, Identity: g.keys[i],
		Dialer: g.network.Dialer(i), Work: work}
}

// start has all take part, until the function that it returns has been called.
func (g *trainees) start(ctx context.Context) (wait func() [][]float64) {
	var group sync.WaitGroup
	models := make([][]float64, len(g.keys))
	for i := range g.keys {
		p := g.participant(i)
		group.Go(func() {
			var err error
			if models[i], err = p.Run(ctx); err != nil {
				g.Errorf("party %d: %v", i, err)
			}
		})
	}
	within, stop := context.WithCancel(ctx)
	var committee sync.WaitGroup
	if g.settled.Oneshot() != nil {
		for i, key := range g.members {
			m := hushsum.Member{Job: g.settled, Identity: key, Dialer: g.within.Dialer(i)}
			committee.Go(func() { _ = m.Run(within) })
		}
	}
	return func() [][]float64 {
		group.Wait()
		stop()
		committee.Wait()
		return models
	}
}

// check compares the weights of a model with those of a simulation of this many rounds.
func (g *trainees) check(model []float64, rounds int) {
	g.Helper()
	j := simulation.Exactly(g.written, len(g.rows))
	j.Rounds = rounds
	settled, world, err := simulation.Settle(j, simulation.Rows{Parties: g.rows, Test: g.test})
	if err != nil {
		g.Fatal(err)
	}
	want, err := simulation.Run(g.Context(), settled, world, nil)
	if err != nil {
		g.Fatal(err)
	}
	if len(model) != g.settled.ModelLength() {
		g.Fatalf("%d numbers, want %d", len(model), g.settled.ModelLength())
	}
	for k, w := range want.Model {
		if math.Float64bits(model[k]) != math.Float64bits(w) {
			g.Fatalf("weight %d is %v, simulated %v", k, model[k], w)
		}
	}
	if slices.Equal(world.Training.Model.Init(j.Seed), want.Model) {
		g.Error("nothing was learnt")
	}
}

// A job that declares its training is trained by participants and a coordinator as it is
// simulated, number by number to the last bit, for every rule that keeps something.
func TestTrained(t *testing.T) {
	for name, text := range map[string]string{
		"fedavg, clipped": "model.name = \"logistic\"\nprivacy.clip = 0.5\n" +
			"training = { steps = 5, rate = 1.0, lambda = 1e-4 }",
		"fedprox, momentum": "model.name = \"softmax\"\ntraining = { rule = \"fedprox\", steps = 3 }\n" +
			"server = { rule = \"fedavgm\", rate = 0.1, beta1 = 0.9 }",
		"scaffold, hard mask, yogi": "model.name = \"mlp:3\"\n" +
			"training = { rule = \"scaffold\", mask = \"hard\", batch = 8 }\nserver.rule = \"fedyogi\"",
		"fedga, soft mask, by rows, adam": "model.name = \"softmax\"\nsum.max_weight = 300\n" +
			"training = { rule = \"fedga\", mask = \"soft\", steps = 4, rate = 0.3 }\n" +
			"server = { rule = \"fedadam\", beta1 = 0.9 }",
		"scaffold, fresh": "model.name = \"logistic\"\n" +
			"training = { rule = \"scaffold\", variates = \"fresh\", steps = 3 }",
		"weights by rows": "model.name = \"logistic\"\nsum.max_weight = 300\n" +
			"training = { submit = \"weights\", steps = 5, rate = 0.5 }",
		"one message, fedprox, adagrad": "model.name = \"logistic\"\nsum.protocol = \"oneshot\"\n" +
			"sum.committee = \"committee.txt\"\ntraining = { rule = \"fedprox\", steps = 3 }\n" +
			"server.rule = \"fedadagrad\"",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newTrainees(t, text)
				wait := g.start(t.Context())
				result, err := g.coordinator().Run(t.Context())
				models := wait()
				if err != nil || result.Lost != 0 {
					t.Fatalf("%+v, %v", result, err)
				}
				g.check(result.Model, traineesRounds)
				for i, m := range models {
					if !slices.Equal(m, result.Model) {
						t.Errorf("party %d has another model", i)
					}
				}
			})
		})
	}
}

// A coordinator that is started again goes on with what the server's rule remembers.
func TestTrainedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTrainees(t, "model.name = \"logistic\"\ntraining = { rule = \"scaffold\", steps = 3 }\n"+
			"server = { rule = \"fedadam\", beta1 = 0.9 }")
		wait := g.start(t.Context())
		store := new(hushsum.MemoryStore)
		ctx, stop := context.WithCancel(t.Context())
		c := g.coordinator()
		c.Store, c.Key = store, g.key
		c.Progress = func(e hushsum.Event) {
			if e.Kind == host.Begun && e.Round == 3 {
				stop()
			}
		}
		if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		c = g.coordinator()
		c.Store, c.Key = store, g.key
		result, err := c.Run(t.Context())
		wait()
		if err != nil {
			t.Fatal(err)
		}
		g.check(result.Model, result.Rounds-result.Lost)
	})
}

// What does not go with a job that trains is refused at its field.
func TestTrainedMisuse(t *testing.T) {
	g := newTrainees(t, "model.name = \"logistic\"")
	untrained := &job.Job{Name: "bare", Rounds: 1, Sum: job.Sum{Recovery: true},
		Model: job.Model{Length: 3}}
	bare, err := untrained.Settle(job.Files{Roster: g.settled.Roster()})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name, path string, err error) {
		t.Helper()
		var e *hushsum.ConfigError
		if !errors.As(err, &e) || e.Path != path {
			t.Errorf("%s: %v, want one of %s", name, err, path)
		}
	}
	for _, c := range []struct {
		name, path string
		change     func(p *hushsum.Participant[float64])
	}{
		{"no function", "Work", func(p *hushsum.Participant[float64]) { p.Work = nil }},
	} {
		p := g.participant(0)
		c.change(p)
		_, err := p.Run(t.Context())
		refused(c.name, c.path, err)
	}
	for _, c := range []struct {
		name, path string
		change     func(c *hushsum.Coordinator[float64])
	}{
		{"no model", "Model", func(c *hushsum.Coordinator[float64]) { c.Model = nil }},
		{"weights alone", "Model", func(c *hushsum.Coordinator[float64]) {
			c.Model = c.Model[:c.Job.Length()]
		}},
		{"no function", "Apply", func(c *hushsum.Coordinator[float64]) { c.Apply = nil }},
	} {
		made := g.coordinator()
		c.change(made)
		_, err := made.Run(t.Context())
		refused(c.name, c.path, err)
	}
	_, err = training.Submit(g.settled, 0, &learning.Dataset{Features: 1}, nil)
	refused("other rows", "model.features", err)
	_, err = training.Submit(g.settled, 5, g.rows[0], nil)
	refused("nobody", "parties.count", err)
	_, err = training.Submit(bare, 0, g.rows[0], nil)
	refused("no training", "model.name", err)
	ruled := *untrained
	ruled.Server.Rule = "fedadam"
	settled, err := ruled.Settle(job.Files{Roster: g.settled.Roster()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&hushsum.Coordinator[float64]{Job: settled, Listener: &g.network}).Run(t.Context())
	refused("a rule that nobody does", "Apply", err)
}

// Vectors that parties bring themselves are clipped, weighed, masked and stepped as the job says.
func TestServedVectors(t *testing.T) {
	for name, text := range map[string]string{
		"pairwise":    "[sum]\nmax_weight = 4",
		"one message": "[sum]\nmax_weight = 4\nprotocol = \"oneshot\"\ncommittee = \"committee.txt\"",
	} {
		t.Run(name, func(t *testing.T) { testServedVectors(t, text) })
	}
}

func testServedVectors(t *testing.T, sum string) {
	synctest.Test(t, func(t *testing.T) {
		g := newTrainees(t, "model.length = 3\nprivacy.clip = 5.0\ntraining.mask = \"hard\"\n"+
			"server = { rule = \"fedavgm\", rate = 0.5, beta1 = 0.5 }\n"+sum)
		vector := func(i int) []float64 { return []float64{float64(i - 2), 1, 6 * float64(i/4)} }
		var group sync.WaitGroup
		for i := range g.keys {
			p := hushsum.Participant[float64]{Job: g.settled, Identity: g.keys[i],
				Dialer: g.network.Dialer(i)}
			p.Work = func(context.Context, hushsum.Round[float64]) (hushsum.Update[float64], error) {
				return hushsum.Update[float64]{Vector: vector(i), Samples: i + 1}, nil
			}
			group.Go(func() {
				if _, err := p.Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		within, stop := context.WithCancel(t.Context())
		var committee sync.WaitGroup
		if g.settled.Oneshot() != nil {
			for i, key := range g.members {
				m := hushsum.Member{Job: g.settled, Identity: key, Dialer: g.within.Dialer(i)}
				committee.Go(func() { _ = m.Run(within) })
			}
		}
		c := hushsum.Coordinator[float64]{Job: g.settled, Listener: &g.network}
		if g.settled.Oneshot() != nil {
			c.Committee = &g.within
		}
		var err error
		if c.Apply, err = training.Apply(g.settled); err != nil {
			t.Fatal(err)
		}
		result, err := c.Run(t.Context())
		group.Wait()
		stop()
		committee.Wait()
		if err != nil || result.Lost != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		// The fifth vector, of norm √41, is clipped to 5 and counts four times, as the fourth does. Signs
		// agree on the second coordinate alone: of the first they cancel, of the third most are 0.
		mean := (1 + 2 + 3 + 4 + 4*5/math.Sqrt(41)) / 14
		moment, want := 0.0, 0.0
		for range traineesRounds {
			moment = 0.5*moment + mean
			want += 0.5 * moment
		}
		for k, w := range []float64{0, want, 0} {
			if math.Abs(result.Model[k]-w) > 1e-5 {
				t.Errorf("coordinate %d of the model is %v, want %v", k, result.Model[k], w)
			}
		}
		if !training.Remembers(g.settled) {
			t.Error("momentum is forgotten")
		}
	})
}

// A job whose noise is correlated is trained as it is simulated, but for next to no noise, and a
// party is charged for its turns: two in four rounds. So it is with a coordinator that is started
// again, which goes on with the sums that later ones are decoded with.
func TestTrainedByTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTrainees(t, "model.name = \"logistic\"\ntraining = { steps = 1, rate = 0.5 }\n"+
			"privacy = { noise = \"discrete-gaussian\", multiplier = 1e-6, clip = 1.0, bits = 56, "+
			"factorise = 2 }")
		g.written.World.Fidelity = simulation.Ring
		settled, world, err := simulation.Settle(g.written,
			simulation.Rows{Parties: g.rows, Test: g.test})
		if err != nil {
			t.Fatal(err)
		}
		want, err := simulation.Run(t.Context(), settled, world, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			wait := g.start(t.Context())
			ctx, stop := context.WithCancel(t.Context())
			c := g.coordinator()
			c.Store, c.Key = new(hushsum.MemoryStore), g.key
			c.Progress = func(e hushsum.Event) {
				if again && e.Kind == host.Summed && e.Round == 2 {
					stop()
				}
			}
			result, err := c.Run(ctx)
			if again && errors.Is(err, context.Canceled) {
				c.Progress = nil
				result, err = c.Run(t.Context())
			}
			wait()
			stop()
			if err != nil || result.Lost > 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			for k, w := range want.Model {
				if math.Abs(result.Model[k]-w) > 1e-3 {
					t.Fatalf("weight %d is %v, simulated %v", k, result.Model[k], w)
				}
			}
		}
		limits, err := g.settled.Limits(nil)
		if err != nil || limits.Every != 2 || g.settled.Charges(traineesRounds) != 2 {
			t.Errorf("%+v, %v", limits, err)
		}
	})
}
