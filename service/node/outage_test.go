package node_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/runner"
)

var outageTimes = flag.Int("outage.times", 20, "outages of the record of 10 to 30 s, with -long")

// outages is a federation whose record is an operator's NATS, and goes away.
type outages struct {
	*testing.T
	folder string
	nodes  []*process
	doors  []string
	nats   *process
}

// newOutages starts nodes, their NATS and parties that train for a while.
func newOutages(t *testing.T, nodes int, j job, step string) *outages {
	t.Helper()
	o := &outages{T: t, folder: t.TempDir()}
	at := freePort(t)
	j.Parties, j.Length = 5, 20
	for range nodes {
		j.Doors = append(j.Doors, "http://"+freePort(t))
		j.NATS = append(j.NATS, "nats://"+at)
	}
	o.doors = j.Doors
	prepareJob(t, o.folder, chaosRounds, j)
	declare(t, o.folder, chaosRounds, j.Length, step, "parties.drop_out = 0.3", "")
	prepareCluster(t, o.folder)
	leave(o.folder, "nats-address", at)
	o.nats = &process{role: "nats", folder: o.folder}
	o.nats.start(t)
	t.Cleanup(func() { o.nats.kill() })
	for i := range nodes {
		p := &process{role: "server", folder: o.folder,
			environment: []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)}}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		o.nodes = append(o.nodes, p)
	}
	startJobParties(t, o.folder, j.Parties)
	leaderOf(t, o.folder, "", 2)
	return o
}

// begins waits for the beginning of a round.
func (o *outages) begins() (s runner.Status) {
	was := o.status().Round
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if s = o.status(); s.Round > was && s.Stage == "submitting" {
			return s
		}
		if time.Now().After(deadline) {
			o.Fatalf("no round begins: %+v", s)
		}
	}
}

func (o *outages) status() (s runner.Status) {
	_ = find(o.folder, "status", &s)
	return s
}

// away freezes the record for as long as a function takes, and waits for the sum of the round that
// was open, and of one more.
func (o *outages) away(s runner.Status, during func()) {
	o.Helper()
	signal := func(s syscall.Signal) {
		if err := o.nats.command.Process.Signal(s); err != nil {
			o.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	during()
	signal(syscall.SIGCONT)
	for deadline := time.Now().Add(2 * time.Minute); lastSum(o.T, o.folder) <= s.Round; {
		if time.Now().After(deadline) {
			o.Fatalf("no sum after the outage in round %d: %+v", s.Round, o.status())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if now := o.status(); now.Lost > s.Lost || now.Outages > 0 {
		o.Errorf("%d rounds are lost, %d in outages: %+v", now.Lost-s.Lost, now.Outages,
			now.History[max(0, len(now.History)-3):])
	}
}

// The record is away in the middle of a round, for longer than the door keeps parties: they come
// back once the record has, and the round has its sum.
func TestOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	o := newOutages(t, 1, job{Train: 2 * time.Second, Probe: 500 * time.Millisecond}, "20s")
	s := o.begins()
	o.away(s, func() {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			answer, err := http.Get(o.doors[0] + "/readyz")
			if err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode == http.StatusServiceUnavailable {
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("the door does not say that the record is away: %v", err)
			}
		}
		time.Sleep(5 * time.Second) // parties have asked in vain
	})
	compareSums(t, o.folder)
}

// The record is away for 10 to 30 s, again and again, at random moments of rounds that take some
// seconds, of a node alone and of two: no round is lost.
func TestOutages(t *testing.T) {
	suite.OnlyLong(t) // it takes minutes
	inTurn(t)
	for nodes := 1; nodes <= 2; nodes++ {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			t.Parallel()
			o := newOutages(t, nodes, job{Train: 4 * time.Second}, "10s")
			var worst time.Duration
			for range *outageTimes {
				s := o.begins()
				time.Sleep(rand.N(4 * time.Second))
				hold := 10*time.Second + rand.N(20*time.Second)
				o.away(s, func() { time.Sleep(hold) })
				now := o.status()
				t.Logf("%.1f s in round %d: %d lost", hold.Seconds(), s.Round, now.Lost)
				worst = max(worst, hold)
			}
			s := o.status()
			sums := compareSums(t, o.folder)
			tell(fmt.Sprintf("%d nodes, %d outages of up to %.1f s: %d rounds, %d sums, %d lost",
				nodes, *outageTimes, worst.Seconds(), s.Round, sums, s.Lost))
		})
	}
}
