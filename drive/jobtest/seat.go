package jobtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
	"github.com/hushsum/hushsum/masking"
)

// Seat is a member or a party of a Council, with its process, its store and its connection.
type Seat struct {
	world  *Council
	index  int
	member bool

	drive  drive.Part // nil: the process has ended
	state  []byte
	life   int
	link   int // of the connection; what was sent over an earlier one does not arrive
	online bool
	have   map[string]bool
	shown  [32]byte           // digest of the broadcast of the last opening
	ready  map[uint64][]int64 // vectors by the round that they were made in
	arrive [2]drive.Time      // when the last message arrives, up and down

	// Die, if set, is asked at places where the process may die: "before", "after", "sent".
	Die func(place string) bool
	// Silent makes messages stay away, and Rewrite changes them: its own to the server.
	Silent  func(message []byte) bool
	Rewrite func(message []byte) []byte
	// Told changes what it tells of rounds. NoVector makes a party absent from a round.
	Told     func(round uint64) uint64
	NoVector func(round uint64) bool
	// Redials is how long it takes to dial again; 0: half a second.
	Redials drive.Time
	Away    bool       // it does not dial
	Pushes  bool       // it uploads in place of an offer
	Often   bool       // it submits in each round that another party tells it of
	Late    drive.Time // how much later what it sends arrives
	Spent   uint64     // a member's, which has lost its state
	Done    bool
}

// Start starts the process, from what it has saved.
func (s *Seat) Start() {
	w := s.world
	if s.alive() {
		return
	}
	s.life++
	var err error
	if s.state == nil {
		s.drive, err = drive.NewPart(s.settings())
	} else {
		s.drive, err = drive.LoadPart(s.settings(), &w.key, s.state)
	}
	s.ready = make(map[uint64][]int64)
	if err != nil {
		w.Fatal("%s does not start: %v", s, err)
	}
	s.Connect()
}

func (s *Seat) settings() drive.PartSettings {
	w := s.world
	out := drive.PartSettings{Limits: drive.Limits{Rounds: w.options.Rounds}, Sums: w.sums,
		Member: s.member, Spent: s.Spent, Random: w.random}
	if s.member {
		out.Identity = identities()[len(w.Parties)+s.index]
		return out
	}
	out.Identity = identities()[s.index]
	if !s.Often {
		out.Limits.Submissions, out.Limits.Ledger = w.options.Submissions, w.ledger
	}
	out.Limits.Cost, out.Limits.Account = w.cost, w.Name(s.index)
	return out
}

func (s *Seat) alive() bool { return s.drive != nil }

// String names the seat.
func (s *Seat) String() string {
	if s.member {
		return fmt.Sprint("member ", s.index)
	}
	return fmt.Sprint("party ", s.index)
}

// Kill ends the process. Start starts it again.
func (s *Seat) Kill() {
	if s.alive() {
		s.world.Note("%s dies", s)
		s.drive = nil
		s.Cut()
	}
}

func (s *Seat) dies(place string) bool {
	if s.Die != nil && s.Die(place) {
		s.Kill()
	}
	return !s.alive()
}

// Connect dials.
func (s *Seat) Connect() {
	w := s.world
	if s.online || !s.alive() || s.Away || s.Done {
		return
	}
	if w.Hub.drive == nil || w.Hub.cut {
		s.redial()
		return
	}
	s.link++
	s.online, s.have = true, make(map[string]bool)
	hello := drive.Hello{Told: s.drive.Hello().Told}
	if s.Told != nil {
		hello.Told = s.Told(hello.Told)
	}
	s.carry(0, func() {
		w.Hub.drive.Connected(w.now, s.peer(), hello)
		s.pump()
	})
	s.drive.Connected()
	s.proceed()
}

func (s *Seat) redial() {
	wait := s.Redials
	if wait == 0 {
		wait = drive.Second / 2
	}
	life := s.life
	s.world.After(wait, func() {
		if s.life == life {
			s.Connect()
		}
	})
}

// Cut ends the connection.
func (s *Seat) Cut() {
	w := s.world
	if !s.online {
		return
	}
	s.online = false
	s.link++
	if hub := w.Hub; hub.drive != nil {
		life := hub.life
		w.After(w.options.Delay(), func() {
			if hub.life != life || hub.drive == nil || s.online {
				return
			}
			hub.drive.Gone(w.now, s.peer())
			hub.proceed()
		})
	}
	s.redial()
}

// carry has something happen at the server (0) or here (1) once a message has arrived there:
// messages of one connection do not overtake each other.
func (s *Seat) carry(way int, do func()) {
	w, link := s.world, s.link
	late := s.Late
	if way == 1 {
		late = 0
	}
	at := max(w.now+w.options.Delay()+late, s.arrive[way])
	s.arrive[way] = at
	w.After(at-w.now, func() {
		if s.link != link {
			return
		}
		if do(); way == 0 {
			w.Hub.proceed()
		} else {
			s.proceed()
		}
	})
}

// pump sends what is pending.
func (s *Seat) pump() {
	w := s.world
	if !s.online || w.Hub.drive == nil {
		return
	}
	pending := w.Hub.drive.Pending(s.peer())
	for i := 0; s.Often && i < len(w.Parties) && !w.Hub.drive.At(s.peer()).Due; i++ {
		if other := (drive.Peer{Index: i}); w.Hub.drive.At(other).Due {
			pending = w.Hub.drive.Pending(other)
		}
	}
	for item := range pending {
		w.checkItem(s, item)
		if s.have[item.Name] {
			continue
		}
		s.have[item.Name] = true
		digest := w.digest(item.Round, w.Hub.status().Fresh)
		s.carry(1, func() { s.take(item, digest) })
	}
}

// take takes what the server has sent.
func (s *Seat) take(item drive.Item, broadcast [32]byte) {
	if !s.alive() {
		return
	}
	switch item.Kind {
	case drive.Last:
		s.Done = true
	case drive.Carry:
		s.shown = broadcast
	}
	if err := s.drive.Receive(item); err != nil {
		s.world.Fatal("%s: %v", s, err)
	}
}

// work answers what the sender asks.
func (s *Seat) work(ask *drive.Ask) {
	w, life, broadcast := s.world, s.life, s.shown
	if ask.ID.Made > 0 {
		s.answer(ask.ID, broadcast, s.ready[ask.ID.Made])
		return
	}
	w.After(w.options.Work(), func() {
		if s.life != life || !s.alive() {
			return
		}
		if s.NoVector != nil && s.NoVector(ask.Round) {
			s.drive.Absent(ask.ID, ask.Round, fmt.Errorf("no rows"))
			s.proceed()
			return
		}
		values := make([]int64, w.sums.Length)
		for k := range values {
			values[k] = int64(w.random.Uint64()%256) - 128
		}
		if w.options.Vector != nil {
			values = w.options.Vector(s.index, ask.Round)
		}
		if w.options.Stale > 0 {
			s.ready[ask.Round] = values
			s.drive.Finished(ask.ID)
		} else {
			s.answer(ask.ID, broadcast, values)
		}
		s.proceed()
	})
}

func (s *Seat) answer(id drive.AskID, broadcast [32]byte, values []int64) {
	w := s.world
	was := s.drive.Hello().Told
	err := s.drive.Answer(drive.Answer{ID: id, Broadcast: broadcast,
		Fill: func(v *masking.Vector) error { return v.Set(unsigned(values)) }})
	if err != nil {
		w.Fatal("%s: %v", s, err)
	}
	if s.drive.Hello().Told > was {
		w.vectors[fmt.Sprint(s.index, ".", id.Round)] = slices.Clone(values)
		if id.Made > 0 {
			w.Ages[id.Round-id.Made]++
		}
	}
}

// unsigned are values as a vector of 64 bits holds them.
func unsigned(values []int64) []uint64 {
	out := make([]uint64, len(values))
	for k, x := range values {
		out[k] = uint64(x)
	}
	return out
}

// settle saves what has to be, and returns what may leave; nil if the process has died.
func (s *Seat) settle() *drive.Out {
	r, _ := s.drive.Ready()
	for _, x := range r.Reports {
		s.world.Note("%s: %d round %d %v", s, x.Kind, x.Round, x.Err)
	}
	if r.Save {
		saved, err := s.drive.Save(&s.world.key)
		if err != nil {
			s.world.Fatal("%s: %v", s, err)
		}
		if s.dies("before") {
			return nil
		}
		s.state = saved.State
		if s.dies("after") {
			return nil
		}
	}
	out := s.drive.Advance()
	for _, away := range out.Away {
		s.say(drive.Said{Absent: away.Number})
	}
	if out.Offer != 0 && s.Pushes {
		if err := s.drive.Receive(drive.Item{Kind: drive.Upload, Round: out.Offer}); err != nil {
			s.world.Fatal("%s: %v", s, err)
		}
	} else if out.Offer != 0 {
		s.say(drive.Said{Offer: out.Offer})
	}
	for _, m := range out.Send {
		s.send(m.Bytes)
	}
	if s.dies("sent") {
		return nil
	}
	if out.Ask != nil {
		s.work(out.Ask)
	}
	return &out
}

// say tells the server something.
func (s *Seat) say(said drive.Said) {
	s.heard(func(d drive.Lead) { d.Said(s.world.now, s.peer(), said) })
}

// heard has the server hear something.
func (s *Seat) heard(do func(d drive.Lead)) {
	if s.online {
		s.carry(0, func() {
			hub := s.world.Hub.drive
			hub.Heard(s.world.now, s.peer())
			do(hub)
		})
	}
}

func (s *Seat) peer() drive.Peer { return drive.Peer{Index: s.index, Member: s.member} }

// checkSent: no two submissions, signatures or parts of a round differ, whatever crashed.
func (s *Seat) checkSent(message []byte) {
	h, _, err := wire.ParseHeader(message)
	if err != nil || h.Type != 67 && h.Type != 72 && h.Type != 74 {
		return
	}
	name := fmt.Sprint(s, " ", h.Round, ".", h.Type)
	digest := sha256.Sum256(message)
	if was, sent := s.world.sent[name]; sent && was != digest {
		s.world.Fatal("%s: type %d of round %d is sent with other bytes", s, h.Type, h.Round)
	}
	s.world.sent[name] = digest
}

// send sends a message.
func (s *Seat) send(message []byte) {
	w := s.world
	s.checkSent(message)
	if s.Silent != nil && s.Silent(message) || !s.online {
		return
	}
	if s.Rewrite != nil {
		message = s.Rewrite(message)
	}
	if !s.member {
		w.uploads[string(message[:46])]++
	}
	s.heard(func(d drive.Lead) {
		if err := d.Receive(w.now, s.peer(), bytes.NewBuffer(message)); err != nil {
			w.Note("server refuses %s: %v", s, err)
		} else if !s.member {
			w.Hub.Received += len(message)
		}
	})
}

// proceed is the seat's loop.
func (s *Seat) proceed() {
	for s.alive() {
		if _, decided := s.drive.Ready(); !decided || s.settle() == nil {
			return
		}
	}
}
