// Package party takes part in a federation: it asks the server what is next, over connections that
// it opens itself, checks the answer against the accepted job and the party's own policy, has the
// party train, and answers. The party's state is sealed in one folder and saved before any message
// that follows from it is sent, so the process may be killed at any moment and restarted.
package party

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/store"
)

// Work holds what a party needs to train in a round.
type Work struct {
	Round int
	Spec  *tensor.Spec
	Model []float64
	File  []byte // the model, as the safetensors file that came
	// Metrics says that the federation sums loss and accuracy.
	Metrics bool
	// Coins say how the update sums over records, in a federation whose unit is a record.
	Coins *job.Coins
}

// Update is the result of a party's work: the change to the model, and, if the federation sums
// metrics, the party's own.
type Update struct {
	Vector         []float64
	Loss, Accuracy float64
	// Values is the whole submission, in place of Vector, of a training that the federation
	// declares: see [Declared]. With sum.buffer it is Message, since the round in which it will be
	// submitted is not known yet.
	Values  [][]uint64
	Message *job.Update[float64]
	// Without says why Vector is without some records, for the party's log alone: see [Gradients].
	Without error
}

// Trainer trains on a party's own rows. After an error the party is absent from that round. With
// noise it submits zeros instead, after an error or a panic, so that only the party's own log shows
// the failure. ctx ends when the round goes on without the party.
type Trainer interface {
	Train(ctx context.Context, w *Work) (*Update, error)
}

// TrainerFunc is a function that implements Trainer.
type TrainerFunc func(ctx context.Context, w *Work) (*Update, error)

// Train calls the function.
func (f TrainerFunc) Train(ctx context.Context, w *Work) (*Update, error) { return f(ctx, w) }

// Party is one party of a federation. Set the fields, then call Run.
type Party struct {
	Federation *federation.Federation // worked out from what was accepted
	Identity   crypto.Signer          // Ed25519, of the roster
	Server     *Server
	Trainer    Trainer
	Folder     string               // for the state; one process at a time
	Key        *keyexchange.SealKey // seals the state
	Policy     *consent.Policy      // nil: everything is accepted
	Book       *consent.Book        // nil: what other federations spend is not counted
	Log        *slog.Logger         // nil: nothing is logged

	// Receipts is the folder in which a folder for the federation takes the party's receipts; empty:
	// the folder receipts in Folder takes them.
	Receipts string

	// Witness has the party cosign the checkpoints of the server's public log, if that continues what
	// the party has seen of it, under a key of its own in Folder.
	Witness bool

	// LeastNumber and Spent are for a party whose state is lost: LeastNumber is the least number of a
	// session in which it may take part, above all numbers that it has used, and Spent is the last
	// round in which it may have submitted. All rounds up to Spent count as spent, and none of them
	// is answered again. A Spent above 0 declares that the state is lost: with 0, Run fails with
	// store.ErrOldState if the counter has seen a newer state than the folder's. Where the newest
	// state is there, the greater of its count and Spent counts. A party that has lost the counter too
	// sets both in the same way.
	LeastNumber uint64
	Spent       int

	// Turns holds places. The party takes one while it computes, so that many parties of one process
	// share the machine; nil: the party waits for no other.
	Turns chan struct{}

	// Submitted, for tests, is shown each submission, including its noise, before it can be sent.
	Submitted func(round int, values [][]uint64)

	random io.Reader
	// files, for tests, returns what stands for the files of the folder.
	files func(s store.Store, c store.Counter) (store.Store, store.Counter)
}

// running is a Party, or a Member, while it runs.
type running struct {
	Party
	carrier  *carrier
	part     drive.Part
	keeper   *host.PartVault
	accepted *consent.Accepted // nil: a member spends nothing
	unproved int               // rounds in which the program has failed, in a job by records
}

// ErrAbsent: the federation has ended, and this party was in none of its rounds since Run was
// called, or with noise only with zeros, because its trainer left nothing that could be submitted.
// The last model is returned with ErrAbsent.
var ErrAbsent = errors.New("party: this party had nothing to submit in any round")

// Run takes part until the federation ends, and returns the last model's file: at once, if the
// federation has already ended according to the party's book. A party that is in the committee too
// does both, and keeps what it needs as a member in the folder "committee" inside its own. It fails
// with the context's error; with the errors of [consent.Book.Accept], [ErrStored] or [ErrLocked]
// before anything is sent; with [ErrServer] if it is another server; with [ErrAbsent]; and with
// errors of the folder. A round in which the party has already submitted, or that would exceed what
// the party agreed to, is not an error: the party declines the round, logs that, and tells the
// server that it is absent.
func (p *Party) Run(ctx context.Context) (model []byte, err error) {
	if err := p.checkLost(); err != nil {
		return nil, err
	}
	r := p.running()
	r.accepted, err = p.Book.Accept(p.Policy, p.Federation.Settled, p.Identity.Public())
	switch {
	case err != nil:
		return nil, err
	case r.accepted.Ended:
		return r.carrier.last(ctx)
	}
	settings, err := r.settings()
	if err != nil {
		return nil, err
	}
	absent, err := r.both(ctx, settings)
	if err != nil {
		return nil, err
	}
	guard := r.part.Guard()
	if err := r.tellSpent(guard); err != nil {
		return nil, err
	}
	if err := r.accepted.End(*guard); err != nil {
		return nil, err
	}
	if model, err = r.carrier.last(ctx); err == nil && absent != nil {
		err = fmt.Errorf("%w: %w", ErrAbsent, absent)
	}
	return model, err
}

// running returns the party as it runs.
func (p *Party) running() *running {
	r := &running{Party: *p}
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	r.carrier = r.Party.carrier()
	return r
}

// settings returns what the party knows before it takes part.
func (r *running) settings() (drive.PartSettings, error) {
	s, err := r.Federation.Settled.Part(r.Identity, r.random)
	if show := r.Submitted; show != nil {
		s.Shown = func(round uint64, values [][]uint64) { show(int(round), values) }
	}
	return s, err
}

// tellSpent logs what this party's own ledger shows, whatever the server counts.
func (r *running) tellSpent(guard *drive.Guard) error {
	log := r.Log.With("submissions", guard.Count())
	spent, err := guard.Spent()
	if err != nil {
		return err
	}
	if spent != nil {
		log = log.With("spent", *spent)
	}
	if r.unproved > 0 {
		log = log.With("unproved_rounds", r.unproved)
	}
	log.Info("the federation has ended")
	return nil
}

// count has the party's book count what has left, once the state that counts it is saved and before
// anything of it is sent.
func (r *running) count(part drive.Part) error {
	if r.accepted == nil {
		return nil
	}
	return r.accepted.Count(*part.Guard())
}

// run takes part until the federation ends, in a folder of the given kind of owner. absent is why
// the party was in no round.
func (r *running) run(
	ctx context.Context, kind string, settings drive.PartSettings,
) (absent, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.carrier.life = ctx
	vault, err := r.load(kind, settings)
	if err != nil {
		return nil, fmt.Errorf("%s (%.16s…), whose state is in %s: %w", r.Federation.Job.Name,
			r.Federation.ID, r.Folder, err)
	}
	defer vault.Close()
	defer r.carrier.heads.close()
	defer cancel() // of what is fetched
	if err := r.count(r.part); err != nil {
		r.part.Erase()
		return nil, err
	}
	r.Server.wait.Store(int64(exchange.Wait(r.Federation.Settled.Roster().Len())))
	if kind == kindParty {
		r.carrier.papers = r.papers(r.Log, r.carrier.heads)
	}
	player := r.player(settings.Layout)
	if err = player.Run(ctx); err != nil {
		cancel()
	}
	r.carrier.papers.submitted(r.part.Hello().Told)
	r.carrier.papers.ends(ctx)
	r.carrier.stay()
	r.carrier.turn.rest()
	var end *host.FatalError
	if errors.As(err, &end) {
		err = end.Err
	}
	missed, always := player.Missed()
	if !always { // something of its own is in a sum
		missed = nil
	}
	return missed, err
}

// player returns the loop around what was loaded.
func (r *running) player(layout masking.Layout) *host.Player {
	return &host.Player{
		Part:     r.part,
		Carrier:  r.carrier,
		Program:  (*program)(r),
		Keeper:   r.keeper,
		Quiet:    r.Federation.Settled.Mechanism() != nil,
		Buffered: r.Federation.Settled.Buffer() > 0,
		Layout:   layout,
		Watch:    r.tell,
		Pause:    r.carrier.pause,
		Polled:   true,
		Missing:  func(_ uint64, err error) { r.carrier.missing(r.part.Hello().Told, err) },
	}
}

// checkLost returns an error unless a lost state is declared in full.
func (p *Party) checkLost() error {
	switch err := checkSpent(p.Federation, p.Spent); {
	case err != nil:
		return err
	case p.Federation.Settled.Oneshot() != nil && p.LeastNumber > 0:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: "one-message sums have no sessions",
			Advice: "set only Spent",
		}
	case p.Federation.Settled.Oneshot() != nil:
	case p.Spent > 0 && p.LeastNumber == 0:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: "a party that lost its state does not know which numbers it has used",
			Advice: "ask the server's operator for one above those of all sessions",
		}
	case p.LeastNumber > protocol.MaxNumber:
		return &job.ConfigError{
			Path:   "LeastNumber",
			Reason: fmt.Sprintf("%d is above %d, the last one", p.LeastNumber, protocol.MaxNumber),
		}
	}
	return nil
}

// checkSpent returns an error unless a federation has the last round of a lost state.
func checkSpent(f *federation.Federation, spent int) error {
	rounds := f.Settled.Rounds()
	if spent >= 0 && spent <= rounds {
		return nil
	}
	return &job.ConfigError{Path: "Spent",
		Reason: fmt.Sprintf("%d is outside 0 to the %d rounds of %s", spent, rounds, f.Job.Name)}
}

// tell logs what the party has decided.
func (r *running) tell(one drive.Report) {
	log := r.Log
	if one.Session != 0 {
		log = log.With("session", one.Session)
	}
	if one.Round != 0 {
		log = log.With("round", one.Round)
	}
	if one.Err != nil {
		log = log.With("error", one.Err.Error())
	}
	kind := one.Kind
	if kind == drive.Missed && r.Federation.Settled.SubmitAfter() > 0 {
		kind = drive.Blank // its zeros are ready
	}
	if kind == drive.Blank && r.Federation.Settled.OwnGradients() {
		r.unproved++
		log = log.With("epsilon", "none is proved of this party's records for this round, unless what "+
			"failed had nothing to do with them")
	}
	switch kind {
	case drive.Joined:
		log.Info("joining")
	case drive.TookOver:
		log.Info("session took over")
	case drive.Submitted:
		log.Info("submitted")
	case drive.Declined:
		log.Warn("this party declines the round: the server has forgotten it, was set back, or cheats")
	case drive.Missed:
		log.Warn("no update for this round")
	case drive.CaughtUp:
		log.Warn("this party's state is not the newest")
	case drive.Blank:
		log.Warn("no update for this round: zeros with noise are submitted, and nobody else learns it")
	case drive.Late:
		log.Info("the round continued without this party's update")
	default:
		if errors.Is(one.Err, protocol.ErrParticipants) {
			log = log.With("perhaps", "another copy of the folder has run in between")
		}
		log.Warn("what the server sent was refused")
	}
}
