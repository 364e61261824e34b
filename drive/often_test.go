package drive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/drive/jobtest"
	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/internal/wire"
)

// submissions counts the sums that each party is in.
func submissions(w *jobtest.World) []int {
	counts := make([]int, len(w.Parties))
	for _, sum := range w.Sums {
		for _, i := range sum.Parties {
			counts[i]++
		}
	}
	return counts
}

// Where a party submits in four of eight rounds, and three of six take part in each, all rounds are
// held and everybody has submitted four times: whoever has done so least often is next. Deaths of
// the server and of parties change nothing of that.
func TestOften(t *testing.T) {
	o := jobtest.Options{Parties: 6, Survivors: 3, Rounds: 8, Sample: 3, Often: 4, Curious: true,
		ComeBack: 2 * drive.Second}
	for seed := range uint64(suite.Size(6, 6, 12, 12)) {
		o.Budget = int(seed%2) * 4
		w := jobtest.New(t, seed, o)
		die := func(at uint64, again func()) func(string) bool {
			places := uint64(0)
			return func(string) bool {
				if places++; places-1 != at {
					return false
				}
				w.After(drive.Second/10, again)
				return true
			}
		}
		if seed > 1 {
			w.Server.Die = die(7*seed, w.Server.Start)
		}
		for i, p := range w.Parties {
			if seed > 1 && i == int(seed)%len(w.Parties) {
				p.Die = die(3*seed, p.Start)
			}
			p.Start()
		}
		w.Run(w.Ended)
		counts := submissions(w)
		if lost := w.Lost(); lost == 0 && (len(w.Sums) != 8 || slices.Max(counts) != 4 ||
			slices.Min(counts) != 4) || seed < 2 && lost > 0 || slices.Max(counts) > 4 {
			w.Fatal("seed %d: %d sums, %d lost, %v", seed, len(w.Sums), lost, counts)
		}
	}
}

// A job ends when too few parties have a submission left, and says so.
func TestOftenUsedUp(t *testing.T) {
	w := jobtest.New(t, 1, jobtest.Options{Parties: 6, Survivors: 3, Rounds: 9, Sample: 3, Often: 4,
		Curious: true})
	for _, p := range w.Parties {
		p.Start()
	}
	w.Run(w.Ended)
	last := w.Notices[len(w.Notices)-1]
	if len(w.Sums) != 8 || last.Kind != drive.Ended ||
		last.Err.Error() != "the parties have submitted as often as they agreed to" {
		w.Fatal("%d sums, %v", len(w.Sums), last.Err)
	}
}

// A server that asks more often than was agreed is refused by the parties, also by those that were
// killed and started again in between, and by one that has lost its state. With no such bound they
// would have answered.
func TestOftenGreedy(t *testing.T) {
	for _, often := range []uint64{0, 2} {
		w := jobtest.New(t, 5, jobtest.Options{Parties: 4, Survivors: 2, Rounds: 5, Often: often,
			Greedy: true, Curious: true, Budget: 5})
		w.Resumes = true
		for _, p := range w.Parties {
			p.Start()
		}
		w.Heard = func(n drive.Notice) {
			if n.Kind == drive.Summed && n.Round == 2 {
				w.After(drive.Second/10, func() {
					w.Parties[1].Kill()
					w.Parties[1].Start()
					w.Parties[2].Lose()
					w.Parties[2].Start()
				})
			}
		}
		w.Run(w.Ended)
		counts := submissions(w)
		if want := 5; often == 0 && slices.Min(counts) < want-1 {
			w.Fatal("without a bound: %v", counts)
		}
		if often > 0 && (slices.Max(counts) != 2 || slices.Min(counts) != 2) {
			w.Fatal("with a bound of %d: %v", often, counts)
		}
	}
}

// A server that says of a round that it is held among fewer than a sum takes is refused by each
// party that it tells so, also by one that was killed and started again in between: too few others
// would have noise in what it unmasks. Among as many as a sum takes nobody finds anything wrong.
func TestSampleTooSmall(t *testing.T) {
	const parties, survivors = 6, 4
	for _, size := range []int{survivors, survivors - 1, 2, 1} {
		w := jobtest.New(t, 9, jobtest.Options{Parties: parties, Survivors: survivors, Rounds: 4,
			Curious: true, Budget: 4, StepTime: 5 * drive.Second})
		w.Resumes = true
		submitted, forged, again, killed := 0, 0, 0, false
		w.Server.Forge = func(party int, message []byte) []byte {
			h, body, err := wire.ParseHeader(message)
			if err != nil || h.Type != wire.TypeBegin {
				return message
			}
			if forged++; killed && party == 1 {
				again++
			}
			among := make([]int, size)
			for k := range among {
				among[k] = (party + k) % parties
			}
			begin := wire.Begin{Broadcast: [32]byte(body[:32]), Participants: wire.SetOf(parties, among),
				Shares: make([]wire.SealedShare, size-1)}
			return begin.Append(h.Append(nil))
		}
		for _, p := range w.Parties {
			p.Rewrite = func(h wire.Header, message []byte) []byte {
				if h.Type == wire.TypeMasked {
					submitted++
				}
				return message
			}
			p.Start()
		}
		w.Heard = func(n drive.Notice) {
			if !killed && forged > 0 {
				w.After(drive.Second/10, func() {
					w.Parties[1].Kill()
					w.Parties[1].Start()
					killed = true
				})
			}
		}
		w.Run(w.Ended)
		switch {
		case forged == 0 || size < survivors && again == 0:
			w.Fatal("among %d: nothing was forged, or not after a kill", size)
		case size < survivors && !slices.ContainsFunc(w.Log, func(line string) bool {
			return strings.Contains(line, "party 1: protocol: too few parties")
		}):
			w.Fatal("among %d: nobody says why", size)
		case size < survivors && (submitted > 0 || len(w.Sums) > 0):
			w.Fatal("among %d: %d submissions, %d sums", size, submitted, len(w.Sums))
		case size == survivors && submitted == 0:
			w.Fatal("among %d nobody submits", size)
		}
	}
}
