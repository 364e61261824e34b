package hushsum

import (
	"bufio"
	"cmp"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/store"
	"github.com/hushsum/hushsum/transport"
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
	// restarted party takes part from the next session on, or with one-message sums from LeastNumber
	// on. Key seals it, and must be set with Store.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// Policy says which jobs the party takes part in, and at which hours; nil: in any. Book counts
	// what the party spends in all its jobs, also in those of other processes and of the service that
	// have the same book; nil: what other jobs spend is not counted. A job is entered before anything
	// is sent, and each submission before it leaves.
	Policy *consent.Policy
	Book   *consent.Book

	// LeastNumber is the least number of a session that the party may take part in. It is for a party
	// that lost its state: ask the coordinator for a number that it has not used with this party. A
	// stored state overrides LeastNumber. With one-message sums it is the least number of a round.
	LeastNumber uint64
	// Spent, from 1 to the job's Rounds, declares that the party's state is lost, and how many rounds
	// count as spent by the party: all rounds that it may have submitted to, or 1 if there are none.
	// Spent needs a LeastNumber. The party then starts without a state if the Counter knows of a
	// state that Store lacks or has only an older version of; with Spent 0, Run fails with
	// [ErrOldState] there. Where the newest state is stored, the greater of its count and Spent
	// counts. Set Spent to 0 again once the party has run.
	Spent int

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil

	// Submitted is shown each submission that counts, once, including its noise, before it is masked:
	// for tests that compare sums. May be nil.
	Submitted func(round uint64, values [][]uint64)
}

// participant is a running Participant.
type participant struct {
	Participant
	accepted  *consent.Accepted
	vault     *store.Vault // nil without a store
	party     drive.Part
	longest   int                  // message of a session
	coming    coming               // a body of which parts have come
	arrived   *transport.Broadcast // that came before the message which it belongs to
	broadcast *transport.Broadcast // of the round that waits for an answer
	kept      []byte               // digest of the submission in the store
	missed    error                // why there was no vector, the last time that there was none
	blanks    uint64               // submissions of zeros with noise
	zeros     uint64               // round of zeros at its instant: no vector, or not drawn
	link      Link
	worker    instant.Worker // of a job with an instant
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
	return transport.FloatsOf[float64](model), err
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
	return transport.FloatsOf[float32](model), err
}

func (p *Participant) run(ctx context.Context) (transport.Weights, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	accepted, err := p.Book.Accept(p.Policy, p.Job, p.Identity.Public())
	if err != nil {
		return nil, err
	}
	r := participant{Participant: *p, accepted: accepted}
	if p.Job.Oneshot() != nil {
		return r.runOneshot(ctx)
	}
	return r.runSessions(ctx)
}

// runSessions takes part in a job of pairwise sums.
func (p *participant) runSessions(ctx context.Context) (transport.Weights, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer p.worker.Wait()
	defer cancel()
	p.longest = maxMessage(p.Job)
	defer func() { p.vault.Close() }()
	if err := p.load(); err != nil {
		return nil, err
	}
	defer p.party.Erase()
	model, err := redial(ctx, p.report, p.connection)
	return model, p.ended(err, p.party.Guard())
}

// ended returns how the job ended for this party, which its book notes once the job is done.
func (p *participant) ended(err error, guard *drive.Guard) error {
	if err == nil {
		err = p.accepted.End(*guard)
	}
	return p.blamed(err, guard)
}

// count has the party's book count what has left, before it leaves.
func (p *participant) count(guard *drive.Guard) error {
	if err := p.accepted.Count(*guard); err != nil {
		return storeError{err}
	}
	return nil
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

// redial connects until a connection is done or has failed for good.
func redial(
	ctx context.Context, report func(Event),
	connection func(ctx context.Context) (model transport.Weights, done bool, err error),
) (transport.Weights, error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		began := time.Now()
		model, done, err := connection(ctx)
		switch {
		case done:
			return model, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case fatal(err):
			return nil, err
		}
		report(Event{Kind: Disconnected, Err: err})
		if time.Since(began) > longestWait {
			wait = firstWait
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Waits between two attempts to connect.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 2 * time.Second
)

// storeError marks errors that another connection does not mend.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func fatal(err error) bool {
	var s storeError
	return errors.Is(err, ErrConfig) || errors.Is(err, keyexchange.ErrSigner) ||
		errors.Is(err, ErrJob) || errors.Is(err, ErrRefused) ||
		errors.Is(err, ErrPeer) || errors.As(err, &s)
}

func (p *participant) report(e Event) {
	if p.Progress != nil {
		p.Progress(e)
	}
}

// connection dials, takes what comes, and answers, until the connection breaks or the
// job is done.
func (p *participant) connection(
	ctx context.Context,
) (model transport.Weights, done bool, err error) {
	hours, stop, err := p.Policy.Hours(ctx)
	if err != nil {
		return nil, false, err
	}
	defer stop()
	if p.link, err = dial(hours, p.Dialer); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	greeting := greetingOf(p.Job)
	hello := p.party.Hello()
	greeting.Least, greeting.Sessions = hello.Least, hello.Sessions
	if err := p.link.Send(ctx, transport.JSONFrame(transport.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	// A coordinator whose state was set back believes its parties about how far the job is. Older
	// ones take this for an absence from a round that does not exist, and ignore it.
	if hello.Told > 0 {
		told := transport.JSONFrame(transport.KindAbsent, transport.Absence{Told: hello.Told})
		if err := p.link.Send(ctx, told); err != nil {
			return nil, false, err
		}
	}
	p.report(Event{Kind: Connected})
	p.coming, p.arrived = coming{}, nil
	p.party.Connected()
	if err := p.proceed(ctx); err != nil {
		return nil, false, err
	}
	for {
		in, err := receive(hours, p.link) // what has begun may end after them
		if err != nil {
			return nil, false, cmp.Or(context.Cause(hours), err)
		}
		switch kind, body := in[0], in[1:]; kind {
		case transport.KindJoin:
			if len(body) != 8 {
				return nil, false, ErrFrame
			}
			err = p.party.Receive(drive.Item{Kind: drive.Join, Session: binary.BigEndian.Uint64(body)})
		case transport.KindPart:
			err = p.part(body)
			transport.Reuse(p.link, in)
		case transport.KindMessage:
			if body, err = p.rest(body); err == nil {
				err = p.message(body)
			}
		case transport.KindBroadcast:
			p.arrived, err = p.restOfBroadcast(kind, body)
		case transport.KindEnd:
			last, err := p.restOfBroadcast(kind, body)
			if err != nil {
				return nil, false, err
			}
			return last.Model, true, nil
		default:
			err = fmt.Errorf("%w: kind %d", ErrFrame, kind)
		}
		if err == nil {
			err = p.proceed(ctx)
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// dial connects, or names the field of a dialer that is unusable.
func dial(ctx context.Context, dialer Dialer) (Link, error) {
	link, err := dialer.Dial(ctx)
	var why *fault.Error
	if errors.Is(err, transport.ErrConfig) && errors.As(err, &why) {
		err = &ConfigError{Path: "Dialer", Reason: why.Reason, Advice: why.Advice, Err: err}
	}
	return link, err
}

// receive takes a frame of the coordinator, of a byte or more. It fails if that is a refusal.
func receive(ctx context.Context, link Link) ([]byte, error) {
	in, err := link.Receive(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(in) == 0:
		return nil, ErrFrame
	case in[0] == transport.KindRefusal:
		return nil, refused(in[1:])
	}
	return in, nil
}

// message hands a message to the party. What came before it belongs to it, if a round begins
// with it.
func (p *participant) message(message []byte) error {
	round := uint64(0)
	if p.arrived != nil {
		p.broadcast, round = p.arrived, p.arrived.Round
		p.arrived = nil
	}
	if err := p.party.Receive(drive.Item{Kind: drive.Carry, Own: message, Round: round}); err != nil {
		return storeError{err}
	}
	return nil
}

// proceed does what the party has decided: saves, then sends, then works.
func (p *participant) proceed(ctx context.Context) error {
	for {
		r, decided := p.party.Ready()
		if !decided {
			return nil
		}
		if err := p.save(r); err != nil {
			return err
		}
		if err := p.count(p.party.Guard()); err != nil {
			return err
		}
		for _, one := range r.Reports {
			p.tell(one)
		}
		out := p.party.Advance()
		for _, away := range out.Away {
			if err := p.away(ctx, away); err != nil {
				return err
			}
		}
		for _, m := range out.Send {
			if err := p.send(ctx, m); err != nil {
				return err
			}
		}
		if out.Ask != nil {
			if err := p.work(ctx, *out.Ask); err != nil {
				return err
			}
		}
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

// away tells the coordinator that it need not wait for this party in a round.
func (p *participant) away(ctx context.Context, r drive.Absence) error {
	why := transport.Absence{Told: p.party.Hello().Told, Absent: r.Number, Why: string(r.Cause)}
	return p.link.Send(ctx, transport.JSONFrame(transport.KindAbsent, why))
}

// send sends a message, which may be the submission that was made last.
func (p *participant) send(ctx context.Context, m drive.Message) error {
	send := func(frame []byte) error { return p.link.Send(ctx, frame) }
	if m.Bytes != nil {
		return sendMessage(send, m.Bytes)
	}
	if s := p.party.Object(drive.SubmissionName); s != nil {
		return transport.SendBody(transport.KindMessage, s, send)
	}
	file, err := p.vault.Get(drive.SubmissionName, p.kept)
	if err != nil { // the round goes on without this party
		p.report(Event{Kind: Absent, Session: m.Session, Err: err})
		return nil
	}
	defer file.Close()
	return transport.SendBody(transport.KindMessage, bufio.NewReader(file), send)
}

// work has Work make this party's vector, and the party answer with it.
func (p *participant) work(ctx context.Context, ask drive.Ask) error {
	b := p.broadcast
	if b == nil {
		return nil // it comes with the next message that says so
	}
	if ask.After > 0 {
		return p.workUntil(ctx, ask, b)
	}
	var fill func(v *masking.Vector) error
	err := p.try(func() (err error) {
		fill, err = p.vector(ctx, b)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil || p.noisy() {
		b.Model, p.broadcast = nil, nil // they are spent
		collect(p.Job)
	}
	answer := drive.Answer{ID: ask.ID, Round: b.Round, Broadcast: b.Digest, Err: err}
	answer.Fill = func(v *masking.Vector) error {
		collect(p.Job) // the last submission, if it was of another session
		return fill(v)
	}
	if err := p.party.Answer(answer); err != nil {
		return storeError{err}
	}
	return nil
}

func (p *Participant) noisy() bool { return p.Job.Mechanism() != nil }

// try does work of the program, which with noise must not end the process.
func (p *Participant) try(work func() error) error {
	if !p.noisy() {
		return work()
	}
	return drive.Caught(work)
}

// vector has the program make this party's vector, and returns what encodes it.
func (p *participant) vector(
	ctx context.Context, b *transport.Broadcast,
) (fill func(v *masking.Vector) error, err error) {
	switch {
	case p.Submit != nil:
		return p.submission(ctx, b)
	case p.Work32 != nil:
		return filling(ctx, p, b, p.Work32)
	}
	return filling(ctx, p, b, p.Work)
}

func filling[F aggregation.Float](
	ctx context.Context, p *participant, b *transport.Broadcast,
	work func(ctx context.Context, round uint64, model []F) ([]F, error),
) (fill func(v *masking.Vector) error, err error) {
	vector, err := work(ctx, b.Round, transport.FloatsOf[F](b.Model))
	return func(v *masking.Vector) error {
		return job.EncodeTo(v, p.Job, b.Digest, vector, p.Random)
	}, err
}

// submission is vector for a job whose submissions have more than one.
func (p *participant) submission(
	ctx context.Context, b *transport.Broadcast,
) (fill func(v *masking.Vector) error, err error) {
	m, err := p.Submit(ctx, b.Round, transport.FloatsOf[float64](b.Model))
	if err == nil && more(p.Job) {
		m, err = p.Job.Message(m.Vector, m.Samples)
	}
	return func(v *masking.Vector) error {
		values, err := p.Job.EncodeMessage(b.Digest, m, p.Random)
		return set(v, values, err)
	}, err
}

func refused(body []byte) error {
	var r transport.Refusal
	if err := transport.ParseJSON(body, &r); err != nil {
		return err
	}
	if r.Field == "" {
		return fmt.Errorf("%w: %.200q", ErrRefused, r.Ours)
	}
	return &DifferenceError{Field: r.Field, Ours: r.Theirs, Theirs: r.Ours}
}
