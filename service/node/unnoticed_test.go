package node

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The tests of this file each fail for one small change to the code that no other test
// notices.

// serve has a server answer over TLS, with errors of handshakes kept quiet.
func serve(t *testing.T, c *tls.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = c
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// The door speaks TLS 1.3 alone, and shows its certificate.
func TestDoorTLS(t *testing.T) {
	n := &Node{Options: Options{Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)}}
	if err := n.openCertificate(); err != nil {
		t.Fatal(err)
	}
	door := serve(t, n.certificate.config())
	for version, good := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", door.Listener.Addr().String(),
			&tls.Config{MaxVersion: version, ServerName: "localhost", InsecureSkipVerify: true})
		if (err == nil) != good {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err != nil {
			continue
		}
		digest := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].Raw)
		if present, _ := n.certificate.shown(); hex.EncodeToString(digest[:]) != present {
			t.Error("it shows another certificate")
		}
		_ = conn.Close()
	}
}

// A node passes requests on to a leader that shows the certificate which it says that it shows, or
// shows next, over TLS 1.3, and to nobody else at the leader's address.
func TestProxyPins(t *testing.T) {
	n := &Node{Options: Options{Log: slog.New(slog.DiscardHandler)}, ctx: t.Context()}
	e := &entry{wait: time.Minute}
	for _, most := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		leader := serve(t, &tls.Config{MaxVersion: most})
		digest := sha256.Sum256(leader.Certificate().Raw)
		own := hex.EncodeToString(digest[:])
		digest[31] ^= 1
		other := hex.EncodeToString(digest[:])
		for _, c := range []struct {
			present, next string
			good          bool
		}{{own, "", true}, {other, own, true}, {own, other, true}, {other, "", false}} {
			p := n.forwardTo(e, lead{Address: leader.URL, Fingerprint: c.present, Next: c.next})
			answer := httptest.NewRecorder()
			p.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
			want := http.StatusServiceUnavailable
			if c.good && most == tls.VersionTLS13 {
				want = http.StatusTeapot
			}
			if answer.Code != want {
				t.Errorf("%s: %d, want %d, if the leader names %.4s and %.4s, and shows %.4s",
					tls.VersionName(most), answer.Code, want, c.present, c.next, own)
			}
		}
	}
	if n.forwardTo(e, lead{Address: "https://127.0.0.1", Fingerprint: "ab"}) != nil {
		t.Error("what is no fingerprint is a pin")
	}
}

// A removal is for the removals that the operator has seen, no more and no fewer.
func TestStale(t *testing.T) {
	for seen, stale := range map[uint64]bool{0: true, 6: true, 7: false, 8: true} {
		if isStale(&seen, 7) != stale {
			t.Errorf("of 7 removals %d were seen: stale is %v", seen, !stale)
		}
	}
	if isStale(nil, 7) {
		t.Error("a removal whatever was removed is stale")
	}
}
