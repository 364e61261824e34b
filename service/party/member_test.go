package party

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/federation"
	stores "github.com/hushsum/hushsum/store"
)

// committed is a federation of ten parties, with a committee of five.
func committed(t *testing.T) *federation.Federation {
	t.Helper()
	list := func(name string, from, n int) []byte {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "%s%d %x\n", name, i, []byte(seedOf(from+i).Public().(ed25519.PublicKey)))
		}
		return []byte(text.String())
	}
	f, err := federation.New(federation.Files{
		Text: []byte(`name = "c"
rounds = 4
parties = { roster = "r", drop_out = 0.2, colluders = 1 }
sum = { protocol = "oneshot", committee = "c" }
model.length = 8
privacy.clip = 1.0
`),
		Roster:    list("p", 0, 10),
		Committee: list("m", 100, 5),
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// memberOf is a member that a server answers, if handler is not nil; else nobody must be asked.
func memberOf(t *testing.T, f *federation.Federation, k int, handler http.HandlerFunc) *Member {
	t.Helper()
	if handler == nil {
		handler = func(_ http.ResponseWriter, q *http.Request) { t.Errorf("asked for %s", q.URL) }
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	way, err := NewServer(server.URL, "", seedOf(k))
	if err != nil {
		t.Fatal(err)
	}
	return &Member{Federation: f, Identity: seedOf(k), Server: way, Folder: t.TempDir(),
		Key: &keyexchange.SealKey{1}}
}

// What a member does not accept, or what its folder cannot bear, it says before it asks anybody.
func TestMemberRefuses(t *testing.T) {
	f := committed(t)
	for name, c := range map[string]struct {
		change func(m *Member)
		want   error
	}{
		"a stranger":       {func(m *Member) { m.Identity = seedOf(1) }, oneshot.ErrIdentity},
		"its policy":       {func(m *Member) { m.Policy = &consent.Policy{Faults: 2} }, consent.ErrPolicy},
		"covered":          {func(m *Member) { m.Policy = &consent.Policy{Covered: true} }, consent.ErrPolicy},
		"honest parties":   {func(m *Member) { m.Policy = &consent.Policy{LeastHonest: 8} }, consent.ErrPolicy},
		"pairwise sums":    {func(m *Member) { m.Federation = few(t) }, nil},
		"rounds below":     {func(m *Member) { m.Spent = -1 }, nil},
		"rounds above":     {func(m *Member) { m.Spent = 5 }, nil},
		"no key":           {func(m *Member) { m.Key = nil }, ErrStored},
		"a party's folder": {func(m *Member) { folderOf(t, m, kindParty) }, ErrStored},
		"lost": {func(m *Member) {
			folderOf(t, m, kindMember)
			if err := os.Remove(filepath.Join(m.Folder, fileState+".1")); err != nil {
				t.Fatal(err)
			}
		}, stores.ErrOldState},
	} {
		m := memberOf(t, f, 101, nil)
		c.change(m)
		err := m.Run(t.Context())
		var wrong *job.ConfigError
		if c.want == nil && !errors.As(err, &wrong) || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// folderOf leaves a state in a member's folder, of a kind of owner.
func folderOf(t *testing.T, m *Member, kind string) {
	t.Helper()
	s, _, err := m.running().open(kind)
	if err == nil {
		defer s.Close()
		err = s.Save([]byte{1})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A member that says that its state is lost asks on, and ends with the federation.
func TestMemberLost(t *testing.T) {
	asked := ""
	m := memberOf(t, committed(t), 101, func(w http.ResponseWriter, q *http.Request) {
		asked = q.URL.String()
		w.Header().Set("Hushsum-Next", "end")
		w.Header().Set("Hushsum-Item", "end")
		w.Header().Set("Hushsum-Session", "0")
		w.Header().Set("Hushsum-Round", "4")
	})
	folderOf(t, m, kindMember)
	if err := os.Remove(filepath.Join(m.Folder, fileState+".1")); err != nil {
		t.Fatal(err)
	}
	m.Spent = 3
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(asked, "/committee/next?") {
		t.Errorf("it asked for %s", asked)
	}
	m.Spent = 0 // in the second life the state is the newest
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A member that says that its state is lost says so once: the state knows it from then on, though
// no round was opened; a party of one-message sums too.
func TestOneshotLostOnce(t *testing.T) {
	m := memberOf(t, committed(t), 101, nil)
	folderOf(t, m, kindMember)
	p := Party{Federation: m.Federation, Identity: seedOf(1), Key: m.Key, Folder: t.TempDir()}
	for _, spent := range []int{3, 0} {
		if spent > 0 {
			if err := os.Remove(filepath.Join(m.Folder, fileState+".1")); err != nil {
				t.Fatal(err)
			}
		}
		m.Spent, p.Spent = spent, spent
		h, s := m.running(), p.running()
		err := begins(t, h, kindMember, m.Federation.Settled.Member(m.Identity, nil))
		if err != nil || h.part.Hello().Told != 3 {
			t.Fatalf("a member, spent %d: %v", spent, err)
		}
		settings, err := s.settings()
		if err == nil {
			err = begins(t, s, kindParty, settings)
		}
		if err != nil {
			t.Fatalf("a party, spent %d: %v", spent, err)
		}
		if guard := s.part.Guard(); guard.Last() != 3 {
			t.Errorf("a party, spent %d: round %d is the last that counts as spent", spent, guard.Last())
		}
	}
}

// A server that asks a member for what is a party's is another.
func TestMemberAskedForMore(t *testing.T) {
	for _, kind := range []string{"join", "upload", "nonsense"} {
		m := memberOf(t, committed(t), 101, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Hushsum-Next", kind)
			w.Header().Set("Hushsum-Item", "1")
			w.Header().Set("Hushsum-Session", "1")
			w.Header().Set("Hushsum-Round", "1")
		})
		if err := m.Run(context.Background()); !errors.Is(err, ErrServer) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
