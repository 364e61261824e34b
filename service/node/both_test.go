package node_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
)

// weightsOfBoth are those of eight hospitals.
var weightsOfBoth = []int{40, 120, 300, 80, 80, 40, 200, 60}

// declareBoth writes a federation of eight hospitals with weights who are their own committee: four
// may be in league, and one may fail.
func declareBoth(t *testing.T, folder string, rounds int, step string) {
	t.Helper()
	weights, err := json.Marshal(weightsOfBoth)
	if err != nil {
		t.Fatal(err)
	}
	declare(t, folder, rounds, 5, step, fmt.Sprintf(`parties.drop_out = 0.25
parties.colluders = 4
parties.weights = %s
sum = { protocol = "oneshot", committee = "roster.txt", bounded = true, faults = 1, colluders = 4 }`,
		weights), `noise = "key"`)
}

// Eight hospitals with weights are their own committee, each in one process: four may be in league,
// and one may fail. One lies about its vector and is named; later another one is gone, in both
// roles. The rounds go on, and the model is the weighted mean of those who are in.
func TestHospitalsAsCommittee(t *testing.T) {
	inTurn(t)
	const rounds, parties, cheat, gone = 3, 8, 1, 5
	folder := t.TempDir()
	prepareRoster(t, folder, "roster.txt", "hospital-", "secret-", parties)
	declareBoth(t, folder, rounds, "5s")
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

// The same with every hospital but the one that lies a process, and the server too. One after the
// other is killed at a moment of a round and started again, the first once the lie is refused and
// the round is not yet over. The lie is named, no round is lost, and the model is the weighted mean
// of those who are in each.
func TestKillHospitalsAsCommittee(t *testing.T) {
	inTurn(t)
	const liar = 1
	rounds := suite.Size(4, 4, 16, 16)
	folder := t.TempDir()
	j := job{Address: "http://" + freePort(t), Parties: len(weightsOfBoth), Length: 5, Both: true,
		Train: 300 * time.Millisecond, Grace: 2 * time.Second}
	prepareJob(t, folder, rounds, j)
	server := &process{role: "server", folder: folder}
	server.start(t)
	t.Cleanup(func() { server.kill() })
	var hospitals []*process
	for i := range j.Parties {
		if i != liar {
			p := &process{role: strconv.Itoa(i), folder: folder}
			p.start(t)
			t.Cleanup(func() { p.kill() })
			hospitals = append(hospitals, p)
		}
	}
	fed, err := federation.Read(filepath.Join(folder, "federation.toml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := loadParty(folder, liar, fed, j.Address)
	if err != nil {
		t.Fatal(err)
	}
	describe(p.Server, fed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	helped := make(chan error, 1)
	go func() { // it helps, and lies about its vector
		m := party.Member{Federation: fed, Identity: p.Identity, Server: p.Server, Key: p.Key,
			Folder: filepath.Join(folder, "liar")}
		helped <- m.Run(ctx)
	}()
	var refused *party.RefusalError
	if err := cheat(ctx, folder, liar, fed, j.Address); !errors.As(err, &refused) ||
		!strings.Contains(refused.Detail, "proof") {
		t.Fatalf("what does not hold: %v", err)
	}
	seed := cmp.Or(*killSeed, uint64(time.Now().UnixNano()))
	t.Logf("-kill.seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	strike := func(p *process) {
		if !p.kill() {
			t.Errorf("%s was not there", p.role)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
		p.start(t)
	}
	strike(hospitals[random.IntN(len(hospitals))])
	kills := 1
	// Each waits until the round is over in which the one before was killed, and another has begun.
	for sums := 1; sums < rounds-1; sums++ {
		for deadline := time.Now().Add(2 * time.Minute); lastSum(t, folder) < sums; {
			if time.Now().After(deadline) {
				t.Fatalf("sum %d does not come", sums)
			}
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		if kills%4 == 3 {
			strike(server)
		} else {
			strike(hospitals[random.IntN(len(hospitals))])
		}
		kills++
	}
	status := awaitEnd(t, folder, hospitals)
	if err := <-helped; err != nil {
		t.Error("the one that lies, as a member:", err)
	}
	if status.Lost != 0 || status.Round != rounds || status.Parties[liar].State != "left out" {
		t.Errorf("%+v", status)
	}
	files, err := filepath.Glob(filepath.Join(folder, "node", "evidence", fed.ID, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("evidence in %v, %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if e, err := oneshot.ParseEvidence(b); err != nil || e.Verify() != nil || e.Party() != liar {
		t.Errorf("evidence of party %d: %v", e.Party(), err)
	}
	compareModel(t, folder, rounds, &j)
	killed.Add(int64(kills))
	t.Logf("%d kills, no round lost", kills)
}

// compareModel compares the last model with the weighted means of what those in each sum have
// submitted.
func compareModel(t *testing.T, folder string, rounds int, j *job) {
	t.Helper()
	want := make([]float64, j.Length)
	for round := 1; round <= rounds; round++ {
		names, err := filepath.Glob(filepath.Join(folder, "sums", fmt.Sprint(round, "-*")))
		if err != nil || len(names) == 0 {
			t.Fatalf("round %d has no sum: %v", round, err)
		}
		var s summed
		if err := find(folder, "sums/"+filepath.Base(names[0]), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Parties) < j.Parties-2 {
			t.Errorf("round %d is of %v", round, s.Parties)
		}
		all := 0
		for _, i := range s.Parties {
			all += weightsOfBoth[i]
		}
		for _, i := range s.Parties {
			for k, x := range j.vector(round, i) {
				want[k] += x * float64(weightsOfBoth[i]) / float64(all)
			}
		}
	}
	file, err := os.ReadFile(filepath.Join(folder, "model-0"))
	if err != nil {
		t.Fatal(err)
	}
	_, model, _, err := tensor.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	for k, x := range model {
		// Noise deviates by 6.4·√8 of 512 units for each of at least 400 vectors, and roundings by less.
		if math.Abs(x-want[k]) > 0.003*float64(rounds) {
			t.Errorf("number %d is %v, want %v", k, x, want[k])
		}
	}
}
