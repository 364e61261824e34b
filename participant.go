package hushsum

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
)

// ErrRefused: the coordinator does not continue with this party, for the reason given. If this
// party had nothing to submit in a round, the error also wraps the last reason for that.
var ErrRefused = errors.New("hushsum: the coordinator refuses this party")

// ErrNumber: the number of a session was used before, or is far above all that were used. A party
// makes keys for a number once.
var ErrNumber = protocol.ErrNumber

// ErrAbsent: the job is done, and this party was in none of its rounds, or with noise only with
// zeros, because Work returned nothing that could be submitted. The last model is returned with it,
// unless the job ended without one: the error is then [ErrRefused] too.
var ErrAbsent = errors.New("hushsum: this party had nothing to submit in any round")

// ErrUnproved: in a job whose unit is a record, Work returned nothing that could be submitted, so
// that zeros were. Others do not see that. A record on which Work fails thereby takes the sum of
// all others away: no epsilon is proved of this party's records for the round, unless what failed
// had nothing to do with them.
var ErrUnproved = errors.New("hushsum: no epsilon is proved of this party's records for this " +
	"round, unless what failed had nothing to do with them")

// Participant is one party of a job. Set the fields, then call Run. F is how the party's program
// holds models and vectors: float64, or float32 in half the memory, whatever the others do. A
// weight that float32 cannot hold is rounded to the nearest; a model with one that is too large is
// refused.
type Participant[F Float] struct {
	Job      *Settled
	Identity crypto.Signer // Ed25519, of the job's roster
	Dialer   Dialer

	// Work returns this party's update for a round, made from the model that the coordinator has
	// sent: the change that training on the party's own data makes to it, say, with the number of
	// rows as Samples in a job that weighs means. The model is valid until Work returns. For a job
	// that trains its model itself, training.Submit returns Work.
	//
	// Work is called once or more for a round; if it returns an error, the party is absent from that
	// round, and the error is reported to Progress. With noise the party is not absent, since an
	// absence would tell others something about its rows: zeros with noise are submitted, also where
	// Work panics. Others still notice if the process ends. In a job with privacy.submit_after, ctx
	// ends at the instant of submission, and zeros are also submitted where Work has not returned by
	// then; with parties.hidden, Work is called only in rounds in which the party's coin says that it
	// takes part. With sum.buffer, Work may take as long as it likes, while rounds come and go; once
	// its vector would be too old, ctx ends, and Work is called for a newer round after it has
	// returned. With privacy.unit = "record" epsilon rests on Work, which nothing can check: Work must
	// do what [job.Coins] says, for each record in the same time, and leave out a record on which it
	// fails. If Work returns an error or takes too long, Progress gets [ErrUnproved]. See the example
	// called records.
	Work func(ctx context.Context, r Round[F]) (Update[F], error)
	// Evaluate returns the mean loss and accuracy of a round's model on the party's rows, in a job
	// with metrics.share. It is called before Work, as Work is; an error of Evaluate counts as one of
	// Work. nil: Work says them in its Update.
	Evaluate func(ctx context.Context, r Round[F]) (loss, accuracy float64, err error)

	// Store keeps what the party must not lose when its process ends; nil: nothing is kept, and a
	// restarted party takes part from the next session on, and with one-message sums it needs Lost.
	// Key seals it, and must be set with Store.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// Policy says which jobs the party takes part in, and at which hours; nil: in any. Book counts
	// what the party spends in all its jobs, also in those of other processes and of the service that
	// have the same book; nil: what other jobs spend is not counted. A job is entered before anything
	// is sent, and each submission before it leaves.
	Policy *consent.Policy
	Book   *consent.Book

	Lost *Lost // nil: the state is not lost

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil

	// Submitted is shown each submission that counts, once, including its noise, before it is masked:
	// for tests that compare sums. May be nil.
	Submitted func(round uint64, values [][]uint64)
}

// participant is a running Participant.
type participant[F Float] struct{ Participant[F] }

// Run takes part until the job is done and returns the last model. Run dials again whenever the
// connection breaks. It fails with the context's error; with [ErrConfig] if a field is unusable;
// with the errors of [consent.Book.Accept] if the Policy does not permit the job, or the Book
// cannot be used; with [ErrJob] if the coordinator has another job; with [ErrPeer] if another
// coordinator answers, or the coordinator does not know this party; with [ErrOldState] or
// [ErrStore] if the stored state is unusable; with [ErrLocked] if somebody else uses the Store; and
// with errors of the Store.
func (p *Participant[F]) Run(ctx context.Context) ([]F, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	accepted, err := p.Book.Accept(p.Policy, p.Job, p.Identity.Public())
	if err != nil {
		return nil, err
	}
	r := participant[F]{*p}
	if p.Random != nil { // vectors may be encoded while keys are made
		r.Random = &sharedRandom{random: p.Random}
	}
	settings, err := p.Job.Part(p.Identity, r.Random)
	if err != nil {
		return nil, err
	}
	settings.Shown = p.Submitted
	p.Lost.count(&settings)
	opened, err := openPart(p.Store, p.Key, p.Counter, fmt.Sprintf("party %x", p.Identity.Public()),
		settings)
	defer opened.close()
	if err != nil {
		return nil, err
	}
	if p.Lost == nil {
		if err := accepted.Had(opened.keeper.Had(keptBook)); err != nil {
			return nil, err
		}
	}
	opened.keeper.Also = func() (map[string][]byte, error) {
		place, err := accepted.Place()
		if err != nil || place == nil {
			return nil, err
		}
		return map[string][]byte{keptBook: place}, nil
	}
	opened.keeper.Count = func(part drive.Part) error { return accepted.Count(*part.Guard()) }
	if err := opened.keeper.Count(opened.part); err != nil {
		return nil, err
	}
	conn := newPartLink(p.Job, p.Dialer, r.report)
	conn.weights = func(length int) link.Weights { return make(link.Floats[F], length) }
	player := &host.Player{
		Part:     opened.part,
		Carrier:  conn,
		Program:  &r,
		Keeper:   opened.keeper,
		Quiet:    p.Job.Mechanism() != nil,
		Buffered: p.Job.Buffer() > 0,
		Layout:   settings.Layout,
		Watch:    r.tell,
		Broken:   func(err error) { r.report(disconnected(err)) },
		Missing: func(session uint64, err error) {
			r.report(Event{Kind: host.Absent, Session: session, Err: err})
		},
		Hours: p.Policy.Hours,
	}
	err = player.Run(ctx)
	if err == nil {
		err = accepted.End(*opened.part.Guard())
	}
	return link.FloatsOf[F](conn.last), blamed(unmarked(err), player)
}

// keptBook names the place in the party's book that is saved with its state.
const keptBook = "book"

// sharedRandom is a source of randomness for the loop and for what goes on next to it.
type sharedRandom struct {
	mutex  sync.Mutex
	random io.Reader
}

// Read reads random bytes.
func (r *sharedRandom) Read(b []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.random.Read(b)
}

// unmarked returns an error as the caller of Run is to see it.
func unmarked(err error) error {
	if end, ok := err.(*host.FatalError); ok {
		return end.Err
	}
	return err
}

// disconnected tells why a connection has ended. What no part of this kind takes is no frame of
// this job.
func disconnected(err error) Event {
	if errors.Is(err, drive.ErrItem) {
		err = fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return Event{Kind: host.Disconnected, Err: err}
}

// blamed returns how the job ended for a party, with the reason of its own if its vectors were
// missing.
func blamed(err error, of interface {
	Missed() (why error, always bool)
}) error {
	missed, always := of.Missed()
	switch {
	case missed == nil:
	case err == nil && always:
		return fmt.Errorf("%w: %w", ErrAbsent, missed)
	case errors.Is(err, ErrRefused) && always:
		return fmt.Errorf("%w: %w; then %w", ErrAbsent, missed, err)
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%w; this party had nothing to submit: %w", err, missed)
	}
	return err
}

func (p *participant[F]) report(e Event) {
	if p.Progress != nil {
		p.Progress(e)
	}
}

// tell reports what the party has decided.
func (p *participant[F]) tell(r drive.Report) {
	e := Event{Session: r.Session, Round: r.Round, Err: r.Err}
	switch r.Kind {
	case drive.Joined:
		e.Kind = host.Joining
	case drive.TookOver:
		e.Kind = host.TookOver
	case drive.Submitted:
		e.Kind = host.Submitted
	case drive.CaughtUp:
		e.Kind = host.CaughtUp
	case drive.Blank:
		e.Kind = host.Blank
	case drive.Declined, drive.Missed, drive.Late:
		e.Kind = host.Absent
	default:
		e.Kind = host.Refused
	}
	if (r.Kind == drive.Missed || r.Kind == drive.Blank) && p.Job.OwnGradients() {
		e.Err = fmt.Errorf("%w: %w", ErrUnproved, r.Err)
	}
	p.report(e)
}

// Make has the program make this party's update, and returns what encodes it, perhaps for a later
// round.
func (p *participant[F]) Make(ctx context.Context, c *host.Cast) (fill host.Fill, err error) {
	b := c.Model.(*link.Broadcast)
	defer func() {
		if err == nil || p.Job.Mechanism() != nil {
			b.Model = nil // it is spent
			collect(p.Job)
		}
	}()
	r := Round[F]{Number: b.Round, Model: link.FloatsOf[F](b.Model)}
	var loss, accuracy float64
	if p.Evaluate != nil {
		if loss, accuracy, err = p.Evaluate(ctx, r); err != nil {
			return nil, err
		}
	}
	made, err := p.Work(ctx, r)
	if p.Evaluate != nil {
		made.Loss, made.Accuracy = loss, accuracy
	}
	return func(v *masking.Vector, in *host.Cast, later uint64) error {
		collect(p.Job) // the last submission, if it was of another session
		digest := in.Model.(*link.Broadcast).Digest
		return job.EncodeTo(v, p.Job, digest, made.Weighed(later), p.Random)
	}, err
}
