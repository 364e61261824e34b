package node_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/harness"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
)

const (
	longVector = 500_000 // a submission of it has more than 1 MB
	proxyLimit = 1 << 20 // nginx's default
)

// startLong starts a node with a federation of one round whose submissions no proxy of proxyLimit
// lets pass.
func startLong(t *testing.T, plain bool) (s *small, target *url.URL) {
	t.Helper()
	folder := t.TempDir()
	j := job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: longVector, Step: "5m"}
	prepareJob(t, folder, 1, j)
	s = startNodeIn(t, folder, node.With(node.Options{},
		node.Hooks{Plain: plain}))
	leave(folder, "fingerprint", s.node.Fingerprint)
	target, err := url.Parse(s.node.Address)
	if err != nil {
		t.Fatal(err)
	}
	return s, target
}

// allSubmit has parties take part, each at an address, and fails the test unless the round has all
// of them.
func (s *small) allSubmit(addresses []string) {
	t := s.t
	t.Helper()
	defer s.node.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer s.group.Wait()
	defer cancel()
	for i, address := range addresses {
		p, err := loadParty(s.folder, i, s.fed, address)
		if err != nil {
			t.Fatal(err)
		}
		p.Trainer = party.TrainerFunc(func(context.Context, *party.Work) (*party.Update, error) {
			return &party.Update{Vector: loadVector(i, longVector)}, nil
		})
		s.group.Add(1)
		go func() {
			defer s.group.Done()
			if _, err := p.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("party %d: %v", i, err)
			} else if p.Server.Sent() < proxyLimit {
				t.Errorf("party %d sent %d bytes: the test needs more", i, p.Server.Sent())
			}
		}()
	}
	status := s.await("the sum", func(s *runner.Status) bool { return len(s.History) > 0 })
	if status.History[0].Parties != smallParties {
		t.Errorf("%+v", status.History)
	}
	s.group.Wait()
}

// refusesWhole fails the test unless what is at an address refuses a message that comes whole. The
// node itself would say first that it is not signed.
func (s *small) refusesWhole(client *http.Client, address string) {
	s.t.Helper()
	answer, err := client.Post(address+"/v1/federations/"+s.fed.ID+"/messages", "",
		bytes.NewReader(make([]byte, proxyLimit+1)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		s.t.Errorf("a whole message is answered %d", answer.StatusCode)
	}
}

// Behind a proxy that takes bodies of 1 MB, and behind networks that cut each connection after
// fewer bytes than a piece has, every party submits, though its submission has more.
func TestProxyLimits(t *testing.T) {
	inTurn(t)
	s, target := startLong(t, true)
	var longest atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of bodies that are cut
	limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 || r.ContentLength > proxyLimit {
			http.Error(w, "<h1>413 Request Entity Too Large</h1>", http.StatusRequestEntityTooLarge)
			return
		}
		longest.Store(max(longest.Load(), r.ContentLength))
		proxy.ServeHTTP(w, r)
	}))
	defer limited.Close()
	s.refusesWhole(http.DefaultClient, limited.URL)
	var cuts atomic.Int64
	s.allSubmit([]string{
		limited.URL,
		cutting(t, target.Host, 300_000, &cuts),
		cutting(t, strings.TrimPrefix(limited.URL, "http://"), 400_000, &cuts),
		s.node.Address,
	})
	if longest.Load() != exchange.PieceSize || cuts.Load() < 4 {
		t.Errorf("the longest body had %d bytes; %d connections were cut", longest.Load(), cuts.Load())
	}
}

// cutting returns an address at which each connection ends after this many bytes of its client.
func cutting(t *testing.T, target string, bytes int64, cuts *atomic.Int64) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go harness.Relay(l, target, func(near, far net.Conn) {
		end := func() { _, _ = near.Close(), far.Close() }
		go func() {
			defer end()
			if n, _ := io.CopyN(far, near, bytes); n == bytes {
				cuts.Add(1)
			}
		}()
		go func() {
			defer end()
			_, _ = io.Copy(near, far)
		}()
	})
	return "http://" + l.Addr().String()
}

// Every party submits behind nginx and HAProxy of Debian as their packages configure them; nginx
// refuses what comes whole.
func TestProxiesOfDebian(t *testing.T) {
	suite.OnlyLong(t)
	for _, p := range []struct {
		name, file string
		limits     bool
		configure  func(text, folder, listen, target, pem string) (changed string)
		arguments  []string
	}{
		{"nginx", "/etc/nginx/nginx.conf", true, nginxConfig, []string{"-g", "daemon off;", "-c"}},
		{"haproxy", "/etc/haproxy/haproxy.cfg", false, haproxyConfig, []string{"-db", "-q", "-f"}},
	} {
		t.Run(p.name, func(t *testing.T) {
			text, err := os.ReadFile(p.file)
			var program string
			if err == nil {
				program, err = exec.LookPath(p.name)
			}
			if err != nil {
				if os.Getenv("HUSHSUM_REQUIRE_PROXIES") != "" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			s, target := startLong(t, false)
			folder, listen := t.TempDir(), freePort(t)
			config := filepath.Join(folder, "config")
			// The proxy has the node's certificate, so that its fingerprint is the one parties know.
			pem := filepath.Join(s.folder, "node", "certificate.pem")
			changed := p.configure(string(text), folder, listen, target.Host, pem)
			if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.Command(program, append(p.arguments, config)...)
			command.Stderr = os.Stderr
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = command.Process.Signal(syscall.SIGTERM)
				_ = command.Wait()
			}()
			address := "https://" + listen
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			s.become("reachable through "+p.name, func() bool {
				answer, err := client.Get(address + "/healthz")
				if err == nil {
					_ = answer.Body.Close()
				}
				return err == nil && answer.StatusCode == http.StatusOK
			})
			if p.limits {
				s.refusesWhole(client, address)
			}
			s.allSubmit([]string{address, address, address, address})
		})
	}
}

// nginxConfig is Debian's configuration with paths of a test and one site. It speaks TLS 1.2 at
// most to a node, unless it is told otherwise.
func nginxConfig(text, folder, listen, target, pem string) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	return strings.NewReplacer(
		"user www-data;", user,
		"/run/nginx.pid", filepath.Join(folder, "pid"),
		"include /etc/nginx/modules-enabled/*.conf;", "",
		"/var/log/nginx", folder,
		"include /etc/nginx/conf.d/*.conf;", fmt.Sprintf("client_body_temp_path %s/body;", folder),
		"include /etc/nginx/sites-enabled/*;", fmt.Sprintf("proxy_temp_path %s/proxy;\n"+
			"server {\n listen %s ssl;\n ssl_certificate %s;\n ssl_certificate_key %[3]s;\n"+
			" location / { proxy_pass https://%s; proxy_ssl_protocols TLSv1.3; }\n}\n", folder, listen,
			pem, target),
	).Replace(text)
}

// haproxyConfig is Debian's configuration for the user who tests, and one site.
func haproxyConfig(text, _, listen, target, pem string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "chroot", "stats", "user", "group", "daemon":
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + fmt.Sprintf(
		"\nlisten site\n\tbind %s ssl crt %s\n\tserver node %s ssl verify none\n", listen, pem, target)
}
