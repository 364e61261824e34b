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
	declared "github.com/hushsum/hushsum/job"
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
	cancel   context.CancelFunc
	events   chan jobEvent
	numbers  string // of vectors, in questions and answers
	measures bool   // loss and accuracy come with each vector

	mutex sync.Mutex
	// handed receives the answer to the question that the program was given last; nil: it has
	// answered. Its answer belongs to that question, whatever was asked since.
	handed chan<- jobAnswer
	asked  string // the event that it answers
}

// jobEvent reports what happens in a job.
type jobEvent struct {
	jobEventJSON
	blobs  [][]byte
	answer chan<- jobAnswer // of a question
	err    error
}

// jobEventJSON says what happened: "work", "apply" and "round" wait for an answer, "end" is the
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
	// Metric has the means of what parties measured, of "round".
	Metric *declared.Metric `json:"metric,omitempty"`
	Spent  *claimed         `json:"spent,omitempty"` // by then; left out without noise
}

// jobAnswer is a vector with its weight and metrics, or why there is none, or whether to stop.
type jobAnswer struct {
	vector         []byte
	weight         int
	loss, accuracy float64
	absent         string
	stop           bool
}

// update returns an answer as what a party submits.
func update[F hushsum.Float](a jobAnswer) (u hushsum.Update[F], err error) {
	u.Samples, u.Loss, u.Accuracy = a.weight, a.loss, a.accuracy
	u.Vector, err = floats[F](a.vector)
	return u, err
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
	settled *hushsum.Settled, numbers string, run func(ctx context.Context, j *job) (jobEvent, error),
) (*job, uint64, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	j := &job{
		cancel:   cancel,
		events:   make(chan jobEvent, 256),
		numbers:  numbers,
		measures: settled.Job().Metrics.Share > 0,
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
		Numbers     string `json:"numbers"`
		storeParameters
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	if err := checkNumbers(with.Numbers); err != nil {
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
	p := &taking{Participant: hushsum.Participant[float64]{Job: settled, Identity: identity,
		Dialer: dialer, Lost: lost}, identity: identity}
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
	run := takePart[float64]
	if with.Numbers == float32s {
		run = takePart[float32]
	}
	_, id, err := s.start(settled, with.Numbers, func(ctx context.Context, j *job) (jobEvent, error) {
		return run(ctx, j, p)
	})
	return jobJSON{Job: id}, nil, err
}

// taking is a Participant whose vectors may be of the other type.
type taking struct {
	hushsum.Participant[float64]
	identity ed25519.PrivateKey
}

// takePart takes part with a program that holds vectors as F.
func takePart[F hushsum.Float](ctx context.Context, j *job, of *taking) (jobEvent, error) {
	p := hushsum.Participant[F]{Job: of.Job, Identity: of.Identity, Dialer: of.Dialer, Store: of.Store,
		Key: of.Key, Counter: of.Counter, Policy: of.Policy, Book: of.Book, Lost: of.Lost}
	p.Progress = func(e hushsum.Event) { j.progress(ctx, e, ownText(e), nil) }
	if work, same := any(of.Work).(func(
		context.Context, hushsum.Round[F]) (hushsum.Update[F], error)); same && of.Job.Trains() {
		p.Work = work
	} else {
		p.Work = func(ctx context.Context, r hushsum.Round[F]) (u hushsum.Update[F], err error) {
			a, err := j.ask(ctx, jobEvent{
				jobEventJSON: jobEventJSON{Event: "work", Round: r.Number},
				blobs:        [][]byte{floatBlob(r.Model)},
			})
			if err != nil {
				return u, err
			}
			return update[F](a)
		}
	}
	model, err := p.Run(ctx)
	clear(of.identity)
	return jobEvent{blobs: [][]byte{floatBlob(weightsOf(of.Job, model))}}, err
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
	_, id, err := s.start(m.Job, float64s, func(ctx context.Context, j *job) (jobEvent, error) {
		m.Progress = func(e hushsum.Event) { j.progress(ctx, e, ownText(e), nil) }
		return jobEvent{}, m.Run(ctx)
	})
	return jobJSON{Job: id}, nil, err
}

// weightsOf returns the weights of a model, without the state that rules keep between rounds.
func weightsOf[F hushsum.Float](s *hushsum.Settled, model []F) []F {
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
		Apply     bool    `json:"apply"`  // the program makes models from means, and no rule of the job
		Rounds    bool    `json:"rounds"` // the program is told of each round, and may stop the job
		Numbers   string  `json:"numbers"`
		storeParameters
	}
	if err := r.takeWith(&with); err != nil {
		return nil, nil, err
	}
	if err := checkNumbers(with.Numbers); err != nil {
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
	c := &leading{first: r.blobs[1], apply: with.Apply, rounds: with.Rounds, stored: with.State != ""}
	c.Job, c.StepTime = settled, time.Duration(with.StepTime*float64(time.Second))
	lead, begin := coordinated[float64], check[float64]
	if with.Numbers == float32s {
		lead, begin = coordinated[float32], check[float32]
	}
	if err := begin(c); err != nil {
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
	run := func(ctx context.Context, j *job) (jobEvent, error) {
		defer shut()
		return lead(ctx, j, c)
	}
	_, out.Job, err = s.start(settled, with.Numbers, run)
	if err != nil {
		shut()
	}
	return out, nil, err
}

// leading is a Coordinator whose models may be of the other type.
type leading struct {
	hushsum.Coordinator[float64]
	first         blob // model
	apply, rounds bool // the program makes models, and is told of rounds
	stored        bool
}

// check returns an error if a coordinator cannot begin.
func check[F hushsum.Float](of *leading) error {
	_, err := begun[F](of)
	return err
}

// begun returns a coordinator with the model that it begins with, and what makes the next models.
func begun[F hushsum.Float](of *leading) (c *hushsum.Coordinator[F], err error) {
	s := of.Job
	c = &hushsum.Coordinator[F]{Job: s, Listener: of.Listener, Committee: of.Committee,
		StepTime: of.StepTime, Store: of.Store, Key: of.Key, Counter: of.Counter}
	switch {
	case !s.Trains() && len(of.first.bytes) > 0:
		c.Model, err = modelOf[F](s, of.first)
	case s.Trains() && (of.apply || len(of.first.bytes) > 0):
		err = fault.New(hushsum.ErrConfig, "leave both out", "the job makes its models itself, and "+
			"takes neither a model nor a function that makes one")
	case s.Trains():
		var first []float64
		first, err = training.First(s)
		c.Model = converted[F](first)
	}
	if err != nil || of.apply || s.Averages() {
		return c, err
	}
	if of.stored && !s.Trains() && training.Remembers(s) {
		return c, s.Job().Mistake("server.rule", "leave out the state, or make the models yourself",
			"what it remembers about vectors lasts as long as the process, and is in no state")
	}
	wide, err := training.Apply(s)
	c.Apply = func(d hushsum.Done[F]) ([]F, error) {
		next, err := wide(hushsum.Done[float64]{Number: d.Number, Parties: d.Parties, Sum: d.Sum,
			Broadcast: d.Broadcast, Mean: converted[float64](d.Mean), Model: converted[float64](d.Model)})
		return converted[F](next), err
	}
	return c, err
}

// converted returns numbers of another type, or those that are of it.
func converted[To, From hushsum.Float](x []From) []To {
	if same, is := any(x).([]To); is || x == nil {
		return same
	}
	y := make([]To, len(x))
	for i, v := range x {
		y[i] = To(v)
	}
	return y
}

// coordinated runs a coordinator that holds models as F.
func coordinated[F hushsum.Float](ctx context.Context, j *job, of *leading) (jobEvent, error) {
	c, err := begun[F](of)
	if err != nil {
		return jobEvent{}, err
	}
	if of.apply {
		c.Apply = func(d hushsum.Done[F]) ([]F, error) {
			a, err := j.ask(ctx, jobEvent{
				jobEventJSON: jobEventJSON{Event: "apply", Round: d.Number, Parties: d.Parties},
				blobs:        [][]byte{floatBlob(d.Mean), floatBlob(d.Model)},
			})
			if err != nil {
				return nil, err
			}
			return floats[F](a.vector)
		}
	}
	if of.rounds {
		c.Round = func(d hushsum.Done[F]) (bool, error) {
			e := jobEventJSON{Event: "round", Round: d.Number, Parties: d.Parties, Lost: d.Lost,
				Metric: d.Metric}
			if d.Spent != nil {
				of := said(*d.Spent)
				e.Spent = &of
			}
			a, err := j.ask(ctx, jobEvent{jobEventJSON: e,
				blobs: [][]byte{floatBlob(d.Mean), floatBlob(weightsOf(c.Job, d.Model))}})
			return a.stop, err
		}
	}
	c.Progress = func(e hushsum.Event) { j.progress(ctx, e, e.String(), partyOf(e)) }
	result, err := c.Run(ctx)
	if err != nil {
		return jobEvent{}, err
	}
	return jobEvent{
		jobEventJSON: jobEventJSON{Rounds: result.Rounds, Lost: result.Lost},
		blobs:        [][]byte{floatBlob(weightsOf(c.Job, result.Model))},
	}, nil
}

// jobCall holds the arguments of calls on a job.
type jobCall struct {
	Job    uint64 `json:"job"`
	Absent string `json:"absent"` // why there is no vector; empty: there is one
	Weight *int   `json:"weight"` // of the vector; left out: 1
	// Loss and Accuracy come with a vector where the job sums metrics, and nowhere else.
	Loss     *float64 `json:"loss"`
	Accuracy *float64 `json:"accuracy"`
	Stop     bool     `json:"stop"` // the job after this round
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
			j.handed, j.asked = e.answer, e.Event
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
	answer := jobAnswer{absent: with.Absent, weight: or(with.Weight, 1), stop: with.Stop,
		loss: or(with.Loss, 0), accuracy: or(with.Accuracy, 0)}
	j.mutex.Lock()
	handed, asked := j.handed, j.asked
	j.mutex.Unlock()
	switch {
	case handed == nil:
		return nil, nil, requestError("answer each work, apply or round once",
			"nothing waits for an answer")
	case asked == "round" || with.Absent != "":
		err = r.need(0)
	default:
		err = j.vector(asked, with, r, &answer)
	}
	if err != nil {
		return nil, nil, err
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.handed == handed { // nobody has answered meanwhile
		j.handed = nil
		handed <- answer
	}
	return nil, nil, nil
}

// vector takes the vector of an answer to work or apply.
func (j *job) vector(asked string, with *jobCall, r *request, answer *jobAnswer) error {
	if err := r.need(1); err != nil {
		return err
	}
	measured := with.Loss != nil && with.Accuracy != nil
	switch {
	case asked == "work" && j.measures && !measured:
		return fieldError("loss", "give loss and accuracy", "the job sums metrics")
	case asked == "work" && !j.measures && (with.Loss != nil || with.Accuracy != nil):
		return fieldError("loss", "leave loss and accuracy out, or declare metrics.share",
			"the job sums no metrics")
	}
	size := 8
	if j.numbers == float32s {
		size = 4
	}
	if answer.vector = bytes.Clone(r.blobs[0].bytes); len(answer.vector)%size != 0 {
		return requestError("", "the vector: %d bytes are not numbers of %d bytes each",
			len(answer.vector), size)
	}
	return nil
}

func stopJob(s *sidecar, r *request) (any, [][]byte, error) {
	j, _, err := s.job(r)
	if err != nil {
		return nil, nil, err
	}
	j.cancel()
	return nil, nil, nil
}
