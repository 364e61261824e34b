package hushsum

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/masking"
)

// This file has what a coordinator keeps: its state, and the model.

// load makes the lead of what is stored, or of a job that begins.
func (c *coordinator[F]) load() (lead drive.Lead, err error) {
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
func (c *coordinator[F]) open() error {
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
func (c *coordinator[F]) kept(round uint64) drive.Object {
	return drive.Object{Name: fmt.Sprint("model", round), Body: c.model}
}

// firstModel takes the model that the job begins with.
func (c *coordinator[F]) firstModel() error {
	length := c.Job.ModelLength()
	if c.model, c.Model = c.Model, nil; c.model == nil {
		c.model = make([]F, length)
	}
	if n := len(c.model); n != length {
		return &ConfigError{Path: "Model",
			Reason: fmt.Sprintf("it has %d coordinates, and the job has %d", n, length)}
	}
	return nil
}

// readModel reads the model that is kept.
func (c *coordinator[F]) readModel() error {
	c.Model = nil // it is not needed
	digest, file, err := c.record.Model()
	if err != nil {
		return err
	}
	c.model = make([]F, c.Job.ModelLength())
	err = link.ReadWeights(file, c.model)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	// A round may be open with it, of which the parties have the digest.
	found := sha256.New()
	if _, err := c.model.WriteTo(found); err != nil {
		return err
	}
	if !bytes.Equal(found.Sum(nil), digest) {
		return &ConfigError{Path: "Store", Reason: "the stored model has weights beyond float32",
			Advice: "go on with a Coordinator[float64]"}
	}
	return nil
}

// begins returns the digest of what a round begins with, which is sent once the round is saved.
func (c *coordinator[F]) begins(round uint64, fresh [32]byte) ([32]byte, error) {
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
func (c *coordinator[F]) next(a *drive.Apply) (adopt func() (end string), err error) {
	collect(c.Job) // room for submissions
	d := Done[F]{Number: a.Round, Parties: a.Parties, Lost: int(a.Lost), Sum: a.Sum,
		Broadcast: c.cast.Digest}
	if err := c.decode(&d, a.Values); err != nil {
		return nil, err
	}
	mean, stop := d.Mean, false
	if c.Round != nil { // which is shown the mean, and Apply may change it
		d.Mean = slices.Clone(mean)
	}
	if d.Model, err = c.nextModel(d); err != nil {
		return nil, err
	}
	if c.Round != nil {
		d.Mean = mean
		if d.Spent, err = most(a.Ledger); err == nil {
			stop, err = c.Round(d)
		}
		if err != nil {
			c.failed(err)
			<-c.host.Stopped() // so that the loop does not take the error, and lose the round
			return nil, err
		}
	}
	return func() string {
		c.model = d.Model
		if c.record != nil {
			c.record.Adopt(c.kept(a.Round))
		}
		if stop {
			return stoppedEarly
		}
		return ""
	}, nil
}

// stoppedEarly is why a job ends that Round has stopped.
const stoppedEarly = "its coordinator stopped it after this round"

// decode fills in what the sum of a round says, and with a committee the sum, of which it has the
// integers. A job that trains reads the sum itself.
func (c *coordinator[F]) decode(d *Done[F], integers []int64) (err error) {
	if c.members != nil {
		values := masking.FromSigned(c.Job.Layout(), integers)
		if d.Sum, err = masking.FromValues(c.Job.Layout(), values...); err != nil {
			return err
		}
	}
	if c.Job.Trains() {
		return nil
	}
	d.Mean = make([]F, c.Job.Length())
	total, err := job.DecodeTo(d.Mean, c.Job, d.Broadcast, d.Sum, c.Job.Counts(d.Parties))
	d.Metric = total.Metric
	return err
}

// nextModel makes the next model from the present one, which does not change: it may still be on
// its way to parties.
func (c *coordinator[F]) nextModel(d Done[F]) (next []F, err error) {
	if c.Apply == nil {
		next = d.Mean
		for i, x := range c.model {
			next[i] += x
		}
	} else {
		d.Model = slices.Clone(c.model)
		if next, err = c.Apply(d); err != nil {
			return nil, err
		}
	}
	if length := c.Job.ModelLength(); len(next) != length {
		return nil, &ConfigError{Path: "Apply",
			Reason: fmt.Sprintf("it returned %d coordinates, and the job has %d", len(next), length)}
	}
	for i, x := range next {
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, &ConfigError{Path: "Apply", Reason: fmt.Sprintf("coordinate %d is not finite", i)}
		}
	}
	return next, nil
}
