package job_test

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
)

// Explain names the members who may be in league with the server, counts no party's noise where the
// committee adds it, and does not call few honest neighbours most of the parties.
func TestExplainCounts(t *testing.T) {
	var members []keyexchange.Entry
	for i := range 113 {
		seed := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
		key, _ := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		members = append(members, keyexchange.Entry{Name: fmt.Sprint("party-", i+1), Key: key})
	}
	roster, err := keyexchange.NewRoster(members[:100])
	if err != nil {
		t.Fatal(err)
	}
	committee, err := keyexchange.NewRoster(members[100:])
	if err != nil {
		t.Fatal(err)
	}
	const (
		oneshot = "sum = { protocol = \"oneshot\", committee = \"c\" }\n"
		shares  = "That counts the noise of the 79 honest parties that every sum has at least."
		sparse  = "a server that cheats once keys are exchanged may learn sums of as few as "
		alone   = "a server that cheats with up to 2 of the 13 members of the committee, as long as no " +
			"party tells it what it knows; with 3 members it may read single inputs."
		league = "a server that cheats with any 1 party and up to 2 of the 13 members of the " +
			"committee; with 3 members it may read single inputs."
		curious = "A server that is curious follows the protocol"
		spends  = ": all rounds together spend at most epsilon 4 at delta 1e-05 for each party, against "
	)
	for _, c := range []struct {
		colluders int
		text      string
		said, not []string
	}{
		{1, "sum.adversary = \"curious\"\n" + noisy, []string{shares, curious, spends +
			"a server that is curious with any 1 party; assumes instant.",
			"Epsilon assumes instant: the time at which"}, []string{"members", sparse, "ahead"}},
		{1, "sum = { sparse = true, adversary = \"semi-malicious\" }\n", []string{sparse}, []string{shares}},
		{1, oneshot + noisy, []string{league, shares, spends + "a server that cheats with any 1 party " +
			"and up to 2 of the 13 members of committee "}, []string{alone, sparse, curious}},
		{0, oneshot, []string{alone}, []string{league}},
		{1, "sum = { protocol = \"oneshot\", committee = \"c\", colluders = 4 }\n" + noisy, []string{
			"a server that cheats with any 1 party and up to 4 of the 13 members of the committee; with 5 " +
				"members it may read single inputs.", spends + "a server that cheats with any 1 party and " +
				"up to 4 of the 13 members of committee "}, []string{league}},
		{1, oneshot + noisy + "noise_by = \"committee\"\n",
			[]string{league, spends + "a server that cheats with any number of parties and up to 2 of the " +
				"13 members of committee ", "epsilon rests on 9 honest ones"}, []string{shares, "79"}},
	} {
		j, err := job.Parse("job.toml", fmt.Appendf(nil, "name = \"says\"\nrounds = 6\n"+
			"model.length = 10\nparties = { count = 100, drop_out = 0.2, colluders = %d }\n%s", c.colluders,
			c.text))
		if err != nil {
			t.Fatal(err)
		}
		files := job.Files{Roster: roster}
		if strings.Contains(c.text, "committee = ") {
			files.Committee = committee
		}
		s, err := j.Settle(files)
		if err != nil {
			t.Fatal(err)
		}
		says := strings.Join(s.Explain(), "\n")
		for _, want := range c.said {
			if !strings.Contains(says, want) {
				t.Errorf("it lacks %q:\n%s", want, says)
			}
		}
		for _, not := range c.not {
			if strings.Contains(says, not) {
				t.Errorf("it has %q:\n%s", not, says)
			}
		}
	}
}

// Where all parties must submit, a server that cheats learns no more than one that follows the
// protocol (SPEC.md §13.1), and Explain says what the statement of an epsilon says.
func TestExplainServer(t *testing.T) {
	for more, want := range map[string]accounting.Server{
		"":                         accounting.CheatingServer,
		"parties.drop_out = 0.3\n": accounting.CuriousServer,
		"sum.recovery = true\n":    accounting.CuriousServer,
	} {
		j, err := job.Parse("job.toml", []byte("name = \"says\"\nrounds = 1\nmodel.length = 10\n"+
			"parties.count = 8\nsum.adversary = \"curious\"\n"+more+noisy))
		if err != nil {
			t.Fatal(err)
		}
		s, err := j.Settle(job.Files{Roster: job.RosterOf(t, 8)})
		if err != nil {
			t.Fatal(err)
		}
		says := strings.Join(s.Explain(), "\n")
		words := map[accounting.Server]string{
			accounting.CheatingServer: "learnt by a server that cheats, as long as",
			accounting.CuriousServer:  "learnt by a server that is curious, as long as",
		}
		if got := s.Statement().Server(); got != want || !strings.Contains(says, words[want]) {
			t.Errorf("%q: the statement is against %v, and it says:\n%s", more, got, says)
		}
	}
}
