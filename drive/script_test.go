package drive_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/wire"
)

var rewrite = flag.Bool("rewrite", false, "write what scripts print into them")

// Scripts tell jobs in words: what is done, and below ---- what the server then says. With
// -rewrite they are written anew.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			had, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&script{T: t}).play(string(had))
			switch {
			case got == string(had):
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: now it prints\n%s", file, got)
			}
		})
	}
}

// script is a job that is told.
type script struct {
	*testing.T
	world    *jobtest.World
	options  jobtest.Options
	fails    bool // the program cannot apply sums
	dies     string
	silent   map[int][]string
	absent   map[int]bool
	old      any // what was durable once
	shown    int // lines of the log
	notices  int
	stopped  bool // nothing happens any more
	previous int  // saves
}

// play does what a script says, and returns it with what comes of it.
func (s *script) play(text string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		told, _, _ := strings.Cut(block, "\n----")
		out.WriteString(told + "\n")
		for line := range strings.Lines(told) {
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
				s.do(words)
			}
		}
		if told != block {
			out.WriteString("----\n" + s.print())
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// print returns what has happened since the last time.
func (s *script) print() string {
	var out strings.Builder
	w := s.world
	for _, line := range w.Log[s.shown:] {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	if s.stopped {
		out.WriteString("nothing happens any more\n")
	}
	if n := w.Server.Saves() - s.previous; n > 0 {
		fmt.Fprintf(&out, "%d saves\n", n)
	}
	s.shown, s.stopped, s.previous = len(w.Log), false, w.Server.Saves()
	return out.String()
}

// do does one line.
func (s *script) do(words []string) {
	rest := words[1:]
	switch words[0] {
	case "world":
		s.make(rest)
	case "run":
		s.run(rest)
	case "server":
		s.server(rest)
	case "party":
		s.party(rest)
	default:
		s.Fatalf("what is %q?", strings.Join(words, " "))
	}
}

func (s *script) number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *script) span(word string) drive.Time {
	d, err := time.ParseDuration(word)
	if err != nil {
		s.Fatal(err)
	}
	return drive.Time(d)
}

// make makes the world: parties=4 survivors=3 …
func (s *script) make(words []string) {
	o := jobtest.Options{Parties: 4, Survivors: 3, Rounds: 2, ComeBack: 2 * drive.Second}
	delay := 10 * drive.Millisecond
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "parties":
			o.Parties = s.number(value)
		case "survivors":
			o.Survivors = s.number(value)
		case "colluders":
			o.Colluders = s.number(value)
		case "rounds":
			o.Rounds = uint64(s.number(value))
		case "begin":
			o.BeginWith = s.number(value)
		case "budget":
			o.Budget = s.number(value)
		case "sample":
			o.Sample = s.number(value)
		case "hybrid":
			o.Hybrid = true
		case "curious":
			o.Curious = true
		case "setback":
			o.SetBack = true
		case "step":
			o.StepTime = s.span(value)
		case "floor":
			o.Floor = s.span(value)
		case "comeback":
			o.ComeBack = s.span(value)
		case "away":
			o.Away = s.span(value)
		case "pace":
			o.Pace = s.span(value)
		case "redial":
			o.Redial = s.span(value)
		case "save":
			o.SaveTime = s.span(value)
		case "delay":
			delay = s.span(value)
		case "work":
			work := s.span(value)
			o.Work = func(int) drive.Time { return work }
		case "apply":
			apply := s.span(value)
			o.Apply = func() drive.Time { return apply }
		default:
			s.Fatalf("what is %q?", word)
		}
	}
	o.Delay = func(int) drive.Time { return delay }
	s.world, s.options = jobtest.New(s.T, 1, o), o
	s.silent, s.absent = make(map[int][]string), make(map[int]bool)
	s.world.Server.Fails = func() bool { return s.fails }
	s.world.Server.Die = func(place string) bool {
		if s.dies != place {
			return false
		}
		s.dies = ""
		return true
	}
	for i, p := range s.world.Parties {
		p.Silent = func(kind wire.Type) bool { return slices.Contains(s.silent[i], messageKinds[kind]) }
		p.NoVector = func(uint64) bool { return s.absent[i] }
	}
}

// messageKinds are the messages of parties, as scripts call them.
var messageKinds = map[wire.Type]string{
	wire.TypeAnnounce: "announce", wire.TypeEncapsulate: "encapsulate", wire.TypeUpload: "upload",
	wire.TypeMasked: "submit", wire.TypeSigned: "sign", wire.TypeReveal: "reveal",
}

// run lets things happen: for 5s, or until begun. Without a word, until nothing happens.
func (s *script) run(words []string) {
	w := s.world
	s.notices = len(w.Notices)
	if len(words) == 2 && words[0] == "for" {
		w.RunFor(s.span(words[1]))
		return
	}
	kind := strings.Join(words, " ")
	if kind = strings.TrimPrefix(kind, "until "); kind == "" {
		kind = "nothing"
	}
	for steps := 0; !s.said(kind); steps++ {
		if steps == 100_000 {
			s.Fatalf("it does not come to %q", kind)
		}
		if s.stopped = !w.Step(); s.stopped {
			return
		}
	}
}

// said reports whether the server has said something since it runs, or waits for something.
func (s *script) said(kind string) bool {
	for _, n := range s.world.Notices[s.notices:] {
		if n.Kind.String() == kind {
			return true
		}
	}
	server := s.world.Server
	return server.Drive() != nil && server.Status().Stage.String() == kind
}

func (s *script) server(words []string) {
	server := s.world.Server
	order := func(o drive.Order) {
		o.Why = "by an operator"
		server.Do(func(d drive.Lead, now drive.Time) { d.Order(now, o) })
	}
	switch line := strings.Join(words, " "); line {
	case "starts":
		server.Start()
	case "is killed":
		server.Kill()
	case "dies before it saves", "dies after it saves", "dies after it sends":
		s.dies = strings.TrimPrefix(line, "dies ")
	case "is cut off":
		server.CutOff()
	case "reaches its store":
		server.Reach()
	case "is remembered":
		s.old = server.Remember()
	case "is set back":
		server.SetBack(s.old)
	case "cannot apply sums":
		s.fails = true
	case "can apply sums":
		s.fails = false
	case "is paused":
		order(drive.Order{Do: drive.Pause})
	case "is resumed":
		order(drive.Order{Do: drive.Resume})
	case "excludes 2":
		order(drive.Order{Do: drive.Exclude, Party: 2})
	case "readmits 2":
		order(drive.Order{Do: drive.Readmit, Party: 2})
	case "is ended":
		order(drive.Order{Do: drive.End})
	case "loses its clock": // it goes an hour back, as another machine's may
		server.Skew -= 60 * drive.Minute
	default:
		s.Fatalf("what is %q?", line)
	}
}

// party has one party, several (0,2), or all do something.
func (s *script) party(words []string) {
	if len(words) < 2 {
		s.Fatal("who does what?")
	}
	var who []int
	for name := range strings.SplitSeq(words[0], ",") {
		if name != "all" {
			who = append(who, s.number(name))
			continue
		}
		for i := range s.world.Parties {
			who = append(who, i)
		}
	}
	for _, i := range who {
		if err := s.does(i, words[1], words[2:]); err != nil {
			s.Fatalf("%v: %v", words, err)
		}
	}
}

func (s *script) does(i int, what string, rest []string) error {
	p := s.world.Parties[i]
	switch what {
	case "starts":
		p.Start()
	case "dies":
		p.Kill()
	case "loses": // its state
		p.Lose()
	case "hangs": // up, and dials no more
		p.Cut()
	case "dials":
		p.Connect()
	case "keeps": // silent, where it should send one of these
		s.silent[i] = rest
	case "has": // no vector, or a vector
		s.absent[i] = rest[0] == "no"
	case "reveals": // wrong shares
		p.Rewrite = jobtest.WrongShares
	case "says": // least or told, and a number
		if len(rest) != 2 {
			return errors.New("least or told, and a number")
		}
		n, err := strconv.ParseUint(rest[1], 10, 64)
		if err != nil {
			return err
		}
		lie := func(uint64) uint64 { return n }
		if rest[0] == "least" {
			p.Least = lie
		} else {
			p.Told = lie
		}
	default:
		return errors.New("what is that?")
	}
	return nil
}
