package hushsum

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/frames"
	"github.com/hushsum/hushsum/internal/instant"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
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
// zeros, because Work returned nothing that could be submitted. The last model is returned with it.
var ErrAbsent = errors.New("hushsum: this party had nothing to submit in any round")

// Participant is one party of a job. Set the fields, then call Run.
type Participant struct {
	Job      *Settled
	Identity crypto.Signer // Ed25519, of the job's roster
	Dialer   Dialer

	// Work returns this party's vector for a round, made from the model that the
	// coordinator has sent: the change that training on the party's own data makes to
	// it, say. Both have Length coordinates; model is good until Work returns. It is called
	// once or more for a round; an error of it is an absence in that round, and is reported
	// to Progress. With noise it is no absence, which would tell others something about the
	// party's rows: zeros with noise are submitted, also where Work panics. The end of the process
	// is seen all the same. In a job with privacy.submit_after the same holds where Work is not done
	// at the instant, when ctx ends; with parties.hidden it is called with luck only. With sum.buffer
	// it may take as long as it likes, while rounds come and go; where what it makes would be too
	// old, ctx ends, and it is called for a newer round once it has returned. With privacy.unit =
	// "record" epsilon rests on Work, and nothing can check it: it does what [job.Coins] says, see the
	// example called records.
	Work func(ctx context.Context, round uint64, model []float64) ([]float64, error)
	// Work32 is Work for models and vectors of float32, in half the memory, with [Participant.Run32]
	// instead of Run. A weight that float32 does not hold is rounded to the nearest that it does; a
	// model of a weight that is too large is refused. It is for sums that are pairwise.
	Work32 func(ctx context.Context, round uint64, model []float32) ([]float32, error)
	// Submit is Work for a job in which parties send more than a vector: for one that trains its
	// model itself, where training.Submit makes it from a party's rows, and for one that weighs or
	// masks means, with a vector and its weight as Samples. model has the job's ModelLength
	// coordinates.
	Submit func(ctx context.Context, round uint64, model []float64) (Message, error)

	// Store keeps what the party must not lose when its process ends; nil: nothing is kept, and a
	// restarted party takes part from the next session on, or with Oneshot from LeastNumber on. Key
	// seals it, and must be set with Store.
	Store   Store
	Key     *keyexchange.SealKey
	Counter Counter // finds older states; may be nil

	// LeastNumber is the least number of a session that the party may take part in. It
	// is for a party that lost its state: ask the coordinator for a number that it has
	// not used with this party. A stored state knows better. With Oneshot it is the least
	// number of a round.
	LeastNumber uint64
	// Spent, from 1 to the job's Rounds, declares that the party's state is lost, and how many rounds
	// count as spent by it: all those that it may have submitted to, or 1 if there are none. It takes
	// a LeastNumber. The party then starts without a state where the Counter knows of one that Store
	// does not have, or has an older one of; with 0 that is [ErrOldState]. A stored state that is the
	// newest knows better. Set it to 0 again once the party has run.
	Spent int

	Random   io.Reader   // nil: crypto/rand
	Progress func(Event) // may be nil

	// Submitted is shown each submission, including its noise, before it is masked: for tests that
	// compare sums. It may be called again for a round whose submission was not sent yet. May be nil.
	Submitted func(round uint64, values [][]uint64)
}

// participant is a running Participant.
type participant struct {
	Participant
	vault     *vault // nil without a store
	party     *drive.Party
	longest   int               // message of a session
	coming    coming            // a body of which parts have come
	arrived   *frames.Broadcast // that came before the message which it belongs to
	broadcast *frames.Broadcast // of the round that waits for an answer
	kept      []byte            // digest of the submission in the store
	missed    error             // why there was no vector, the last time that there was none
	blanks    uint64            // submissions of zeros with noise
	zeros     uint64            // round at whose instant zeros leave: Work had no vector, or no luck
	link      Link
	worker    instant.Worker // of a job with an instant
}

// Run takes part until the job is done and returns the last model. It dials again
// whenever the connection breaks. It fails with the context's error; with [ErrConfig] if
// a field is unusable; with [ErrJob] if the coordinator has another job, and [ErrPeer] if
// it is another coordinator, or does not know this party; with [ErrOldState] or [ErrStore] if
// the stored state is unusable; with [ErrLocked] if somebody else uses the Store; and with
// errors of the Store.
func (p *Participant) Run(ctx context.Context) ([]float64, error) {
	if p.Work32 != nil {
		return nil, &ConfigError{Path: "Work32", Reason: "Run takes Work", Advice: "call Run32"}
	}
	model, err := p.run(ctx)
	return frames.Of[float64](model), err
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
	return frames.Of[float32](model), err
}

func (p *Participant) run(ctx context.Context) (frames.Weights, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Job.Oneshot() != nil {
		return p.runOneshot(ctx)
	}
	r := &participant{Participant: *p}
	ctx, cancel := context.WithCancel(ctx)
	defer r.worker.Wait()
	defer cancel()
	r.longest = p.Job.Config(0).MaxMessage()
	defer func() { r.vault.close() }()
	if err := r.load(); err != nil {
		return nil, err
	}
	defer r.party.Erase()
	model, err := redial(ctx, r.report, r.connection)
	return model, r.blamed(err, r.party.Guard())
}

// blamed returns how the job ended for this party, with the reason of its own if its vectors were
// missing.
func (p *participant) blamed(err error, guard drive.Guard) error {
	switch {
	case p.missed == nil:
	case err == nil && guard.Count() == p.blanks:
		return fmt.Errorf("%w: %w", ErrAbsent, p.missed)
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("%w; this party had nothing to submit: %w", err, p.missed)
	}
	return err
}

// redial connects until a connection is done or has failed for good.
func redial(
	ctx context.Context, report func(Event),
	connection func(ctx context.Context) (model frames.Weights, done bool, err error),
) (frames.Weights, error) {
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
func (p *participant) connection(ctx context.Context) (model frames.Weights, done bool, err error) {
	if p.link, err = p.Dialer.Dial(ctx); err != nil {
		return nil, false, err
	}
	defer p.link.Close()
	greeting := greetingOf(p.Job)
	greeting.Least, greeting.Sessions = p.party.Least(), p.party.Sessions()
	if err := p.link.Send(ctx, frames.OfJSON(frames.KindHello, greeting)); err != nil {
		return nil, false, err
	}
	// A coordinator whose state was set back believes its parties about how far the job is. Older
	// ones take this for an absence from a round that does not exist, and ignore it.
	if guard := p.party.Guard(); guard.Last() > 0 {
		told := frames.OfJSON(frames.KindAbsent, frames.Absence{Told: guard.Last()})
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
		in, err := receive(ctx, p.link)
		if err != nil {
			return nil, false, err
		}
		switch kind, body := in[0], in[1:]; kind {
		case frames.KindJoin:
			if len(body) != 8 {
				return nil, false, ErrFrame
			}
			err = p.party.Join(binary.BigEndian.Uint64(body))
		case frames.KindPart:
			err = p.part(body)
			reuse(p.link, in)
		case frames.KindMessage:
			if body, err = p.rest(body); err == nil {
				err = p.message(body)
			}
		case frames.KindBroadcast:
			p.arrived, err = p.restOfBroadcast(kind, body)
		case frames.KindEnd:
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

// receive takes a frame of the coordinator, of a byte or more. It fails if that is a refusal.
func receive(ctx context.Context, link Link) ([]byte, error) {
	in, err := link.Receive(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(in) == 0:
		return nil, ErrFrame
	case in[0] == frames.KindRefusal:
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
	if err := p.party.Receive(message, round); err != nil {
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
	p.report(e)
}

// away tells the coordinator that it need not wait for this party in a round.
func (p *participant) away(ctx context.Context, r drive.Absence) error {
	guard := p.party.Guard()
	why := frames.Absence{Told: guard.Last(), Absent: r.Number, Why: string(r.Cause)}
	return p.link.Send(ctx, frames.OfJSON(frames.KindAbsent, why))
}

// send sends a message, which may be the submission that was made last.
func (p *participant) send(ctx context.Context, m drive.Message) error {
	if m.Bytes != nil {
		return p.link.Send(ctx, frames.New(frames.KindMessage, m.Bytes))
	}
	send := func(frame []byte) error { return p.link.Send(ctx, frame) }
	if s := p.party.Submission(); s != nil {
		return frames.SendBody(frames.KindMessage, s, send)
	}
	file, err := p.vault.get(submissionName, p.kept)
	if err != nil { // the round goes on without this party
		p.report(Event{Kind: Absent, Session: m.Session, Err: err})
		return nil
	}
	defer file.Close()
	w := frames.NewPieceWriter(frames.KindMessage, send)
	if _, err := io.Copy(w, file); err != nil {
		return err
	}
	return w.Close()
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
		return p.shown(b.Round, v, fill(v))
	}
	if err := p.party.Answer(answer); err != nil {
		return storeError{err}
	}
	return nil
}

// shown shows a submission, if it was made.
func (p *participant) shown(round uint64, v *masking.Vector, err error) error {
	if err == nil && p.Submitted != nil {
		p.Submitted(round, v.Values())
	}
	return err
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
	ctx context.Context, b *frames.Broadcast,
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
	ctx context.Context, p *participant, b *frames.Broadcast,
	work func(ctx context.Context, round uint64, model []F) ([]F, error),
) (fill func(v *masking.Vector) error, err error) {
	vector, err := work(ctx, b.Round, frames.Of[F](b.Model))
	return func(v *masking.Vector) error {
		return job.EncodeTo(v, p.Job, b.Digest, vector, p.Random)
	}, err
}

// submission is vector for a job whose submissions have more than one.
func (p *participant) submission(
	ctx context.Context, b *frames.Broadcast,
) (fill func(v *masking.Vector) error, err error) {
	m, err := p.Submit(ctx, b.Round, frames.Of[float64](b.Model))
	if err == nil && more(p.Job) {
		m, err = p.Job.Message(m.Vector, m.Samples)
	}
	return func(v *masking.Vector) error {
		values, err := p.Job.EncodeMessage(b.Digest, 0, m, p.Random)
		if err != nil {
			v.Erase()
			return err
		}
		return v.Set(values...)
	}, err
}

func refused(body []byte) error {
	var r frames.Refusal
	if err := frames.ParseJSON(body, &r); err != nil {
		return err
	}
	if r.Field == "" {
		return fmt.Errorf("%w: %.200q", ErrRefused, r.Ours)
	}
	return &DifferenceError{Field: r.Field, Ours: r.Theirs, Theirs: r.Ours}
}

// LimitsOf returns what the party with a key of the roster agrees to, for its guard. Without a key
// it assumes a party that has spent nothing before. It fails with errors of the accountant.
func LimitsOf(s *Settled, key crypto.PublicKey) (drive.Limits, error) {
	ledger, err := s.Ledger()
	name := ""
	if roster := s.Roster(); roster != nil {
		public, _ := key.(ed25519.PublicKey)
		if i, found := roster.Index(public); found {
			name = roster.Name(i)
		}
	}
	return drive.Limits{
		Account:     name,
		Rounds:      uint64(s.Rounds()),
		Submissions: uint64(s.Submissions()),
		Every:       uint64(len(s.Band())),
		Cost:        s.Round(),
		Ledger:      ledger,
	}, err
}
