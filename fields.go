package hushsum

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"reflect"

	"github.com/hushsum/hushsum/keyexchange"
)

// missing reports whether a field was left out, or holds a pointer or function that is nil.
func missing(value any) bool {
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// required returns a [ConfigError] if a field is missing.
func required(field string, value any, advice string) error {
	if missing(value) {
		return &ConfigError{Path: field, Reason: "there is none", Advice: advice}
	}
	return nil
}

// checkIdentity returns an error unless a signer has an Ed25519 key of a roster, if there
// is a roster. It fails with [ErrConfig], [ErrPeer] or keyexchange.ErrSigner.
func checkIdentity(identity crypto.Signer, roster *keyexchange.Roster) error {
	err := required("Identity", identity, "give the Ed25519 key whose public half is in the roster")
	if err != nil {
		return err
	}
	if key, ok := identity.(ed25519.PrivateKey); ok && len(key) != ed25519.PrivateKeySize {
		return &ConfigError{
			Path:   "Identity",
			Reason: fmt.Sprintf("it has %d bytes, an Ed25519 key has %d", len(key), ed25519.PrivateKeySize),
		}
	}
	key, ok := identity.Public().(ed25519.PublicKey)
	if !ok {
		return keyexchange.ErrSigner
	}
	if roster == nil {
		return nil
	}
	if _, found := roster.Index(key); !found {
		return fmt.Errorf("%w: Identity belongs to nobody in the job's roster", ErrPeer)
	}
	return nil
}

// check returns an error for the first field that Run cannot go on with.
func (p *Participant) check() error {
	if err := drivable(p.Job); err != nil {
		return err
	}
	if err := checkIdentity(p.Identity, p.Job.Roster()); err != nil {
		return err
	}
	if err := required("Dialer", p.Dialer, "use a TCPDialer, or Memory.Dialer"); err != nil {
		return err
	}
	if err := p.checkWork(); err != nil {
		return err
	}
	return p.Lost.check(p.Job)
}

// checkWork returns an error unless there is the function that the job takes.
func (p *Participant) checkWork() error {
	switch trains := p.Job.Trains(); {
	case trains && (p.Work != nil || p.Work32 != nil):
		return &ConfigError{Path: "Work", Reason: "the job trains its model itself",
			Advice: "use Submit and training.Submit, or a job without model.name"}
	case trains:
		return required("Submit", p.Submit, "use training.Submit")
	case more(p.Job) && p.Submit == nil:
		return required("Submit", p.Submit, "return each vector, and as Samples its weight")
	case more(p.Job):
		return nil
	case p.Submit != nil:
		return &ConfigError{Path: "Submit", Reason: "a submission of this job is a vector alone",
			Advice: "use Work"}
	case p.Work32 == nil:
		return required("Work", p.Work, "give a function that returns a vector")
	case p.Job.Oneshot() != nil:
		return &ConfigError{Path: "Work32", Reason: "one-message sums take vectors of float64",
			Advice: "use Work"}
	}
	return nil
}

// check returns an error for the first field that Run cannot go on with.
func (m *Member) check() error {
	if m.Job == nil || m.Job.Oneshot() == nil {
		return &ConfigError{Path: "Job", Reason: "it has no committee",
			Advice: `write sum.protocol = "oneshot"`}
	}
	if err := checkIdentity(m.Identity, m.Job.Oneshot().Committee); err != nil {
		return err
	}
	if err := required("Dialer", m.Dialer, "use a TCPDialer, or Memory.Dialer"); err != nil {
		return err
	}
	return m.Lost.check(m.Job)
}

// check returns an error for the first field that Run cannot go on with.
func (c *Coordinator) check() error {
	if err := drivable(c.Job); err != nil {
		return err
	}
	if err := required("Listener", c.Listener, "use ListenTCP, or a Memory"); err != nil {
		return err
	}
	if c.Job.Oneshot() != nil {
		err := required("Committee", c.Committee, "use ListenTCP, or a Memory")
		if err != nil {
			return err
		}
	}
	if err := c.checkNarrow(); err != nil {
		return err
	}
	if err := c.checkTraining(); err != nil {
		return err
	}
	if c.StepTime < 0 {
		return &ConfigError{
			Path:   "StepTime",
			Reason: fmt.Sprintf("%v is not a time that a step can wait", c.StepTime),
			Advice: "use 0 for 30 s, or a time above it",
		}
	}
	return nil
}

// checkTraining returns an error unless a job that trains its model itself, or whose server has a
// rule, has what that takes.
func (c *Coordinator) checkTraining() error {
	if j := c.Job.Job(); !c.Job.Trains() {
		if c.Apply32 != nil || j.Server.Rule == "fedavg" && j.Server.Rate == 1 &&
			j.Training.Mask == "none" {
			return nil
		}
		return required("Apply", c.Apply, "use training.Apply, which does what the job says")
	}
	if c.narrow() {
		return &ConfigError{Path: "Model32", Reason: "the job trains a float64 model",
			Advice: "use Model and Apply"}
	}
	if err := required("Model", c.Model, "use training.First"); err != nil {
		return err
	}
	return required("Apply", c.Apply, "use training.Apply")
}

// checkNarrow returns an error if models cannot be held as float32, and are to be.
func (c *Coordinator) checkNarrow() error {
	field := "Model32"
	if c.Model32 == nil {
		field = "Apply32"
	}
	switch {
	case !c.narrow():
		return nil
	case c.Model != nil || c.Apply != nil:
		return &ConfigError{Path: field, Reason: "models are either float32 or float64",
			Advice: "use Model and Apply, or Model32 and Apply32"}
	case c.Job.Oneshot() != nil:
		return &ConfigError{Path: field, Reason: "one-message sums take vectors of float64",
			Advice: "use Model and Apply"}
	case more(c.Job):
		return &ConfigError{Path: field, Reason: "means with weights or a mask need float64",
			Advice: "use Model and Apply"}
	}
	return nil
}
