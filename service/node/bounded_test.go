package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

// cheat submits another vector than it has proved, once, and returns what the node says to that.
func (s *small) cheat(ctx context.Context, i int) error {
	return cheat(ctx, s.folder, i, s.fed, s.node.Address)
}

func cheat(
	ctx context.Context, folder string, i int, fed *federation.Federation, address string,
) error {
	p, err := loadParty(folder, i, fed, address)
	if err != nil {
		return err
	}
	sums := fed.Settled.Oneshot()
	maker, err := oneshot.NewParty(sums, p.Identity, nil)
	if err != nil {
		return err
	}
	var ask exchange.Ask
	var bad []byte
	for ctx.Err() == nil {
		next, err := p.Server.Next(ctx, fed.ID, ask, 1<<20)
		var refused *party.RefusalError
		if errors.As(err, &refused) && refused.Kind == "leader" { // there is none yet
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		ask.Seen = []string{next.Item}
		switch next.Kind {
		case exchange.Message:
			model, err := p.Server.Model(ctx, fed.ID, next.Round, 1<<20)
			if err != nil {
				return err
			}
			message, err := maker.Submit(next.Message, model, make([]int64, sums.Length))
			if err != nil {
				return err
			}
			if bad, err = crook.Shift(sums, p.Identity, message, []int64{1 << 20}); err != nil {
				return err
			}
			ask.Offer = uint64(next.Round)
		case exchange.Upload:
			return p.Server.Send(ctx, fed.ID, bad)
		case exchange.End:
			return errors.New("the end")
		}
	}
	return ctx.Err()
}

// A party whose proof does not hold is told so, left out and named, with a file that convinces
// others; the others' sums come out, of that round too.
func TestBoundedOverHTTP(t *testing.T) {
	inTurn(t)
	for name, covered := range map[string]bool{"open": false, "covered": true} {
		t.Run(name, func(t *testing.T) { testBoundedOverHTTP(t, covered) })
	}
}

func testBoundedOverHTTP(t *testing.T, covered bool) {
	inTurn(t)
	const rounds, cheat = 3, 1
	folder := t.TempDir()
	j := job{Parties: smallParties, Members: jobMembers}
	prepareRoster(t, folder, "roster.txt", "party-", "secret-", j.Parties)
	prepareRoster(t, folder, "committee.txt", "member-", "member-secret-", j.Members)
	declare(t, folder, rounds, 5, "1h", "parties.drop_out = 0.25\nparties.colluders = 1\n"+
		`sum = { protocol = "oneshot", committee = "committee.txt", bounded = true, covered = `+
		fmt.Sprint(covered)+` }`,
		"noise = \"discrete-gaussian\"\nmultiplier = 1.0\nepsilon = 1000")
	s := startIn(t, folder, node.Options{})
	defer s.node.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for k := range jobMembers {
		s.help(ctx, k)
	}
	for i := range smallParties {
		if i != cheat {
			s.run(ctx, i, nil, new(safeBuffer), trains)
		}
	}
	var refused *party.RefusalError
	err := s.cheat(ctx, cheat)
	switch {
	case covered && err == nil: // who has not seen its proof cannot refuse it
	case !errors.As(err, &refused) || !strings.Contains(refused.Detail, "proof"):
		t.Fatalf("what does not hold: %v", err)
	}
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Lost != 0 || status.Round != rounds || status.Parties[cheat].State != "left out" {
		t.Errorf("%+v", status)
	}
	for _, p := range status.History {
		if p.Parties != smallParties-1 {
			t.Errorf("round %d has %d parties", p.Round, p.Parties)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "node", "evidence", s.fed.ID, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("evidence in %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	e, err := oneshot.ParseEvidence(b)
	if err != nil || e.Verify() != nil || e.Party() != cheat {
		t.Errorf("evidence of party %d: %v", e.Party(), err)
	}
	if !strings.Contains(s.log.String(), files[0]) {
		t.Error("the log does not say where the evidence is")
	}
}
