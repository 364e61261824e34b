package simulate

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"runtime"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/protocol"
)

// The cost of private sums is reported before a run if it exceeds these.
const (
	tellTime  = 20 * time.Second
	tellBytes = 2 << 30
)

// bytesPerPair is the memory of this process for two parties' keys, from 400 and 800 parties, with
// and without recovery.
const bytesPerPair = 4100

// probeParties is the size of the session from whose time a run's is estimated: enough parties to
// time, and few enough for a tenth of a second.
const probeParties = 20

// pairs counts each two parties twice: both do the work.
func pairs(parties int) float64 { return float64(parties) * float64(parties-1) }

// estimate is roughly what the private sums of a run cost on this machine.
type estimate struct {
	time  time.Duration // of all cores, without training
	bytes float64
}

// estimate times a small session of the same kind and scales by the number of pairs, to which work
// and memory are proportional.
func (s *run) estimate() (estimate, error) {
	setUp, round, err := s.probe(probeParties)
	if err != nil {
		return estimate{}, err
	}
	n := len(s.world.Parties)
	rounds := float64(s.job.Rounds) * pairs(s.perRound()) / pairs(probeParties)
	work := float64(setUp)*pairs(n)/pairs(probeParties) + float64(round)*rounds
	return estimate{
		time:  time.Duration(work / float64(runtime.GOMAXPROCS(0))),
		bytes: bytesPerPair * pairs(n),
	}, nil
}

// probe times the set-up and a round of a session of a given number of parties, on one core.
func (s *run) probe(parties int) (setUp, round time.Duration, err error) {
	var identities []crypto.Signer
	var members []keyexchange.Entry
	for i := range parties {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			return 0, 0, err
		}
		public := key.Public().(ed25519.PublicKey)
		identities = append(identities, key)
		members = append(members, keyexchange.Entry{Name: fmt.Sprintf("party-%d", i+1), Key: public})
	}
	roster, err := keyexchange.NewRoster(members)
	if err != nil {
		return 0, 0, err
	}
	config := &protocol.Config{Roster: roster, Layout: s.layout}
	if s.recovery != nil {
		config.Recovery = &protocol.Recovery{Adversary: s.recovery.Adversary}
	}
	input := make([][]uint64, len(s.layout))
	for i, segment := range s.layout {
		input[i] = make([]uint64, segment.Length)
	}
	inputs := make([][][]uint64, parties)
	for i := range inputs {
		inputs[i] = input
	}
	start := time.Now()
	session, err := protocol.NewLocal(config, identities, nil)
	if err != nil {
		return 0, 0, err
	}
	setUp = time.Since(start)
	start = time.Now()
	_, err = session.Round(nil, inputs)
	return setUp, time.Since(start), err
}

// tellEstimate prints on standard error what a run will cost, if it is much.
func (s *run) tellEstimate(std cli.Streams) error {
	n := len(s.world.Parties)
	if !s.byMessage() || s.job.Oneshot() ||
		pairs(n) < 300*299 { // these take seconds
		return nil
	}
	e, err := s.estimate()
	if err != nil || e.time < tellTime && e.bytes < tellBytes {
		return err
	}
	cli.Complain(std.Err, "hushsum simulate", &cli.Problem{
		Cause: fmt.Sprintf("the private sums of %s take some %s and %s here, besides training",
			show.Plural(n, "party"), roughTime(e.time), roughBytes(e.bytes)),
		Advice: "Both grow with the square of --clients, but not with --protocol oneshot.",
	})
	return nil
}

// roughTime prints a time to plan with.
func roughTime(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f seconds", d.Seconds())
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f hours", d.Hours())
}

// roughBytes prints how much memory to plan with.
func roughBytes(n float64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", n/1e6)
	}
	return fmt.Sprintf("%.1f GB", n/1e9)
}
