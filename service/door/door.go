// Package door serves parties over HTTPS: a few resources under /v1, described by the OpenAPI
// document that the door serves. It refuses an invalid request before it costs anything: rate,
// headers, roster, signature, what is due, one body per party, bytes in flight; then the body, its
// speed and its digest; then the protocol's own checks, for the party that signed.
//
// A node that does not lead a federation passes requests on unchanged to the node that does: the
// signature is the party's, so that nodes need not trust each other.
package door

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
)

// Known is a federation as a node knows it.
type Known struct {
	Federation *federation.Federation
	Files      federation.Files // that it is of
	Runner     *runner.Runner   // nil if another node leads
	Forward    http.Handler     // to the node that leads; nil if none is known
	// Forgotten: its models and states were erased, and nothing else is known here.
	Forgotten bool
}

// Federations finds the federations that a door serves.
type Federations interface {
	Find(id string) (Known, bool)
	Entries() []Known
	// Archive lists the federations that were forgotten.
	Archive() []exchange.Listed
}

// Options configure a [Door]. Federations is required; the zero value of any other field is its
// default.
type Options struct {
	Federations Federations
	Log         *slog.Logger
	// PerSecond is how many requests a party may make, 0 for 50, in bursts of ten times that many;
	// all strangers at one address together may make the same number. Parties that share a proxy,
	// and strangers behind it, do not use up each other's requests.
	PerSecond float64
	// InFlight is how many bytes of bodies are read at once, 0 for 1 GiB.
	InFlight int64
	// Memory is how many of these bytes are held in memory, 0 for 64 MiB. Others wait in files
	// without a name in Folder, or in the system's folder for temporary files if it is empty.
	Memory int64
	Folder string
	// Patience is how long a body may pause, 0 for DefaultPatience; see Patient.
	Patience time.Duration
	// Known, if not nil, is called for every request that a party has signed, with its key.
	Known func(r *http.Request, key string)
	// Poll, if not nil, is called for every request of a party that waits until something is next;
	// give ends that request at once. The door calls ended when the request no longer waits; ended
	// reports whether others need the connection, which is then closed.
	Poll  func(r *http.Request, give func()) (ended func() (asked bool))
	Now   func() time.Time // nil: time.Now
	Ready func() error     // nil: always
	// Healthy fails if the process should be started again; nil: it never should.
	Healthy func() error
	// Certificates returns the statements of the door's certificates about their next ones; nil:
	// none.
	Certificates func() []exchange.NextCertificate
	// PublicLog is the folder of the public log's files, which anyone may read under /log/; empty:
	// there is none.
	PublicLog string
	// Cosigned takes a cosignature of its checkpoint, with the key of the witness; nil: none is taken.
	Cosigned func(key, line string) error
}

// Door is the handler of the parties' interface. It is safe for concurrent use.
type Door struct {
	Options
	mux      *http.ServeMux
	patient  http.Handler
	inFlight atomic.Int64
	inMemory atomic.Int64

	strangers limits[netip.Addr]
	parties   limits[string] // by federation and party

	mutex  sync.Mutex
	bodies map[string]bool     // federation and party whose body is being read
	last   map[string][32]byte // digest of the last message taken
	warned time.Time           // that clocks differ
	// uploads are by federation and party, those that wait for their next piece.
	uploads map[string]*upload
	Counts  Counts
}

// Counts holds figures for metrics.
type Counts struct {
	Requests, BytesIn, BytesOut atomic.Int64

	mutex   sync.Mutex
	refused map[string]int64
}

// Refused returns how many requests were refused, by the kind of the problem.
func (c *Counts) Refused() map[string]int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	out := make(map[string]int64, len(exchange.Refusals()))
	for kind := range exchange.Refusals() {
		out[kind] = c.refused[kind]
	}
	return out
}

func (c *Counts) refuse(kind string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.refused == nil {
		c.refused = make(map[string]int64)
	}
	c.refused[kind]++
}

// Bounds.
const (
	defaultRate     = 50
	defaultInFlight = 1 << 30
	headersForwards = "Hushsum-Forwarded"
	maxQuery        = 1 << 10
	retryAfter      = "1"
)

//go:embed openapi.json
var document []byte

var openAPI = WithJob(document)

// OpenAPI returns the document that describes the interface.
func OpenAPI() []byte { return openAPI }

// WithJob returns the document of an interface with the schema of a job inserted at its place.
func WithJob(document []byte) []byte {
	return bytes.Replace(document, []byte(`"the schema of a job"`), job.Schema(), 1)
}

// Routes lists the patterns of all handlers.
var Routes = []string{
	"GET /healthz",
	"GET /readyz",
	"GET /v1/openapi.json",
	"GET /v1/certificates",
	"GET /v1/federations",
	"GET /v1/federations/{id}",
	"GET /v1/federations/{id}/roster",
	"GET /v1/federations/{id}/committee",
	"GET /v1/federations/{id}/committee/next",
	"POST /v1/federations/{id}/committee/messages",
	"GET /v1/federations/{id}/initial",
	"GET /v1/federations/{id}/before",
	"GET /v1/federations/{id}/successors",
	"GET /v1/federations/{id}/chain",
	"POST /v1/federations/{id}/chain",
	"GET /v1/federations/{id}/next",
	"POST /v1/federations/{id}/messages",
	"GET /v1/federations/{id}/model",
	"GET /v1/federations/{id}/rounds/{round}/model",
	"GET /v1/federations/{id}/rounds/{round}/receipt",
	"POST /v1/federations/{id}/cosignatures",
}

// New makes a door.
func New(o Options) *Door {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.PerSecond == 0 {
		o.PerSecond = defaultRate
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.InFlight == 0 {
		o.InFlight = defaultInFlight
	}
	d := &Door{
		Options:   o,
		mux:       http.NewServeMux(),
		strangers: newLimits[netip.Addr](maxLimiters),
		parties:   newLimits[string](math.MaxInt), // as many as rosters have
		bodies:    make(map[string]bool),
		last:      make(map[string][32]byte),
		uploads:   make(map[string]*upload),
	}
	d.patient = Patient(http.HandlerFunc(d.serve), o.Patience)
	handlers := map[string]http.HandlerFunc{
		"GET /healthz":                                    d.healthy,
		"GET /readyz":                                     d.ready,
		"GET /v1/openapi.json":                            d.openAPI,
		"GET /v1/certificates":                            d.certificates,
		"GET /v1/federations":                             d.list,
		"GET /v1/federations/{id}":                        d.signed(anybody, d.describe),
		"GET /v1/federations/{id}/roster":                 d.signed(anybody, d.roster),
		"GET /v1/federations/{id}/committee":              d.signed(anybody, d.committee),
		"GET /v1/federations/{id}/committee/next":         d.signed(member, d.led(d.next)),
		"POST /v1/federations/{id}/committee/messages":    d.signed(member, d.led(d.message)),
		"GET /v1/federations/{id}/initial":                d.signed(anybody, d.initial),
		"GET /v1/federations/{id}/before":                 d.signed(anybody, d.before),
		"GET /v1/federations/{id}/successors":             d.signed(anybody, d.successors),
		"GET /v1/federations/{id}/next":                   d.signed(party, d.led(d.next)),
		"POST /v1/federations/{id}/messages":              d.signed(party, d.led(d.message)),
		"GET /v1/federations/{id}/model":                  d.signed(party, d.led(d.model)),
		"GET /v1/federations/{id}/rounds/{round}/model":   d.signed(party, d.led(d.model)),
		"GET /v1/federations/{id}/rounds/{round}/receipt": d.signed(party, d.led(d.receipt)),
		"POST /v1/federations/{id}/cosignatures":          d.signed(anybody, d.cosignature),
		"GET /v1/federations/{id}/chain":                  d.signed(anybody, d.led(d.chain)),
		"POST /v1/federations/{id}/chain":                 d.signed(anybody, d.led(d.lines)),
	}
	for _, pattern := range Routes {
		d.mux.HandleFunc(pattern, handlers[pattern])
	}
	return d
}

// ServeHTTP answers a request, and reads its body under deadlines.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.patient.ServeHTTP(w, r) }

// serve makes the checks that are the same for all requests. Requests for parties' resources are
// counted once it is known who asks.
func (d *Door) serve(w http.ResponseWriter, r *http.Request) {
	d.Counts.Requests.Add(1)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'")
	if d.Certificates != nil {
		if all := d.Certificates(); len(all) > 0 {
			h.Set(exchange.HeaderCertificates, digestOf(all))
		}
	}
	_, pattern := d.mux.Handler(r)
	if !forParties(pattern) && (d.tooMany(w, r) || d.doubtful(w, r)) {
		return
	}
	switch {
	case pattern == "" && d.PublicLog != "" && strings.HasPrefix(r.URL.Path, prefixLog):
		d.publicLog(w, r)
	case pattern == "" && d.otherMethod(r):
		d.refuse(w, "method", "%.10s", r.Method)
	case pattern == "":
		d.refuse(w, "route", "see /v1/openapi.json")
	default:
		d.mux.ServeHTTP(w, r)
	}
}

// forParties reports whether a pattern is that of a resource that requires a party's signature.
func forParties(pattern string) bool { return strings.Contains(pattern, "{id}") }

// doubtful refuses queries that are long, and those that programs read in different ways.
func (d *Door) doubtful(w http.ResponseWriter, r *http.Request) bool {
	query := r.URL.RawQuery
	if len(query) > maxQuery {
		d.refuse(w, "query", "%d bytes, at most %d are read", len(query), maxQuery)
		return true
	}
	if _, err := url.ParseQuery(query); err != nil {
		d.refuse(w, "query", "write it as name=value, separated by &, with other characters as %%XX: %v",
			err)
		return true
	}
	return false
}

// otherMethod reports whether the path exists with another method.
func (d *Door) otherMethod(r *http.Request) bool {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := d.mux.Handler(other); pattern != "" && method != r.Method {
			return true
		}
	}
	return false
}

// refuse answers with a problem.
func (d *Door) refuse(w http.ResponseWriter, kind, format string, a ...any) {
	d.Counts.refuse(kind)
	p := exchange.Refusals()[kind]
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	flush := func() {}
	if long, is := w.(interface{ unread() bool }); is && long.unread() {
		// Package http would first read the rest of the body, for which its sender may wait.
		w.Header().Set("Connection", "close")
		flush = func() { _ = http.NewResponseController(w).Flush() }
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(exchange.Problem{
		Type:   exchange.ProblemPrefix + kind,
		Title:  p.Title,
		Status: p.Status,
		Detail: fmt.Sprintf(format, a...),
	})
	flush()
}
