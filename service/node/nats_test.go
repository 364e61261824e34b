package node_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

// Whoever may publish and read at the operator's NATS, without the seal key, neither orders nor
// redirects: messages of its own are not taken, nor copies of what nodes have sent.
func TestStrangerAtNATS(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	address := startNATS(t)("a pass-word")
	c, err := nats.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var mutex sync.Mutex
	var heard []*nats.Msg
	for _, subject := range []string{"hushsum.lead.*", "hushsum.ask.*"} {
		if _, err := c.Subscribe(subject, func(m *nats.Msg) {
			mutex.Lock()
			defer mutex.Unlock()
			heard = append(heard, m)
		}); err != nil {
			t.Fatal(err)
		}
	}
	nodes := startTwo(ctx, t, address, 5*time.Second)
	text, roster, _ := fourParties(t)
	fed, err := nodes[0].Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	led := func(s *runner.Status) bool { return s.Leader != "" }
	first := awaitStatus(ctx, t, nodes[0], fed.ID, led)
	other := nodes[0]
	if first.Leader == other.Name {
		other = nodes[1]
	}
	awaitStatus(ctx, t, other, fed.ID, led)
	for _, what := range []string{"pause", "resume"} {
		if _, err := other.Do(ctx, fed.ID, page.Order{What: what, Who: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	mutex.Lock()
	copies := heard
	mutex.Unlock()
	orders := 0
	for _, m := range copies {
		if strings.Contains(string(m.Data), "pause") || strings.Contains(string(m.Data), "node") {
			t.Errorf("%s can be read: %q", m.Subject, m.Data)
		}
		if strings.HasPrefix(m.Subject, "hushsum.ask.") {
			orders++
		}
		if err := c.PublishRequest(m.Subject, c.NewInbox(), m.Data); err != nil {
			t.Fatal(err)
		}
	}
	if orders < 3 || orders == len(copies) {
		t.Fatalf("of %d messages that were heard %d are orders", len(copies), orders)
	}
	for _, order := range []string{`{"what":"pause","who":"alice"}`, `{"what":"end","who":"alice"}`} {
		answer, err := c.Request("hushsum.ask."+fed.ID, []byte(order), time.Second)
		if err == nil {
			t.Errorf("%s is answered: %s", order, answer.Data)
		}
	}
	elsewhere := `{"node":"c","address":"http://127.0.0.1:1"}`
	err = errors.Join(c.Publish("hushsum.lead."+fed.ID, []byte(elsewhere)), c.Flush())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		s, err := n.Status(ctx, fed.ID)
		if err != nil || s.State == "paused" || s.State == "ended" || s.Leader != first.Leader {
			t.Errorf("after a stranger's messages: %+v, %v", s, err)
		}
	}
}

// A node that starts before NATS waits for it.
func TestWaitsForNATS(t *testing.T) {
	inTurn(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	through, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := startNATS(t)("a pass-word")
	free := through.Addr().String()
	_ = through.Close()
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	config := plainNode(t.TempDir())
	config.NATS, config.Hooks().Key = "nats://hushsum:a%20pass-word@"+free, key
	short, stop := context.WithTimeout(ctx, 100*time.Millisecond)
	defer stop()
	if _, err := node.Start(short, config); err == nil || strings.Contains(err.Error(), "pass") {
		t.Errorf("nobody listens there: %v", err)
	}
	// A balancer takes connections for it, and ends them.
	balancer, err := net.Listen("tcp", free)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool, 1)
	go func() {
		c, err := balancer.Accept()
		if err == nil {
			_ = c.Close()
		}
		_ = balancer.Close()
		ended <- true
	}()
	started := make(chan error, 1)
	go func() {
		n, err := node.Start(ctx, config)
		if err == nil {
			n.Close()
		}
		started <- err
	}()
	<-ended
	time.Sleep(50 * time.Millisecond)
	_, host, _ := strings.Cut(address, "@")
	pass(t, free, host)
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// A node that is cut off from NATS while it leads says so and sends parties on: another leads, and
// the federation goes on to its end with a round lost at most. A party may name a node first that
// does not run.
func TestCutOffNode(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	_, host, _ := strings.Cut(startNATS(t)("a pass-word"), "@")
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	nodes, cut := make(map[string]*node.Node), make(map[string]func())
	addresses := []string{"http://127.0.0.1:1"}
	for _, name := range []string{"a", "b"} {
		config := plainNode(t.TempDir())
		var from string
		from, cut[name] = pass(t, "127.0.0.1:0", host)
		config.Name, config.Hooks().Key, config.Silence = name, key, 3*time.Second
		config.NATS = "nats://hushsum:a%20pass-word@" + from
		n, err := node.Start(ctx, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		nodes[name], addresses = n, append(addresses, n.Address)
	}
	text, roster, identities := fourParties(t)
	fed, err := nodes["a"].Create(ctx, federation.Files{Text: text, Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan string)
	var when time.Time
	go func() {
		s := awaitStatus(ctx, t, nodes["a"], fed.ID, func(s *runner.Status) bool { return s.Round >= 2 })
		cut[s.Leader]()
		when = time.Now()
		begun <- s.Leader
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		takePart(ctx, t, fed, strings.Join(addresses, ","), identities, make([]float64, 40))
	}()
	first := <-begun
	other := map[string]string{"a": "b", "b": "a"}[first]
	last := awaitStatus(ctx, t, nodes[other], fed.ID, func(s *runner.Status) bool {
		return s.State == "ended"
	})
	<-done
	t.Logf("%d rounds, %d lost, ended %.1f s after %s was cut off", last.Round, last.Lost,
		time.Since(when).Seconds(), first)
	if last.Leader != other || last.Round != recordRounds || last.Lost > 1 {
		t.Errorf("%+v", last)
	}
	if err := nodes[first].Door.Ready(); err == nil {
		t.Errorf("%s, which is cut off, says that it is ready", first)
	}
}

// pass passes what comes to an address on to another, until it is cut.
func pass(t *testing.T, from, to string) (address string, cut func()) {
	t.Helper()
	listener, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	all := []io.Closer{listener}
	keep := func(one io.Closer) {
		mutex.Lock()
		defer mutex.Unlock()
		all = append(all, one)
	}
	cut = func() {
		mutex.Lock()
		defer mutex.Unlock()
		for _, one := range all {
			_ = one.Close()
		}
	}
	t.Cleanup(cut)
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				return
			}
			keep(in)
			keep(out)
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
	return listener.Addr().String(), cut
}
