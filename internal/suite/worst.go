package suite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// Worst is a parser of bytes from outside, with the files that take it the most memory and time for
// their length.
type Worst struct {
	Name  string                        // of its row in SECURITY.md
	Most  int                           // bytes of the longest input, as the row says
	Try   int                           // bytes of what is tried in its place; 0: Most
	Files map[string]func(n int) []byte // of at most n bytes, and not much less
	Parse func(b []byte) error
	// Room bounds the bytes that a parser takes in addition to 64 times its input; 0: RoomToParse.
	Room uint64
}

// RoomToParse bounds the memory that a process may take to parse a short input.
const RoomToParse = 16 << 20

// shortWorst bounds the files of the short form of tests, in bytes.
const shortWorst = 256 << 10

// worstChild names the file that a child process parses.
const worstChild = "HUSHSUM_WORST_FILE"

// measured holds what a child reports.
type measured struct {
	Peak      uint64 // bytes that the process has taken from the system since it began to parse
	Allocated uint64 // bytes in all, for the whole file
	Quarter   uint64 // bytes in all, for a file of a quarter of its length
	Seconds   float64
	Said      string // the refusal, "<nil>" if there was none
}

// WorstFiles feeds parsers their worst files, each in a process of its own with a limit on memory.
// It fails if one takes more than 64 times a file and [Worst.Room], or allocates more than in
// proportion to its length, or has no row with its length in SECURITY.md. With -timing and -v it
// prints what was taken. It is to be the last that its test does.
func WorstFiles(t *testing.T, parsers ...Worst) {
	t.Helper()
	if file := os.Getenv(worstChild); file != "" {
		parseWorst(file, parsers)
	}
	rows := worstRows(t)
	for _, p := range parsers {
		if !strings.HasPrefix(rows[p.Name], sizeOf(p.Most)) {
			t.Errorf("SECURITY.md has no row %q of %s: %q", p.Name, sizeOf(p.Most), rows[p.Name])
		}
		for name, file := range p.Files {
			t.Run(p.Name+"/"+name, func(t *testing.T) { runWorst(t, p, file) })
		}
	}
}

func runWorst(t *testing.T, p Worst, file func(int) []byte) {
	most := cmp.Or(p.Try, p.Most)
	if !Long() && !Timing() {
		most = min(most, shortWorst)
	}
	whole, quarter := file(most), file(most/4)
	if len(whole) > most || len(whole) < most/10 || len(quarter) > most/4 {
		t.Fatalf("files of %d and %d bytes, of at most %d", len(whole), len(quarter), most)
	}
	folder := t.TempDir()
	at := filepath.Join(folder, "whole")
	for _, f := range []struct {
		name string
		b    []byte
	}{{at, whole}, {at + ".quarter", quarter}, {at + ".parser", []byte(p.Name)}} {
		if err := os.WriteFile(f.name, f.b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	top, _, _ := strings.Cut(t.Name(), "/")
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+top+"$", "-test.timeout=120s")
	c.Env = append(os.Environ(), worstChild+"="+at)
	out, err := c.CombinedOutput()
	var m measured
	if err != nil || json.Unmarshal(out, &m) != nil {
		t.Fatalf("%v: %.2000s", err, out)
	}
	limit := p.limit(len(whole))
	if m.Peak > limit {
		t.Errorf("%d bytes took %d, more than %d (%s)", len(whole), m.Peak, limit, m.Said)
	}
	if m.Allocated > 8*m.Quarter+RoomToParse {
		t.Errorf("%d bytes allocated %d, and a quarter of the file %d (%s)", len(whole), m.Allocated,
			m.Quarter, m.Said)
	}
	if Timing() {
		t.Logf("%8d kB: %6.1f MB at most, %5.0f ms: %s", len(whole)>>10, float64(m.Peak)/1e6,
			1e3*m.Seconds, m.Said)
	}
}

func (p *Worst) limit(n int) uint64 {
	room := p.Room
	if room == 0 {
		room = RoomToParse
	}
	return 64*uint64(n) + room
}

// parseWorst is the child: it never returns.
func parseWorst(file string, parsers []Worst) {
	read := func(end string) []byte {
		b, err := os.ReadFile(file + end)
		if err != nil {
			panic(err)
		}
		return b
	}
	name, whole, quarter := string(read(".parser")), read(""), read(".quarter")
	for _, p := range parsers {
		if p.Name != name {
			continue
		}
		before := memory()
		limit := p.limit(len(whole))
		debug.SetMemoryLimit(int64(before.Sys + limit))
		endAt(before.Sys + 4*limit)
		_ = p.Parse(quarter)
		between := memory()
		start := time.Now()
		err := p.Parse(whole)
		m := measured{Seconds: time.Since(start).Seconds(), Said: fmt.Sprintf("%.200v", err)}
		after := memory()
		m.Peak = after.Sys - before.Sys
		m.Quarter, m.Allocated = between.TotalAlloc-before.TotalAlloc, after.TotalAlloc-between.TotalAlloc
		out, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(out)
		os.Exit(0)
	}
	os.Exit(1)
}

// endAt ends the process soon after it has taken a given number of bytes: before the machine does,
// where memory grows without end.
func endAt(most uint64) {
	time.AfterFunc(5*time.Millisecond, func() {
		if now := memory(); now.Sys > most {
			fmt.Printf("%d bytes are taken, and it goes on", now.Sys)
			os.Exit(1)
		}
		endAt(most)
	})
}

func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// worstRows returns the table of SECURITY.md: by parser, the rest of its row.
func worstRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(clone(t), "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "| "); found {
			name, rest, _ := strings.Cut(rest, " | ")
			rows[name] = rest
		}
	}
	return rows
}

// sizeOf writes a number of bytes as the table does.
func sizeOf(n int) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Repeated returns a text of at most n bytes: a piece again and again, in which %d is the number of
// the time, between a head and a tail.
func Repeated(head, piece, tail string) func(n int) []byte {
	return func(n int) []byte {
		b := append(make([]byte, 0, n), head...)
		numbered := strings.Contains(piece, "%")
		for i := 0; ; i++ {
			have := len(b)
			if numbered {
				b = fmt.Appendf(b, piece, i)
			} else {
				b = append(b, piece...)
			}
			if len(b)+len(tail) > n {
				return append(b[:have], tail...)
			}
		}
	}
}
