package node_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
)

// madeCertificate is a file with a certificate and its key, as a node makes it.
func madeCertificate(t *testing.T) []byte {
	t.Helper()
	folder := t.TempDir()
	config := plainNode(folder)
	config.Hooks().Plain = false
	n, err := node.Start(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	text, err := os.ReadFile(filepath.Join(folder, "certificate.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Nodes get other certificates while a federation runs, whose parties have pinned the old
// ones: those go on that heard of the next ones while both were good, by whichever node. One node
// shows its next since its file is put in place, the others since the time is over. No round is
// lost. Who has not heard of it takes no other certificate.
//
// They are three with -long, which are started again, and else one at a time, which is not.
func TestCertificatesChange(t *testing.T) {
	inTurn(t)
	if suite.Long() {
		changeCertificates(t, 3, true)
		return
	}
	for name, early := range map[string]bool{"by its file": true, "by the time": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changeCertificates(t, 1, early)
		})
	}
}

// changeCertificates is TestCertificatesChange with some nodes, of which the first has its file put
// in place early, or waits as the others do.
func changeCertificates(t *testing.T, count int, early bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	address := ""
	if count > 1 {
		address = startNATS(t)("a pass-word")
	}
	key, err := keyexchange.GenerateSealKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	log := new(safeBuffer)
	var later atomic.Bool // by an hour, for nodes and parties
	now := func() time.Time {
		if later.Load() {
			return time.Now().Add(time.Hour)
		}
		return time.Now()
	}
	var nodes []*node.Node
	var configs []node.Options
	var doors, prints []string
	start := func(c node.Options) *node.Node {
		t.Helper()
		n, err := node.Start(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		return n
	}
	for i := range count {
		c := plainNode(t.TempDir())
		if c.Hooks().Plain = false; count > 1 {
			c.Listen = freePort(t)
		}
		c.Hooks().Probe = 500 * time.Millisecond
		c.Name, c.NATS, c.Silence = fmt.Sprint("node-", i), address, 3*time.Second
		c.Overlap, c.Hooks().Key, c.Hooks().Now = time.Hour, key, now
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		n := start(c)
		configs, nodes = append(configs, c), append(nodes, n)
		doors, prints = append(doors, n.Address), append(prints, n.Fingerprint)
	}
	pins := strings.Join(prints, ",")
	s := newSteps(ctx, t, nodes[0], func(identity ed25519.PrivateKey) (*party.Server, error) {
		way, err := party.NewServer(strings.Join(doors, ","), pins, identity)
		if err == nil {
			way.Now = now
		}
		return way, err
	}, 3+2*count)
	s.round(nodes[0])
	at := func(which int, name string) string { return filepath.Join(configs[which].Folder, name) }
	shows := func(which int) string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(doors[which], "https://"),
			&tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return ""
		}
		defer conn.Close()
		return fmt.Sprintf("%x", sha256.Sum256(conn.ConnectionState().PeerCertificates[0].Raw))
	}
	// Somebody who asks the last node alone, and knows the old certificates of all.
	watcher := func(file string) *party.Server {
		_, _, identities := fourParties(t)
		way, err := party.NewServer(doors[count-1], pins, identities[0])
		if err != nil {
			t.Fatal(err)
		}
		way.Now = now
		if err := way.KeepCertificates(file); err != nil {
			t.Fatal(err)
		}
		return way
	}
	file := filepath.Join(t.TempDir(), "certificates.json")
	watches := watcher(file)
	for i := range nodes {
		if err := os.WriteFile(at(i, "certificate.pem.next"), madeCertificate(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("the next certificates are not known", func() bool {
		_, err := watches.List(ctx)
		b, _ := os.ReadFile(file)
		var all []exchange.NextCertificate
		return err == nil && json.Unmarshal(b, &all) == nil && len(all) == count
	})
	s.round(nodes[0]) // all parties have asked since
	if shows(0) != prints[0] || shows(count-1) != prints[count-1] {
		t.Error("another certificate is shown before its time")
	}
	shown := func(i int) func() bool {
		return func() bool { return shows(i) != prints[i] && shows(i) != "" }
	}
	if early {
		if err := os.Rename(at(0, "certificate.pem.next"), at(0, "certificate.pem")); err != nil {
			t.Fatal(err)
		}
		s.eventually("the file is not read", shown(0))
		if count > 1 && shows(1) != prints[1] {
			t.Error("another certificate is shown before its time")
		}
	}
	s.round(nodes[0])
	later.Store(true)
	for i := range nodes {
		s.eventually("the next certificate is not shown", shown(i))
		if h := nodes[i].Health(ctx); h.Fingerprint != shows(i) || h.Expires.Before(time.Now()) {
			t.Errorf("the page tells of %s until %v, and the door shows %s", h.Fingerprint, h.Expires,
				shows(i))
		}
	}
	if !early && !log.has("move the .next files over it") {
		t.Error("the log does not say that files are still to be moved")
	}
	s.round(nodes[0])
	// All connections are new from here on, where nodes are started again on the same ports.
	for i, n := range nodes {
		if count == 1 {
			break
		}
		n.Close()
		nodes[i] = start(configs[i])
		if nodes[i].Fingerprint == prints[i] || shows(i) != nodes[i].Fingerprint {
			t.Errorf("node %d shows %s", i, shows(i))
		}
		s.round(nodes[i])
	}
	if _, err := watcher(file).List(ctx); err != nil {
		t.Errorf("with what was kept: %v", err)
	}
	other := filepath.Join(t.TempDir(), "certificates.json")
	if _, err := watcher(other).List(ctx); !errors.Is(err, party.ErrServer) {
		t.Errorf("who has not heard of it: %v", err)
	}
	s.end(nodes[count-1])
}

// A certificate that ends soon, or has ended, is told of in the log at the start, and one that is
// good for long is not.
func TestCertificateEnds(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for days, want := range map[int]string{-1: "has ended", 20: "ends soon", 40: ""} {
		folder, log := t.TempDir(), new(safeBuffer)
		made := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().AddDate(-1, 0, 0),
			NotAfter: time.Now().AddDate(0, 0, days)}
		text, err := x509.CreateCertificate(rand.Reader, made, made, public, private)
		if err != nil {
			t.Fatal(err)
		}
		both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: text}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
		config := plainNode(filepath.Join(folder, "node"))
		config.Hooks().Plain, config.Log = false, slog.New(slog.NewTextHandler(log, nil))
		config.CertificateFile = filepath.Join(folder, "door.pem")
		if err := os.WriteFile(config.CertificateFile, both, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := node.Start(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
		if got := log.String(); strings.Contains(got, "the door's certificate") != (want != "") ||
			!strings.Contains(got, want) || strings.Count(got, "the door's certificate") > 1 {
			t.Errorf("%d days: %s", days, got)
		}
	}
}

// What openssl makes by the words of docs/service-mend.md is announced, of each kind of key.
func TestCertificatesOfOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip(err)
	}
	for _, kind := range [][]string{{"ed25519"}, {"rsa:2048"},
		{"ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"}} {
		folder := t.TempDir()
		file := filepath.Join(folder, "door.pem")
		args := append([]string{"req", "-x509", "-nodes", "-days", "3650", "-subj", "/CN=hushsumd",
			"-keyout", file, "-out", file + ".c", "-newkey"}, kind...)
		if out, err := exec.Command("openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		pair, err := tls.LoadX509KeyPair(file+".c", file)
		if err != nil {
			t.Fatal(err)
		}
		word, err := exchange.SignNext(&pair, [32]byte{1}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if present, next, err := word.Verify(); err != nil || next != [32]byte{1} ||
			present != sha256.Sum256(pair.Certificate[0]) {
			t.Errorf("%s: %v", kind[0], err)
		}
		later := *word
		later.Until = later.Until.Add(time.Second)
		if _, _, err := later.Verify(); !errors.Is(err, exchange.ErrNext) {
			t.Errorf("%s: another time: %v", kind[0], err)
		}
	}
}
