package node_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/masking"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

const (
	hostileParties = 8
	hostileHonest  = 5 // the first ones, just as many as a sum takes
	hostileRounds  = 10
	hostileLength  = 4
)

// The others.
const (
	spoils = hostileHonest + iota
	withholds
	listens
)

// hostile is a federation over HTTPS with parties and strangers that do as they please.
type hostile struct {
	*testing.T
	folder string
	fed    *federation.Federation
	config node.Options
	group  sync.WaitGroup

	mutex     sync.Mutex
	submitted map[int]map[int][][]uint64 // by round and party
	times     [hostileHonest]int         // that an honest party has submitted
	sums      map[int]summed             // by round
	counts    map[string]int             // of what the others have done
}

func (h *hostile) count(what string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.counts[what]++
}

// vector returns what a party submits in a round, almost as long as the clip: over the rounds
// the means add up to more than the noise.
func (h *hostile) vector(i, round int) []float64 {
	v := make([]float64, hostileLength)
	for k := range v {
		v[k] = 0.4 + float64((round*31+i*7+k)%11)/100
	}
	return v
}

// keep keeps a party's submission to compare the sums with.
func (h *hostile) keep(i, round int, values [][]uint64) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.submitted[round] == nil {
		h.submitted[round] = make(map[int][][]uint64)
	}
	if i < hostileHonest {
		h.times[i]++
		if h.submitted[round][i] != nil {
			h.Errorf("party %d submits in round %d again", i, round)
		}
	}
	kept := make([][]uint64, len(values))
	for s, v := range values {
		kept[s] = slices.Clone(v)
	}
	h.submitted[round][i] = kept
}

// took compares a sum with the submissions of its parties, in the ring.
func (h *hostile) took(round int, parties []int, sum [][]uint64) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for s, segment := range h.fed.Settled.Config(1).Layout {
		want := make([]uint64, segment.Length)
		for _, i := range parties {
			values := h.submitted[round][i]
			if values == nil {
				h.Errorf("party %d is in the sum of round %d and did not submit", i, round)
				return
			}
			for k, x := range values[s] {
				want[k] = (want[k] + x) & (^uint64(0) >> (64 - segment.Bits))
			}
		}
		if !slices.Equal(sum[s], want) {
			h.Errorf("the sum of round %d is not that of parties %v", round, parties)
		}
	}
	if had, again := h.sums[round]; again && !slices.Equal(had.Parties, parties) {
		h.Errorf("round %d has sums of %v and of %v", round, had.Parties, parties)
	}
	h.sums[round] = summed{slices.Clone(parties), nil}
}

// start starts the node, as often as it was stopped.
func (h *hostile) start() *node.Node {
	h.Helper()
	n, err := node.Start(h.Context(), h.config)
	if err != nil {
		h.Fatal(err)
	}
	return n
}

// meddler is a party that sends what its program wants.
type meddler struct {
	*hostile
	*party.Party
	index int
	// change returns what is sent in place of a message, nil for nothing.
	change func(head wire.Header, message []byte) []byte
}

// live takes part with new keys and no memory, until ctx or the federation ends.
func (m *meddler) live(ctx context.Context) (ended bool) {
	rounds := uint64(m.fed.Settled.Rounds())
	p, err := drive.NewPart(drive.PartSettings{
		Limits:   drive.Limits{Rounds: rounds},
		Session:  m.fed.Settled.Config,
		Label:    m.fed.Settled.Config(1).Label,
		Identity: m.Identity,
	})
	if err != nil {
		m.Error(err)
		return true
	}
	defer p.Erase()
	var seen []string
	for ctx.Err() == nil {
		hello := p.Hello()
		next, err := m.Server.Next(ctx, m.fed.ID, exchange.Ask{
			Sessions: hello.Sessions, Least: hello.Least, Seen: seen,
		}, int64(m.fed.Settled.Config(1).MaxMessage()))
		m.count(fmt.Sprint("asked ", m.index))
		switch {
		case err != nil:
			seen, next.Kind = nil, exchange.Nothing
		case next.Kind == exchange.End:
			return true
		case next.Kind == exchange.Join:
			err = p.Receive(drive.Item{Kind: drive.Join, Session: next.Session})
		case next.Kind == exchange.Message:
			err = p.Receive(drive.Item{Kind: drive.Carry, Own: next.Message,
				Round: uint64(next.Round)})
		}
		if next.Kind == exchange.Nothing {
			pause(ctx, 100*time.Millisecond)
			continue
		}
		if seen = append(seen, next.Item); len(seen) > 4 {
			seen = seen[1:]
		}
		if err == nil {
			err = m.proceed(ctx, p)
		}
		if err != nil {
			m.Errorf("party %d: %v", m.index, err)
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// proceed does what the party has decided, and saves nothing.
func (m *meddler) proceed(ctx context.Context, p drive.Part) error {
	for {
		if _, decided := p.Ready(); !decided {
			return nil
		}
		out := p.Advance()
		for _, one := range out.Send {
			message := one.Bytes
			if message == nil {
				var b bytes.Buffer
				if _, err := p.Object(drive.SubmissionName).WriteTo(&b); err != nil {
					return err
				}
				message = b.Bytes()
			}
			head, _, err := wire.ParseHeader(message)
			if err != nil {
				return err
			}
			if message = m.change(head, message); message != nil {
				// What is refused, or meets a node that is stopped, is not sent again.
				_ = m.Server.Send(ctx, m.fed.ID, message)
			}
		}
		if out.Ask != nil && out.Ask.Round > 0 {
			if err := m.work(ctx, p, *out.Ask); err != nil {
				return err
			}
		}
	}
}

// work answers with the vector that an honest party would submit.
func (m *meddler) work(ctx context.Context, p drive.Part, ask drive.Ask) error {
	round := int(ask.Round)
	file, err := m.Server.Model(ctx, m.fed.ID, round, 1<<20)
	if err != nil {
		return nil //nolint:nilerr // the round went on, or the node is stopped
	}
	digest := jobs.BroadcastDigest(file)
	return p.Answer(drive.Answer{ID: ask.ID, Round: ask.Round, Broadcast: digest,
		Fill: func(v *masking.Vector) error {
			made := jobs.Update[float64]{Vector: m.vector(m.index, round)}
			err := jobs.EncodeTo(v, m.fed.Settled, digest, made, nil)
			m.keep(m.index, round, v.Values())
			return err
		}})
}

// shut makes the shares in a submission such that they do not open.
func (h *hostile) shut(message []byte) []byte {
	body, size := message[wire.HeaderSize:], h.fed.Settled.Config(1).Layout.PackedSize()
	for others := range hostileParties {
		for next := range hostileParties {
			// No two numbers of parties make a submission of one length.
			m, err := wire.ParseMasked(body, size, others, next)
			if err != nil {
				continue
			}
			for i := range m.Shares {
				m.Shares[i][len(m.Shares[i])-1] ^= 1
			}
			return m.Append(bytes.Clone(message[:wire.HeaderSize]))
		}
	}
	h.Error("the spoiler's submission has another form")
	return message
}

// TestHostile: honest parties that are just enough hold all rounds of a federation, and lose no
// more than §10.4 of the specification allows, while one party spoils rounds under ever new keys,
// one leaves the ends of rounds out, one says nothing, strangers send garbage, and the node is
// stopped in the middle of two rounds.
func TestHostile(t *testing.T) {
	suite.OnlyLong(t) // who is silent is waited for
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	h := &hostile{
		T:         t,
		folder:    t.TempDir(),
		submitted: make(map[int]map[int][][]uint64),
		sums:      make(map[int]summed),
		counts:    make(map[string]int),
	}
	address := freePort(t)
	prepareJob(t, h.folder, hostileRounds,
		job{Address: "https://" + address, Parties: hostileParties, Length: hostileLength})
	declare(t, h.folder, hostileRounds, hostileLength, "10s", "parties.drop_out = 0.375",
		"noise = \"discrete-gaussian\"\nepsilon = 40")
	// Between rounds there is time for whoever comes with new keys to be let in.
	name := filepath.Join(h.folder, "federation.toml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("time.pace = \"2s\"\n"), text...)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if h.fed, err = federation.Read(name); err != nil {
		t.Fatal(err)
	}
	if least := h.fed.Settled.MinSurvivors(); least != hostileHonest {
		t.Fatalf("a sum takes %d parties", least)
	}
	h.config = node.Options{Folder: filepath.Join(h.folder, "node"), Listen: address, Summed: h.took}
	n := h.start()
	defer func() { n.Close() }()
	leave(h.folder, "fingerprint", n.Fingerprint)
	roster, err := os.ReadFile(filepath.Join(h.folder, "roster.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Create(ctx, federation.Files{Text: h.fed.Text, Roster: roster}); err != nil {
		t.Fatal(err)
	}
	var honest sync.WaitGroup
	defer honest.Wait()
	defer h.group.Wait()
	defer cancel()

	// The meddlers are there first, so that they are in the first session and round.
	withheld := make(chan struct{}, 1)
	h.spoil(ctx)
	h.meddle(ctx, withholds, func(head wire.Header, message []byte) []byte {
		if head.Type != wire.TypeSigned && head.Type != wire.TypeReveal {
			return message
		}
		h.count("withheld")
		signal(withheld)
		return nil
	})
	h.meddle(ctx, listens, func(wire.Header, []byte) []byte { return nil })
	h.garbage(ctx, n.Address, n.Fingerprint)
	awaitStatus(ctx, t, n, h.fed.ID, func(s *runner.Status) bool {
		return !slices.ContainsFunc(s.Parties[hostileHonest:], func(p runner.PartyStatus) bool {
			return p.State != "here"
		})
	})

	// One party trains in this round until the node was stopped and started again.
	const stopped = 6
	training, done := make(chan struct{}, 1), make(chan struct{})
	models := make([][]byte, hostileHonest)
	for i := range hostileHonest {
		p, err := loadParty(h.folder, i, h.fed, n.Address)
		if err != nil {
			t.Fatal(err)
		}
		p.Submitted = func(round int, values [][]uint64) { h.keep(i, round, values) }
		p.Trainer = party.TrainerFunc(func(_ context.Context, w *party.Work) (*party.Update, error) {
			if i == 0 && w.Round >= stopped {
				signal(training)
				select {
				case <-done:
				case <-ctx.Done():
				}
			}
			return &party.Update{Vector: h.vector(i, w.Round)}, nil
		})
		honest.Go(func() {
			var err error
			if models[i], err = p.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			}
		})
	}
	stop := func(what string, in <-chan struct{}) {
		t.Helper()
		select {
		case <-in:
		case <-ctx.Done():
			t.Fatalf("%s does not come", what)
		}
		at := awaitStatus(ctx, t, n, h.fed.ID, func(*runner.Status) bool { return true })
		t.Logf("stopped in round %d while it was %s, %d rounds lost", at.Round, at.Stage, at.Lost)
		n.Close()
		n = h.start()
	}
	stop("a round's end", withheld)
	stop("a round's training", training)
	close(done)
	last := awaitStatus(ctx, t, n, h.fed.ID, func(s *runner.Status) bool {
		if s.State == "paused" {
			t.Fatalf("%+v", s)
		}
		return s.State == "ended"
	})
	honest.Wait()
	if t.Failed() {
		return // there may be no model
	}
	h.check(ctx, n, last, models)
}

// signal tells whoever waits, or will.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// meddle has a party take part that changes what it sends.
func (h *hostile) meddle(ctx context.Context, i int, change func(wire.Header, []byte) []byte) {
	m := h.meddler(i)
	m.change = change
	h.group.Go(func() { m.live(ctx) })
}

func (h *hostile) meddler(i int) *meddler {
	h.Helper()
	p, err := loadParty(h.folder, i, h.fed, "https://"+h.config.Listen)
	if err != nil {
		h.Fatal(err)
	}
	return &meddler{hostile: h, Party: p, index: i}
}

// spoil has a party take part that deals shares which do not open, to the end of the round, and
// comes again with nothing that it had, over and over. Who lets it in again has it to the end of
// another round.
func (h *hostile) spoil(ctx context.Context) {
	m := h.meddler(spoils)
	h.group.Go(func() {
		for ended, spoilt := false, false; !ended && ctx.Err() == nil; {
			h.count("new keys")
			life, end := context.WithCancel(ctx)
			outside := time.AfterFunc(time.Second, end)
			if !spoilt {
				outside.Stop()
			}
			m.change = func(head wire.Header, message []byte) []byte {
				switch head.Type {
				case wire.TypeAnnounce:
					outside.Stop()
				case wire.TypeMasked:
					h.count("spoilt")
					spoilt = true
					time.AfterFunc(2*time.Duration(h.fed.Job.Time.StepTime), end)
					return h.shut(message)
				case wire.TypeReveal:
					time.AfterFunc(time.Second, end)
				}
				return message
			}
			ended = m.live(life)
			end()
		}
	})
}

// garbage has strangers, and one party, send what nobody asked for, until ctx ends.
func (h *hostile) garbage(ctx context.Context, address, fingerprint string) {
	h.Helper()
	stranger, err := keyexchange.GenerateIdentity(nil)
	if err != nil {
		h.Fatal(err)
	}
	way, err := party.NewServer(address, fingerprint, stranger)
	if err != nil {
		h.Fatal(err)
	}
	pin, err := hex.DecodeString(fingerprint)
	if err != nil {
		h.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: party.Pinned([sha256.Size]byte(pin)),
	}}
	post := address + "/v1/federations/" + h.fed.ID + "/messages"
	long := make([]byte, h.fed.Settled.Config(1).MaxMessage()+1)
	member := h.meddler(listens)
	tries := map[string]func() error{
		"a stranger's question": func() error {
			_, err := way.Next(ctx, h.fed.ID, exchange.Ask{Sessions: []uint64{1}}, 1<<20)
			return err
		},
		"a stranger's message": func() error { return way.Send(ctx, h.fed.ID, []byte("garbage")) },
		"a stranger's model": func() error {
			_, err := way.Model(ctx, h.fed.ID, 0, 1<<20)
			return err
		},
		"a stranger's long message": func() error { return way.Send(ctx, h.fed.ID, long) },
		"a party's long message":    func() error { return member.Server.Send(ctx, h.fed.ID, long) },
		"no signature": func() error {
			return asRefusal(client.Post(post, "application/octet-stream", strings.NewReader("garbage")))
		},
		"no signature, and a body without end": func() error {
			endless, end := context.WithTimeout(ctx, time.Second)
			defer end()
			q, err := http.NewRequestWithContext(endless, http.MethodPost, post, zeros{})
			if err != nil {
				return err
			}
			return asRefusal(client.Do(q))
		},
	}
	for what, try := range tries {
		h.group.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
				var refusal *party.RefusalError
				switch err := try(); {
				case err == nil:
					h.Errorf("%s is taken", what)
					return
				case errors.As(err, &refusal):
					h.count(fmt.Sprint(what, ": ", refusal.Status))
				}
			}
		})
	}
}

// zeros is a body that does not end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// asRefusal returns how a plain request was refused.
func asRefusal(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 300 {
		return nil
	}
	return &party.RefusalError{Status: answer.StatusCode}
}

// check checks what has come of it all.
func (h *hostile) check(ctx context.Context, n *node.Node, last *runner.Status, models [][]byte) {
	h.Helper()
	h.mutex.Lock() // strangers go on
	defer h.mutex.Unlock()
	most := max(h.fed.Settled.Colluders(), 1)
	if last.Round != hostileRounds || last.Lost > most || last.Why != drive.AllHeld {
		h.Errorf("%d rounds, %d lost, ended since %s", last.Round, last.Lost, last.Why)
	}
	if !(epsilonOf(last) > 0 && epsilonOf(last) <= h.fed.Job.Privacy.Epsilon) {
		h.Errorf("ε is %v of %v", epsilonOf(last), h.fed.Job.Privacy.Epsilon)
	}
	if len(h.sums) != last.Round-last.Lost {
		h.Errorf("%d sums of %d rounds, %d of them lost", len(h.sums), last.Round, last.Lost)
	}
	for i, times := range h.times {
		if times > hostileRounds || times < len(h.sums) {
			h.Errorf("party %d submits %d times in %d rounds, with %d sums", i, times, hostileRounds,
				len(h.sums))
		}
	}
	name := h.fed.Settled.Roster().Name(spoils)
	var left []record.Line
	for len(left) == 0 { // the log is written behind the decisions
		if ctx.Err() != nil {
			h.Fatal("the audit log has nobody left out")
		}
		lines, err := n.LastLines(ctx, h.fed.ID, 200)
		if err != nil {
			h.Fatal(err)
		}
		for _, line := range lines {
			if line.Event == drive.Spoiler.String() {
				left = append(left, line)
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
	if len(left) != 1 || !strings.HasPrefix(left[0].Note, name+" ") {
		h.Errorf("left out: %+v", left)
	}
	h.Logf("%d rounds, %d lost, ε %.1f, %v", last.Round, last.Lost, epsilonOf(last), h.counts)
	for _, what := range []string{"spoilt", "withheld", fmt.Sprint("asked ", listens),
		"a stranger's question: 403", "a stranger's message: 403", "a stranger's model: 403",
		"a stranger's long message: 403", "a party's long message: 413", "no signature: 401"} {
		if h.counts[what] == 0 {
			h.Errorf("this did not happen: %s", what)
		}
	}
	if h.counts["new keys"] < 2 {
		h.Error("the spoiler did not come again")
	}
	h.checkModel(models)
}

// checkModel compares the last model with the means of the vectors in the sums.
func (h *hostile) checkModel(models [][]byte) {
	h.Helper()
	want := make([]float64, hostileLength)
	variance, least := 0., math.Inf(1)
	for round, sum := range h.sums {
		for _, i := range sum.Parties {
			for k, x := range h.vector(i, round) {
				want[k] += x / float64(len(sum.Parties))
			}
		}
		dev := h.fed.Settled.StdDev(len(sum.Parties))
		variance += dev * dev
	}
	for _, x := range want {
		least = min(least, x)
	}
	// Six standard deviations: the test fails by chance once in 10^8 times. A step of the encoding
	// is some 10^-7.
	bound := 6 * math.Sqrt(variance)
	if bound >= least {
		h.Fatalf("the noise, up to %v, hides the means, from %v on", bound, least)
	}
	_, values, _, err := tensor.Parse(models[0])
	if err != nil {
		h.Fatal(err)
	}
	worst := 0.
	for k, x := range values {
		if !(math.Abs(x-want[k]) <= bound) { // nor is it NaN
			h.Errorf("coordinate %d is %v, the means give %v, and the noise is up to %v", k, x, want[k],
				bound)
		}
		worst = max(worst, math.Abs(x-want[k]))
	}
	for i, b := range models {
		if !bytes.Equal(b, models[0]) {
			h.Errorf("party %d has another model than party 0", i)
		}
	}
	h.Logf("the model is %.2g off at most, of %.2g; the noise is up to %.2g", worst, least, bound)
}
