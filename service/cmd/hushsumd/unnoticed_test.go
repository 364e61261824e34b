package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// authority is who signs certificates of nodes; its files are in a folder.
type authority struct {
	*testing.T
	folder string
	key    *ecdsa.PrivateKey
	own    *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, folder: t.TempDir()}
	a.own = &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.key, a.own = a.sign("ca", a.own)
	return a
}

// sign writes a certificate and its key, signed by the authority, or by itself before there is one.
func (a *authority) sign(name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must := func(err error) {
		if a.Helper(); err != nil {
			a.Fatal(err)
		}
	}
	must(err)
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.own, key.Public(), by)
	must(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	for suffix, block := range map[string]*pem.Block{
		".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(os.WriteFile(filepath.Join(a.folder, name+suffix), pem.EncodeToMemory(block), 0o600))
	}
	out, err := x509.ParseCertificate(der)
	must(err)
	return key, out
}

// node returns the configuration of a node with a certificate of an authority.
func (a *authority) node(by *authority) *tls.Config {
	a.Helper()
	by.sign("node", &x509.Certificate{SerialNumber: big.NewInt(2),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	c, err := clusterTLS(filepath.Join(a.folder, "ca.pem"), filepath.Join(by.folder, "node.pem"),
		filepath.Join(by.folder, "node.key"))
	if err != nil {
		a.Fatal(err)
	}
	return c
}

// Nodes of a cluster talk to each other over TLS 1.3, each with a certificate of their authority,
// and to nobody else.
func TestClusterTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	change := func(by *authority, change func(c *tls.Config)) *tls.Config {
		c := ours.node(by)
		change(c)
		return c
	}
	same := func(*tls.Config) {}
	older := func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }
	without := func(c *tls.Config) { c.Certificates = nil }
	for name, c := range map[string]struct {
		server, client *tls.Config
		good           bool
	}{
		"two nodes":                    {change(ours, same), change(ours, same), true},
		"an older client":              {change(ours, same), change(ours, older), false},
		"an older server":              {change(ours, older), change(ours, same), false},
		"a client of another":          {change(ours, same), change(theirs, same), false},
		"a server of another":          {change(theirs, same), change(ours, same), false},
		"a client without certificate": {change(ours, same), change(ours, without), false},
	} {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.TLS = c.server
		server.StartTLS()
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c.client}}
		answer, err := client.Get(server.URL)
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		client.CloseIdleConnections()
		server.Close()
	}
}
