package node_test

import (
	"context"
	"crypto/ed25519"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/harness"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
)

var changes = flag.Int("changes", 20,
	"of a certificate, among parties with other clocks, with -long")

// A door's certificate changes again and again, while parties whose clocks are up to four minutes
// fast or slow stand behind networks that end all their connections, from a quarter of an hour
// before its time is over until as long after it: no party ends, and no round is lost.
func TestCertificatesByOtherClocks(t *testing.T) {
	suite.OnlyLong(t) // it takes minutes
	inTurn(t)
	const each = 2 * time.Minute // between two connections
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var passed atomic.Int64 // of the time of all
	clock := func(off time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(time.Duration(passed.Load()) + off) }
	}
	c := plainNode(t.TempDir())
	c.Hooks().Plain, c.Hooks().Probe, c.Hooks().Now = false, 500*time.Millisecond, clock(0)
	c.Overlap = time.Hour
	n, err := node.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	var mutex sync.Mutex
	var networks []*harness.Proxy
	off := []time.Duration{-4 * time.Minute, -2 * time.Minute, 2 * time.Minute, 4 * time.Minute}
	perChange := int(30*time.Minute/each) + 3
	s := newSteps(ctx, t, n, func(identity ed25519.PrivateKey) (*party.Server, error) {
		mutex.Lock()
		defer mutex.Unlock()
		f := harness.NewProxy(t, strings.TrimPrefix(n.Address, "https://"))
		way, err := party.NewServer("https://"+f.Address(), n.Fingerprint, identity)
		if err == nil {
			way.Now = clock(off[len(networks)%len(off)])
			networks = append(networks, f)
		}
		return way, err
	}, 1+*changes*perChange)
	s.round(n)
	file := filepath.Join(c.Folder, "certificate.pem")
	for range *changes {
		if err := os.WriteFile(file+".next", madeCertificate(t), 0o600); err != nil {
			t.Fatal(err)
		}
		s.eventually("the next is not announced", func() bool { return len(n.Door.Certificates()) > 0 })
		s.round(n) // all parties have asked since
		s.round(n)
		passed.Add(int64(45 * time.Minute))
		was := n.Health(ctx).Fingerprint
		for range perChange - 3 {
			passed.Add(int64(each))
			mutex.Lock()
			for _, f := range networks {
				f.Cut()
			}
			mutex.Unlock()
			s.round(n)
		}
		if n.Health(ctx).Fingerprint == was {
			t.Fatal("the certificate does not change")
		}
		if err := os.Rename(file+".next", file); err != nil {
			t.Fatal(err)
		}
		s.round(n)
	}
	s.end(n)
	tell(fmt.Sprintf("%d certificates changed, of 4 parties with clocks up to 4 minutes off, with %d "+
		"connections each", *changes, *changes*(perChange-3)))
}
