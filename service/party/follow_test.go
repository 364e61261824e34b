package party

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/service/federation"
)

// lists are the parties and the members of a federation, by whose keys they have.
type lists struct{ parties, members []int }

// sworn is a federation of ten parties with noise, with a committee if lists have one, that goes on
// from another, if after is not nil, by the word of seedOf(200).
func sworn(t *testing.T, l lists, after *federation.Federation) (*federation.Federation, []byte) {
	t.Helper()
	list := func(name string, keys []int) []byte {
		var text strings.Builder
		for i, k := range keys {
			fmt.Fprintf(&text, "%s%d %x\n", name, i, []byte(seedOf(k).Public().(ed25519.PublicKey)))
		}
		return []byte(text.String())
	}
	sum, before := "", ""
	files := federation.Files{Roster: list("p", l.parties)}
	if l.members != nil {
		files.Committee, sum = list("m", l.members), `protocol = "oneshot", committee = "c"`
	}
	if after != nil {
		ledger, err := after.Settled.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		b := job.Before{Federation: after.ID, Ledger: ledger}
		if files.Before, err = b.MarshalText(); err != nil {
			t.Fatal(err)
		}
		before = `, before = "before.json"`
	}
	files.Text = fmt.Appendf(nil, `name = "sworn"
rounds = 4
parties = { roster = "r", drop_out = 0.2, colluders = 1 }
sum = { %s }
model.length = 8
privacy = { clip = 1.0, noise = "discrete-gaussian", epsilon = 8.0%s }
`, sum, before)
	f, err := federation.New(files)
	if err != nil {
		t.Fatal(err)
	}
	if after == nil {
		return f, nil
	}
	word, err := f.Sign(seedOf(200))
	if err != nil {
		t.Fatal(err)
	}
	return f, word
}

// Whom the next federation has no longer in its list is told so, and that nothing is left to do: it
// is not a matter of the policy.
func TestUnlisted(t *testing.T) {
	f := committed(t)
	m := memberOf(t, f, 100, func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasSuffix(q.URL.Path, "/successors") {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"type":"urn:hushsum:problem:stranger","status":403}`)
			return
		}
		fmt.Fprintf(w, `[{"name":"next","id":"%064x","succession":"AAAA"}]`, 7)
	})
	p := Party{Federation: f, Identity: m.Identity, Server: m.Server}
	for list, ask := range map[string]func(context.Context) (*federation.Federation, error){
		"committee": m.Successor, "roster": p.Successor,
	} {
		next, err := ask(t.Context())
		if next != nil || !errors.Is(err, consent.ErrPolicy) || strings.Contains(err.Error(), "policy") ||
			!strings.Contains(err.Error(), "not in the "+list+" of next (0000") ||
			!strings.Contains(err.Error(), "may be stopped") {
			t.Errorf("%s: %v", list, err)
		}
	}
}

// Parties and members go on at the word of an operator whom they follow, within their policies, if
// at most as many of both lists are new as they say: whoever writes the list of a committee alone
// reads every update.
func TestMayFollow(t *testing.T) {
	parties := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	members := []int{100, 101, 102, 103, 104}
	was, _ := sworn(t, lists{parties, members}, nil)
	pairwise, _ := sworn(t, lists{parties, nil}, nil)
	other, _ := sworn(t, lists{parties, []int{100, 101, 102, 103, 109}}, nil)
	replaced := func(list []int, at, key int) []int {
		out := append([]int(nil), list...)
		out[at] = key
		return out
	}
	policy := func(change func(p *consent.Policy)) *consent.Policy {
		key := seedOf(200).Public().(ed25519.PublicKey)
		p := &consent.Policy{Follow: []string{hex.EncodeToString(key)}}
		if change != nil {
			change(p)
		}
		return p
	}
	one := func(p *consent.Policy) { p.FollowJoined = 1 }
	same := lists{parties, members}
	member4 := lists{parties, replaced(members, 4, 199)}
	for name, c := range map[string]struct {
		is            lists
		after         *federation.Federation // nil: was
		policy        *consent.Policy
		party, member bool // may p0 go on, and m0?
	}{
		"the same lists":        {is: same, policy: policy(nil), party: true, member: true},
		"no policy":             {is: same},
		"nobody's word":         {is: same, policy: &consent.Policy{FollowJoined: 9}},
		"beyond the policy":     {is: same, policy: policy(func(p *consent.Policy) { p.Faults = 2 })},
		"from another":          {is: same, after: other, policy: policy(one)},
		"a new party":           {is: lists{replaced(parties, 9, 99), members}, policy: policy(nil)},
		"a new member":          {is: member4, policy: policy(nil)},
		"one new member of one": {is: member4, policy: policy(one), party: true, member: true},
		"two that are new of one": {is: lists{replaced(parties, 9, 99), member4.members},
			policy: policy(one)},
		"without this member": {is: lists{parties, replaced(members, 0, 199)}, policy: policy(one),
			party: true},
		"without this party": {is: lists{replaced(parties, 0, 99), members}, policy: policy(one),
			member: true},
		"without a committee": {is: lists{parties, nil}, policy: policy(nil), party: true},
		"with a first committee": {is: same, after: pairwise,
			policy: policy(func(p *consent.Policy) { p.FollowJoined = 4 })},
	} {
		before := was
		if c.after != nil {
			before = c.after
		}
		next, word := sworn(t, c.is, before)
		from := was
		if c.after == pairwise {
			from = pairwise
		}
		p := Party{Federation: from, Identity: seedOf(0), Policy: c.policy, Book: newBook(t)}
		to := successor{next: next, succession: word, from: from.ID}
		if err := p.mayFollow(to); (err == nil) != c.party {
			t.Errorf("%s: party: %v", name, err)
		}
		m := Member{Federation: from, Identity: seedOf(100), Policy: c.policy}
		if err := m.mayFollow(to); (err == nil) != c.member {
			t.Errorf("%s: member: %v", name, err)
		}
		word[40] ^= 1
		if err := m.mayFollow(to); !errors.Is(err, federation.ErrSuccession) {
			t.Errorf("%s: another word: %v", name, err)
		}
		p.Book = nil
		if word[40] ^= 1; p.mayFollow(to) == nil {
			t.Errorf("%s: a party without a book", name)
		}
	}
}
