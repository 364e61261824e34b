// Package door is what parties reach by HTTPS: a few resources under /v1, described by
// the OpenAPI document that it serves. It ends what is wrong before it costs anything:
// rate, headers, roster, signature, what is due, one body a party, bytes in flight; then
// the body, its speed and its digest; then the protocol's own checks, for the party
// that signed.
//
// A node that does not lead a federation passes requests on to the one that does, as
// they are: the signature is the party's, so that nodes need not trust each other for it.
package door

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// Entry is a federation as a node knows it.
type Entry struct {
	Federation *federation.Federation
	Roster     []byte         // its text
	Initial    []byte         // the file of the first model, if it names one
	Runner     *runner.Runner // nil if another node leads
	Forward    http.Handler   // to the node that leads; nil if none is known
}

// Federations finds them.
type Federations interface {
	Find(id string) (Entry, bool)
	Entries() []Entry
}

// Options make a door.
type Options struct {
	Federations Federations
	Log         *slog.Logger
	// PerSecond is how many requests one address may make, 0 for 50, in bursts of ten
	// times as many. Proxies that serve many parties are one address.
	PerSecond float64
	// InFlight is how many bytes of bodies are read at once, 0 for 1 GiB.
	InFlight int64
	// Memory is how many bytes of these are held in memory, 0 for 64 MiB. Others wait in
	// files without a name in Folder, the system's for such files if it is empty.
	Memory int64
	Folder string
	Now    func() time.Time // nil: time.Now
	Ready  func() error     // nil: always
}

// Door is the handler. It is safe for concurrent use.
type Door struct {
	Options
	mux      *http.ServeMux
	inFlight atomic.Int64
	inMemory atomic.Int64

	mutex    sync.Mutex
	limiters map[netip.Addr]*limiter
	bodies   map[string]bool     // federation and party whose body is being read
	last     map[string][32]byte // digest of the last message taken
	warned   time.Time           // that clocks differ
	Counts   Counts
}

type limiter struct {
	*rate.Limiter
	used time.Time
}

// Counts are for metrics.
type Counts struct {
	Requests, Refused, BytesIn, BytesOut atomic.Int64
}

// Bounds.
const (
	defaultRate     = 50
	defaultInFlight = 1 << 30
	maxLimiters     = 100_000
	longestPoll     = 25 * time.Second
	headersForwards = "Hushsum-Forwarded"
	slowestBytes    = 16 << 10 // a second, beside
	bodyGrace       = 10 * time.Second
	maxQuery        = 1 << 10
	retryAfter      = "1"
)

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the document that describes the interface.
func OpenAPI() []byte { return openAPI }

// Routes are the patterns of all handlers.
var Routes = []string{
	"GET /healthz",
	"GET /readyz",
	"GET /v1/openapi.json",
	"GET /v1/federations",
	"GET /v1/federations/{id}",
	"GET /v1/federations/{id}/roster",
	"GET /v1/federations/{id}/initial",
	"GET /v1/federations/{id}/next",
	"POST /v1/federations/{id}/messages",
	"GET /v1/federations/{id}/model",
	"GET /v1/federations/{id}/rounds/{round}/model",
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
		Options:  o,
		mux:      http.NewServeMux(),
		limiters: make(map[netip.Addr]*limiter),
		bodies:   make(map[string]bool),
		last:     make(map[string][32]byte),
	}
	handlers := map[string]http.HandlerFunc{
		"GET /healthz":                                  d.healthy,
		"GET /readyz":                                   d.ready,
		"GET /v1/openapi.json":                          d.openAPI,
		"GET /v1/federations":                           d.list,
		"GET /v1/federations/{id}":                      d.signed(d.describe),
		"GET /v1/federations/{id}/roster":               d.signed(d.roster),
		"GET /v1/federations/{id}/initial":              d.signed(d.initial),
		"GET /v1/federations/{id}/next":                 d.signed(d.led(d.next)),
		"POST /v1/federations/{id}/messages":            d.signed(d.led(d.message)),
		"GET /v1/federations/{id}/model":                d.signed(d.led(d.model)),
		"GET /v1/federations/{id}/rounds/{round}/model": d.signed(d.led(d.model)),
	}
	for _, pattern := range Routes {
		d.mux.HandleFunc(pattern, handlers[pattern])
	}
	return d
}

// Problem is an error as the door tells it (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// The kinds of problems, each with its status and title.
var problems = map[string]struct {
	status int
	title  string
}{
	"rate":      {http.StatusTooManyRequests, "Too many requests from this address"},
	"route":     {http.StatusNotFound, "There is no such resource"},
	"method":    {http.StatusMethodNotAllowed, "The resource does not have this method"},
	"query":     {http.StatusBadRequest, "The query cannot be read"},
	"unsigned":  {http.StatusUnauthorized, "The request is not signed as it must be"},
	"signature": {http.StatusUnauthorized, "The signature does not verify"},
	"clock":     {http.StatusUnauthorized, "The request was signed at another time"},
	"stranger":  {http.StatusForbidden, "The key is not in the federation's roster"},
	"unknown":   {http.StatusNotFound, "There is no such federation"},
	"length":    {http.StatusLengthRequired, "The body's length must be told"},
	"oversized": {http.StatusRequestEntityTooLarge, "The body is longer than any message that is due"},
	"due":       {http.StatusConflict, "No such message is due of this party"},
	"busy":      {http.StatusConflict, "Another body of this party is being read"},
	"full":      {http.StatusServiceUnavailable, "Too many bytes are being read"},
	"slow":      {http.StatusRequestTimeout, "The body came too slowly, or broke off"},
	"digest":    {http.StatusBadRequest, "The body is not the one that was signed"},
	"message":   {http.StatusUnprocessableEntity, "The protocol refuses the message"},
	"ended":     {http.StatusGone, "The federation has ended"},
	"leader":    {http.StatusServiceUnavailable, "No node leads the federation at the moment"},
}

// ProblemPrefix begins the type of every problem.
const ProblemPrefix = "urn:hushsum:problem:"

// refuse answers with a problem.
func (d *Door) refuse(w http.ResponseWriter, kind, format string, a ...any) {
	d.Counts.Refused.Add(1)
	p := problems[kind]
	if p.status == http.StatusServiceUnavailable || p.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(Problem{
		Type:   ProblemPrefix + kind,
		Title:  p.title,
		Status: p.status,
		Detail: fmt.Sprintf(format, a...),
	})
}

// ServeHTTP makes the checks that are the same for all requests.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.Counts.Requests.Add(1)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'")
	if !d.allowed(r.RemoteAddr) {
		d.refuse(w, "rate", "%g requests a second are allowed", d.PerSecond)
		return
	}
	if len(r.URL.RawQuery) > maxQuery {
		d.refuse(w, "query", "%d bytes, at most %d are read", len(r.URL.RawQuery), maxQuery)
		return
	}
	_, pattern := d.mux.Handler(r)
	switch {
	case pattern == "" && d.otherMethod(r):
		d.refuse(w, "method", "%.10s", r.Method)
	case pattern == "":
		d.refuse(w, "route", "see /v1/openapi.json")
	default:
		d.mux.ServeHTTP(w, r)
	}
}

// otherMethod reports whether the path is there with another method.
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

// allowed keeps every address to its rate. Loopback is where proxies of this machine and
// its own parties are, and has none.
func (d *Door) allowed(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.IsLoopback() && d.PerSecond == defaultRate {
		return true
	}
	if address = address.Unmap(); address.Is6() {
		prefix, err := address.Prefix(64)
		if err != nil {
			return false
		}
		address = prefix.Addr()
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := d.Now()
	l := d.limiters[address]
	if l == nil {
		if len(d.limiters) >= maxLimiters {
			for a, other := range d.limiters {
				if now.Sub(other.used) > time.Minute {
					delete(d.limiters, a)
				}
			}
			if len(d.limiters) >= maxLimiters {
				return false
			}
		}
		l = &limiter{Limiter: rate.NewLimiter(rate.Limit(d.PerSecond), int(10*d.PerSecond))}
		d.limiters[address] = l
	}
	l.used = now
	return l.AllowN(now, 1)
}

// caller is who signed a request, for which federation.
type caller struct {
	Entry
	party  int
	signed *signature.Signed
}

// key names a caller in the door's tables.
func (c *caller) key() string { return c.Federation.ID + strconv.Itoa(c.party) }

type handler func(w http.ResponseWriter, r *http.Request, c *caller)

// signed lets through what a party of the federation in the path has signed.
func (d *Door) signed(next handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		entry, found := d.Federations.Find(r.PathValue("id"))
		if !found && d.Ready != nil && d.Ready() != nil {
			d.refuse(w, "leader", "this node is starting")
			return
		}
		if !found {
			d.refuse(w, "unknown", "its identifier is 64 hexadecimal digits, see /v1/federations")
			return
		}
		s, err := signature.Verify(r, d.Now())
		switch {
		case errors.Is(err, signature.ErrClock):
			d.warnOfClock(err)
			d.refuse(w, "clock", "%v", err)
			return
		case errors.Is(err, signature.ErrSignature):
			d.refuse(w, "signature", "it must be over the request as it is sent, path and query included")
			return
		case err != nil:
			d.refuse(w, "unsigned", "%v", err)
			return
		}
		party, found := entry.Federation.Settled.Roster().Index(ed25519.PublicKey(s.Key))
		if !found {
			d.refuse(w, "stranger", "compare the roster's fingerprint with the operator's")
			return
		}
		next(w, r, &caller{entry, party, s})
	}
}

// warnOfClock says in the log, at most once a minute, that clocks differ: if it is this
// machine's that is off, nobody is let in.
func (d *Door) warnOfClock(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := time.Now(); now.Sub(d.warned) > time.Minute {
		d.warned = now
		d.Log.Warn("requests are refused since clocks differ: if all are, put this machine's right",
			"error", err.Error())
	}
}

// led lets through what this node leads, and passes on the rest.
func (d *Door) led(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) {
		switch {
		case c.Runner != nil:
			next(w, r, c)
		case c.Forward != nil && r.Header.Get(headersForwards) == "":
			r.Header.Set(headersForwards, "1")
			c.Forward.ServeHTTP(w, r)
		default:
			d.refuse(w, "leader", "ask again")
		}
	}
}

func (d *Door) healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

func (d *Door) ready(w http.ResponseWriter, _ *http.Request) {
	if d.Ready != nil {
		if err := d.Ready(); err != nil {
			d.refuse(w, "leader", "%v", err)
			return
		}
	}
	_, _ = io.WriteString(w, "ready\n")
}

func (d *Door) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Listed is a federation in the list.
type Listed struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

func (d *Door) list(w http.ResponseWriter, _ *http.Request) {
	out := []Listed{}
	for _, e := range d.Federations.Entries() {
		out = append(out, Listed{e.Federation.File.Name, e.Federation.ID})
	}
	answer(w, out)
}

// Description is what a party must know to work a federation out for itself.
type Description struct {
	Name    string   `json:"name"`
	ID      string   `json:"id"`
	Text    string   `json:"text"`    // of the federation's file
	Roster  string   `json:"roster"`  // fingerprint: its digest in hexadecimal digits
	Initial bool     `json:"initial"` // whether the file names a first model
	Meaning []string `json:"meaning"`
}

func (d *Door) describe(w http.ResponseWriter, _ *http.Request, c *caller) {
	f := c.Federation
	digest := f.Settled.Roster().Digest()
	answer(w, Description{
		Name:    f.File.Name,
		ID:      f.ID,
		Text:    string(f.Text),
		Roster:  hex.EncodeToString(digest[:]),
		Initial: f.File.Model.File != "",
		Meaning: f.Meaning(),
	})
}

func (d *Door) roster(w http.ResponseWriter, _ *http.Request, c *caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(c.Roster)
}

func (d *Door) initial(w http.ResponseWriter, r *http.Request, c *caller) {
	if c.Initial == nil {
		d.refuse(w, "route", "the federation names no first model")
		return
	}
	serveModel(w, r, newCounted(c.Initial, &d.Counts.BytesOut), sha256.Sum256(c.Initial))
}

// Headers of the answer to next.
const (
	HeaderNext    = "Hushsum-Next"
	HeaderItem    = "Hushsum-Item"
	HeaderSession = "Hushsum-Session"
	HeaderRound   = "Hushsum-Round"
)

// parseAsk reads the query of next.
func parseAsk(r *http.Request) (ask runner.Ask, wait time.Duration, err error) {
	wait = longestPoll
	query := r.URL.Query()
	for name, values := range query {
		if len(values) != 1 {
			return ask, 0, fmt.Errorf("%.20q comes %d times", name, len(values))
		}
		value := values[0]
		switch name {
		case "sessions":
			for _, part := range strings.Split(value, ",") {
				if value == "" || len(ask.Sessions) == 4 {
					break
				}
				n, err := strconv.ParseUint(part, 10, 63)
				if err != nil {
					return ask, 0, errors.New("sessions are up to 4 numbers with commas between")
				}
				ask.Sessions = append(ask.Sessions, n)
			}
		case "least":
			ask.Least, err = strconv.ParseUint(value, 10, 62)
		case "round":
			ask.Round, err = strconv.ParseUint(value, 10, 31)
		case "absent":
			ask.Absent, err = strconv.ParseUint(value, 10, 31)
		case "seen":
			ask.Seen = strings.SplitN(value, ",", 5)
			if len(ask.Seen) > 4 {
				return ask, 0, errors.New("seen is up to 4 items with commas between")
			}
		case "working":
			ask.Working, err = strconv.ParseBool(value)
		case "wait":
			var seconds float64
			seconds, err = strconv.ParseFloat(value, 64)
			if err == nil && !(seconds >= 0 && seconds <= longestPoll.Seconds()) {
				err = fmt.Errorf("0 to %v seconds", longestPoll.Seconds())
			}
			wait = time.Duration(seconds * float64(time.Second))
		default:
			return ask, 0, fmt.Errorf("there is no parameter %.20q", name)
		}
		if err != nil {
			return ask, 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	return ask, wait, nil
}

func (d *Door) next(w http.ResponseWriter, r *http.Request, c *caller) {
	ask, wait, err := parseAsk(r)
	if err != nil {
		d.refuse(w, "query", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	n, err := c.Runner.Next(ctx, c.party, ask)
	if err != nil {
		d.refuse(w, "leader", "%v", err)
		return
	}
	defer n.Sent()
	if n.Kind == runner.Nothing {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	h := w.Header()
	h.Set(HeaderNext, string(n.Kind))
	h.Set(HeaderItem, n.Item)
	h.Set(HeaderSession, strconv.FormatUint(n.Session, 10))
	h.Set(HeaderRound, strconv.Itoa(n.Round))
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(n.Len()))
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(transferTime(n.Len())))
	written, err := w.Write(n.Shared)
	if err == nil {
		rest, _ := w.Write(n.Message)
		written += rest
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{})
	d.Counts.BytesOut.Add(int64(written))
}

// transferTime is how long bytes may take that come or go at a bearable speed.
func transferTime(n int) time.Duration {
	return bodyGrace + time.Duration(float64(n)/slowestBytes*float64(time.Second))
}

// message takes a body, after all that can be checked without it.
func (d *Door) message(w http.ResponseWriter, r *http.Request, c *caller) {
	if r.ContentLength < 0 {
		d.refuse(w, "length", "send Content-Length")
		return
	}
	due, most, err := c.Runner.Due(r.Context(), c.party)
	switch {
	case errors.Is(err, runner.ErrEnded):
		d.refuse(w, "ended", "take the last model")
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	if r.ContentLength > int64(most) {
		d.refuse(w, "oversized", "%d bytes, at most %d are read", r.ContentLength, most)
		return
	}
	d.mutex.Lock()
	again := d.last[c.key()] == c.signed.Digest && r.ContentLength > 0
	busy := d.bodies[c.key()]
	if !busy && (due || again) {
		d.bodies[c.key()] = true
	}
	d.mutex.Unlock()
	switch {
	case !due && again:
		d.mutex.Lock()
		delete(d.bodies, c.key())
		d.mutex.Unlock()
		held(w) // a copy of what is held already
		return
	case busy:
		d.refuse(w, "busy", "send one at a time")
		return
	case !due:
		d.refuse(w, "due", "ask what is next")
		return
	}
	defer func() {
		d.mutex.Lock()
		delete(d.bodies, c.key())
		d.mutex.Unlock()
	}()
	b, ok := d.read(w, r)
	if !ok {
		return
	}
	defer d.inFlight.Add(-r.ContentLength)
	defer b.Close()
	if [32]byte(b.digest.Sum(nil)) != c.signed.Digest {
		d.refuse(w, "digest", "Content-Digest does not fit")
		return
	}
	message, err := b.reader()
	if err == nil {
		err = c.Runner.ReadMessage(r.Context(), c.party, message, b.size)
	}
	switch {
	case err == nil:
		d.Counts.BytesIn.Add(b.size)
		d.mutex.Lock()
		d.last[c.key()] = c.signed.Digest
		d.mutex.Unlock()
		held(w)
	case errors.Is(err, runner.ErrStopped), r.Context().Err() != nil:
		d.refuse(w, "leader", "ask again")
	case errors.Is(err, protocol.ErrStale), errors.Is(err, protocol.ErrPhase),
		errors.Is(err, protocol.ErrSession), errors.Is(err, protocol.ErrParticipants):
		d.refuse(w, "due", "%v", err)
	case errors.Is(err, runner.ErrEnded):
		d.refuse(w, "ended", "take the last model")
	default:
		d.refuse(w, "message", "%v", err)
	}
}

func held(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"held"}`+"\n")
}

// model serves the broadcast of a round, or the last model, with ranges.
func (d *Door) model(w http.ResponseWriter, r *http.Request, c *caller) {
	round := 0
	if text := r.PathValue("round"); text != "" {
		var err error
		if round, err = strconv.Atoi(text); err != nil || round < 1 || strconv.Itoa(round) != text {
			d.refuse(w, "query", "a round is a number from 1")
			return
		}
	}
	b, err := c.Runner.Broadcast(r.Context(), c.party, round)
	switch {
	case errors.Is(err, runner.ErrNotDue):
		d.refuse(w, "due", "the round takes no submissions")
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	serveModel(w, r, newCounted(b, &d.Counts.BytesOut), sha256.Sum256(b))
}

// serveModel serves a file, with ranges and its digest for an ETag.
func serveModel(w http.ResponseWriter, r *http.Request, file io.ReadSeeker, digest [32]byte) {
	w.Header().Set("ETag", `"`+hex.EncodeToString(digest[:])+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, no-cache")
	http.ServeContent(w, r, "", time.Time{}, file)
}
