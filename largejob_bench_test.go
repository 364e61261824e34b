package hushsum

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/job"
)

// Of BenchmarkLargeJob. In a second and a third round the room of the first is used again.
const (
	largeJobParties = 3
	largeJobRounds  = 3
)

// largeJob holds what all processes of a benchmarked job have.
type largeJob struct {
	*large
	identity ed25519.PrivateKey // of the coordinator
}

func newLargeJob(dir string) (*largeJob, error) {
	l, err := newLarge(dir, largeJobParties)
	seed := sha256.Sum256([]byte("large coordinator"))
	return &largeJob{l, ed25519.NewKeyFromSeed(seed[:])}, err
}

// playLargeJob is a process of the group: the role is "coordinator" or a party's index, the width
// that of its weights.
func playLargeJob(role, width, dir string) error {
	l, err := newLargeJob(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if role == "coordinator" {
		err = l.coordinate(ctx, width)
	} else {
		err = l.takePart(ctx, role, width)
	}
	if err != nil {
		return err
	}
	return l.report(role, make(map[string]float64), peak)
}

func (l *largeJob) coordinate(ctx context.Context, width string) error {
	listener, err := ListenTCP("127.0.0.1:0", l.identity, l.settled.Roster())
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := l.write("address.new", []byte(listener.Address())); err != nil {
		return err
	}
	name := filepath.Join(l.dir, "address")
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	if width == "float32" {
		return coordinateLarge[float32](ctx, l, listener)
	}
	return coordinateLarge[float64](ctx, l, listener)
}

func coordinateLarge[F Float](ctx context.Context, l *largeJob, listener Listener) error {
	c := &Coordinator[F]{
		Job:      l.settled,
		Listener: listener,
		Store:    FileStore(filepath.Join(l.dir, "coordinator")),
		Key:      &l.key,
		Folder:   l.dir,
		StepTime: time.Hour,
		Apply:    func(d Done[F]) ([]F, error) { return added(d.Model, d.Mean), nil },
	}
	result, err := c.Run(ctx)
	if err == nil && (result.Rounds != largeJobRounds || result.Lost > 0) {
		err = fmt.Errorf("%d rounds, %d of them lost", result.Rounds, result.Lost)
	}
	return err
}

func added[F aggregation.Float](model, mean []F) []F {
	for i, x := range mean {
		model[i] += x
	}
	return model
}

// address waits for the coordinator's.
func (l *largeJob) address(ctx context.Context) (string, error) {
	for {
		b, err := l.read("address")
		if !errors.Is(err, fs.ErrNotExist) {
			return string(b), err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l *largeJob) takePart(ctx context.Context, role, width string) error {
	party, err := strconv.Atoi(role)
	if err != nil {
		return err
	}
	address, err := l.address(ctx)
	if err != nil {
		return err
	}
	if width == "float32" {
		return takeLarge[float32](ctx, l, party, address)
	}
	return takeLarge[float64](ctx, l, party, address)
}

func takeLarge[F Float](ctx context.Context, l *largeJob, party int, address string) error {
	p := &Participant[F]{
		Job:      l.settled,
		Identity: l.signers[party],
		Dialer: &TCPDialer{Address: address, Identity: l.signers[party],
			Coordinator: l.identity.Public().(ed25519.PublicKey)},
		Store: FileStore(filepath.Join(l.dir, fmt.Sprint("party", party))),
		Key:   &l.key,
		Work: func(_ context.Context, r Round[F]) (Update[F], error) {
			return Update[F]{Vector: largeUpdate[F](len(r.Model))}, nil
		},
	}
	model, err := p.Run(ctx)
	if err != nil {
		return err
	}
	return checkLargeJob(l.large, model)
}

// largeUpdate is the update of every party in every round, of norm 0.9.
func largeUpdate[F aggregation.Float](length int) []F {
	v := make([]F, length)
	for i := range v {
		v[i] = F(math.Copysign(0.9/math.Sqrt(float64(length)), float64(i%3-1)))
	}
	return v
}

// checkLargeJob compares the first weights of the last model with the sum of the rounds' means.
func checkLargeJob[F aggregation.Float](l *large, model []F) error {
	var err error
	if peak, err = peakMegabytes(); err != nil { // before the comparison
		return err
	}
	first := min(len(model), 1<<16)
	update, squares := largeUpdate[float64](len(model))[:first], 0.
	for i, x := range model[:first] {
		off := float64(x) - largeJobRounds*update[i]
		squares += off * off
	}
	found := math.Sqrt(squares / float64(first))
	want := l.settled.StdDev(largeJobParties) * math.Sqrt(largeJobRounds)
	if found < 0.95*want || found > 1.5*want {
		return fmt.Errorf("the model is off by %v, want %v", found, want)
	}
	return nil
}

// BenchmarkLargeJob is a whole job through Coordinator and Participant: 25,000,000 weights, which
// all hold as float32 or as float64, in a ring of 32 bits with noise, three parties and three
// rounds over TCP, everybody with a FileStore and in a process of its own on one core.
//
//	go test . -run NONE -bench LargeJob -benchtime 1x
//
// party-MB is the most memory that any party's process has had, with the vector that its Work
// makes anew in each round, and coordinator-MB that of the coordinator's, whose Apply adds the
// mean to the model.
func BenchmarkLargeJob(b *testing.B) {
	if _, err := peakMegabytes(); err != nil {
		b.Skip(err)
	}
	for _, width := range []string{"float32", "float64"} {
		b.Run(width, func(b *testing.B) {
			for b.Loop() {
				runLargeJob(b, width)
			}
		})
	}
}

func runLargeJob(b *testing.B, width string) {
	dir := b.TempDir()
	text, err := json.Marshal(&job.Job{
		Name:    "large-job",
		Rounds:  largeJobRounds,
		Model:   job.Model{Length: *largeLength},
		Parties: job.Parties{Count: largeJobParties},
		Privacy: job.Privacy{Noise: "discrete-gaussian", Clip: 1, Epsilon: 8, Bits: 32},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.json"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	l, err := newLargeJob(dir)
	if err != nil {
		b.Fatal(err)
	}
	roles := []string{"coordinator"}
	for i := range largeJobParties {
		roles = append(roles, strconv.Itoa(i))
	}
	ended := make(chan error)
	for _, role := range roles {
		go func() { ended <- spawnLarge(dir, strings.Join([]string{role, width}, " "), nil, nil) }()
	}
	for range roles {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		b.Fatal(err)
	}
	var peaks []float64
	for _, role := range roles {
		figures, err := l.figures(role)
		if err != nil {
			b.Fatal(err)
		}
		peaks = append(peaks, figures["peak-MB"])
	}
	b.ReportMetric(peaks[0], "coordinator-MB")
	b.ReportMetric(slices.Max(peaks[1:]), "party-MB")
}
