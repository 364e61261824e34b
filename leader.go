package hushsum

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/store"
	"github.com/hushsum/hushsum/transport"
)

// leader holds what every running Coordinator has, whatever takes the sums.
type leader struct {
	Coordinator
	*hub
	vault *store.Vault
	model transport.Weights
	kept  stored
	put   kept
	began time.Time // when the time of drive begins
	first time.Time // the coordinator runs, or the job has ended
	why   error     // it is paused
}

// againRun is why a job that was paused goes on.
const againRun = "its coordinator runs again"

func newLeader(c *Coordinator) *leader {
	l := &leader{
		Coordinator: *c,
		hub:         newHub(c.Folder, maxFrame(c.Job)),
		began:       time.Now(),
		first:       time.Now(),
	}
	if l.StepTime == 0 {
		if l.StepTime = l.Job.Time().StepTime; l.StepTime == 0 {
			l.StepTime = defaultStepTime
		}
	}
	return l
}

// now is the time of drive.
func (l *leader) now() drive.Time { return 1 + drive.Time(time.Since(l.began)) }

// decide has all decided that is due. What is decided is saved first: it is followed only when it
// cannot be forgotten.
func (l *leader) decide(d drive.Lead, save func() error, follow func(drive.Orders)) error {
	for {
		if err := d.Tick(l.now()); err != nil {
			return err
		}
		r, decided := d.Ready()
		if !decided {
			return nil
		}
		if r.Save {
			if err := save(); err != nil {
				return err
			}
		}
		out := d.Advance(l.now())
		for _, n := range r.Notices {
			l.notice(n)
		}
		follow(out)
	}
}

// notice reports what drive tells.
func (l *leader) notice(n drive.Notice) {
	switch n.Kind {
	case drive.Ended:
		l.first = time.Now()
	case drive.Paused:
		l.why = n.Err
	}
	if e, known := eventOf(n); known {
		l.report(e)
	}
}

func (l *leader) report(e Event) {
	if l.Progress != nil {
		l.Progress(e)
	}
}

// open opens the store, and returns the state in it, nil if there is none.
func (l *leader) open() (state []byte, err error) {
	l.vault, state, err = open(l.Store, l.Key, l.Counter,
		fmt.Sprintf("coordinator %x", l.Job.Digest()), false)
	return state, err
}

// stored says what is kept next to the state.
type stored struct {
	version uint64 // of the model: how often it has changed

	Model   []byte // its digest; nil: it is the Coordinator's own
	Version uint64 // that was put last
}

// kept lists the objects of package drive that are in the store, next to the state that needs them.
type kept struct {
	Needed []string
	Spent  []string // which only an earlier state needed
}

// keepObjects puts what is new where it is durable, before the state that names it.
func (l *leader) keepObjects(to Store, saved drive.Saved) error {
	was := l.put.Needed
	for _, o := range saved.Objects {
		if slices.Contains(was, o.Name) {
			continue
		}
		if err := to.Put(o.Name, o.Body); err != nil {
			return err
		}
	}
	l.put.Spent = slices.DeleteFunc(slices.Clone(was), func(name string) bool {
		return slices.Contains(saved.Needed, name)
	})
	l.put.Needed = saved.Needed
	return nil
}

// Names of models. A new one never replaces the one that the state on disk is with.
var modelNames = [2]string{"model0", "model1"}

// keepModel puts the model where it is durable, once. The state that is saved next is with it.
func (l *leader) keepModel() error {
	k := &l.kept
	if k.version == k.Version {
		return nil
	}
	digest, err := l.vault.Put(modelNames[k.version%2], l.model)
	if err != nil {
		return err
	}
	k.Model, k.Version = digest, k.version
	return nil
}

// loadModel takes the model that is kept, or the one that the job begins with.
func (l *leader) loadModel(kept stored) error {
	length, first := l.Job.ModelLength(), l.Model32
	if first != nil {
		l.Model32 = []float32{} // it is not kept longer than a round
	}
	if kept.Model != nil {
		l.kept = kept
		l.kept.version = kept.Version
		return l.readModel()
	}
	switch {
	case l.Model != nil:
		l.model = transport.Floats[float64](slices.Clone(l.Model))
	case first != nil:
		l.model = transport.Floats[float32](first)
	default:
		l.model = transport.NewWeights(length, l.narrow())
	}
	if n := l.model.Count(); n != length {
		field := "Model"
		if first != nil {
			field = "Model32"
		}
		return &ConfigError{Path: field,
			Reason: fmt.Sprintf("it has %d coordinates, and the job has %d", n, length)}
	}
	l.kept.version = 1 // the first state is saved with it
	return nil
}

// readModel reads the model that is kept.
func (l *leader) readModel() error {
	file, err := l.vault.Get(modelNames[l.kept.Version%2], l.kept.Model)
	if err != nil {
		return err
	}
	l.model = transport.NewWeights(l.Job.ModelLength(), l.narrow())
	err = transport.ReadWeights(file, l.model)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if !l.narrow() {
		return nil
	}
	// A round may be open with it, of which the parties have the digest.
	found := sha256.New()
	if _, err := l.model.WriteTo(found); err != nil {
		return err
	}
	if !bytes.Equal(found.Sum(nil), l.kept.Model) {
		return &ConfigError{Path: "Apply32", Reason: "the stored model has weights beyond float32",
			Advice: "continue with Model and Apply"}
	}
	return nil
}

// nextModel makes the next model from the present one, which does not change: it may still be on
// its way to parties.
func (l *leader) nextModel(r Round, model transport.Weights) (transport.Weights, error) {
	if l.narrow() {
		return nextOf(l, r, r.Mean32, transport.FloatsOf[float32](model), l.Apply32)
	}
	return nextOf(l, r, r.Mean, transport.FloatsOf[float64](model), l.Apply)
}

func nextOf[F aggregation.Float](
	l *leader, r Round, mean, model []F, apply func(r Round, model []F) ([]F, error),
) (transport.Weights, error) {
	next := mean
	if apply == nil {
		for i, x := range model {
			next[i] += x
		}
	} else {
		var err error
		if next, err = apply(r, slices.Clone(model)); err != nil {
			return nil, err
		}
	}
	field := "Apply"
	if l.narrow() {
		field = "Apply32"
	}
	if length := l.Job.ModelLength(); len(next) != length {
		return nil, &ConfigError{Path: field,
			Reason: fmt.Sprintf("it returned %d coordinates, and the job has %d", len(next), length)}
	}
	for i, x := range next {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, &ConfigError{Path: field,
				Reason: fmt.Sprintf("coordinate %d is not finite", i)}
		}
	}
	return transport.Floats[F](next), nil
}

// adopt makes a model the one that the next round begins with.
func (l *leader) adopt(next transport.Weights) {
	l.model = next
	l.kept.version++
}

// withoutSum tells somebody that the job is done and came to nothing.
func withoutSum() []byte {
	return transport.JSONFrame(transport.KindRefusal,
		transport.Refusal{Ours: "the job ended, and the coordinator knows of no round that gave a sum"})
}

// farewell returns how long parties still have to take the last model: those that have it hang up.
func (l *leader) farewell() time.Duration {
	limit := l.StepTime
	if len(l.parties) == 0 {
		limit = min(limit, farewellTime)
	}
	return limit - time.Since(l.first)
}

// result returns what the job has come to.
func (l *leader) result(s drive.Status, ledger *accounting.Ledger) (*Result, error) {
	r := &Result{
		Model:   transport.FloatsOf[float64](l.model),
		Model32: transport.FloatsOf[float32](l.model),
		Rounds:  int(s.Round),
		Lost:    int(s.Lost),
	}
	var failed error
	switch {
	case s.Paused:
		failed = fmt.Errorf("%w: %w", ErrPaused, l.why)
	case s.Stalled:
		failed = fmt.Errorf("%w (%d of %d)", ErrStalled, s.Lost, s.Round)
	}
	if ledger == nil {
		return r, failed
	}
	client, spent, err := ledger.Most()
	if err != nil {
		return nil, err
	}
	if client != "" {
		r.Spent = &spent
	}
	return r, failed
}
