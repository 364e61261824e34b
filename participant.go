package hushsum

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/link"
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

// Participant is one party of a job. Set the fields, then call Run.
type Participant struct {
	Job      *Settled
	Identity crypto.Signer // Ed25519, of the job's roster
	Dialer   Dialer

	// Work returns this party's vector for a round, made from the model that the coordinator has
	// sent: the change that training on the party's own data makes to it, say. Both have Length
	// coordinates; model is valid until Work returns. Work is called once or more for a round; if it
	// returns an error, the party is absent from that round, and the error is reported to Progress.
	// With noise the party is not absent, since an absence would tell others something about its
	// rows: zeros with noise are submitted, also where Work panics. Others still notice if the
	// process ends. In a job with privacy.submit_after, ctx ends at the instant of submission, and
	// zeros are also submitted where Work has not returned by then; with parties.hidden, Work is
	// called only in rounds in which the party's coin says that it takes part. With sum.buffer, Work
	// may take as long as it likes, while rounds come and go; once its vector would be too old, ctx
	// ends, and Work is called for a newer round after it has returned. With privacy.unit = "record"
	// epsilon rests on Work, which nothing can check: Work must do what [job.Coins] says, for each
	// record in the same time, and leave out a record on which it fails. If Work returns an error or
	// takes too long, Progress gets [ErrUnproved]. See the example called records.
	Work func(ctx context.Context, round uint64, model []float64) ([]float64, error)
	// Work32 is Work for models and vectors of float32, in half the memory, with [Participant.Run32]
	// instead of Run. A weight that float32 cannot hold is rounded to the nearest float32; a model
	// with a weight that is too large is refused. Work32 is for pairwise sums.
	Work32 func(ctx context.Context, round uint64, model []float32) ([]float32, error)
	// Submit is Work for a job in which parties send more than a vector: for one that trains its
	// model itself, where training.Submit makes it from a party's rows, and for one that weighs or
	// masks means, with a vector and its weight as Samples. model has the job's ModelLength
	// coordinates.
	Submit func(ctx context.Context, round uint64, model []float64) (Message, error)

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

	Lost *LostState // nil: the state is not lost

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil

	// Submitted is shown each submission that counts, once, including its noise, before it is masked:
	// for tests that compare sums. May be nil.
	Submitted func(round uint64, values [][]uint64)
}

// participant is a running Participant.
type participant struct {
	Participant
	missed error  // why there was no vector, the last time that there was none
	blanks uint64 // submissions of zeros with noise
	zeros  uint64 // round of zeros at its instant: no vector, or not drawn
}

// Run takes part until the job is done and returns the last model. Run dials again whenever the
// connection breaks. It fails with the context's error; with [ErrConfig] if a field is unusable;
// with the errors of [consent.Book.Accept] if the Policy does not permit the job, or the Book
// cannot be used; with [ErrJob] if the coordinator has another job; with [ErrPeer] if another
// coordinator answers, or the coordinator does not know this party; with [ErrOldState] or
// [ErrStore] if the stored state is unusable; with [ErrLocked] if somebody else uses the Store; and
// with errors of the Store.
func (p *Participant) Run(ctx context.Context) ([]float64, error) {
	if p.Work32 != nil {
		return nil, &ConfigError{Path: "Work32", Reason: "Run takes Work", Advice: "call Run32"}
	}
	model, err := p.run(ctx)
	return link.FloatsOf[float64](model), err
}

// Run32 is [Participant.Run] for a party with Work32.
func (p *Participant) Run32(ctx context.Context) ([]float32, error) {
	if p.Work != nil {
		return nil, &ConfigError{Path: "Work", Reason: "Run32 takes Work32", Advice: "call Run"}
	}
	if err := required("Work32", p.Work32, "give a function that returns a vector"); err != nil {
		return nil, err
	}
	model, err := p.run(ctx)
	return link.FloatsOf[float32](model), err
}

func (p *Participant) run(ctx context.Context) (link.Weights, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	accepted, err := p.Book.Accept(p.Policy, p.Job, p.Identity.Public())
	if err != nil {
		return nil, err
	}
	r := participant{Participant: *p}
	if p.Random != nil { // vectors may be encoded while keys are made
		r.Random = &sharedRandom{random: p.Random}
	}
	settings, err := p.Job.Part(p.Identity, r.Random)
	if err != nil {
		return nil, err
	}
	settings.Shown = p.Submitted
	p.Lost.count(&settings)
	keeper := partKeeper{key: p.Key, accepted: accepted}
	owner := fmt.Sprintf("party %x", p.Identity.Public())
	part, err := keeper.load(p.Store, p.Counter, owner, settings)
	defer func() { keeper.vault.Close() }()
	if err != nil {
		return nil, err
	}
	conn := newPartLink(p.Job, p.Dialer, r.report)
	conn.narrow = p.Work32 != nil
	err = (&host.Player{
		Part:     part,
		Carrier:  conn,
		Program:  &program{&r},
		Keeper:   &keeper,
		Quiet:    p.noisy(),
		Buffered: p.Job.Buffer() > 0,
		Layout:   settings.Layout,
		Watch:    r.tell,
		Broken:   func(err error) { r.report(disconnected(err)) },
		Missing: func(session uint64, err error) {
			r.report(Event{Kind: Absent, Session: session, Err: err})
		},
		Idle:  func(round uint64) { r.zeros = round },
		Hours: p.Policy.Hours,
	}).Run(ctx)
	if err == nil {
		err = accepted.End(*part.Guard())
	}
	return conn.last, r.blamed(unmarked(err), part.Guard())
}

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
	return Event{Kind: Disconnected, Err: err}
}

// blamed returns how the job ended for this party, with the reason of its own if its vectors were
// missing.
func (p *participant) blamed(err error, guard *drive.Guard) error {
	switch {
	case p.missed == nil:
	case err == nil && guard.Count() == p.blanks:
		return fmt.Errorf("%w: %w", ErrAbsent, p.missed)
	case errors.Is(err, ErrRefused) && guard.Count() == p.blanks:
		return fmt.Errorf("%w: %w; then %w", ErrAbsent, p.missed, err)
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%w; this party had nothing to submit: %w", err, p.missed)
	}
	return err
}

func (p *participant) report(e Event) {
	if p.Progress != nil {
		p.Progress(e)
	}
}

// tell reports what the party has decided.
func (p *participant) tell(r drive.Report) {
	e := Event{Session: r.Session, Round: r.Round, Err: r.Err}
	switch r.Kind {
	case drive.Joined:
		e.Kind = Joining
	case drive.TookOver:
		e.Kind = TookOver
	case drive.Submitted:
		e.Kind = Submitted
		if p.zeros != 0 && p.zeros == r.Round {
			p.blanks++
		}
	case drive.CaughtUp:
		e.Kind = CaughtUp
	case drive.Blank:
		e.Kind, p.missed = Blank, r.Err
		p.blanks++
	case drive.Declined, drive.Missed, drive.Late:
		e.Kind = Absent
		if r.Err != nil {
			p.missed = r.Err
		}
		if r.Kind == drive.Missed && p.Job.SubmitAfter() > 0 {
			p.zeros = r.Round
		}
	default:
		e.Kind = Refused
	}
	if (r.Kind == drive.Missed || r.Kind == drive.Blank) && p.Job.OwnGradients() {
		e.Err = fmt.Errorf("%w: %w", ErrUnproved, r.Err)
	}
	p.report(e)
}

func (p *Participant) noisy() bool { return p.Job.Mechanism() != nil }

// program makes vectors by the participant's fields.
type program struct{ *participant }

// Make has the program make this party's vector, and returns what encodes it.
func (p *program) Make(ctx context.Context, c *host.Cast) (fill host.Fill, err error) {
	b := c.Model.(*link.Broadcast)
	defer func() {
		if err == nil || p.noisy() {
			b.Model = nil // it is spent
			collect(p.Job)
		}
	}()
	switch {
	case p.Submit != nil:
		m, err := p.Submit(ctx, b.Round, link.FloatsOf[float64](b.Model))
		return p.filling(m), err
	case p.Work32 != nil:
		vector, err := p.Work32(ctx, b.Round, link.FloatsOf[float32](b.Model))
		return alone(p, vector), err
	case p.Job.Oneshot() != nil:
		vector, err := p.Work(ctx, b.Round, link.FloatsOf[float64](b.Model))
		return p.filling(Message{Vector: vector}), err
	}
	vector, err := p.Work(ctx, b.Round, link.FloatsOf[float64](b.Model))
	return alone(p, vector), err
}

// alone encodes a vector that is all that the party submits.
func alone[F aggregation.Float](p *program, vector []F) host.Fill {
	return func(v *masking.Vector, in *host.Cast, _ uint64) error {
		collect(p.Job) // the last submission, if it was of another session
		return job.EncodeTo(v, p.Job, in.Model.(*link.Broadcast).Digest, vector, p.Random)
	}
}

// filling encodes a message, which may be of an earlier round.
func (p *program) filling(m Message) host.Fill {
	return func(v *masking.Vector, in *host.Cast, later uint64) error {
		values, err := p.values(in.Model.(*link.Broadcast).Digest, m.Weighed(later))
		if err != nil {
			v.Erase()
			return err
		}
		err = v.Set(values...)
		for _, lane := range values {
			clear(lane)
		}
		return err
	}
}

func (p *program) values(broadcast [32]byte, m Message) (_ [][]uint64, err error) {
	switch {
	case p.Submit == nil:
		return p.Job.EncodeDigest(broadcast, m.Vector, p.Random)
	case more(p.Job):
		if m, err = p.Job.Message(m.Vector, m.Samples); err != nil {
			return nil, err
		}
	}
	return p.Job.EncodeMessage(broadcast, m, p.Random)
}
