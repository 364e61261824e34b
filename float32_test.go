package hushsum

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
)

// narrowed is a party that works in float32 as another does in float64.
func narrowed(p *Participant[float64]) *Participant[float32] {
	work := bare(p.Work)
	return &Participant[float32]{Job: p.Job, Identity: p.Identity, Dialer: p.Dialer, Store: p.Store,
		Key: p.Key, Counter: p.Counter, Progress: p.Progress, Submitted: p.Submitted,
		Work: vectors(func(ctx context.Context, round uint64, model []float32) ([]float32, error) {
			vector, err := work(ctx, round, converted[float64](model))
			return converted[float32](vector), err
		})}
}

// runs runs a party, in float32 if narrow says so, and returns its last model.
func runs(ctx context.Context, p *Participant[float64], narrow bool) ([]float64, error) {
	if !narrow {
		return p.Run(ctx)
	}
	model, err := narrowed(p).Run(ctx)
	return converted[float64](model), err
}

// adding has a coordinator add means to the model.
func (j *group) adding(c *Coordinator[float64]) *Coordinator[float64] {
	c.Apply = applying(func(d Done[float64], model []float64) ([]float64, error) {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.rounds = append(j.rounds, d)
		return added(model, d.Mean), nil
	})
	return c
}

// coordinates runs a coordinator that adds means to the model, in float32 if narrow says so.
func (j *group) coordinates(
	ctx context.Context, c *Coordinator[float64], narrow bool,
) (*Result[float64], error) {
	if !narrow {
		return j.adding(c).Run(ctx)
	}
	result, err := j.narrowing(c).Run(ctx)
	if result == nil {
		return nil, err
	}
	return &Result[float64]{Model: converted[float64](result.Model), Rounds: result.Rounds,
		Lost: result.Lost, Spent: result.Spent}, err
}

// narrowing is a coordinator that adds means to the model in float32.
func (j *group) narrowing(c *Coordinator[float64]) *Coordinator[float32] {
	return &Coordinator[float32]{Job: c.Job, Listener: c.Listener, Committee: c.Committee,
		Store: c.Store, Key: c.Key, Counter: c.Counter, Folder: c.Folder, StepTime: c.StepTime,
		Progress: c.Progress,
		Apply: applying(func(d Done[float32], model []float32) ([]float32, error) {
			j.mutex.Lock()
			defer j.mutex.Unlock()
			j.rounds = append(j.rounds, Done[float64]{Number: d.Number, Parties: d.Parties, Sum: d.Sum,
				Mean: converted[float64](d.Mean)})
			return added(model, d.Mean), nil
		})}
}

func converted[T, F aggregation.Float](from []F) []T {
	var out []T
	for _, x := range from {
		out = append(out, T(x))
	}
	return out
}

// listen has a job go over TCP, and returns how a party dials.
func (j *group) listen() (listener *TCPListener, dialer func(i int) Dialer) {
	j.Helper()
	coordinator, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		j.Fatal(err)
	}
	if listener, err = ListenTCP("127.0.0.1:0", coordinator, j.settled.Roster()); err != nil {
		j.Fatal(err)
	}
	j.Cleanup(func() { _ = listener.Close() })
	return listener, func(i int) Dialer {
		return &TCPDialer{Address: listener.Address(), Identity: j.signers[i],
			Coordinator: coordinator.Public().(ed25519.PublicKey)}
	}
}

// A job whose coordinator or parties hold models as float32 has the sums that it would have with
// float64, and the same means but for one rounding; all end with the coordinator's model, rounded
// where a party holds it as float32.
func TestFloat32Jobs(t *testing.T) {
	t.Parallel()
	for _, narrow := range []bool{true, false} {
		for parties, narrows := range map[string]func(i int) bool{
			"float32": func(int) bool { return true },
			"float64": func(int) bool { return false },
			"mixed":   func(i int) bool { return i%2 == 0 },
		} {
			for _, tcp := range []bool{true, false} {
				if tcp && parties != "mixed" {
					continue // both kinds are in there
				}
				t.Run(fmt.Sprintf("narrow %v, parties %s, TCP %v", narrow, parties, tcp), func(t *testing.T) {
					t.Parallel()
					if tcp {
						testFloat32Job(t, narrow, narrows, tcp)
						return
					}
					synctest.Test(t, func(t *testing.T) { testFloat32Job(t, narrow, narrows, tcp) })
				})
			}
		}
	}
}

func testFloat32Job(t *testing.T, narrow bool, narrows func(i int) bool, tcp bool) {
	plan := testJob()
	plan.Rounds = 3
	if tcp {
		// A broadcast in parts, and vectors within the clip.
		plan.Model.Length, plan.Privacy.Clip = 150_000, 1000
		plan.Time.StepTime = jobTime // however busy the machine is
	}
	j := newJob(t, plan, 4)
	var wait sync.WaitGroup
	defer wait.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), jobTime)
	defer cancel()
	c := j.coordinator(nil)
	var dialer func(i int) Dialer
	if tcp {
		c.Listener, dialer = j.listen()
		c.Folder = t.TempDir()
	}
	last := make([][]float64, len(j.signers))
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Work = vectors(func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
			vector := slices.Clone(model) // no round's are like another's
			for k := range vector {
				vector[k] = vector[k]/3 + 0.1*float64(i+k%5)
			}
			return vector, nil
		})
		if tcp {
			p.Dialer = dialer(i)
		}
		wait.Go(func() {
			var err error
			if last[i], err = runs(ctx, p, narrows(i)); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	result, err := j.coordinates(ctx, c, narrow)
	if err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	j.check()
	if result.Lost != 0 || len(j.rounds) != plan.Rounds {
		t.Fatalf("%d rounds lost, %d sums", result.Lost, len(j.rounds))
	}
	model := result.Model
	if len(model) != plan.Model.Length || model[1] == 0 {
		t.Fatalf("a model of %d weights", len(model))
	}
	for i, got := range last {
		want := model
		if narrows(i) {
			want = converted[float64](converted[float32](model))
		}
		if !slices.Equal(got, want) {
			t.Errorf("party %d ends with another model than the coordinator", i)
		}
	}
	checkMeans(t, j)
}

// checkMeans compares means with those of the vectors that are in the sums. The encoder rounds
// to a scale at which 1e-2 is far off.
func checkMeans(t *testing.T, j *group) {
	t.Helper()
	model := make([]float64, j.settled.Length())
	for _, r := range j.rounds {
		mean := r.Mean
		if len(mean) != len(model) {
			t.Fatalf("a mean of %d coordinates", len(mean))
		}
		for k := range model {
			want := model[k] / 3
			for _, i := range r.Parties {
				want += 0.1 * float64(i+k%5) / float64(len(r.Parties))
			}
			if math.Abs(mean[k]-want) > 1e-2 {
				t.Fatalf("round %d: mean %v of weight %d, want %v", r.Number, mean[k], k, want)
			}
			model[k] += mean[k]
		}
	}
}

// The same through kills of the coordinator and of parties of both kinds.
func TestFloat32JobRestarts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes much")
	}
	plan := testJob()
	plan.Rounds, plan.Model.Length = 6, 150_000
	restartsOf(t, plan, func(i int) bool { return i%2 == 0 },
		func(ctx context.Context, j *group, c *Coordinator[float64]) (*Result[float64], error) {
			return j.coordinates(ctx, c, true)
		})
}

// loads loads what a coordinator has stored, as F, and returns the model.
func loads[F Float](t *testing.T, c *Coordinator[F], saves bool) ([]float64, error) {
	r := newCoordinator(c)
	defer func() { r.vault.Close() }()
	lead, err := r.load()
	if err == nil && saves {
		err = r.record.Save(t.Context(), lead)
	}
	return converted[float64](r.model), err
}

// A coordinator goes on with a stored model of the other kind if that is the same model.
func TestFloat32Store(t *testing.T) {
	t.Parallel()
	j := newJob(t, testJob(), 4)
	load := func(narrow bool, model []float64, store Store, saves bool) ([]float64, error) {
		c := j.coordinator(store)
		if c.Model = model; !narrow {
			return loads(t, j.adding(c), saves)
		}
		n := j.narrowing(c)
		n.Model = converted[float32](model)
		return loads(t, n, saves)
	}
	for _, c := range []struct {
		first, then bool // held as float32
		weight      float64
		field       string
	}{
		{true, true, 0.5, ""},
		{true, false, 0.5, ""},
		{false, true, 0.5, ""},
		{false, true, 0.1, "Store"}, // parties may be in a round that began with it
		{false, true, 1e300, ""},
	} {
		store, model := new(MemoryStore), []float64{1, 2, 3, 4, c.weight}
		if _, err := load(c.first, model, store, true); err != nil {
			t.Fatal(err)
		}
		got, err := load(c.then, nil, store, false)
		var refused *ConfigError
		switch {
		case c.weight > math.MaxFloat32:
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%+v: %v, want ErrFrame", c, err)
			}
		case c.field != "":
			if !errors.As(err, &refused) || refused.Path != c.field {
				t.Errorf("%+v: %v, want a ConfigError of %s", c, err, c.field)
			}
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		case !slices.Equal(got, model):
			t.Errorf("%+v: it is %v", c, got)
		}
	}
}

// Without Apply the next model is the sum of the last and the mean. One that does not fit float32
// loses its round.
func TestFloat32NextModel(t *testing.T) {
	j := newJob(t, testJob(), 4)
	c := j.narrowing(j.coordinator(nil))
	c.Apply, c.Model = nil, []float32{1, 2, 3, 4, math.MaxFloat32}
	l := newCoordinator(c)
	if err := l.firstModel(); err != nil {
		t.Fatal(err)
	}
	next, err := l.nextModel(Done[float32]{Mean: []float32{0.5, 0, 0, 0, 0}})
	want := []float32{1.5, 2, 3, 4, math.MaxFloat32}
	if err != nil || !slices.Equal(next, want) {
		t.Errorf("%v, %v, want %v", next, err, want)
	}
	_, err = l.nextModel(Done[float32]{Mean: []float32{0, 0, 0, 0, math.MaxFloat32}})
	if !errors.Is(err, ErrConfig) {
		t.Errorf("a weight beyond float32: %v", err)
	}
	if !slices.Equal(l.model, []float32{1, 2, 3, 4, math.MaxFloat32}) {
		t.Errorf("the model before has changed to %v", l.model)
	}
}

// A job that trains its model itself does so in float64.
func TestFloat32Fields(t *testing.T) {
	j := newJob(t, testJob(), 4)
	trains := declared(t, "name = \"trains\"\nrounds = 1\nmodel = { name = \"logistic\", "+
		"features = 3, classes = 2 }\nparties.count = 4\nprivacy.clip = 1.0\n", 4).settled
	is := func(name, field string, err error) {
		t.Helper()
		var c *ConfigError
		if !errors.As(err, &c) || c.Path != field {
			t.Errorf("%s: %v, want a ConfigError of %s", name, err, field)
		}
	}
	p := narrowed(j.participant(0, nil))
	p.Job = trains
	_, err := p.Run(t.Context())
	is("a party", "Job", err)
	c := j.narrowing(j.coordinator(nil))
	c.Job = trains
	_, err = c.Run(t.Context())
	is("a coordinator", "Job", err)
	c = j.narrowing(j.coordinator(nil))
	c.Model = make([]float32, 4)
	_, err = c.Run(t.Context())
	is("a short model", "Model", err)
}
