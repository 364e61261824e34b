package record_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/record"
)

// A node alone has no group, and is well.
func TestHealthAlone(t *testing.T) {
	records, end := open(t, t.TempDir(), newKey(t))
	defer end()
	h, err := records.Health(context.Background())
	if err != nil || len(h.Streams) != 3 {
		t.Fatalf("%+v, %v", h, err)
	}
	for _, s := range h.Streams {
		if !s.Well() || !s.Decides() || s.Wanted != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// What a stream's copies say of it.
func TestStreamWell(t *testing.T) {
	here, behind := record.Copy{Current: true}, record.Copy{Behind: 3}
	gone := record.Copy{Offline: true}
	for i, c := range []struct {
		leader        string
		copies        []record.Copy
		well, decides bool
	}{
		{"a", []record.Copy{here, here}, true, true},
		{"a", []record.Copy{here, behind}, false, true},
		{"a", []record.Copy{here, gone}, false, true},
		{"a", []record.Copy{here}, false, true},
		{"a", []record.Copy{gone, gone}, false, false},
		{"a", nil, false, false},
		{"", []record.Copy{here, here}, false, false},
	} {
		s := record.Stream{Leader: c.leader, Wanted: 3, Copies: c.copies}
		if s.Well() != c.well || s.Decides() != c.decides {
			t.Errorf("%d: %v, %v", i, s.Well(), s.Decides())
		}
	}
}

// What JetStream says of a stream is told, copies by name; streams of others who use the same
// JetStream are none of the record's.
func TestStreamOf(t *testing.T) {
	info := &jetstream.StreamInfo{
		Config: jetstream.StreamConfig{Name: "KV_hushsum-federations", Replicas: 3},
		State:  jetstream.StreamState{Msgs: 5, Bytes: 700},
		Cluster: &jetstream.ClusterInfo{Leader: "b", Replicas: []*jetstream.PeerInfo{
			{Name: "c", Offline: true, Lag: 4, Active: time.Minute}, {Name: "a", Current: true}}},
	}
	want := &record.Stream{Name: info.Config.Name, Leader: "b", Messages: 5, Bytes: 700, Wanted: 3,
		Copies: []record.Copy{{Node: "a", Current: true},
			{Node: "c", Offline: true, Behind: 4, Heard: time.Minute}}}
	if got := record.StreamOf(info); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, ours := range map[string]bool{"HUSHSUM-DECIDED": true, "OBJ_hushsum-objects-5e5e": true,
		"KV_others": false, "hushsum-federations": false, "": false} {
		info.Config.Name = name
		if got := record.StreamOf(info); (got != nil) != ours {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// routes makes the configuration of the routes between the nodes of a test.
func routes(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ClientCAs: pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAndVerifyClientCert}
}

// Of three nodes all are seen, and one that stops is missed while the others go on.
func TestHealthCluster(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes seconds, and ports that were free a moment ago
	var peers []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, l.Addr().String())
		_ = l.Close()
	}
	between := routes(t)
	var nodes []*record.Embedded
	for i, name := range []string{"a", "b", "c"} {
		e, err := record.StartEmbedded(context.Background(), record.EmbeddedOptions{
			Folder: t.TempDir(), Name: name, Listen: peers[i], Peers: peers, TLS: between})
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, e)
		if i < 2 {
			defer e.Close()
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var records *record.Records
	for {
		var err error
		if records, err = record.Open(ctx, nodes[0].JS, 3, record.NewKeys(*newKey(t))); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	await := func(what string, is func(h *record.Health) bool) {
		t.Helper()
		for {
			h, err := records.Health(ctx)
			if err == nil && len(h.Streams) == 3 && is(h) {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s does not come: %+v, %v", what, h, err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	notWell := func(s record.Stream) bool { return !s.Well() || len(s.Copies) != 2 }
	await("three copies", func(h *record.Health) bool {
		return !slices.ContainsFunc(h.Streams, notWell)
	})
	if g := nodes[1].Group(); g == nil || g.Leader == "" || g.Nodes != 3 || g.Quorum != 2 {
		t.Errorf("the group of all nodes: %+v", g)
	}
	nodes[2].Close()
	await("two copies", func(h *record.Health) bool {
		return !slices.ContainsFunc(h.Streams, func(s record.Stream) bool {
			return s.Well() || !s.Decides()
		})
	})
}
