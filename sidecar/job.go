package sidecar

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/training"
)

var jobCalls = map[string]handler{
	"job.join":       joinJob,
	"job.coordinate": coordinateJob,
	"job.next":       nextOfJob,
	"job.answer":     answerJob,
	"job.stop":       stopJob,
}

// job is a Participant or a Coordinator that runs next to the calls. The program asks what is next
// (job.next waits for it), works, and answers.
type job struct {
	cancel context.CancelFunc
	events chan jobEvent

	mutex sync.Mutex
	// handed receives the answer to the question that the program was given last; nil: it has
	// answered. Its answer belongs to that question, whatever was asked since.
	handed chan<- jobAnswer
}

// jobEvent reports what happens in a job.
type jobEvent struct {
	jobEventJSON
	blobs  [][]byte
	answer chan<- jobAnswer // of a question
	err    error
}

// jobEventJSON says what happened: "work" and "apply" wait for an answer, "end" is the
// last.
type jobEventJSON struct {
	Event   string `json:"event"`
	Round   uint64 `json:"round,omitempty"`
	Parties []int  `json:"parties,omitempty"`
	Session uint64 `json:"session,omitempty"`
	Party   *int   `json:"party,omitempty"` // roster index, of a coordinator's progress
	Text    string `json:"text,omitempty"`
	Rounds  int    `json:"rounds,omitempty"`
	Lost    int    `json:"lost,omitempty"`
}

// jobAnswer is a vector with its weight, or why there is none.
type jobAnswer struct {
	vector []float64
	weight int
	absent string
}

// errAbsent is the reason that a party or a coordinator gives itself.
type errAbsent string

func (e errAbsent) Error() string { return string(e) }

func (j *job) close() { j.cancel() }

// ask hands an event to the program and waits for its answer.
func (j *job) ask(ctx context.Context, e jobEvent) (jobAnswer, error) {
	answer := make(chan jobAnswer, 1) // an answer that comes too late blocks nothing
	e.answer = answer
	select {
	case j.events <- e:
	case <-ctx.Done():
		return jobAnswer{}, ctx.Err()
	}
	select {
	case a := <-answer:
		if a.absent != "" {
			return jobAnswer{}, errAbsent(a.absent)
		}
		return a, nil
	case <-ctx.Done():
		return jobAnswer{}, ctx.Err()
	}
}

// progress tells the program of a step, if it is listening or soon will be. party is the party that
// the step is about, at a coordinator; nil: none.
func (j *job) progress(ctx context.Context, e hushsum.Event, text string, party *int) {
	out := jobEvent{jobEventJSON: jobEventJSON{
		Event:   "progress",
		Round:   e.Round,
		Parties: e.Parties,
		Session: e.Session,
		Party:   party,
		Text:    text,
	}}
	select {
	case j.events <- out:
	case <-ctx.Done():
	}
}

// ownText returns an event of a party or member in words. Its connections are its own: the event
// does not number them.
func ownText(e hushsum.Event) string {
	switch e.Kind {
	case host.Connected:
		return "connected"
	case host.Disconnected:
		return fmt.Sprintf("not connected, dialing again: %v", e.Err)
	}
	return e.String()
}

// partyOf returns the party that a coordinator's event is about, nil if it is about none.
func partyOf(e hushsum.Event) *int {
	if e.Member {
		return nil
	}
	switch e.Kind {
	case host.Connected, host.Disconnected, host.Absent, host.Refused, host.Rejected,
		host.LeftOut, host.Stalled:
		return &e.Party
	}
	return nil
}

// start runs a job, whose last event is its end.
func (s *sidecar) start(
	run func(ctx context.Context, j *job) (jobEvent, error),
) (*job, uint64, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	j := &job{
		cancel: cancel,
		events: make(chan jobEvent, 256),
	}
	id, err := s.add(j)
	if err != nil {
		cancel()
		return nil, 0, err
	}
	go func() {
		defer cancel()
		last, err := run(ctx, j)
		if ctx.Err() != nil {
			err = errStopped
		}
		last.Event, last.err = "end", err
		select {
		case j.events <- last:
		case <-s.ctx.Done():
		}
		close(j.events)
	}()
	return j, id, nil
}

// storeParameters say where a job keeps its state.
type storeParameters struct {
	State   string `json:"state"`   // a file; empty: nowhere
	Counter string `json:"counter"` // a file; empty: none
}

func (p storeParameters) store(r *request, i int) (
	hushsum.Store, hushsum.Counter, *keyexchange.SealKey, error,
) {
	if p.State == "" {
		if p.Counter != "" {
			return nil, nil, nil, fieldError("counter", "give state too", "there is nothing to count")
		}
		return nil, nil, nil, nil
	}
	key, err := r.sealKey(i)
	if err != nil {
		return nil, nil, nil, err
	}
	var counter hushsum.Counter
	if p.Counter != "" {
		counter = hushsum.FileCounter(p.Counter)
	}
	return hushsum.FileStore(p.State), counter, key, nil
}

// joinJob takes the identity, and with a state the key that seals it.
func joinJob(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled     uint64 `json:"settled"`
		Address     string `json:"address"`     // host:port
		Coordinator string `json:"coordinator"` // 64 hexadecimal digits
		Least       uint64 `json:"least_number"`
		Spent       int    `json:"spent"`  // rounds; above 0: the state is lost
		Rows        uint64 `json:"rows"`   // of a job that trains its model itself
		Member      bool   `json:"member"` // of the committee of one-message sums
		Policy      string `json:"policy"` // a file of the party's terms; empty: none
		storeParameters
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	if err := r.need(1 + min(1, len(with.State))); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*hushsum.Settled](s, with.Settled, "job")
	if err != nil {
		return nil, nil, err
	}
	coordinator, err := hex.DecodeString(with.Coordinator)
	if err != nil || len(coordinator) != ed25519.PublicKeySize {
		return nil, nil, fieldError("coordinator", "give the coordinator's public key, which it prints",
			"it is not 64 hexadecimal digits")
	}
	seed, err := r.secret(0, "the identity")
	if err != nil {
		return nil, nil, err
	}
	identity := ed25519.NewKeyFromSeed(seed)
	dialer := &hushsum.TCPDialer{Address: with.Address, Identity: identity, Coordinator: coordinator}
	if with.Member && with.Policy != "" {
		return nil, nil, fieldError("policy", "leave it out", "it is a party's: a member of a committee "+
			"spends nothing")
	}
	var lost *hushsum.Lost
	if with.Spent != 0 || with.Least != 0 {
		lost = &hushsum.Lost{Rounds: with.Spent, Number: with.Least}
	}
	if with.Member {
		return s.help(r, &hushsum.Member{Job: settled, Identity: identity, Dialer: dialer, Lost: lost},
			with.storeParameters)
	}
	p := &hushsum.Participant[float64]{Job: settled, Identity: identity, Lost: lost}
	index, known := settled.Roster().Index(identity.Public().(ed25519.PublicKey))
	if !known {
		return nil, nil, fault.New(hushsum.ErrPeer, "use an identity of the roster",
			"the identity is not in the roster")
	}
	if p.Store, p.Counter, p.Key, err = with.store(r, 1); err != nil {
		return nil, nil, err
	}
	if with.State != "" {
		// A party's book is next to its states, for all its jobs.
		p.Book = &consent.Book{Key: p.Key, File: filepath.Join(filepath.Dir(with.State),
			fmt.Sprintf("book-%.8x", identity.Public()))}
	}
	if with.Policy != "" {
		if p.Policy, err = consent.ReadPolicy(with.Policy); err != nil {
			return nil, nil, err
		}
	}
	p.Dialer = dialer
	if settled.Trains() {
		rows, err := lookup[*learning.Dataset](s, with.Rows, "rows")
		if err != nil {
			return nil, nil, err
		}
		var kept training.Store
		if with.State != "" {
			kept = hushsum.FileStore(with.State + ".variates")
		}
		if p.Work, err = training.Submit(settled, index, rows, kept); err != nil {
			return nil, nil, err
		}
	}
	_, id, err := s.start(func(ctx context.Context, j *job) (jobEvent, error) {
		if !settled.Trains() {
			p.Work = func(
				ctx context.Context, r hushsum.Round[float64],
			) (u hushsum.Update[float64], err error) {
				a, err := j.ask(ctx, jobEvent{
					jobEventJSON: jobEventJSON{Event: "work", Round: r.Number},
					blobs:        [][]byte{floatBlob(r.Model)},
				})
				u.Vector, u.Samples = a.vector, a.weight
				return u, err
			}
		}
		p.Progress = func(e hushsum.Event) { j.progress(ctx, e, ownText(e), nil) }
		model, err := p.Run(ctx)
		clear(identity)
		return jobEvent{blobs: [][]byte{floatBlob(weightsOf(settled, model))}}, err
	})
	return jobJSON{Job: id}, nil, err
}

// help has a member of a committee help until the job is done.
func (s *sidecar) help(
	r *request, m *hushsum.Member, where storeParameters,
) (any, [][]byte, error) {
	one := m.Job.Oneshot()
	if one == nil {
		return nil, nil, fieldError("member", "take part as a party",
			"the job's sums are pairwise, and have no committee")
	}
	if _, known := one.Committee.Index(m.Identity.Public().(ed25519.PublicKey)); !known {
		return nil, nil, fault.New(hushsum.ErrPeer, "use an identity of the committee",
			"the identity is not in the committee")
	}
	var err error
	if m.Store, m.Counter, m.Key, err = where.store(r, 1); err != nil {
		return nil, nil, err
	}
	_, id, err := s.start(func(ctx context.Context, j *job) (jobEvent, error) {
		m.Progress = func(e hushsum.Event) { j.progress(ctx, e, ownText(e), nil) }
		return jobEvent{}, m.Run(ctx)
	})
	return jobJSON{Job: id}, nil, err
}

// weightsOf returns the weights of a model, without the state that rules keep between rounds.
func weightsOf(s *hushsum.Settled, model []float64) []float64 {
	return model[:min(len(model), s.Length())]
}

type jobJSON struct {
	Job     uint64 `json:"job"`
	Address string `json:"address,omitempty"` // where a coordinator listens
	// Committee is the address at which a coordinator hears the members of one-message sums.
	Committee string `json:"committee,omitempty"`
}

// coordinateJob takes the coordinator's identity, the model to begin with (empty: zeros), and with
// a state the key that seals it.
func coordinateJob(s *sidecar, r *request) (any, [][]byte, error) {
	var with struct {
		Settled   uint64  `json:"settled"`
		Address   string  `json:"address"`   // host:port; port 0: any
		Committee string  `json:"committee"` // the same for members; empty: there is no committee
		StepTime  float64 `json:"step_time"`
		Apply     bool    `json:"apply"` // the program makes models from means, and no rule of the job
		storeParameters
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	if err := r.need(2 + min(1, len(with.State))); err != nil {
		return nil, nil, err
	}
	settled, err := lookup[*hushsum.Settled](s, with.Settled, "job")
	if err != nil {
		return nil, nil, err
	}
	one := settled.Oneshot()
	if (one != nil) != (with.Committee != "") {
		return nil, nil, fieldError("committee", "give it only for one-message sums",
			"members of a committee connect to a separate address")
	}
	seed, err := r.secret(0, "the identity")
	if err != nil {
		return nil, nil, err
	}
	if !(with.StepTime >= 0 && with.StepTime <= 1e6) {
		return nil, nil, fieldError("step_time", "give seconds, such as 30", "%v is not a time",
			with.StepTime)
	}
	c := &hushsum.Coordinator[float64]{
		Job:      settled,
		StepTime: time.Duration(with.StepTime * float64(time.Second)),
	}
	if err := begin(c, r.blobs[1], with.Apply, with.State != ""); err != nil {
		return nil, nil, err
	}
	if c.Store, c.Counter, c.Key, err = with.store(r, 2); err != nil {
		return nil, nil, err
	}
	identity := ed25519.NewKeyFromSeed(seed)
	out := jobJSON{}
	listeners := []*hushsum.TCPListener{}
	shut := func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}
	listen := func(at string, roster *keyexchange.Roster) (*hushsum.TCPListener, error) {
		l, err := hushsum.ListenTCP(at, identity, roster)
		if err != nil {
			return nil, fault.New(ErrRequest, "give host:port of this machine, with port 0 for any",
				"cannot listen at %.80q: %v", at, err)
		}
		listeners = append(listeners, l)
		return l, nil
	}
	listener, err := listen(with.Address, settled.Roster())
	if err != nil {
		return nil, nil, err
	}
	c.Listener, out.Address = listener, listener.Address()
	if one != nil {
		members, err := listen(with.Committee, one.Committee)
		if err != nil {
			shut()
			return nil, nil, err
		}
		c.Committee, out.Committee = members, members.Address()
	}
	_, out.Job, err = s.start(func(ctx context.Context, j *job) (jobEvent, error) {
		defer shut()
		if with.Apply {
			c.Apply = func(d hushsum.Done[float64]) ([]float64, error) {
				a, err := j.ask(ctx, jobEvent{
					jobEventJSON: jobEventJSON{Event: "apply", Round: d.Number, Parties: d.Parties},
					blobs:        [][]byte{floatBlob(d.Mean), floatBlob(d.Model)},
				})
				return a.vector, err
			}
		}
		c.Progress = func(e hushsum.Event) { j.progress(ctx, e, e.String(), partyOf(e)) }
		result, err := c.Run(ctx)
		if err != nil {
			return jobEvent{}, err
		}
		return jobEvent{
			jobEventJSON: jobEventJSON{Rounds: result.Rounds, Lost: result.Lost},
			blobs:        [][]byte{floatBlob(weightsOf(settled, result.Model))},
		}, nil
	})
	if err != nil {
		shut()
	}
	return out, nil, err
}

// begin sets the model that a coordinator begins with, and what makes the next models.
func begin(c *hushsum.Coordinator[float64], first blob, program, stored bool) (err error) {
	s := c.Job
	switch {
	case !s.Trains() && len(first.bytes) > 0:
		c.Model, err = modelOf(s, first)
	case s.Trains() && (program || len(first.bytes) > 0):
		return fault.New(hushsum.ErrConfig, "leave both out", "the job makes its models itself, and "+
			"takes neither a model nor a function that makes one")
	case s.Trains():
		c.Model, err = training.First(s)
	}
	if err != nil || program {
		return err
	}
	if stored && !s.Trains() && training.Remembers(s) {
		return s.Job().Mistake("server.rule", "leave out the state, or make the models yourself",
			"what it remembers about vectors lasts as long as the process, and is in no state")
	}
	c.Apply, err = training.Apply(s)
	return err
}

// jobCall holds the arguments of calls on a job.
type jobCall struct {
	Job    uint64 `json:"job"`
	Absent string `json:"absent"` // why there is no vector; empty: there is one
	Weight *int   `json:"weight"` // of the vector; left out: 1
}

func (s *sidecar) job(r *request) (*job, *jobCall, error) {
	with := new(jobCall)
	if err := r.takeWith(with); err != nil {
		return nil, nil, err
	}
	j, err := lookup[*job](s, with.Job, "job")
	return j, with, err
}

// nextOfJob waits for the next event.
func nextOfJob(s *sidecar, r *request) (any, [][]byte, error) {
	j, _, err := s.job(r)
	if err != nil {
		return nil, nil, err
	}
	select {
	case e, more := <-j.events:
		if !more {
			return nil, nil, requestError("", "the job has ended")
		}
		if e.err != nil {
			return nil, nil, e.err
		}
		if e.answer != nil {
			j.mutex.Lock()
			j.handed = e.answer
			j.mutex.Unlock()
		}
		return e.jobEventJSON, e.blobs, nil
	case <-s.ctx.Done():
		return nil, nil, errStopped
	}
}

// answerJob takes a vector.
func answerJob(s *sidecar, r *request) (any, [][]byte, error) {
	j, with, err := s.job(r)
	if err != nil {
		return nil, nil, err
	}
	answer := jobAnswer{absent: with.Absent, weight: or(with.Weight, 1)}
	if with.Absent == "" {
		if err := r.need(1); err != nil {
			return nil, nil, err
		}
		if answer.vector, err = floats[float64](bytes.Clone(r.blobs[0].bytes)); err != nil {
			return nil, nil, requestError("", "the vector: %v", err)
		}
	}
	j.mutex.Lock()
	handed := j.handed
	j.handed = nil
	j.mutex.Unlock()
	if handed == nil {
		return nil, nil, requestError("answer each work or apply once", "nothing waits for an answer")
	}
	handed <- answer
	return nil, nil, nil
}

func stopJob(s *sidecar, r *request) (any, [][]byte, error) {
	j, _, err := s.job(r)
	if err != nil {
		return nil, nil, err
	}
	j.cancel()
	return nil, nil, nil
}
