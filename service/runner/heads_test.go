package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/exchange"
)

// twin returns another record, which is a copy of this one and goes on from there.
func (l *led) twin() *led {
	l.t.Helper()
	l.close()
	out := &led{t: l.t, fed: l.fed, key: l.key, folder: l.t.TempDir()}
	if err := os.CopyFS(out.folder, os.DirFS(l.folder)); err != nil {
		l.t.Fatal(err)
	}
	l.open()
	out.open()
	l.Runner, out.Runner = l.start("n"), out.start("n")
	return out
}

// orders has so many orders carried out.
func (l *led) orders(n int) {
	l.t.Helper()
	for k := range n {
		order := l.Pause
		if k%2 > 0 {
			order = l.Resume
		}
		if err := order(context.Background(), By{Who: "an operator"}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// A head that a party has and the record does not sets the record back, with the party's lines or
// without them, be it higher or one of another history: the next claim names it, and counts the
// rounds that were begun by then. What is not signed changes nothing.
func TestHear(t *testing.T) {
	const begun = 2
	for name, c := range map[string]struct {
		own, others int // orders since the copy
		lines       bool
	}{
		"higher, with lines":     {1, 4, true},
		"higher, alone":          {1, 4, false},
		"another history":        {1, 1, true},
		"another history, alone": {1, 1, false},
		"lower, of another":      {3, 1, true},
		"lower, alone":           {3, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			l := newLed(t, "")
			first := l.Head()
			twin := l.twin()
			l.orders(c.own)
			twin.Hold.Round = begun
			twin.orders(c.others)
			var kept [][]byte
			l.Evidence = func(_ uint64, _ string, b []byte) (string, error) {
				kept = append(kept, b)
				return "", nil
			}
			p := Peer{Index: 1}
			for _, note := range [][]byte{nil, first, l.Head()} {
				if err := l.Hear(ctx, p, note); err != nil {
					t.Fatalf("a head of its own: %v", err)
				}
			}
			given := &exchange.Given{}
			given.Lines, given.Head = twin.Lines(1)
			damaged := slices.Clone(given.Head)
			damaged[len(damaged)-9] ^= 1
			for _, bad := range []*exchange.Given{{Head: damaged, Lines: given.Lines}, {Head: given.Head},
				{Head: given.Head, Lines: given.Lines[:len(given.Lines)-1]},
				{Head: given.Head, Lines: append([][]byte{[]byte("{}")}, given.Lines...)}} {
				if err := l.Give(ctx, p, bad); !errors.Is(err, ErrHead) {
					t.Errorf("unsigned: %v", err)
				}
			}
			if err := l.Hear(ctx, p, damaged); !errors.Is(err, ErrHead) {
				t.Errorf("a damaged head: %v", err)
			}
			if err := l.Hear(ctx, p, given.Head); !errors.Is(err, ErrBehind) {
				t.Fatalf("a head that it lacks: %v", err)
			}
			own, want := l.Head(), uint64(begun)
			if c.lines {
				if err := l.Give(ctx, p, given); err != nil {
					t.Fatal(err)
				}
			} else {
				if err := l.Hear(ctx, Peer{Index: 2}, given.Head); !errors.Is(err, ErrBehind) {
					t.Fatalf("who has not been asked for lines is asked: %v", err)
				}
				if err := l.Hear(ctx, p, given.Head); err != nil {
					t.Fatal(err)
				}
				want = 0 // and each decision that is lost is a round, at most
			}
			if err := l.Hear(ctx, p, given.Head); !errors.Is(err, ErrStopped) {
				t.Errorf("it leads on: %v", err)
			}
			next := l.start("m")
			if next.Hold.Round < want || want == 0 && next.Hold.Round == 0 {
				t.Errorf("round %d was begun, want at least %d", next.Hold.Round, want)
			}
			entry := next.Hold.Chain().Last()
			if entry.Kind != chain.Setback || len(entry.Heads) != 1 {
				t.Errorf("%+v", entry)
			}
			for _, note := range [][]byte{given.Head, own, first, next.Head()} {
				if err := next.Hear(ctx, p, note); err != nil {
					t.Errorf("a head that is named, or its own: %v", err)
				}
			}
			if !slices.ContainsFunc(kept, func(b []byte) bool {
				own, is := bytes.CutSuffix(b, append([]byte("\n"), given.Head...))
				_, err := l.Runner.open(own)
				return is && err == nil
			}) {
				t.Errorf("%d files are kept, and not the two heads", len(kept))
			}
		})
	}
}
