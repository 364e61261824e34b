package sidecar

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"
	"sync"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/internal/wire"
	declared "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/oneshot"
)

var oneshotCalls = map[string]handler{
	"oneshot.party":         newMachine(oneshot.NewParty, partyProgress, (*oneshot.Party).Round),
	"oneshot.party.load":    loadMachine(oneshot.LoadParty, partyProgress, (*oneshot.Party).Round),
	"oneshot.submit":        submitOneshot,
	"oneshot.party.output":  onMachine(0, partyProgress, lastOutput[*oneshot.Party]),
	"oneshot.party.save":    onMachine(1, partyProgress, saveMachine[*oneshot.Party]),
	"oneshot.member":        newMachine(oneshot.NewMember, memberProgress, nil),
	"oneshot.member.load":   loadMachine(oneshot.LoadMember, memberProgress, nil),
	"oneshot.member.output": onMachine(0, memberProgress, lastOutput[*oneshot.Member]),
	"oneshot.member.save":   onMachine(1, memberProgress, saveMachine[*oneshot.Member]),
	"oneshot.answer":        onMachine(1, memberProgress, memberAnswer),
	"oneshot.server":        newOneshotServer,
	"oneshot.server.load":   loadOneshotServer,
	"oneshot.server.save":   onMachine(1, serverProgress, saveMachine[*oneshot.Server]),
	"oneshot.server.state":  onMachine(0, serverProgress, nothing[*oneshot.Server]),
	"oneshot.receive":       onMachine(1, serverProgress, oneshotReceive),
	"oneshot.invite":        onMachine(0, serverProgress, oneshotInvite),
	"oneshot.open":          onMachine(1, serverProgress, oneshotOpen),
	"oneshot.coin":          onMachine(0, serverProgress, toAll(drawNoise)),
	"oneshot.batch":         onMachine(0, serverProgress, oneshotBatch),
	"oneshot.settle":        onMachine(0, serverProgress, toAll((*oneshot.Server).Settle)),
	"oneshot.close":         onMachine(0, serverProgress, toAll((*oneshot.Server).Close)),
	"oneshot.certificate":   onMachine(0, serverProgress, toAll((*oneshot.Server).Certificate)),
	"oneshot.uncover":       onMachine(1, serverProgress, oneshotUncover),
	"oneshot.sum":           onMachine(1, serverProgress, oneshotSum),
}

// machine is a party, a member or the server in rounds of one message. It works on one call at a
// time.
type machine[T any] struct {
	mutex    sync.Mutex
	of       T
	settled  *declared.Settled
	identity ed25519.PrivateKey // nil for a server
	guard    *guard             // for a party
	unfit    string             // for a party: see partyObject
}

func (m *machine[T]) close() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	clear(m.identity)
}

// oneshotConfig returns the configuration of a job whose sums are of one message.
func oneshotConfig(s *declared.Settled) (*oneshot.Config, error) {
	config := s.Oneshot()
	if config == nil {
		return nil, fault.New(declared.ErrConfig, "use parties and servers of sessions",
			"the job's sums are pairwise")
	}
	return config, nil
}

// settledFor finds the job of a call that makes an object and has no other parameter.
func (s *sidecar) settledFor(r *request, blobs int) (*declared.Settled, *oneshot.Config, error) {
	var with struct {
		Settled uint64 `json:"settled"`
	}
	if err := r.take(&with, blobs); err != nil {
		return nil, nil, err
	}
	return s.oneshotJob(with.Settled)
}

func (s *sidecar) oneshotJob(id uint64) (*declared.Settled, *oneshot.Config, error) {
	settled, err := lookup[*declared.Settled](s, id, "job")
	if err != nil {
		return nil, nil, err
	}
	if settled.Trains() {
		return nil, nil, sessions(settled)
	}
	if err := unmeasured(settled); err != nil {
		return nil, nil, err
	}
	config, err := oneshotConfig(settled)
	return settled, config, err
}

// keep makes an object of a machine, and answers with its progress.
func keep[T any](
	s *sidecar, m *machine[T], progress func(*machine[T], uint64) any, err error,
) (any, [][]byte, error) {
	if err != nil {
		clear(m.identity)
		return nil, nil, err
	}
	id, err := s.add(m)
	if err != nil {
		m.close()
		return nil, nil, err
	}
	return progress(m, id), nil, nil
}

// openMachine makes the machine for the identity in the first blob. answered returns the last round
// that a party has submitted in; it is nil for members, which are not counted.
func openMachine[T any](
	s *sidecar, r *request, blobs int, progress func(*machine[T], uint64) any,
	answered func(T) uint64,
	open func(config *oneshot.Config, identity crypto.Signer) (T, error),
) (any, [][]byte, error) {
	var with struct {
		Settled uint64  `json:"settled"`
		Spent   *uint64 `json:"spent"` // for a party, as in partyParameters
	}
	if err := r.take(&with, blobs); err != nil {
		return nil, nil, err
	}
	if answered == nil && with.Spent != nil {
		return nil, nil, fieldError("spent", "leave it out", "a member spends nothing")
	}
	settled, config, err := s.oneshotJob(with.Settled)
	if err != nil {
		return nil, nil, err
	}
	known, err := checkSpent(settled, or(with.Spent, 0))
	if err != nil {
		return nil, nil, err
	}
	seed, err := r.secret(0, "the identity")
	if err != nil {
		return nil, nil, err
	}
	m := &machine[T]{settled: settled, identity: ed25519.NewKeyFromSeed(seed)}
	clear(seed)
	m.of, err = open(config, m.identity)
	if err == nil && answered != nil {
		// It has counted by the number of its last round: each round up to that.
		known = known.and(spent(settled, min(answered(m.of), uint64(settled.Rounds()))))
		m.guard, err = s.guard(settled, m.identity, known)
	}
	return keep(s, m, progress, err)
}

// newMachine takes the identity.
func newMachine[T any](
	create func(*oneshot.Config, crypto.Signer, io.Reader) (T, error),
	progress func(*machine[T], uint64) any, answered func(T) uint64,
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		return openMachine(s, r, 1, progress, answered,
			func(config *oneshot.Config, identity crypto.Signer) (T, error) {
				return create(config, identity, nil)
			})
	}
}

// loadMachine takes the identity, the key and the saved state.
func loadMachine[T any](
	load func(*oneshot.Config, crypto.Signer, io.Reader, *keyexchange.SealKey, []byte) (T, error),
	progress func(*machine[T], uint64) any, answered func(T) uint64,
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		return openMachine(s, r, 3, progress, answered,
			func(config *oneshot.Config, identity crypto.Signer) (out T, err error) {
				key, err := r.sealKey(1)
				if err != nil {
					return out, err
				}
				return load(config, identity, nil, key, r.blobs[2].private())
			})
	}
}

func newOneshotServer(s *sidecar, r *request) (any, [][]byte, error) {
	settled, config, err := s.settledFor(r, 0)
	if err != nil {
		return nil, nil, err
	}
	m := &machine[*oneshot.Server]{settled: settled}
	m.of, err = oneshot.NewServer(config, 0)
	return keep(s, m, serverProgress, err)
}

// loadOneshotServer takes the key and the saved state.
func loadOneshotServer(s *sidecar, r *request) (any, [][]byte, error) {
	settled, config, err := s.settledFor(r, 2)
	if err != nil {
		return nil, nil, err
	}
	key, err := r.sealKey(0)
	if err != nil {
		return nil, nil, err
	}
	m := &machine[*oneshot.Server]{settled: settled}
	m.of, err = oneshot.LoadServer(config, 0, key, r.blobs[1].private())
	return keep(s, m, serverProgress, err)
}

// onMachine finds the machine of a call that takes a given number of blobs.
func onMachine[T any](
	blobs int, progress func(*machine[T], uint64) any,
	work func(m *machine[T], r *request) (step, error),
) handler {
	return func(s *sidecar, r *request) (any, [][]byte, error) {
		var with struct {
			Object uint64 `json:"object"`
		}
		if err := r.take(&with, blobs); err != nil {
			return nil, nil, err
		}
		return ofMachine(s, with.Object, progress, func(m *machine[T]) (step, error) {
			return work(m, r)
		})
	}
}

// ofMachine has a machine work on a call.
func ofMachine[T any](
	s *sidecar, id uint64, progress func(*machine[T], uint64) any,
	work func(m *machine[T]) (step, error),
) (any, [][]byte, error) {
	m, err := lookup[*machine[T]](s, id, "such object")
	if err != nil {
		return nil, nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.unfit = ""
	done, err := work(m)
	if err != nil {
		return nil, nil, err
	}
	if p, ok := progress(m, id).(oneshotServerJSON); ok {
		p.To, p.StdDev, p.Weight = done.to, done.stdDev, done.weight
		return p, done.blobs, nil
	}
	return progress(m, id), done.blobs, nil
}

// oneshotJSON is the progress of a party or a member.
type oneshotJSON struct {
	Object uint64 `json:"object"`
	Index  int    `json:"index"` // in the roster, or in the committee
	Round  uint64 `json:"round"`
	Lost   bool   `json:"lost,omitempty"`  // for a member: see oneshot.Member
	Unfit  string `json:"unfit,omitempty"` // for a party: see partyJSON
}

func partyProgress(m *machine[*oneshot.Party], id uint64) any {
	return oneshotJSON{Object: id, Index: m.of.Index(), Round: m.of.Round(), Unfit: m.unfit}
}

func memberProgress(m *machine[*oneshot.Member], id uint64) any {
	return oneshotJSON{Object: id, Index: m.of.Index(), Round: m.of.Round(), Lost: m.of.Lost()}
}

// oneshotServerJSON is the progress of a server: how many of the members have answered what.
type oneshotServerJSON struct {
	Object   uint64   `json:"object"`
	Round    uint64   `json:"round"`
	Keys     int      `json:"keys"`
	Waiting  int      `json:"waiting"` // submissions, for a batch
	Answered int      `json:"answered"`
	Signed   int      `json:"signed"`
	Parts    int      `json:"parts"`
	Included []int    `json:"included"` // parties
	Excluded []int    `json:"excluded"` // members
	To       []int    `json:"to,omitempty"`
	StdDev   *float64 `json:"std_dev,omitempty"`
	Weight   int      `json:"weight,omitempty"`
}

func serverProgress(m *machine[*oneshot.Server], id uint64) any {
	s := m.of
	return oneshotServerJSON{
		Object:   id,
		Round:    s.Round(),
		Keys:     s.Keys(),
		Waiting:  s.Waiting(),
		Answered: s.Answered(),
		Signed:   s.Signed(),
		Parts:    s.Parts(),
		Included: s.Included(),
		Excluded: s.Excluded(),
	}
}

func nothing[T any](*machine[T], *request) (step, error) { return step{}, nil }

// lastOutput answers with no blob if nothing has been made yet.
func lastOutput[T interface{ Output() []byte }](m *machine[T], _ *request) (step, error) {
	if output := m.of.Output(); output != nil {
		return step{blobs: [][]byte{output}}, nil
	}
	return step{}, nil
}

func saveMachine[T interface {
	Save(key *keyexchange.SealKey) ([]byte, error)
}](m *machine[T], r *request) (step, error) {
	key, err := r.sealKey(0)
	if err != nil {
		return step{}, err
	}
	state, err := m.of.Save(key)
	return step{blobs: [][]byte{state}}, err
}

// submitOneshot takes the opening, the broadcast and the vector, empty if there is none. A round is
// a round of the job.
func submitOneshot(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Object uint64 `json:"object"`
		vectorCall
	}
	if err := r.take(&with, 3); err != nil {
		return nil, nil, err
	}
	return ofMachine(s, with.Object, partyProgress, func(m *machine[*oneshot.Party]) (step, error) {
		return oneshotSubmit(m, r, &with.vectorCall)
	})
}

func oneshotSubmit(
	m *machine[*oneshot.Party], r *request, vector *vectorCall,
) (step, error) {
	if err := vector.check(m.settled); err != nil {
		return step{}, err
	}
	opening, broadcast := r.blobs[0].private(), r.blobs[1].private()
	var message []byte
	err := m.guard.submit(func(next *drive.Guard) error {
		// The party itself refuses an opening that is invalid, or that it has answered.
		if h, _, err := wire.ParseHeader(opening); err == nil && h.Round > m.of.Round() {
			if err := next.Charge(h.Round); err != nil {
				return err
			}
		}
		values, err := m.values(broadcast, vector, r.blobs[2].bytes)
		if err != nil {
			return err
		}
		integers := masking.Signed(m.settled.Config(0).Layout, values)
		message, err = m.of.Submit(opening, broadcast, integers)
		for _, v := range values {
			clear(v)
		}
		clear(integers)
		return err
	})
	return step{blobs: [][]byte{message}}, err
}

// memberAnswer answers with one blob, or none if there is nothing to answer. A member helps in no
// round that the job does not have.
func memberAnswer(m *machine[*oneshot.Member], r *request) (step, error) {
	message, rounds := r.blobs[0].private(), uint64(m.settled.Rounds())
	if h, _, err := wire.ParseHeader(message); err == nil && h.Round > rounds {
		return step{}, fmt.Errorf("%w: %d of %d", drive.ErrRound, h.Round, rounds)
	}
	answer, err := m.of.Receive(message)
	if err != nil || answer == nil {
		return step{}, err
	}
	return step{blobs: [][]byte{answer}}, nil
}

func oneshotReceive(m *machine[*oneshot.Server], r *request) (step, error) {
	return step{}, m.of.Receive(r.blobs[0].private())
}

func oneshotInvite(m *machine[*oneshot.Server], _ *request) (step, error) {
	return step{blobs: [][]byte{m.of.Invite()}}, nil
}

// oneshotOpen takes the broadcast.
func oneshotOpen(m *machine[*oneshot.Server], r *request) (step, error) {
	opening, err := m.of.Open(r.blobs[0].private())
	return step{blobs: [][]byte{opening}}, err
}

func oneshotBatch(m *machine[*oneshot.Server], _ *request) (step, error) {
	envelopes, err := m.of.Batch()
	out := step{to: make([]int, 0, len(envelopes))}
	for _, e := range envelopes {
		out.to, out.blobs = append(out.to, e.To), append(out.blobs, e.Message)
	}
	return out, err
}

func toAll(
	next func(*oneshot.Server) ([]byte, error),
) func(m *machine[*oneshot.Server], r *request) (step, error) {
	return func(m *machine[*oneshot.Server], _ *request) (step, error) {
		message, err := next(m.of)
		return step{blobs: [][]byte{message}}, err
	}
}

// drawNoise tells members which of their candidates for noise they deal.
func drawNoise(s *oneshot.Server) ([]byte, error) { return s.Coin(nil) }

func oneshotUncover(m *machine[*oneshot.Server], r *request) (step, error) {
	return step{}, m.of.Uncover(r.blobs[0].private())
}

// oneshotSum takes the broadcast with which the round was opened.
func oneshotSum(m *machine[*oneshot.Server], r *request) (step, error) {
	sum, err := m.of.Sum()
	if err != nil {
		return step{}, err
	}
	included := m.of.Included()
	parties := len(included)
	values := masking.FromSigned(m.settled.Config(0).Layout, sum)
	broadcast, stdDev := r.blobs[0].private(), m.settled.StdDev(parties)
	total, err := m.settled.Decode(declared.BroadcastDigest(broadcast), values,
		m.settled.Counts(included))
	return step{blobs: [][]byte{floatBlob(total.Mean)}, stdDev: &stdDev, weight: total.Samples}, err
}

// values encodes a vector, as submission does for pairwise sums.
func (m *machine[T]) values(
	broadcast []byte, vector *vectorCall, b []byte,
) (values [][]uint64, err error) {
	s := m.settled
	if err = errNoVector; len(b) > 0 || s.Mechanism() == nil {
		var made declared.Update[float64]
		if made, err = vector.update(s, b); err == nil {
			values, err = encode(s, broadcast, made)
		}
	}
	if !hides(s, err) {
		return values, err
	}
	m.unfit = err.Error()
	return encode(s, broadcast, declared.Update[float64]{Vector: make([]float64, s.Length())})
}

// encode returns a submission.
func encode(s *declared.Settled, broadcast []byte, m declared.Update[float64]) ([][]uint64, error) {
	return s.Encode(declared.BroadcastDigest(broadcast), m, nil)
}
