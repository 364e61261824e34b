package party

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
)

// act is one step of a server's script.
type act struct {
	kind   string
	number uint64
	of     []int // of a sample
}

// join proposes a session, whether its number may be used or not.
func join(number uint64) act { return act{kind: "join", number: number} }

// round begins one in the present session and gives it this number of the federation.
func round(number uint64) act { return act{kind: "round", number: number} }

// sample begins a round of this number as among some parties only, the first of them this one,
// whatever the session needs.
func sample(number uint64, parties ...int) act { return act{"sample", number, parties} }

// save keeps the state of the server and of all parties that are with it, setBack takes it, and
// forget loses it.
var (
	save    = act{kind: "save"}
	setBack = act{kind: "set back"}
	forget  = act{kind: "forget"}
)

// cheat is a server that follows its script in place of the protocol, with all parties but the
// first on its side.
type cheat struct {
	f       *federation.Federation
	mutex   sync.Mutex
	server  *protocol.ServerSeries
	number  uint64                   // of the present session
	others  []*protocol.ClientSeries // of the parties from 1 on
	saved   [][]byte
	before  uint64 // number when it was saved
	script  []act
	at      int
	begun   bool // the act at
	carried map[[32]byte]bool
	file    []byte // of the round

	released map[[32]byte]uint64     // rounds of the first party's submissions, by digest
	keys     map[[32]byte][32]byte   // digests of its announcements, by session
	sums     map[uint64][][][]uint64 // by round
	declined []uint64                // rounds that it said it is absent from
	requests int
	folder   string // of the first party
	deaf     int    // so often it asks again who is absent
	goesOn   bool   // whoever works is asked for what is next
	misnamed bool   // models have the number of another round
	kill     func(request int, done bool) bool
	absent   error    // why the first party was in no round
	heard    []string // all that the first party asks and sends, but for what masks hide
	papers   []string // receipts that it asks for
}

func seedOf(i int) ed25519.PrivateKey {
	seed := make([]byte, 32)
	seed[0] = byte(i)
	return ed25519.NewKeyFromSeed(seed)
}

// newCheat makes a server of the script for the federation.
func newCheat(f *federation.Federation, script ...act) *cheat {
	c := &cheat{
		f:        f,
		script:   script,
		carried:  make(map[[32]byte]bool),
		released: make(map[[32]byte]uint64),
		keys:     make(map[[32]byte][32]byte),
		sums:     make(map[uint64][][][]uint64),
	}
	c.forget(1)
	return c
}

func (c *cheat) forget(least uint64) {
	label := c.f.Settled.Config(1).Label
	c.server, c.others = protocol.NewServerSeries(label, least), nil
	for i := 1; i < c.f.Settled.Roster().Len(); i++ {
		c.others = append(c.others, protocol.NewClientSeries(label, least, seedOf(i), nil))
	}
}

// cheatKey seals what the server saves.
var cheatKey = &keyexchange.SealKey{1}

func (c *cheat) save() (states [][]byte, err error) {
	b, err := c.server.Save(cheatKey)
	states = [][]byte{b}
	for _, other := range c.others {
		if err == nil {
			b, err = other.Save(cheatKey)
		}
		states = append(states, b)
	}
	return states, err
}

func (c *cheat) load(states [][]byte) (err error) {
	config := c.f.Settled.Config
	label := config(1).Label
	if c.server, err = protocol.ReadServerSeries(label, cheatKey, states[0], config, nil); err != nil {
		return err
	}
	c.others = nil
	for i, b := range states[1:] {
		other, err := protocol.LoadClientSeries(label, seedOf(i+1), nil, cheatKey, b, config)
		if err != nil {
			return err
		}
		c.others = append(c.others, other)
	}
	c.carried = make(map[[32]byte]bool)
	return nil
}

// present is the session that the act is about.
func (c *cheat) present() *protocol.Server {
	if c.at < len(c.script) && c.script[c.at].kind == "join" {
		return c.server.Successor()
	}
	return c.server.Present()
}

// key returns whom the server knows a party by.
func (c *cheat) key(i int) ed25519.PublicKey { return c.f.Settled.Roster().Key(i) }

// pump carries what there is between the server and those on its side, and ends the steps for
// which nobody is missing, or with force also for those of whom only the first party is.
func (c *cheat) pump(force bool) error {
	for {
		s := c.present()
		if s == nil {
			return nil
		}
		moved := false
		for k, other := range c.others {
			for _, message := range s.Pending(k + 1) {
				digest := sha256.Sum256(append([]byte{byte(k)}, message...))
				if c.carried[digest] {
					continue
				}
				c.carried[digest], moved = true, true
				answer, err := other.Receive(message)
				if err != nil {
					continue
				}
				if _, due := other.Due(); due && answer == nil {
					zero, err := zeros(c.f)
					if err == nil {
						answer, err = other.Submit(c.file, zero...)
					}
					if err != nil {
						return err
					}
				}
				if answer != nil {
					if err := c.server.Receive(c.key(k+1), answer); err != nil {
						return err
					}
				}
			}
		}
		missing := s.Missing()
		over := len(missing) == 0 || force && len(missing) == 1 && missing[0] == 0
		switch {
		case moved:
		case !over || s.Step() == protocol.StepBetween:
			return nil
		case s.Step() == protocol.StepReveal:
			sum, err := s.Sum()
			if err != nil {
				return err
			}
			c.sums[c.script[c.at].number] = append(c.sums[c.script[c.at].number], sum)
			return nil
		default:
			if err := s.EndStep(); err != nil {
				return err
			}
		}
	}
}

func zeros(f *federation.Federation) (out [][]uint64, err error) {
	for _, s := range f.Settled.Config(1).Layout {
		out = append(out, make([]uint64, s.Length))
	}
	return out, nil
}

// next says what is next for the first party.
func (c *cheat) next(ask *exchange.Ask) (exchange.Next, error) {
	for ; c.at < len(c.script); c.at, c.begun = c.at+1, false {
		a := c.script[c.at]
		item := fmt.Sprintf("%d.%s", c.at, a.kind[:1])
		switch a.kind {
		case "save":
			var err error
			if c.saved, err = c.save(); err != nil {
				return exchange.Next{}, err
			}
			c.before = c.number
		case "set back":
			if err := c.load(c.saved); err != nil {
				return exchange.Next{}, err
			}
			c.number = c.before
		case "forget":
			c.forget(1)
		case "join":
			next, over, err := c.joinNext(ask, a.number, item)
			if err != nil || !over {
				return next, err
			}
		case "round", "sample":
			next, over, err := c.roundNext(ask, a.number, item)
			if next.Kind == exchange.Message && a.of != nil {
				next.Message = among(next.Message, c.f.Settled.Roster().Len(), a.of)
			}
			if err != nil || !over {
				return next, err
			}
		}
	}
	return exchange.Next{Kind: exchange.End, Item: "end"}, nil
}

func (c *cheat) joinNext(
	ask *exchange.Ask, number uint64, item string,
) (next exchange.Next, over bool, err error) {
	has := slices.Contains(ask.Sessions, number)
	if !c.begun && number <= protocol.MaxNumber {
		if number < c.server.Least() {
			c.forget(number)
		}
		if err := c.server.Succeed(c.f.Settled.Config(number)); err != nil {
			return next, false, err
		}
		for k, other := range c.others {
			announce, err := other.Succeed(c.f.Settled.Config(number))
			if err == nil {
				err = c.server.Receive(c.key(k+1), announce)
			}
			if err != nil && !errors.Is(err, protocol.ErrNumber) {
				return next, false, err
			}
		}
	}
	c.begun = true
	s := c.server.Successor()
	switch {
	case slices.Contains(ask.Seen, item) && (!has || s.Awaits(0) && s.Step() == protocol.StepAnnounce):
		return next, true, nil // it refuses
	case !has, s.Awaits(0) && s.Step() == protocol.StepAnnounce:
		return exchange.Next{Kind: exchange.Join, Item: item, Session: number}, false, nil
	}
	if err := c.pump(false); err != nil {
		return next, false, err
	}
	if message := s.Pending(0); len(message) > 0 {
		return exchange.Next{Kind: exchange.Message, Item: itemOf(message[0]), Session: number,
			Message: message[0]}, false, nil
	}
	c.number = number
	return next, true, c.server.TakeOver()
}

// among is a message that begins a round, or asks for what one takes, as if it were among these
// parties; others stay as they are.
func among(message []byte, parties int, of []int) []byte {
	h, body, err := wire.ParseHeader(message)
	if err != nil {
		return message
	}
	set := wire.SetOf(parties, of)
	switch h.Type {
	case wire.TypeInvite:
		return append(h.Append(nil), set.Bytes()...)
	case wire.TypeBegin:
		begin := wire.Begin{Broadcast: [32]byte(body[:32]), Participants: set,
			Shares: make([]wire.SealedShare, len(of)-1)}
		return begin.Append(h.Append(nil))
	}
	return message
}

func itemOf(message []byte) string {
	digest := sha256.Sum256(message)
	return hex.EncodeToString(digest[:8])
}

func (c *cheat) roundNext(
	ask *exchange.Ask, number uint64, item string,
) (next exchange.Next, over bool, err error) {
	s := c.server.Present()
	if s == nil {
		return next, true, nil
	}
	if !c.begun && s.Step() == protocol.StepBetween {
		if slices.Contains(s.Missing(), 0) {
			if _, err := s.Invite(); err != nil {
				return next, false, err
			}
		}
		if err := c.pump(false); err != nil {
			return next, false, err
		}
		if message := s.Pending(0); len(message) > 0 && !slices.Contains(ask.Seen, item) {
			return exchange.Next{Kind: exchange.Message, Item: item, Session: c.number, Message: message[0]},
				false, nil
		}
	}
	if !c.begun {
		c.begun = true
		fresh := sha256.Sum256([]byte(item))
		spec, named := &c.f.Spec, number
		if c.misnamed {
			named++
		}
		c.file, err = spec.Append(nil, make([]float64, spec.Len()), map[string]string{
			"federation": c.f.ID,
			"round":      strconv.FormatUint(named, 10),
			"fresh":      hex.EncodeToString(fresh[:]),
		})
		if err != nil {
			return next, false, err
		}
		if _, err := s.Begin(c.file); err != nil {
			return next, errors.Is(err, protocol.ErrTooFew), c.unless(err, protocol.ErrTooFew)
		}
	}
	gone := number > 0 && ask.Absent == number
	if gone && !slices.Contains(c.declined, number) {
		c.declined = append(c.declined, number)
	}
	if gone && c.deaf > 0 {
		c.deaf--
		gone, ask.Seen = false, nil
	}
	if err := c.pump(gone); err != nil {
		return next, true, c.unless(err, protocol.ErrTooFew)
	}
	message := s.Pending(0)
	if gone || len(message) == 0 || s.Step() == protocol.StepBetween {
		return next, true, nil
	}
	one := message[len(message)-1]
	if item = itemOf(one); slices.Contains(ask.Seen, item) {
		return next, true, c.unless(c.pump(true), protocol.ErrTooFew)
	}
	next = exchange.Next{Kind: exchange.Message, Item: item, Session: c.number, Message: one}
	if s.Step() == protocol.StepMasked {
		next.Round = int(number)
	}
	return next, false, nil
}

func (c *cheat) unless(err, but error) error {
	if errors.Is(err, but) {
		return nil
	}
	return err
}

// ServeHTTP answers the party.
func (c *cheat) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.URL.Query().Get("working") != "" && !c.goesOn {
		<-q.Context().Done()
		return
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if strings.HasSuffix(q.URL.Path, "/receipt") { // asked for meanwhile, in no order with the rest
		c.papers = append(c.papers, q.URL.Path)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"type":%q}`, exchange.ProblemPrefix+"receipt")
		return
	}
	c.requests++
	c.heard = append(c.heard, heard(q, body))
	request := c.requests
	if c.kill != nil && c.kill(request, false) {
		panic(http.ErrAbortHandler)
	}
	if q.Method == http.MethodPost {
		c.take(body)
	}
	if c.kill != nil && c.kill(request, true) {
		panic(http.ErrAbortHandler)
	}
	switch {
	case q.Method == http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
		return
	case strings.HasSuffix(q.URL.Path, "/model"):
		_, _ = w.Write(c.file)
		return
	}
	ask := new(exchange.Ask)
	query := q.URL.Query()
	for _, one := range strings.Split(query.Get("sessions"), ",") {
		if n, err := strconv.ParseUint(one, 10, 64); err == nil {
			ask.Sessions = append(ask.Sessions, n)
		}
	}
	ask.Seen = strings.Split(query.Get("seen"), ",")
	ask.Absent, _ = strconv.ParseUint(query.Get("absent"), 10, 64)
	err = errors.New("it goes round in circles")
	var next exchange.Next
	if request <= mostRequests {
		next, err = c.next(ask)
	}
	if err != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, `{"type":%q,"detail":%q}`, exchange.ProblemPrefix+"stranger", err.Error())
		return
	}
	next.Set(w.Header())
	_, _ = w.Write(next.Message)
}

// heard is a request as a server sees it, but for what is random in any case.
func heard(q *http.Request, body []byte) string {
	query := q.URL.Query()
	if query.Has("seen") { // names of messages, of one length
		query.Set("seen", strconv.Itoa(len(strings.Split(query.Get("seen"), ","))))
	}
	if query.Has("number") { // how many it has asked since some instant, however long each took
		query.Set("number", "above the last")
		query.Set("process", "any") // drawn when a process starts
	}
	kind := wire.Type(0)
	if h, _, err := wire.ParseHeader(body); err == nil {
		kind = h.Type
	}
	return fmt.Sprintln(q.Method, q.URL.Path, query.Encode(), kind, len(body))
}

// take notes what the first party sends.
func (c *cheat) take(body []byte) {
	h, _, err := wire.ParseHeader(body)
	if err != nil {
		return
	}
	digest := sha256.Sum256(body)
	switch h.Type {
	case wire.TypeMasked:
		if _, found := c.released[digest]; !found {
			c.released[digest] = c.script[c.at].number
		}
	case wire.TypeAnnounce:
		if before, found := c.keys[h.Session]; found && before != digest {
			c.keys[[32]byte{}] = digest // the mark of two
		}
		c.keys[h.Session] = digest
	}
	_ = c.server.Receive(c.key(0), body)
}

// check fails the test if the party has released more than it agreed to.
func (c *cheat) check(t *testing.T) {
	t.Helper()
	rounds := make(map[uint64]int)
	for _, round := range c.released {
		rounds[round]++
	}
	for round, n := range rounds {
		if n > 1 || round < 1 || round > uint64(c.f.Settled.Rounds()) {
			t.Errorf("%d submissions in round %d of %d", n, round, c.f.Settled.Rounds())
		}
	}
	if n := len(c.released); n > c.f.Settled.Submissions() {
		t.Errorf("%d submissions, the job has %d", n, c.f.Settled.Submissions())
	}
	ledger, err := c.f.Settled.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	if ledger != nil && len(c.released) > 0 {
		if err := ledger.SpendRounds(c.f.Settled.Round(), len(c.released), "party"); err != nil {
			t.Error(err)
		}
	}
	if _, two := c.keys[[32]byte{}]; two {
		t.Error("two keys for the session of one number")
	}
}

// few declares a federation of four parties, of which one may be away, with 3 rounds and noise.
func few(t *testing.T) *federation.Federation {
	t.Helper()
	return fewOf(t, fewText+noise)
}

const fewText = `name = "few"
rounds = 3
parties = { roster = "r", drop_out = 0.25 }
sum.adversary = "curious"
[[model.tensor]]
name = "w"
shape = [3]
[privacy]
clip = 1.0
`

// seldom declares a federation of four parties, of which each submits in two of four rounds.
func seldom(t *testing.T) *federation.Federation {
	t.Helper()
	text := strings.Replace(fewText, "rounds = 3", "rounds = 4", 1)
	return fewOf(t, strings.Replace(text, "drop_out = 0.25",
		"drop_out = 0.25, per_round = 2, participations = 2", 1)+noise)
}

// fewOf reads a federation of four parties.
func fewOf(t *testing.T, text string) *federation.Federation {
	t.Helper()
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: fewRoster()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fewRoster is the roster of p0 to p3.
func fewRoster() []byte {
	var roster strings.Builder
	for i := range 4 {
		fmt.Fprintf(&roster, "p%d %x\n", i, []byte(seedOf(i).Public().(ed25519.PublicKey)))
	}
	return []byte(roster.String())
}

// member is the first party of a federation, with a server and a folder.
func member(t *testing.T, f *federation.Federation, address, folder string) *Party {
	t.Helper()
	way, err := NewServer(address, "", seedOf(0))
	if err != nil {
		t.Fatal(err)
	}
	return &Party{
		Federation: f,
		Identity:   seedOf(0),
		Server:     way,
		Folder:     folder,
		Key:        &keyexchange.SealKey{2},
		Trainer: TrainerFunc(func(_ context.Context, w *Work) (*Update, error) {
			if w.Round < 1 || w.Round > f.Settled.Rounds() {
				t.Errorf("it trains for round %d of %d", w.Round, f.Settled.Rounds())
			}
			return &Update{Vector: make([]float64, len(w.Model))}, nil
		}),
	}
}

// mostRequests is how many a script has at most.
const mostRequests = 2000

// play runs the party until the script is over. With kills it ends before and after each of
// the requests that kills says, and is started again from its folder.
func (c *cheat) play(
	t *testing.T, change func(p *Party), kills func(request int, done bool) bool,
) (lives int) {
	t.Helper()
	server := httptest.NewServer(c)
	defer server.Close()
	if c.folder == "" {
		c.folder = t.TempDir()
	}
	for lives = 1; ; lives++ {
		ctx, cancel := context.WithCancel(t.Context())
		c.mutex.Lock()
		c.kill = nil
		if kills != nil {
			c.kill = func(request int, done bool) bool {
				dies := kills(request, done)
				if dies {
					cancel()
				}
				return dies
			}
		}
		c.mutex.Unlock()
		p := member(t, c.f, server.URL, c.folder)
		if change != nil {
			change(p)
		}
		_, err := p.Run(ctx)
		killed := ctx.Err() != nil
		cancel()
		switch {
		case (killed || errors.Is(err, errKilled)) && lives < 500:
		case err == nil, errors.Is(err, ErrAbsent):
			c.absent = err
			return lives
		default:
			c.check(t)
			t.Fatalf("life %d, at act %d of %v: %v", lives, c.at, c.script, err)
		}
	}
}

// An honest server has each round's submission, in the sum that its bytes make.
func TestHonest(t *testing.T) {
	c := newCheat(few(t), join(1), round(1), round(2), join(2), round(3))
	submitted := make(map[uint64][][]uint64)
	c.play(t, func(p *Party) {
		p.Submitted = func(round int, values [][]uint64) {
			submitted[uint64(round)] = [][]uint64{slices.Clone(values[0])}
		}
	}, nil)
	c.check(t)
	for r := uint64(1); r <= 3; r++ {
		if len(c.sums[r]) != 1 || len(submitted[r]) != 1 ||
			!slices.Equal(c.sums[r][0][0], submitted[r][0]) {
			t.Errorf("round %d: %v, want %v", r, c.sums[r], submitted[r])
		}
	}
	if len(c.released) != 3 || len(c.declined) != 0 || c.absent != nil {
		t.Errorf("%d submissions, declined %v, %v", len(c.released), c.declined, c.absent)
	}
}

// cheats are scripts of servers that do not keep to what was agreed, with how many submissions
// an honest party owes them.
var cheats = map[string]struct {
	script []act
	owed   int
	plan   func(t *testing.T) *federation.Federation // nil: few
}{
	"goes on":         {[]act{join(1), round(1), round(2), round(3), round(4), round(5), round(3)}, 3, nil},
	"repeats a round": {[]act{join(1), round(1), round(1), round(2), round(1), round(2)}, 2, nil},
	"repeats a round in another session": {[]act{join(1), round(1), round(2), join(2), round(1),
		round(2), round(3)}, 3, nil},
	"forgets": {[]act{join(1), round(1), round(2), forget, join(2), round(1), round(2), round(3),
		forget, join(3), round(1), round(2), round(3)}, 3, nil},
	"is set back": {[]act{join(1), round(1), save, round(2), setBack, round(2), setBack, join(2),
		round(2), round(3)}, 3, nil},
	"lies about numbers": {[]act{join(7), join(1<<64 - 1), join(7), join(0), join(1 << 62),
		join(1<<61 + 9), join(8), round(1)}, 1, nil},
	"counts from none": {[]act{join(1), round(0), round(1), round(1 << 30), round(2)}, 2, nil},
	"begins at 0":      {[]act{join(0), round(1)}, 0, nil},
	"counts down":      {[]act{join(1), round(3), round(2), round(1)}, 1, nil},
	"asks more often than agreed": {[]act{join(1), round(1), round(2), round(3), round(4), forget,
		join(2), round(3), round(4)}, 2, seldom},
	"asks more often, and is set back": {[]act{join(1), round(1), save, round(3), setBack, round(3),
		round(4), join(2), round(4)}, 2, seldom},
	"picks a sample that is large enough": {[]act{join(1), sample(1, 0, 1, 2), round(2)}, 2, nil},
	"picks too small a sample":            {[]act{join(1), sample(1, 0, 1), sample(2, 0), round(3)}, 1, nil},
	"picks too small a sample each time": {[]act{join(1), sample(1, 0, 2), join(2), sample(1, 0, 3),
		forget, join(3), sample(2, 0, 1), sample(3, 0, 1)}, 0, nil},
}

// cheated is a server of a script, and its federation.
func cheated(t *testing.T, name string) *cheat {
	t.Helper()
	plan := few
	if of := cheats[name].plan; of != nil {
		plan = of
	}
	return newCheat(plan(t), cheats[name].script...)
}

// A server that cheats gets a submission for each round at most, whatever it does.
func TestCheats(t *testing.T) {
	for name, one := range cheats {
		t.Run(name, func(t *testing.T) {
			c := cheated(t, name)
			c.play(t, nil, nil)
			c.check(t)
			if len(c.released) != one.owed {
				t.Errorf("%d submissions, want %d", len(c.released), one.owed)
			}
			if one.plan != nil && !slices.Contains(c.declined, 4) {
				t.Errorf("it is absent from %v, want 4 among them", c.declined)
			}
		})
	}
}

// errKilled stands for a kill.
var errKilled = errors.New("killed")

// A party that is killed once, after any of the files that it writes, or before or after the
// server has any of its requests, is no better a victim: it goes on from its folder, releases
// each round once, and sends what it saved.
func TestCheatsKilled(t *testing.T) {
	step := suite.Size(16, 16, 8, 1) // of the moments, of which another script has others
	for k, name := range slices.Sorted(maps.Keys(cheats)) {
		first := 1 + (k+1)%step
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, killed := cheats[name], 0
			for at := first; ; at += step {
				c := cheated(t, name)
				written, died := 0, false
				lives := c.play(t, func(p *Party) {
					p.files = faults(func(string) error {
						if written++; written == at {
							died = true
							return errKilled
						}
						return nil
					})
				}, nil)
				c.check(t)
				if len(c.released) != one.owed {
					t.Errorf("killed at write %d: %d submissions, want %d", at, len(c.released), one.owed)
				}
				if !died {
					break
				}
				if killed++; lives != 2 {
					t.Errorf("killed at write %d: %d lives", at, lives)
				}
			}
			for at := first; ; at += step {
				c := cheated(t, name)
				died := false
				c.play(t, nil, func(request int, done bool) bool {
					dies := !died && request == (at+1)/2 && done == (at%2 == 0)
					died = died || dies
					return dies
				})
				c.check(t)
				if len(c.released) != one.owed {
					t.Errorf("killed at request %d: %d submissions, want %d", at, len(c.released), one.owed)
				}
				if !died {
					break
				}
				killed++
			}
			if killed == 0 {
				t.Error("nobody was killed")
			}
		})
	}
}

// Servers of any script, with kills at any writes and requests.
func TestCheatsRandom(t *testing.T) {
	for seed := range uint64(suite.Size(2, 10, 300, 3000)) {
		draw := rand.New(rand.NewPCG(seed, 24))
		script := []act{join(1), save}
		for range 12 {
			var next act
			switch draw.IntN(8) {
			case 0, 1:
				next = join(1 + draw.Uint64N(9))
			case 2:
				next = []act{forget, save, setBack, join(1 << 61), join(1<<64 - 1)}[draw.IntN(5)]
			default:
				next = round(draw.Uint64N(6))
			}
			script = append(script, next)
		}
		c := newCheat(few(t), script...)
		dies := func() bool { return draw.IntN(30) == 0 }
		c.play(t, func(p *Party) {
			p.files = faults(func(string) error {
				if dies() {
					return errKilled
				}
				return nil
			})
		}, func(int, bool) bool { return dies() })
		c.check(t)
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, script)
		}
	}
}

// Who has lost the state, and says so, answers none of the rounds again that it may have
// submitted in.
func TestLostRounds(t *testing.T) {
	c := newCheat(few(t), join(1), round(1), round(2))
	c.play(t, nil, nil)
	if len(c.released) != 2 {
		t.Fatalf("%d submissions", len(c.released))
	}
	c.folder = t.TempDir()
	c.script = append(c.script, join(2), round(1), round(2), round(3), round(3))
	c.play(t, func(p *Party) { p.Spent, p.LeastNumber = 2, 2 }, nil)
	c.check(t)
	if len(c.released) != 3 {
		t.Errorf("%d submissions, want 3", len(c.released))
	}
}

// A submission that was saved, not sent, and is gone from the folder is an absence: the party
// makes no other, and nobody waits for it.
func TestLostSubmission(t *testing.T) {
	for name, spoil := range map[string]func(name string) error{
		"gone":    os.Remove,
		"another": func(name string) error { return os.WriteFile(name, []byte("another"), 0o600) },
	} {
		c := newCheat(few(t), join(1), round(1))
		life := 0
		c.play(t, func(p *Party) {
			life++
			submitting := false
			p.files = faults(func(file string) error {
				submitting = submitting || file == fileSubmission
				if life == 1 && submitting && file == fileCounter {
					return errKilled
				}
				return nil
			})
			if life == 2 {
				if err := spoil(filepath.Join(p.Folder, fileSubmission)); err != nil {
					t.Fatal(err)
				}
			}
		}, nil)
		c.check(t)
		if life != 2 || len(c.released) != 0 || !slices.Equal(c.declined, []uint64{1}) {
			t.Errorf("%s: %d lives, %d submissions, declined %v", name, life, len(c.released),
				c.declined)
		}
	}
}

// The party's ledger is the federation's: what all rounds spend is within epsilon, and there is
// none without noise.
func TestGuardLedger(t *testing.T) {
	guardOf := func(f *federation.Federation, spent int) *drive.Guard {
		p := member(t, f, "http://127.0.0.1:1", t.TempDir())
		p.Spent, p.LeastNumber = spent, 1
		r := p.running()
		settings, err := r.settings()
		if err == nil {
			err = begins(t, r, kindParty, settings)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r.part.Guard()
	}
	f := few(t)
	before := 0.0
	for spent := 1; spent <= f.Settled.Rounds(); spent++ {
		guard := guardOf(f, spent)
		of, err := guard.Spent()
		if err != nil || of == nil || of.Bare().Upper <= before ||
			of.Bare().Upper > f.Job.Privacy.Epsilon {
			t.Fatalf("%d rounds: %+v, %v", spent, of, err)
		}
		before = of.Bare().Upper
	}
	if before < 0.99*f.Job.Privacy.Epsilon {
		t.Errorf("all rounds spend %v of %v", before, f.Job.Privacy.Epsilon)
	}
	guard := guardOf(declare(t, "", weakly), 2)
	if of, err := guard.Spent(); of != nil || err != nil || guard.Count() != 2 {
		t.Errorf("without noise: %+v, %v", of, err)
	}
}

// A federation that has ended for a party stays ended, whatever the server says later: the
// party's book counts what it has spent there.
func TestBookEnded(t *testing.T) {
	f := few(t)
	book := newBook(t)
	withBook := func(p *Party) { p.Book = book }
	first := newCheat(f, join(1), round(1))
	first.play(t, withBook, nil)
	later := newCheat(f, join(2), round(2))
	later.folder = first.folder
	later.play(t, withBook, nil)
	if len(first.released) != 1 || len(later.released) != 0 {
		t.Errorf("%d submissions, and %d once it had ended", len(first.released), len(later.released))
	}
}

// The book counts a submission before the server has it.
func TestBookCounts(t *testing.T) {
	c, book := newCheat(few(t), join(1), round(1), round(2)), newBook(t)
	c.play(t, func(p *Party) { p.Book = book }, func(int, bool) bool {
		entries, err := book.Entries()
		if err != nil || len(entries) != 1 {
			t.Errorf("%d entries, %v", len(entries), err)
			return false
		}
		left := 0
		for _, line := range entries[0].Left {
			left += line.Count
		}
		if left < len(c.released) {
			t.Errorf("the book counts %d of %d submissions", left, len(c.released))
		}
		return false
	})
	if len(c.released) != 2 {
		t.Errorf("%d submissions", len(c.released))
	}
}

func newBook(t *testing.T) *consent.Book {
	t.Helper()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &consent.Book{File: filepath.Join(t.TempDir(), "book"), Key: key}
}
