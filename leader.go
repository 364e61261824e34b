package hushsum

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/frames"
)

// leader holds what every running Coordinator has, whatever takes the sums.
type leader struct {
	Coordinator
	*hub
	vault *vault
	model frames.Weights
	kept  stored
	began time.Time // when the time of drive begins
	first time.Time // the coordinator runs, or the job has ended
}

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

// decider is the part of package drive that leads a job.
type decider interface {
	Tick(now drive.Time) error
	Ready() (drive.Prepared, bool)
	Advance(now drive.Time) drive.Orders
}

// decide has all decided that is due. What is decided is saved first: it is followed only when it
// cannot be forgotten.
func (l *leader) decide(d decider, save func() error, follow func(drive.Orders)) error {
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
	if n.Kind == drive.Ended {
		l.first = time.Now()
	}
	if e, known := eventOf(n); known {
		l.report(e)
	}
}

// wait returns how long somebody may take to come back who was seen a moment ago.
func (l *leader) wait(otherwise time.Duration) time.Duration {
	if l.grace > 0 {
		return l.grace
	}
	return otherwise
}

func (l *leader) report(e Event) {
	if l.Progress != nil {
		l.Progress(e)
	}
}

// open opens the store, and returns the state in it, nil if there is none.
func (l *leader) open() (state []byte, err error) {
	l.vault, state, err = openVault(l.Store, l.Key, l.Counter,
		fmt.Sprintf("coordinator %x", l.Job.Digest()), false)
	return state, err
}

// stored says what is kept next to the state.
type stored struct {
	version uint64 // of the model: how often it has changed

	Model   []byte // its digest; nil: it is the Coordinator's own
	Version uint64 // that was put last
}

// Names of models. A new one never replaces the one that the state on disk is with.
var modelNames = [2]string{"model0", "model1"}

// keepModel puts the model where it is durable, once. The state that is saved next is with it.
func (l *leader) keepModel() error {
	k := &l.kept
	if k.version == k.Version {
		return nil
	}
	digest, err := l.vault.put(modelNames[k.version%2], l.model)
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
		l.model = frames.Floats[float64](slices.Clone(l.Model))
	case first != nil:
		l.model = frames.Floats[float32](first)
	default:
		l.model = frames.NewWeights(length, l.narrow())
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
	file, err := l.vault.get(modelNames[l.kept.Version%2], l.kept.Model)
	if err != nil {
		return err
	}
	r := frames.NewWeightsReader(frames.NewWeights(l.Job.ModelLength(), l.narrow()))
	_, err = io.Copy(r, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if l.model, err = r.End(); err != nil || !l.narrow() {
		return err
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
func (l *leader) nextModel(r Round, model frames.Weights) (frames.Weights, error) {
	if l.narrow() {
		return nextOf(l, r, r.Mean32, frames.Of[float32](model), l.Apply32)
	}
	return nextOf(l, r, r.Mean, frames.Of[float64](model), l.Apply)
}

func nextOf[F aggregation.Float](
	l *leader, r Round, mean, model []F, apply func(r Round, model []F) ([]F, error),
) (frames.Weights, error) {
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
	return frames.Floats[F](next), nil
}

// adopt makes a model the one that the next round begins with.
func (l *leader) adopt(next frames.Weights) {
	l.model = next
	l.kept.version++
}

// withoutSum tells somebody that the job is done and came to nothing.
func withoutSum() []byte {
	return frames.OfJSON(frames.KindRefusal,
		frames.Refusal{Ours: "the job ended, and the coordinator knows of no round that gave a sum"})
}

// farewell returns how long parties still have to take the last model: those that have it hang up.
func (l *leader) farewell() time.Duration {
	limit := l.StepTime
	if len(l.parties) == 0 {
		limit = min(limit, 2*l.wait(graceTime))
	}
	return limit - time.Since(l.first)
}

// result returns what the job has come to. stalled: it ended without what it is for.
func (l *leader) result(
	rounds, lost uint64, stalled bool, ledger *accounting.Ledger,
) (*Result, error) {
	r := &Result{
		Model:   frames.Of[float64](l.model),
		Model32: frames.Of[float32](l.model),
		Rounds:  int(rounds),
		Lost:    int(lost),
	}
	var failed error
	if stalled {
		failed = fmt.Errorf("%w (%d of %d)", ErrStalled, lost, rounds)
	}
	if ledger == nil {
		return r, failed
	}
	for _, client := range ledger.Clients() {
		spent, err := ledger.Spent(client)
		if err != nil {
			return nil, err
		}
		if r.Spent == nil || spent.Upper > r.Spent.Upper {
			r.Spent = &spent
		}
	}
	return r, failed
}
