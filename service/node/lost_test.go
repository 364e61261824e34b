package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
)

// clusterOf is a cluster of nodes a, b, c and so on, of which those in upper case are not here.
func clusterOf(nodes string, streams ...record.Copies) *record.Cluster {
	c := &record.Cluster{Streams: streams}
	for _, x := range strings.Split(nodes, "") {
		name := strings.ToLower(x)
		c.Voters = append(c.Voters, record.Voter{Name: name, Here: x == name})
	}
	return c
}

// on is a stream with copies on nodes, of which those in upper case are behind or not here.
func on(nodes string) record.Copies {
	s := record.Copies{CurrentOn: make(map[string]bool)}
	for _, x := range strings.Split(nodes, "") {
		name := strings.ToLower(x)
		if s.On = append(s.On, name); x == name {
			s.Current++
			s.CurrentOn[name] = true
		}
	}
	return s
}

// More than half decide, and those that are here beyond that may fail.
func TestQuorum(t *testing.T) {
	if m, d, _ := quorum(&record.Cluster{}); m != 0 || d != 0 {
		t.Errorf("of none: %d, %d", m, d)
	}
	for nodes, want := range map[string][3]int{
		"a": {1, 1, 0}, "ab": {2, 2, 0}, "abc": {3, 2, 1}, "abC": {3, 2, 0}, "aBC": {3, 2, -1},
		"abcd": {4, 3, 1}, "abcde": {5, 3, 2}, "abcDE": {5, 3, 0},
	} {
		members, decide, missing := quorum(clusterOf(nodes))
		if got := [3]int{members, decide, missing}; got != want {
			t.Errorf("%s: %v, want %v", nodes, got, want)
		}
	}
}

// What the removal of a node would lose is said: decisions, the room for a failure, and whole
// copies of streams. Where nothing is lost, nothing is said.
func TestLost(t *testing.T) {
	const nothing = "nothing would be decided"
	for _, x := range []struct {
		nodes, name string
		streams     []record.Copies
		want        []string // of each word
	}{
		{"abc", "a", nil, []string{"none of the 2 remaining nodes could fail, where now 1 may"}},
		{"abC", "c", nil, nil}, // the others decide before and after
		{"abC", "a", nil, []string{"1 of the 2 remaining nodes would be up, and it takes 2 to decide"}},
		{"abcd", "a", nil, nil},
		{"abcD", "d", nil, nil},
		{"abcD", "a", nil, nil}, // none may fail before either
		{"abCD", "a", nil, []string{nothing}},
		{"abcde", "a", nil, nil},
		{"abcdE", "a", nil, []string{"none of the 4 remaining nodes could fail, where now 1"}},
		{"abcDE", "a", nil, []string{nothing}},
		{"abcde", "z", nil, nil},
		{"abcd", "a", []record.Copies{on("abc"), on("bcd")}, nil},
		{"abcd", "a", []record.Copies{on("aBC"), on("bCD")}, []string{"1 streams of the record"}},
		{"abcd", "a", []record.Copies{on("abC"), on("aBc")}, []string{"2 streams of the record"}},
		{"abcd", "a", []record.Copies{on("Abc"), on("ABc")}, []string{"1 streams of the record"}},
		{"ab", "a", []record.Copies{on("ab")}, nil},
		{"abC", "a", []record.Copies{on("abC")}, []string{nothing, "1 streams of the record"}},
	} {
		words := lost(clusterOf(x.nodes, x.streams...), x.name)
		is := len(words) == len(x.want)
		for i := range words {
			is = is && strings.Contains(words[i], x.want[i])
		}
		if !is {
			t.Errorf("%s of %s: %q, want %q", x.name, x.nodes, words, x.want)
		}
	}
}

// A file counts as changed when it is another, longer or newer, is gone or is there again, and for
// a while after it was written, since times of files are coarse.
func TestWatched(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	w := &watched{name: name}
	changed := func(what string, want bool) {
		t.Helper()
		if got := w.changed(); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	old := time.Now().Add(-time.Hour)
	write := func(name, text string, at time.Time) {
		t.Helper()
		err := os.WriteFile(name, []byte(text), 0o600)
		if err == nil {
			err = os.Chtimes(name, at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	changed("there is none", false)
	write(name, "one", old)
	changed("it is there", true)
	changed("nothing happened", false)
	write(name, "longer", old)
	changed("it is longer", true)
	changed("nothing happened", false)
	write(name, "longer", old.Add(time.Second))
	changed("it is newer", true)
	changed("nothing happened", false)
	write(name+"2", "longer", old.Add(time.Second))
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	changed("it is another", true)
	changed("nothing happened", false)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	changed("it is gone", true)
	changed("it was gone", false)
	write(name, "now", time.Now())
	changed("it is there again", true)
	changed("it was written just now", true)
}

// A node alone removes nobody. One that was removed while it did not run does not start, and says
// so at once when it is started again.
func TestRemovedAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := Options{Folder: t.TempDir(), Name: "a", Listen: "127.0.0.1:0", hooks: Hooks{Plain: true}}
	n, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if _, err := n.RemoveNode(ctx, page.NodeOrder{Name: "b"}); !errors.Is(err, page.ErrNode) {
		t.Errorf("alone: %v", err)
	}
	old := uint64(9)
	if _, err := n.RemoveNode(ctx, page.NodeOrder{Name: "b", Seen: &old}); !errors.Is(err,
		page.ErrStale) {
		t.Errorf("by an old list: %v", err)
	}
	if err := n.records.Leaves(ctx, "a", 0); err != nil {
		t.Fatal(err)
	}
	n.Close()
	for _, when := range []string{"removed meanwhile", "removed before"} {
		again, err := Start(ctx, c)
		if err == nil {
			again.Close()
		}
		if !errors.Is(err, ErrRemoved) || again != nil {
			t.Errorf("%s: %v %v", when, again, err)
		}
		if _, err := os.Stat(filepath.Join(c.Folder, fileLeft)); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if err := os.Remove(filepath.Join(c.Folder, fileLeft)); err != nil {
		t.Fatal(err)
	}
	c.Name = "b"
	n, err = Start(ctx, c)
	if err != nil {
		t.Fatalf("another name: %v", err)
	}
	n.Close()
}
