package hushsum

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/link"
)

// This file has what a coordinator keeps: its state, and the model.

// load makes the lead of what is stored, or of a job that begins.
func (c *coordinator) load() (lead drive.Lead, err error) {
	settings, err := c.Job.Lead(job.Timing{StepTime: c.StepTime, At: func(t time.Time) drive.Time {
		return c.now() + drive.Time(time.Until(t))
	}})
	if err != nil {
		return nil, err
	}
	settings.Broadcast = c.begins
	if err := c.open(); err != nil {
		return nil, err
	}
	if c.record == nil {
		if err := c.firstModel(); err != nil {
			return nil, err
		}
		return drive.NewLead(settings, c.now())
	}
	settings.Stored = c.record.Get
	if c.record.Begins() {
		if err := c.firstModel(); err != nil {
			return nil, err
		}
		c.record.Adopt(c.kept(0))
		return drive.NewLead(settings, c.now())
	}
	if err := c.readModel(); err != nil {
		return nil, err
	}
	if lead, err = c.record.Lead(settings, c.now()); err != nil {
		return nil, err
	}
	status := lead.Status()
	if status.Paused {
		lead.Order(c.now(), drive.Order{Do: drive.Resume, Why: againRun})
	}
	c.cast = &link.Broadcast{Round: status.Round, Fresh: status.Fresh, Model: c.model}
	return lead, c.cast.Settle()
}

// open opens the store. Without one nothing is kept, but for covers, which are read again.
func (c *coordinator) open() error {
	to, key := c.Store, c.Key
	if one := c.Job.Oneshot(); to == nil && c.Counter == nil && one != nil && one.Covered {
		to, key = new(MemoryStore), new(keyexchange.SealKey)
	}
	vault, state, err := open(to, key, c.Counter, fmt.Sprintf("coordinator %x", c.Job.Digest()), false)
	if err != nil || vault == nil {
		return err
	}
	c.vault = vault
	c.record, err = host.OpenVault(vault, key, state)
	return err
}

// kept is the model as an object, after so many rounds.
func (c *coordinator) kept(round uint64) drive.Object {
	return drive.Object{Name: fmt.Sprint("model", round), Body: c.model}
}

// firstModel takes the model that the job begins with.
func (c *coordinator) firstModel() error {
	first := c.Model32
	if first != nil {
		c.Model32 = []float32{} // it is not kept longer than a round
	}
	length, field := c.Job.ModelLength(), "Model"
	switch {
	case c.Model != nil:
		c.model = link.Floats[float64](slices.Clone(c.Model))
	case first != nil:
		c.model, field = link.Floats[float32](first), "Model32"
	default:
		c.model = link.NewWeights(length, c.narrow())
	}
	if n := c.model.Count(); n != length {
		return &ConfigError{Path: field,
			Reason: fmt.Sprintf("it has %d coordinates, and the job has %d", n, length)}
	}
	return nil
}

// readModel reads the model that is kept.
func (c *coordinator) readModel() error {
	if c.Model32 != nil {
		c.Model32 = []float32{} // it is not needed
	}
	digest, file, err := c.record.Model()
	if err != nil {
		return err
	}
	c.model = link.NewWeights(c.Job.ModelLength(), c.narrow())
	err = link.ReadWeights(file, c.model)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if !c.narrow() {
		return nil
	}
	// A round may be open with it, of which the parties have the digest.
	found := sha256.New()
	if _, err := c.model.WriteTo(found); err != nil {
		return err
	}
	if !bytes.Equal(found.Sum(nil), digest) {
		return &ConfigError{Path: "Apply32", Reason: "the stored model has weights beyond float32",
			Advice: "continue with Model and Apply"}
	}
	return nil
}

// begins returns the digest of what a round begins with, which is sent once the round is saved.
func (c *coordinator) begins(round uint64, fresh [32]byte) ([32]byte, error) {
	b := &link.Broadcast{Round: round, Fresh: fresh, Model: c.model}
	if err := b.Settle(); err != nil {
		return b.Digest, err
	}
	c.cast = b
	collect(c.Job) // what was of the round before
	if c.members != nil {
		return b.InOpening()
	}
	return b.Digest, nil
}

// next makes the next model of a sum, while the job goes on.
func (c *coordinator) next(a *drive.Apply) (adopt func(), err error) {
	collect(c.Job) // room for submissions
	r := Round{Number: a.Round, Parties: a.Parties, Sum: a.Sum, Broadcast: c.cast.Digest}
	if err := c.decode(&r, a.Values); err != nil {
		return nil, err
	}
	next, err := c.nextModel(r, c.model)
	return func() {
		c.model = next
		if c.record != nil {
			c.record.Adopt(c.kept(a.Round))
		}
	}, err
}

// decode fills in the mean of a round, and with a committee the sum, of which it has the integers.
// A job that trains reads the sum itself.
func (c *coordinator) decode(r *Round, integers []int64) (err error) {
	if c.members != nil {
		values := masking.FromSigned(c.Job.Layout(), integers)
		if r.Sum, err = masking.FromValues(c.Job.Layout(), values...); err == nil && !c.Job.Trains() {
			r.Mean, err = c.Job.DecodeDigest(r.Broadcast, values, len(r.Parties))
		}
		return err
	}
	switch {
	case c.Job.Trains():
		return nil
	case more(c.Job):
		total, err := c.Job.DecodeTotal(r.Broadcast, r.Sum.Values(), len(r.Parties))
		r.Mean = total.Mean
		return err
	case c.narrow():
		r.Mean32 = make([]float32, c.Job.Length())
		return job.DecodeTo(r.Mean32, c.Job, r.Broadcast, r.Sum, len(r.Parties))
	}
	r.Mean = make([]float64, c.Job.Length())
	return job.DecodeTo(r.Mean, c.Job, r.Broadcast, r.Sum, len(r.Parties))
}

// nextModel makes the next model from the present one, which does not change: it may still be on
// its way to parties.
func (c *coordinator) nextModel(r Round, model link.Weights) (link.Weights, error) {
	if c.narrow() {
		return nextOf(c, r, r.Mean32, link.FloatsOf[float32](model), c.Apply32)
	}
	return nextOf(c, r, r.Mean, link.FloatsOf[float64](model), c.Apply)
}

func nextOf[F aggregation.Float](
	c *coordinator, r Round, mean, model []F, apply func(r Round, model []F) ([]F, error),
) (link.Weights, error) {
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
	if c.narrow() {
		field = "Apply32"
	}
	if length := c.Job.ModelLength(); len(next) != length {
		return nil, &ConfigError{Path: field,
			Reason: fmt.Sprintf("it returned %d coordinates, and the job has %d", len(next), length)}
	}
	for i, x := range next {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, &ConfigError{Path: field,
				Reason: fmt.Sprintf("coordinate %d is not finite", i)}
		}
	}
	return link.Floats[F](next), nil
}
