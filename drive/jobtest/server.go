package jobtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/protocol"
)

// Server is the server's program: its process, and its store.
type Server struct {
	world *World
	drive drive.Lead // nil: the process has ended
	life  int        // of the process, so that what was due in an earlier one is not done
	awake drive.Time // when Tick is due
	model [32]byte   // what the program has made of the sums, as a digest

	cut     bool // off from what is durable: it decides nothing, and lets nobody in
	disk    image
	writing *image // a save that is on its way
	saves   int

	// Skew is how far its clock is ahead of the world's.
	Skew drive.Time
	// Die, if set, is asked at each place where the process may die.
	Die func(place string) bool
	// Forge, if set, changes what is sent to a party.
	Forge func(party int, message []byte) []byte
	// Fails, if set, reports whether the program cannot apply a sum.
	Fails func() bool
}

// image holds what is durable. The zero value is an empty store.
type image struct {
	state   []byte
	objects map[string][]byte
	model   [32]byte
}

// Status returns the server's status; zero while the process is dead.
func (s *Server) Status() drive.Status {
	if s.drive == nil {
		return drive.Status{}
	}
	return s.drive.Status()
}

// Drive returns the machine, nil while the process is dead.
func (s *Server) Drive() drive.Lead { return s.drive }

// Do lets an operator, or a party's carrier, tell the machine something.
func (s *Server) Do(order func(d drive.Lead, now drive.Time)) {
	if s.drive != nil {
		order(s.drive, s.Now())
		s.proceed()
	}
}

// Remember returns what is durable now, for SetBack.
func (s *Server) Remember() any { return s.disk }

// SetBack makes the process, which has ended, find what was durable once.
func (s *Server) SetBack(remembered any) {
	w := s.world
	s.disk = remembered.(image)
	w.seen.saved, w.seen.number = drive.Recorded{}, 0
	if s.disk.state != nil {
		w.seen.saved = w.parse(s.disk.state)
	}
	for _, p := range w.Parties {
		clear(p.seen.items)
		p.seen.joined = 0
	}
	w.Note("the server is set back to round %d", w.seen.saved.Round)
}

// Saves returns how often the state was saved.
func (s *Server) Saves() int { return s.saves }

// Now returns the time by the server's own clock.
func (s *Server) Now() drive.Time { return s.world.now + s.Skew }

func (s *Server) config() drive.Settings {
	w := s.world
	o := w.options
	often := o.Often
	if o.Greedy {
		often = 0
	}
	return drive.Settings{
		Submissions: often,
		Session:     w.session, Label: w.config.Label, Rounds: o.Rounds,
		Survivors: o.Survivors, Colluders: o.Colluders,
		Cost: w.limits.Cost, Ledger: w.limits.Ledger,
		Broadcast: func(round uint64, fresh [32]byte) ([32]byte, error) {
			return cast{round, fresh, s.model}.digest(), nil
		},
		Stored: opened(s.disk.objects),
		Sample: o.Sample, Draw: func(_ uint64, there []int, n int) []int { return there[:n] },
		StepTime: w.stepTime(), Floor: o.Floor, ComeBack: o.ComeBack, Away: o.Away, Pace: o.Pace,
		BeginWith: o.BeginWith, Random: w.random,
	}
}

func (w *World) stepTime() drive.Time {
	if w.options.StepTime == 0 {
		return 10 * drive.Second
	}
	return w.options.StepTime
}

// cast holds what a round begins with.
type cast struct {
	round        uint64
	fresh, model [32]byte
}

func (c cast) digest() [32]byte {
	h := protocol.NewBroadcastHash()
	fmt.Fprintf(h, "round %d %x %x", c.round, c.fresh, c.model)
	return [32]byte(h.Sum(nil))
}

// opened opens objects that are durable.
func opened(objects map[string][]byte) func(name string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		b, found := objects[name]
		if !found {
			return nil, fmt.Errorf("no %s", name)
		}
		return io.NopCloser(bytes.NewReader(b)), nil
	}
}

// put returns the objects that a state needs: those that were durable, and what is new. It returns
// how many bytes are new.
func put(
	durable map[string][]byte, saved drive.Saved,
) (out map[string][]byte, written int, err error) {
	out = maps.Clone(durable)
	if out == nil {
		out = make(map[string][]byte)
	}
	for _, o := range saved.Objects {
		if _, found := out[o.Name]; found {
			continue
		}
		var b bytes.Buffer
		if _, err := o.Body.WriteTo(&b); err != nil {
			return nil, 0, err
		}
		out[o.Name] = b.Bytes()
		written += b.Len()
	}
	maps.DeleteFunc(out, func(name string, _ []byte) bool {
		return !slices.Contains(saved.Needed, name)
	})
	return out, written, nil
}

// load makes the machine of what is durable.
func (s *Server) load() (drive.Lead, error) {
	if s.disk.state == nil {
		return drive.NewLead(s.config(), s.Now())
	}
	return drive.LoadLead(s.config(), &s.world.key, s.Now(), s.disk.state)
}

// Start starts the process.
func (s *Server) Start() {
	w := s.world
	if s.drive != nil {
		return
	}
	var err error
	s.model = s.disk.model
	if s.drive, err = s.load(); err != nil {
		w.Fatal("the server does not load: %v", err)
	}
	s.life, s.awake = s.life+1, drive.Never
	w.Note("%s the server starts", w.clock())
	if s.dies("at load") {
		return
	}
	s.proceed()
}

// Kill ends the process: nothing is left but the store.
func (s *Server) Kill() {
	if s.drive == nil {
		return
	}
	w := s.world
	w.Note("%s the server is killed", w.clock())
	if s.writing != nil && w.options.Late != nil && w.options.Late() {
		s.wrote()
	}
	s.drive, s.writing, s.life = nil, nil, s.life+1
	for _, p := range w.Parties {
		p.cut()
	}
}

// CutOff has the process reach its store no more: it answers nobody, and decides nothing.
func (s *Server) CutOff() {
	s.world.Note("%s the server is cut off", s.world.clock())
	s.cut = true
	for _, p := range s.world.Parties {
		p.cut()
		if s.drive != nil {
			s.drive.Gone(s.Now(), p.peer())
		}
	}
}

// Reach ends that.
func (s *Server) Reach() {
	s.world.Note("%s the server reaches its store", s.world.clock())
	s.cut = false
	if s.drive != nil {
		s.drive.Again(s.Now())
		s.proceed()
	}
}

// dies kills the process if it is to die here.
func (s *Server) dies(place string) bool {
	if s.Die == nil || !s.Die(place) {
		return false
	}
	s.world.Note("the server dies %s", place)
	s.Kill()
	return true
}

// proceed does what is due, as a carrier does.
func (s *Server) proceed() {
	w := s.world
	for s.drive != nil && s.writing == nil && !s.cut {
		if err := s.drive.Tick(s.Now()); err != nil {
			w.Fatal("the server: %v", err)
		}
		r, decided := s.drive.Ready()
		if !decided {
			s.sleep()
			return
		}
		for _, n := range r.Notices {
			s.notice(n)
		}
		if r.Save {
			if s.dies("before it saves") {
				return
			}
			s.keep()
			if wait := w.options.SaveTime; wait > 0 {
				s.after(wait, func() {
					s.wrote()
					if !s.dies("after it saves") {
						s.advance()
						s.proceed()
					}
				})
				return
			}
			s.wrote()
			if s.dies("after it saves") {
				return
			}
		}
		s.advance()
	}
}

// after does something later in the life of this process.
func (s *Server) after(wait drive.Time, do func()) {
	life := s.life
	s.world.After(wait, func() {
		if s.life == life && s.drive != nil {
			do()
		}
	})
}

// keep begins to save the state.
func (s *Server) keep() {
	w := s.world
	saved, err := s.drive.Save(&w.key)
	if err != nil {
		w.Fatal("%v", err)
	}
	if w.options.Long && len(saved.State) >= w.config.Layout.PackedSize() {
		w.Fatal("a state of %d bytes: long sums are saved apart", len(saved.State))
	}
	s.saves++
	next := image{state: saved.State, model: s.model}
	if next.objects, _, err = put(s.disk.objects, saved); err != nil {
		w.Fatal("%v", err)
	}
	s.writing = &next
}

// wrote makes what was saved durable.
func (s *Server) wrote() {
	s.disk, s.writing = *s.writing, nil
	s.world.checkSaved(s.disk.state)
}

func (s *Server) advance() {
	w := s.world
	out := s.drive.Advance(s.Now())
	if out.Tell {
		w.checkDurable()
	}
	if out.Apply != nil {
		s.apply(out.Apply)
	}
	if out.Tell {
		for _, p := range w.Parties {
			if s.drive == nil {
				return
			}
			p.pump()
		}
	}
	if s.drive != nil {
		s.dies("after it sends")
	}
}

// sleep has Tick called when it is due.
func (s *Server) sleep() {
	w := s.world
	wake := s.drive.Wake()
	w.checkAwake(wake)
	if wake == drive.Never || wake == s.awake && wake > s.Now() {
		return
	}
	s.awake = wake
	s.after(max(wake-s.Now(), 1), func() {
		s.awake = drive.Never
		s.proceed()
	})
}

func (s *Server) notice(n drive.Notice) {
	w := s.world
	w.Notices = append(w.Notices, n)
	if w.Heard != nil {
		w.Heard(n)
	}
	w.Note("%s %s", w.clock(), words(n))
	switch n.Kind {
	case drive.Begun:
		w.seen.begun = n.Parties
	case drive.Lost:
		w.lost++
	case drive.SetBack:
		w.seen.skipped += n.Skipped
	case drive.Paused:
		if w.Resumes {
			s.after(0, func() {
				s.drive.Order(s.Now(), drive.Order{Do: drive.Resume, Why: "all the same"})
				s.proceed()
			})
		}
	}
}

// apply checks a sum against what the parties have put in, and answers, perhaps later.
func (s *Server) apply(a *drive.Apply) {
	w := s.world
	w.checkSum(a)
	next := cast{a.Round, a.Fresh, s.model}.digest()
	answer := func() {
		var err error
		if s.Fails != nil && s.Fails() {
			err = errors.New("no model")
		} else {
			s.model = next
			if n := len(w.Sums); n == 0 || w.Sums[n-1].Round != a.Round {
				w.Sums = append(w.Sums, Sum{a.Round, a.Parties, a.Sum.Values()})
			}
		}
		s.drive.Applied(s.Now(), a.Round, err)
	}
	if w.options.Apply == nil {
		answer()
		return
	}
	s.after(w.options.Apply(), func() {
		if st := s.drive.Status(); st.Stage == drive.Applying && st.Round == a.Round {
			answer()
			s.proceed()
		}
	})
}

// checkSum fails unless a sum is that of the vectors of the parties in it.
func (w *World) checkSum(a *drive.Apply) {
	sum := a.Sum.Values()
	for k, segment := range w.config.Layout {
		want := make([]uint64, segment.Length)
		for _, i := range a.Parties {
			v := w.Parties[i].vectors[a.Round]
			if v == nil {
				w.Fatal("party %d is in the sum of round %d and has not submitted", i, a.Round)
			}
			for j, x := range v[k] {
				want[j] = (want[j] + x) & ringMask(segment)
			}
		}
		if !slices.Equal(sum[k], want) {
			w.Fatal("the sum of round %d is wrong", a.Round)
		}
	}
	if len(a.Parties) < w.options.Survivors {
		w.Fatal("the sum of round %d is of %v", a.Round, a.Parties)
	}
}

// clock is the time in seconds.
func (w *World) clock() string {
	return fmt.Sprintf("%8.3f", float64(w.now)/float64(drive.Second))
}

// words says a notice in words.
func words(n drive.Notice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v", n.Kind)
	if n.Session > 0 {
		fmt.Fprintf(&b, ", session %d", n.Session)
	}
	if n.Round > 0 {
		fmt.Fprintf(&b, ", round %d", n.Round)
	}
	switch n.Kind {
	case drive.Stall, drive.Spoiler:
		fmt.Fprintf(&b, ", party %d", n.Party)
	}
	if n.Parties != nil {
		fmt.Fprintf(&b, ", %v", n.Parties)
	}
	if n.Err != nil {
		fmt.Fprintf(&b, ": %v", n.Err)
	}
	return b.String()
}
