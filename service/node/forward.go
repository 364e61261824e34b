package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/party"
)

// forward passes requests on unchanged to the node that leads, until another does.
type forward struct {
	lead
	proxy *httputil.ReverseProxy
	ctx   context.Context // ends when another node leads
	end   context.CancelFunc
}

// answers is how much longer than a question may wait a node waits for an answer of the leader:
// longer than its party does.
const answers = 5 * time.Second

// errLeads ends a request that was passed on: another node leads by now.
var errLeads = errors.New("node: another node leads")

// forwardTo returns what passes requests of a federation on to its leader, nil if what the leader
// says of itself cannot be used.
func (n *Node) forwardTo(e *entry, l lead) *forward {
	target, err := url.Parse(l.Address)
	if err != nil {
		return nil
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost:   64,
		ResponseHeaderTimeout: e.wait + answers,
	}
	if l.Fingerprint != "" {
		var pins [][32]byte
		for _, one := range []string{l.Fingerprint, cmp.Or(l.Next, l.Fingerprint)} {
			digest, err := hex.DecodeString(one)
			if err != nil || len(digest) != sha256.Size {
				return nil
			}
			pins = append(pins, [32]byte(digest))
		}
		transport.TLSClientConfig = party.Pinned(pins...)
	}
	f := &forward{lead: l}
	f.ctx, f.end = context.WithCancel(n.ctx)
	context.AfterFunc(f.ctx, transport.CloseIdleConnections)
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
		},
		Transport: transport,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			again := "1"
			if errors.Is(context.Cause(r.Context()), errLeads) {
				again = "0"
			}
			w.Header().Set("Retry-After", again)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(exchange.Problem{
				Type:   exchange.ProblemPrefix + "leader",
				Title:  exchange.Refusals()["leader"].Title,
				Status: http.StatusServiceUnavailable,
				Detail: "the leading node does not answer; ask again",
			})
		},
		ErrorLog: slog.NewLogLogger(n.Log.Handler(), slog.LevelDebug),
	}
	return f
}

// same reports whether a leader is still to be reached in the same way.
func (f *forward) same(l lead) bool {
	return f.Node == l.Node && f.Address == l.Address && f.Fingerprint == l.Fingerprint &&
		f.Next == l.Next
}

// ServeHTTP passes a request on.
func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(errLeads) })()
	f.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// sendOn has requests be passed on from now on, nil: not at all. Requests that were passed on
// before end, and their parties ask again. The caller holds the mutex of the node.
func (e *entry) sendOn(to *forward) {
	if e.forward != nil {
		e.forward.end()
	}
	e.forward = to
}
