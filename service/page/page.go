// Package page serves operators: one page without assets from elsewhere, which works without
// JavaScript except for live updates, and the same information as JSON for programs. Of a single
// party the page shows whether the party is present and has sent what is due, but nothing about the
// contents of its update.
package page

import (
	"context"
	"embed"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// Federations provides what the page shows.
type Federations interface {
	// Listing returns all federations, with those that were forgotten.
	Listing(ctx context.Context) []*runner.Status
	Signals(ctx context.Context) Signals
	Health(ctx context.Context) *Health
	Status(ctx context.Context, id string) (*runner.Status, error)
	// Do fails with runner.ErrStale if the operator has not seen the present orders.
	Do(ctx context.Context, id string, o Order) (*runner.Status, error)
	Model(ctx context.Context, id string) ([]byte, error)
	// Known returns a federation as it was declared.
	Known(id string) (door.Known, bool)
	// After returns the files for a federation that continues an ended federation.
	After(ctx context.Context, id string) (*federation.Files, error)
	// Answers returns the queries that a federation asks, and their answers.
	Answers(ctx context.Context, id string) (*federation.Asked, error)
	// Plan computes what the queries of a job's text would cost and give in a federation that
	// continues the given one.
	Plan(ctx context.Context, id string, text []byte) (*Planned, error)
	// AuditLog and LastLines read an audit log as those of [record.Records] do.
	AuditLog(ctx context.Context, id string, from int, each func(record.Line) bool) (record.Log, error)
	LastLines(ctx context.Context, id string, most int) ([]record.Line, error)
	Declare(ctx context.Context, who string, files federation.Files) (id string, err error)
	// WriteBackup and Rewrite have the node read its file of seal keys first, and fail with [ErrKeys]
	// if it cannot.
	WriteBackup(ctx context.Context, w io.Writer) error
	ReadBackup(ctx context.Context, backup io.Reader) (ids []string, err error)
	// Keys returns the keys under which the record is sealed. Rewrite returns them too, after it has
	// sealed whatever it could under the newest key.
	Keys(ctx context.Context) ([]Key, error)
	Rewrite(ctx context.Context) ([]Key, error)
	// Charges returns what each party has spent, in the order of the roster; nil without noise.
	Charges(ctx context.Context, id string) ([]accounting.Claim, error)
	// Head returns the signed note of the newest head of a federation's decisions.
	Head(ctx context.Context, id string) ([]byte, error)
	// Chain returns all decisions of a federation, by line, and the note of their head after them.
	Chain(ctx context.Context, id string) ([]byte, error)
	// Check reads everything that is recorded, and returns what it finds of each federation, by name.
	Check(ctx context.Context) ([]Checked, error)
	// ReadLost takes from a backup what the record has lost, and returns how many of each it took.
	ReadLost(ctx context.Context, backup io.Reader) (took map[string]int, err error)
	// Choose has one of several histories of a federation stand, by the hash of its last line.
	Choose(ctx context.Context, id, last, by string) error
	Cluster
}

// Order is an operator's order to a federation.
type Order struct {
	What  string `json:"what"`
	Party string `json:"party,omitempty"`
	Who   string `json:"who"`
	Seen  string `json:"seen,omitempty"` // the Orders of the status that was seen; empty: any
}

// known reports whether such an order exists.
func (o *Order) known() bool {
	if o.Party != "" {
		return o.What == "exclude" || o.What == "readmit"
	}
	return slices.Contains([]string{"pause", "resume", "end", Forget, ForgetNames}, o.What)
}

// ordersAre lists the orders for those who send another.
const ordersAre = "pause, resume, end, forget or forget-names; of a party exclude or readmit"

// Orders about a federation that has ended.
const (
	Forget      = "forget"       // erase its models and states
	ForgetNames = "forget-names" // of a forgotten one, erase all names too
)

// Options configure the page: see [New].
type Options struct {
	Federations Federations
	Tokens      *Tokens
	Operators   *Operators       // by their keys, next to tokens
	Open        bool             // anyone who reaches it may read
	Now         func() time.Time // nil: time.Now
	Patience    time.Duration    // as in door.Options
	// Known, if not nil, is called for every request that its token or signature permits, with its
	// sender.
	Known  func(r *http.Request, who string)
	Log    *slog.Logger
	Counts *door.Counts
}

//go:embed assets
var assets embed.FS

type site struct{ Options }

const (
	cookie      = "hushsum-token"
	maxDeclared = 512 << 20
	refresh     = 300 * time.Millisecond
)

// Routes lists the patterns of all handlers.
var Routes = []string{
	"GET /{$}",
	"GET /live",
	"GET /node",
	"GET /node/live",
	"GET /federations/{id}",
	"GET /federations/{id}/live",
	"GET /federations/{id}/report",
	"GET /federations/{id}/end",
	"GET /federations/{id}/forget",
	"GET /federations/{id}/parties/{party}/exclude",
	"GET /federations/{id}/model.safetensors",
	"GET /federations/{id}/answers.csv",
	"GET /federations/{id}/plan",
	"POST /federations/{id}/plan",
	"POST /federations/{id}/{what}",
	"POST /federations/{id}/parties/{party}/{what}",
	"GET /login",
	"POST /login",
	"GET /page.css",
	"GET /page.js",
	"GET /healthz",
	"GET /metrics",
	"GET /v1/openapi.json",
	"GET /v1/federations",
	"POST /v1/federations",
	"GET /v1/federations/{id}",
	"GET /v1/federations/{id}/audit",
	"GET /v1/federations/{id}/after",
	"GET /v1/federations/{id}/answers",
	"POST /v1/federations/{id}/plan",
	"POST /v1/federations/{id}/{what}",
	"POST /v1/federations/{id}/parties/{party}/{what}",
	"GET /v1/backup",
	"POST /v1/restore",
	"GET /v1/record",
	"POST /v1/record/heal",
	"POST /v1/federations/{id}/histories/{last}/choose",
	"GET /v1/federations/{id}/head",
	"GET /v1/federations/{id}/chain",
	"GET /v1/keys",
	"POST /v1/keys/rewrite",
	"GET /v1/nodes",
	"POST /v1/nodes/{node}/remove",
	"GET /debug/pprof/{$}",
	"GET /debug/pprof/{profile}",
	"GET /debug/pprof/profile",
}

// New makes the handler.
func New(o Options) http.Handler {
	s := &site{o}
	mux := http.NewServeMux()
	handlers := map[string]http.HandlerFunc{
		"GET /{$}":                                s.read(s.home),
		"GET /live":                               s.read(s.liveHome),
		"GET /node":                               s.read(s.node),
		"GET /node/live":                          s.read(s.liveNode),
		"GET /federations/{id}":                   s.read(s.federation),
		"GET /federations/{id}/live":              s.read(s.live),
		"GET /federations/{id}/report":            s.read(s.report),
		"GET /federations/{id}/end":               s.operate(s.confirmEnd),
		"GET /federations/{id}/forget":            s.operate(s.confirmForget),
		"GET /federations/{id}/model.safetensors": s.read(s.model),
		"GET /federations/{id}/answers.csv":       s.read(s.answersCSV),
		"GET /federations/{id}/plan":              s.operate(s.planForm),
		"POST /federations/{id}/plan":             s.operate(s.plan),
		"POST /federations/{id}/{what}":           s.operate(s.form),
		"GET /login":                              s.loginForm,
		"POST /login":                             s.login,
		"GET /page.css":                           asset,
		"GET /page.js":                            asset,
		"GET /healthz":                            healthy,
		"GET /metrics":                            s.read(s.metrics),
		"GET /v1/openapi.json":                    s.document,
		"GET /v1/federations":                     s.read(s.listJSON),
		"POST /v1/federations":                    s.operate(s.declare),
		"GET /v1/federations/{id}":                s.read(s.statusJSON),
		"GET /v1/federations/{id}/audit":          s.read(s.audit),
		"GET /v1/federations/{id}/after":          s.read(s.afterJSON),
		"GET /v1/federations/{id}/answers":        s.read(s.answersJSON),
		"POST /v1/federations/{id}/plan":          s.operate(s.planJSON),
		"POST /v1/federations/{id}/{what}":        s.operate(s.doJSON),

		"POST /v1/federations/{id}/parties/{party}/{what}": s.operate(s.doJSON),

		"GET /federations/{id}/parties/{party}/exclude": s.operate(s.confirmExclude),
		"POST /federations/{id}/parties/{party}/{what}": s.operate(s.form),

		"GET /v1/backup":                 s.operate(s.backup),
		"POST /v1/restore":               s.operate(s.restore),
		"GET /v1/record":                 s.read(s.recordJSON),
		"POST /v1/record/heal":           s.operate(s.heal),
		"GET /v1/federations/{id}/head":  s.read(s.head),
		"GET /v1/federations/{id}/chain": s.read(s.chain),

		"POST /v1/federations/{id}/histories/{last}/choose": s.operate(s.choose),

		"GET /v1/keys":                 s.read(s.keysJSON),
		"POST /v1/keys/rewrite":        s.operate(s.rewrite),
		"GET /v1/nodes":                s.read(s.nodesJSON),
		"POST /v1/nodes/{node}/remove": s.operate(s.removeNode),
		"GET /debug/pprof/{$}":         s.operate(pprof.Index),
		"GET /debug/pprof/{profile}":   s.operate(pprof.Index),
		"GET /debug/pprof/profile":     s.operate(pprof.Profile),
	}
	for _, pattern := range Routes {
		mux.HandleFunc(pattern, handlers[pattern])
	}
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem(w, r, "origin", "send it from the server's own page, or without a browser")
	}))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; "+
			"connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "+
			"frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if _, pattern := mux.Handler(r); pattern != "" || !forPrograms(r) && !forPeople(r) {
			mux.ServeHTTP(w, r)
		} else if otherMethod(mux, r) {
			problem(w, r, "method", fmt.Sprintf("%.10s", r.Method))
		} else {
			problem(w, r, "route", fmt.Sprintf("%.100s is none; programs see /v1/openapi.json", r.URL.Path))
		}
	})
	return door.Patient(guard.Handler(handler), o.Patience)
}

// otherMethod reports whether the path exists with another method.
func otherMethod(mux *http.ServeMux, r *http.Request) bool {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" {
			return true
		}
	}
	return false
}

func asset(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, assets, "assets/"+strings.TrimPrefix(r.URL.Path, "/"))
}

func healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

func (s *site) model(w http.ResponseWriter, r *http.Request) {
	b, err := s.Federations.Model(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="model.safetensors"`)
	_, _ = w.Write(b)
}

func (s *site) loginForm(w http.ResponseWriter, _ *http.Request) {
	s.render(w, "login.html", false)
}

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if s.Tokens.role(token) == Nobody {
		w.WriteHeader(http.StatusUnauthorized)
		s.render(w, "login.html", true)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name:     cookie,
		Value:    token,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
