package node_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

// Eight hospitals with weights are their own committee, each in one process: four may be in league,
// and one may fail. One lies about its vector and is named; later another one is gone, in both
// roles. The rounds go on, and the model is the weighted mean of those who are in.
func TestHospitalsAsCommittee(t *testing.T) {
	t.Parallel()
	const rounds, parties, cheat, gone = 3, 8, 1, 5
	folder := t.TempDir()
	prepareRoster(t, folder, "roster.txt", "hospital-", "secret-", parties)
	declare(t, folder, rounds, 5, "5s", `parties.drop_out = 0.25
parties.colluders = 4
parties.weights = [40, 120, 300, 80, 80, 40, 200, 60]
sum = { protocol = "oneshot", committee = "roster.txt", bounded = true, faults = 1, colluders = 4 }`,
		`noise = "key"`)
	c := node.Options{}
	c.Hooks().Grace = 500 * time.Millisecond
	s := startIn(t, folder, c)
	defer s.node.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	vector := []float64{0.1, -0.2, 0.3, 0, 0.05}
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	for i := range parties {
		p, err := loadParty(folder, i, s.fed, s.node.Address)
		if err != nil {
			t.Fatal(err)
		}
		life := ctx
		if i == gone {
			life = leaving
		}
		work := func() error {
			p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
				return &party.Update{Vector: vector}, nil
			})
			_, err := p.Run(life)
			return err
		}
		if i == cheat { // which helps, and lies about its vector
			m := party.Member{Federation: s.fed, Identity: p.Identity, Server: p.Server, Key: p.Key,
				Folder: filepath.Join(folder, "cheat")}
			work = func() error { return m.Run(ctx) }
		}
		s.group.Add(1)
		go func() {
			defer s.group.Done()
			if err := work(); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("hospital %d: %v", i, err)
			}
		}()
	}
	var refused *party.RefusalError
	if err := s.cheat(ctx, cheat); !errors.As(err, &refused) ||
		!strings.Contains(refused.Detail, "proof") {
		t.Fatalf("what does not hold: %v", err)
	}
	s.await("a round", func(s *runner.Status) bool { return len(s.History) > 0 })
	leave()
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	if status.Lost != 0 || status.Round != rounds || status.Parties[cheat].State != "left out" {
		t.Errorf("%+v", status)
	}
	files, err := filepath.Glob(filepath.Join(folder, "node", "evidence", s.fed.ID, "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("evidence in %v, %v", files, err)
	}
	file, err := s.node.Model(context.Background(), s.fed.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, model, _, err := tensor.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	for k, x := range model {
		// Each mean is that of equal vectors, whoever is in; noise deviates by 6.4·√8 of 512 units for
		// each of at least 500 vectors, and roundings by less.
		if want := rounds * vector[k]; math.Abs(x-want) > 0.01 {
			t.Errorf("number %d is %v, want %v", k, x, want)
		}
	}
}
