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
func (p *Participant[F]) check() error {
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

// checkWork returns an error unless there are the functions that the job takes.
func (p *Participant[F]) checkWork() error {
	advice := "give a function that returns a vector"
	switch {
	case p.Job.Trains():
		advice = "use training.Submit"
	case !p.Job.Alone():
		advice = "return each vector, and as Samples its weight"
	}
	if err := required("Work", p.Work, advice); err != nil {
		return err
	}
	if p.Evaluate != nil && p.Job.Job().Metrics.Share == 0 {
		return &ConfigError{Path: "Evaluate", Reason: "the job sums no metrics",
			Advice: "leave it out, or declare metrics.share"}
	}
	return wide[F](p.Job)
}

// wide returns an error if a job trains its model itself, in float64, and a program holds models as
// float32.
func wide[F Float](s *Settled) error {
	if _, is := any(F(0)).(float64); is || !s.Trains() {
		return nil
	}
	return &ConfigError{Path: "Job", Reason: "it trains a model of float64",
		Advice: "take part, and coordinate, with float64"}
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
func (c *Coordinator[F]) check() error {
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
	if err := wide[F](c.Job); err != nil {
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
func (c *Coordinator[F]) checkTraining() error {
	switch {
	case c.Job.Averages():
		return nil
	case !c.Job.Trains():
		return required("Apply", c.Apply, "use training.Apply, which does what the job says")
	}
	if err := required("Model", c.Model, "use training.First"); err != nil {
		return err
	}
	return required("Apply", c.Apply, "use training.Apply")
}
