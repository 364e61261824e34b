package node_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// clusterConfig makes a node's configuration that of one of three, or of some on a NATS.
func clusterConfig(folder string, j job, which int, c node.Options) node.Options {
	c.Name = fmt.Sprint("node-", which)
	c.Folder = filepath.Join(folder, c.Name)
	c.Listen = strings.TrimPrefix(j.Doors[which], "http://")
	var err error
	c.Hooks().Key, err = keyfile.SealKey(filepath.Join(folder, "shared.key"), false)
	child(err)
	if len(j.NATS) > 0 {
		c.NATS = j.NATS[which]
		return c
	}
	c.Cluster, c.Peers = j.Peers[which], j.Peers
	text, err := os.ReadFile(filepath.Join(folder, "routes.pem"))
	child(err)
	pair, err := tls.X509KeyPair(text, text)
	child(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	c.ClusterTLS = &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		RootCAs:      pool,
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}
	return c
}

// prepareCluster writes what the nodes share.
func prepareCluster(t *testing.T, folder string) {
	t.Helper()
	if _, err := keyfile.SealKey(filepath.Join(folder, "shared.key"), true); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "routes"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(filepath.Join(folder, "routes.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// leaderOf waits until some node leads, but not the one named, and the federation is in
// or past a round.
func leaderOf(t *testing.T, folder, other string, round int) (which int, s runner.Status) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); {
		if find(folder, "status", &s) == nil && s.Leader != other && s.Round >= round {
			if _, err := fmt.Sscanf(s.Leader, "node-%d", &which); err == nil {
				return which, s
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no node but %q leads round %d: %+v", other, round, s)
	return 0, s
}

// Three nodes: the leader is killed, is frozen until another leads, and is stopped
// gracefully; two of three are killed, so that nothing is decided until one is back.
func TestKillNodes(t *testing.T) { killNodes(t, 0) }

// The same with sums of one message.
func TestKillCommitteeNodes(t *testing.T) { killNodes(t, jobMembers) }

func killNodes(t *testing.T, members int) {
	suite.OnlyLong(t) // a cluster takes a minute
	inTurn(t)
	folder := t.TempDir()
	j := job{Parties: jobParties, Length: 20, Silence: 3 * time.Second, Members: members}
	for range 3 {
		j.Peers = append(j.Peers, freePort(t))
		j.Doors = append(j.Doors, "http://"+freePort(t))
	}
	rounds := 400 // it is ended by the test's own last step, long before
	prepareJob(t, folder, rounds, j)
	prepareCluster(t, folder)
	var nodes []*process
	for i := range 3 {
		p := &process{
			role:        "server",
			folder:      folder,
			environment: []string{fmt.Sprint("HUSHSUM_TEST_NODE=", i)},
		}
		p.start(t)
		t.Cleanup(func() { p.kill() })
		nodes = append(nodes, p)
	}
	startJobParties(t, folder, j.Parties)
	startJobMembers(t, folder, members)
	leader, s := leaderOf(t, folder, "", 1)
	t.Logf("node %d leads, round %d", leader, s.Round)
	next := func(after runner.Status) int { return after.Round + 2 }

	nodes[leader].kill()
	began := time.Now()
	second, s := leaderOf(t, folder, fmt.Sprint("node-", leader), next(s))
	t.Logf("killed: node %d leads, round %d, after %v", second, s.Round, time.Since(began))
	nodes[leader].start(t)

	time.Sleep(3 * time.Second)
	frozen := nodes[second].command.Process
	if err := frozen.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	third, s := leaderOf(t, folder, fmt.Sprint("node-", second), next(s))
	t.Logf("frozen: node %d leads, round %d, after %v", third, s.Round, time.Since(began))
	if err := frozen.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	third, s = leaderOf(t, folder, "", next(s))

	// Two of three: the leader and another.
	gone := []int{third, (third + 1) % 3}
	for _, i := range gone {
		nodes[i].kill()
	}
	time.Sleep(2 * time.Second)
	before := sumsOf(t, folder)
	time.Sleep(8 * time.Second)
	if after := sumsOf(t, folder); after > before {
		t.Errorf("%d sums without a quorum", after-before)
	}
	nodes[gone[1]].start(t)
	began = time.Now()
	_, s = leaderOf(t, folder, fmt.Sprint("node-", third), next(s))
	t.Logf("two killed, one back: %s leads, round %d, after %v", s.Leader, s.Round, time.Since(began))

	sums := compareSums(t, folder)
	if lost := s.Lost; sums < s.Round-lost-1 {
		t.Errorf("%d sums in %d rounds, %d lost", sums, s.Round, lost)
	}
	killed.Add(4)
}

func sumsOf(t *testing.T, folder string) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(folder, "sums"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
