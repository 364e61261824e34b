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
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
)

// narrowed has a party work in float32.
func narrowed(p *Participant) *Participant {
	work := p.Work
	p.Work = nil
	p.Work32 = func(ctx context.Context, round uint64, model []float32) ([]float32, error) {
		vector, err := work(ctx, round, converted[float64](model))
		return converted[float32](vector), err
	}
	return p
}

// adding has a coordinator add means to the model, in float32 if narrow says so.
func (j *group) adding(c *Coordinator, narrow bool) *Coordinator {
	note := func(r Round) {
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.rounds = append(j.rounds, r)
	}
	c.Apply = func(r Round, model []float64) ([]float64, error) {
		note(r)
		return added(model, r.Mean), nil
	}
	if narrow {
		c.Apply = nil
		c.Apply32 = func(r Round, model []float32) ([]float32, error) {
			note(r)
			return added(model, r.Mean32), nil
		}
	}
	return c
}

// runs runs a party, and returns its last model.
func runs(ctx context.Context, p *Participant) ([]float64, error) {
	if p.Work32 == nil {
		return p.Run(ctx)
	}
	model, err := p.Run32(ctx)
	return converted[float64](model), err
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
	c := j.adding(j.coordinator(nil), narrow)
	var dialer func(i int) Dialer
	if tcp {
		c.Listener, dialer = j.listen()
		c.Folder = t.TempDir()
	}
	last := make([][]float64, len(j.signers))
	for i := range j.signers {
		p := j.participant(i, nil)
		p.Work = func(_ context.Context, _ uint64, model []float64) ([]float64, error) {
			vector := slices.Clone(model) // no round's are like another's
			for k := range vector {
				vector[k] = vector[k]/3 + 0.1*float64(i+k%5)
			}
			return vector, nil
		}
		if tcp {
			p.Dialer = dialer(i)
		}
		if narrows(i) {
			p = narrowed(p)
		}
		wait.Go(func() {
			var err error
			if last[i], err = runs(ctx, p); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	result, err := c.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	j.check()
	if result.Lost != 0 || len(j.rounds) != plan.Rounds {
		t.Fatalf("%d rounds lost, %d sums", result.Lost, len(j.rounds))
	}
	model := result.Model
	if narrow {
		model = converted[float64](result.Model32)
	}
	if narrow != (result.Model == nil) || len(model) != plan.Model.Length || model[1] == 0 {
		t.Fatalf("a model of %d weights of float64 and %d of float32", len(result.Model),
			len(result.Model32))
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
	checkMeans(t, j, narrow)
}

// checkMeans compares means with those of the vectors that are in the sums. The encoder rounds
// to a scale at which 1e-2 is far off.
func checkMeans(t *testing.T, j *group, narrow bool) {
	t.Helper()
	model := make([]float64, j.settled.Length())
	for _, r := range j.rounds {
		mean := r.Mean
		if narrow {
			mean = converted[float64](r.Mean32)
		}
		if len(mean) != len(model) || narrow != (r.Mean == nil) {
			t.Fatalf("%d means of float64, %d of float32", len(r.Mean), len(r.Mean32))
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
	restartsOf(t, plan, func(p *Participant, i int) *Participant {
		if i%2 == 0 {
			p = narrowed(p)
		}
		return p
	}, func(j *group, c *Coordinator) *Coordinator { return j.adding(c, true) })
}

// A coordinator goes on with a stored model of the other kind if that is the same model.
func TestFloat32Store(t *testing.T) {
	t.Parallel()
	j := newJob(t, testJob(), 4)
	load := func(c *Coordinator, saves bool) (*coordinator, error) {
		r := newCoordinator(c)
		defer func() { r.vault.Close() }()
		lead, err := r.load()
		if err == nil && saves {
			err = r.record.Save(t.Context(), lead)
		}
		return r, err
	}
	for _, c := range []struct {
		first, then bool // held as float32
		weight      float64
		field       string
	}{
		{true, true, 0.5, ""},
		{true, false, 0.5, ""},
		{false, true, 0.5, ""},
		{false, true, 0.1, "Apply32"}, // parties may be in a round that began with it
		{false, true, 1e300, ""},
	} {
		store := new(MemoryStore)
		first := j.adding(j.coordinator(store), c.first)
		if c.first {
			first.Model32 = []float32{1, 2, 3, 4, float32(c.weight)}
		} else {
			first.Model = []float64{1, 2, 3, 4, c.weight}
		}
		if _, err := load(first, true); err != nil {
			t.Fatal(err)
		}
		r, err := load(j.adding(j.coordinator(store), c.then), false)
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
		default:
			got := link.FloatsOf[float64](r.model)
			if c.then {
				got = converted[float64](link.FloatsOf[float32](r.model))
			}
			if !slices.Equal(got, []float64{1, 2, 3, 4, c.weight}) {
				t.Errorf("%+v: it is %v", c, got)
			}
		}
	}
}

// Without Apply32 the next model is the sum of the last and the mean. One that does not fit
// float32 loses its round.
func TestFloat32NextModel(t *testing.T) {
	j := newJob(t, testJob(), 4)
	c := j.coordinator(nil)
	c.Apply, c.Model32 = nil, []float32{1, 2, 3, 4, math.MaxFloat32}
	l := newCoordinator(c)
	if err := l.firstModel(); err != nil {
		t.Fatal(err)
	}
	next, err := l.nextModel(Round{Mean32: []float32{0.5, 0, 0, 0, 0}}, l.model)
	want := []float32{1.5, 2, 3, 4, math.MaxFloat32}
	if err != nil || !slices.Equal(link.FloatsOf[float32](next), want) {
		t.Errorf("%v, %v, want %v", next, err, want)
	}
	_, err = l.nextModel(Round{Mean32: []float32{0, 0, 0, 0, math.MaxFloat32}}, l.model)
	if !errors.Is(err, ErrConfig) {
		t.Errorf("a weight beyond float32: %v", err)
	}
	if !slices.Equal(link.FloatsOf[float32](l.model), []float32{1, 2, 3, 4, math.MaxFloat32}) {
		t.Errorf("the model before has changed to %v", l.model)
	}
}

// Fields for float32 and for float64 exclude each other, and one message has float64 alone.
func TestFloat32Fields(t *testing.T) {
	j := newJob(t, testJob(), 4)
	committee := settledOneshot(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	is := func(name, field string, err error) {
		t.Helper()
		var c *ConfigError
		if !errors.As(err, &c) || c.Path != field {
			t.Errorf("%s: %v, want a ConfigError of %s", name, err, field)
		}
	}
	p := j.participant(0, nil)
	_, err := p.Run32(ctx)
	is("Run32 with Work", "Work", err)
	p = narrowed(p)
	_, err = p.Run(ctx)
	is("Run with Work32", "Work32", err)
	p.Job = committee
	_, err = p.Run32(ctx)
	is("a committee and Work32", "Work32", err)
	p.Work32 = nil
	_, err = p.Run32(ctx)
	is("Run32 without Work32", "Work32", err)

	c := j.coordinator(nil)
	c.Model32 = make([]float32, 5)
	_, err = c.Run(ctx)
	is("Apply and Model32", "Model32", err)
	c = j.adding(j.coordinator(nil), true)
	c.Model = make([]float64, 5)
	_, err = c.Run(ctx)
	is("Model and Apply32", "Apply32", err)
	c = j.adding(j.coordinator(nil), true)
	c.Job, c.Committee = committee, new(Memory)
	_, err = c.Run(ctx)
	is("a committee and Apply32", "Apply32", err)
	c = j.adding(j.coordinator(nil), true)
	c.Model32 = make([]float32, 4)
	_, err = c.Run(ctx)
	is("a short model", "Model32", err)
}
