package node_test

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jobs "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/job/consent"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// followed runs whoever run is of in a federation and in those that go on from it, n in all.
func followed(
	t *testing.T, n int, f *federation.Federation, run func(*federation.Federation) error,
	successor func() (*federation.Federation, error),
) {
	for k := range n {
		if err := run(f); err != nil {
			t.Error(err)
			return
		}
		if k == n-1 {
			return
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			next, err := successor()
			if next != nil {
				f = next
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("no successor: %v", err)
				return
			}
		}
	}
}

// Parties and the members of their committee go on by themselves in a federation that goes on from
// theirs: its sums are of all parties, and no round is lost.
func TestCommitteeFollows(t *testing.T) {
	inTurn(t)
	inBubble(t, committeeFollows)
}

func committeeFollows(t *testing.T, in *network) {
	folder, ctx := t.TempDir(), context.Background()
	prepareJob(t, folder, 1, job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5,
		Step: "1h", Members: jobMembers, Privacy: "noise = \"discrete-gaussian\"\nepsilon = 2.0"})
	s := in.small(startIn(t, folder, in.node(node.With(node.Options{},
		node.Hooks{Grace: 500 * time.Millisecond}))))
	defer s.node.Close()
	operator := newIdentity(t)
	key := hex.EncodeToString(operator.Public().(ed25519.PublicKey))
	policy := &consent.Policy{Follow: []string{key}}
	for i := range smallParties {
		p, err := loadParty(s.folder, i, s.fed, s.node.Address)
		if err != nil {
			t.Fatal(err)
		}
		in.server(p.Server)
		p.Policy, p.Log = policy, slog.New(slog.DiscardHandler)
		p.Book = &consent.Book{File: filepath.Join(folder, fmt.Sprint("book-", i)), Key: p.Key}
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: loadVector(i, 5)}, nil
		})
		s.group.Go(func() {
			followed(t, 2, s.fed, func(f *federation.Federation) error {
				p.Federation, p.Folder = f, filepath.Join(folder, fmt.Sprint("party-", i, f.ID[:16]))
				_, err := p.Run(ctx)
				return err
			}, func() (*federation.Federation, error) { return p.Successor(ctx) })
		})
	}
	for k := range jobMembers {
		p, err := loadPeer(s.folder, fmt.Sprint("member-secret-", k), s.fed, s.node.Address)
		if err != nil {
			t.Fatal(err)
		}
		m := party.Member{Identity: p.Identity, Server: in.server(p.Server), Key: p.Key, Policy: policy}
		s.group.Go(func() {
			followed(t, 2, s.fed, func(f *federation.Federation) error {
				m.Federation, m.Folder = f, filepath.Join(folder, fmt.Sprint("member-", k, f.ID[:16]))
				return m.Run(ctx)
			}, func() (*federation.Federation, error) { return m.Successor(ctx) })
		})
	}
	ended := func(s *runner.Status) bool { return s.State == "ended" }
	s.await("the end", ended)
	files, err := s.node.After(ctx, s.fed.ID)
	if err != nil {
		t.Fatal(err)
	}
	j, err := jobs.Parse("job.toml", files.Text)
	if err != nil {
		t.Fatal(err)
	}
	// One that nobody has signed is followed by nobody, who is told why. The next takes another name.
	if _, err := s.node.Create(ctx, *files); err != nil {
		t.Fatal(err)
	}
	p, err := loadParty(s.folder, 0, s.fed, s.node.Address)
	if err != nil {
		t.Fatal(err)
	}
	p.Federation, p.Server = s.fed, in.server(p.Server)
	if next, err := p.Successor(ctx); next != nil || !errors.Is(err, consent.ErrPolicy) ||
		!strings.Contains(err.Error(), "no operator that follow names signed it") ||
		strings.Count(err.Error(), "policy") != 1 {
		t.Errorf("nobody has signed it: %v", err)
	}
	time.Sleep(time.Second) // what is declared in the same instant is taken for the same
	if _, err := s.node.Create(ctx, *files); !errors.Is(err, record.ErrExists) ||
		!strings.Contains(err.Error(), j.Name+" was declared by the same file") {
		t.Errorf("the same once more: %v", err)
	}
	taken := j.Name
	if files, err = s.node.After(ctx, s.fed.ID); err != nil {
		t.Fatal(err)
	}
	if j, err = jobs.Parse("job.toml", files.Text); err != nil || j.Name == taken {
		t.Fatalf("the name %s is taken: %v", taken, err)
	}
	j.Privacy.Epsilon = 4 // of both
	if files.Text, err = j.MarshalText(); err != nil {
		t.Fatal(err)
	}
	if s.fed, err = federation.New(*files); err != nil {
		t.Fatal(err)
	}
	if files.Succession, err = s.fed.Sign(operator); err != nil {
		t.Fatal(err)
	}
	if _, err := s.node.Create(ctx, *files); err != nil {
		t.Fatal(err)
	}
	status := s.await("the end of the second", ended)
	s.group.Wait()
	if status.Round != 1 || status.Lost != 0 || status.History[0].Parties != smallParties {
		t.Errorf("%+v", status.History)
	}
}
