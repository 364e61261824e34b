// Package page is what operators see and use: one page without assets from elsewhere,
// which works without JavaScript but for live updates, and the same as JSON for programs.
// It shows of a single party whether it is there and has sent what is due, and nothing
// that its update says.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// ErrStale: the federation has moved on since the operator looked.
var ErrStale = errors.New("page: the federation has moved on; look again")

// Federations is what the page shows.
type Federations interface {
	Listing(ctx context.Context) []*runner.Status
	Status(ctx context.Context, id string) (*runner.Status, error)
	// Do pauses, resumes or ends; decisions, if not nil, is how many the operator has seen.
	Do(ctx context.Context, id, what, who string, decisions *uint64) (*runner.Status, error)
	Model(ctx context.Context, id string) ([]byte, error)
	Meaning(id string) []string
	AuditLog(ctx context.Context, id string) ([]record.Line, error)
	Declare(ctx context.Context, text, roster, model []byte) (id string, err error)
}

// Options make a page.
type Options struct {
	Federations Federations
	Tokens      *Tokens
	Operators   Operators        // by their keys, beside tokens
	Open        bool             // anybody who reaches it may read
	Now         func() time.Time // nil: time.Now
	Log         *slog.Logger
	Counts      *door.Counts
}

//go:embed assets
var assets embed.FS

type site struct {
	Options
	templates *template.Template
}

const (
	cookie      = "hushsum-token"
	maxDeclared = 512 << 20
	refresh     = 300 * time.Millisecond
)

// New makes the handler.
func New(o Options) http.Handler {
	s := &site{Options: o}
	s.templates = template.Must(template.New("").Funcs(template.FuncMap{
		"number": func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) },
		"percent": func(part, whole float64) float64 {
			if whole <= 0 {
				return 0
			}
			return min(100, 100*part/whole)
		},
		"chart": chart,
		"last": func(h []runner.Past) *runner.Past {
			if len(h) == 0 {
				return nil
			}
			return &h[len(h)-1]
		},
		"states": states,
		"reversed": func(h []runner.Past) []runner.Past {
			var out []runner.Past
			for i := len(h) - 1; i >= 0 && len(out) < 50; i-- {
				out = append(out, h[i])
			}
			return out
		},
	}).ParseFS(assets, "assets/*.html"))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.read(s.home))
	mux.HandleFunc("GET /federations/{id}", s.read(s.federation))
	mux.HandleFunc("GET /federations/{id}/live", s.read(s.live))
	mux.HandleFunc("GET /federations/{id}/model.safetensors", s.read(s.model))
	mux.HandleFunc("POST /federations/{id}/{what}", s.operate(s.form))
	mux.HandleFunc("GET /login", s.loginForm)
	mux.HandleFunc("POST /login", s.login)
	for _, name := range []string{"page.css", "page.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+name)
		})
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /metrics", s.read(s.metrics))
	mux.HandleFunc("GET /v1/federations", s.read(s.listJSON))
	mux.HandleFunc("POST /v1/federations", s.operate(s.declare))
	mux.HandleFunc("GET /v1/federations/{id}", s.read(s.statusJSON))
	mux.HandleFunc("GET /v1/federations/{id}/audit", s.read(s.auditJSON))
	mux.HandleFunc("POST /v1/federations/{id}/{what}", s.operate(s.doJSON))
	mux.HandleFunc("GET /debug/pprof/", s.operate(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/profile", s.operate(pprof.Profile))
	guard := http.NewCrossOriginProtection()
	return guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; "+
			"connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "+
			"frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}))
}

// caller is who sends a request.
type caller struct{}

// who returns who sends a request, as far as its token or signature tells.
func who(r *http.Request) Operator {
	o, _ := r.Context().Value(caller{}).(Operator)
	return o
}

// known has the next handler find in the request who sends it, if its role is enough.
func (s *site) known(enough func(Role) bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o := Operator{Name: "an operator", Role: s.role(r)}
		if r.Header.Get("Signature") != "" || r.Header.Get("Signature-Input") != "" {
			var err error
			if o, err = s.signed(r); err != nil {
				problem(w, http.StatusUnauthorized, "signature", err.Error())
				return
			}
		}
		if !enough(o.Role) {
			s.unauthorized(w, r)
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), caller{}, o)))
	}
}

// role returns what a request's token allows.
func (s *site) role(r *http.Request) Role {
	if token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); found {
		return s.Tokens.Role(token)
	}
	if c, err := r.Cookie(cookie); err == nil {
		if role := s.Tokens.Role(c.Value); role != Nobody {
			return role
		}
	}
	if s.Open {
		return Read
	}
	return Nobody
}

func (s *site) read(next http.HandlerFunc) http.HandlerFunc {
	return s.known(func(role Role) bool { return role != Nobody }, next)
}

func (s *site) operate(next http.HandlerFunc) http.HandlerFunc {
	return s.known(func(role Role) bool { return role == Operate }, next)
}

func (s *site) unauthorized(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/metrics" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		problem(w, http.StatusUnauthorized, "token",
			"send an operator's token of the right role, or sign by an operator's key")
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func problem(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(door.Problem{
		Type:   door.ProblemPrefix + kind,
		Title:  http.StatusText(status),
		Status: status,
		Detail: detail,
	})
}

// fail answers with the problem that an error is.
func fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, record.ErrNone):
		problem(w, http.StatusNotFound, "unknown", err.Error())
	case errors.Is(err, ErrStale):
		problem(w, http.StatusPreconditionFailed, "stale", err.Error())
	case errors.Is(err, record.ErrExists):
		problem(w, http.StatusConflict, "exists", err.Error())
	case errors.Is(err, federation.ErrConfig):
		problem(w, http.StatusUnprocessableEntity, "federation", err.Error())
	case errors.Is(err, runner.ErrStopped), errors.Is(err, record.ErrUnavailable):
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusServiceUnavailable, "leader", err.Error())
	default:
		problem(w, http.StatusConflict, "state", err.Error())
	}
}

func (s *site) render(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := s.templates.ExecuteTemplate(w, name, data); err != nil {
		s.Log.Warn("a page broke off", "error", err.Error())
	}
}

func (s *site) home(w http.ResponseWriter, r *http.Request) {
	s.render(w, "home.html", s.Federations.Listing(r.Context()))
}

// view is what the page of a federation shows.
type view struct {
	*runner.Status
	Meaning []string
	Audit   []record.Line
	Operate bool
}

func (s *site) view(r *http.Request) (*view, error) {
	id := r.PathValue("id")
	status, err := s.Federations.Status(r.Context(), id)
	if err != nil {
		return nil, err
	}
	v := &view{
		Status:  status,
		Meaning: s.Federations.Meaning(id),
		Operate: who(r).Role == Operate,
	}
	return v, nil
}

func (s *site) federation(w http.ResponseWriter, r *http.Request) {
	v, err := s.view(r)
	if err != nil {
		fail(w, err)
		return
	}
	if lines, err := s.Federations.AuditLog(r.Context(), v.ID); err == nil {
		for i := len(lines) - 1; i >= 0 && len(v.Audit) < 30; i-- {
			v.Audit = append(v.Audit, lines[i])
		}
	}
	s.render(w, "federation.html", v)
}

// live sends the changing part of the page whenever it changes, as server-sent events.
func (s *site) live(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	last := ""
	for {
		v, err := s.view(r)
		var b strings.Builder
		if err == nil {
			err = s.templates.ExecuteTemplate(&b, "live.html", v)
		}
		if text := b.String(); err == nil && text != last {
			last = text
			encoded, _ := json.Marshal(text)
			if _, err := fmt.Fprintf(w, "data: %s\n\n", encoded); err != nil {
				return
			}
			if controller.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(refresh):
		}
	}
}

func (s *site) model(w http.ResponseWriter, r *http.Request) {
	b, err := s.Federations.Model(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="model.safetensors"`)
	_, _ = w.Write(b)
}

func orders(what string) bool { return what == "pause" || what == "resume" || what == "end" }

// form does what a button says.
func (s *site) form(w http.ResponseWriter, r *http.Request) {
	id, what := r.PathValue("id"), r.PathValue("what")
	if !orders(what) {
		http.NotFound(w, r)
		return
	}
	if _, err := s.Federations.Do(r.Context(), id, what, who(r).Name, nil); err != nil {
		fail(w, err)
		return
	}
	http.Redirect(w, r, "/federations/"+id, http.StatusSeeOther)
}

func (s *site) loginForm(w http.ResponseWriter, _ *http.Request) {
	s.render(w, "login.html", false)
}

func (s *site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	token := strings.TrimSpace(r.PostFormValue("token"))
	if s.Tokens.Role(token) == Nobody {
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

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *site) listJSON(w http.ResponseWriter, r *http.Request) {
	list := s.Federations.Listing(r.Context())
	if list == nil {
		list = []*runner.Status{}
	}
	answer(w, list)
}

func (s *site) statusJSON(w http.ResponseWriter, r *http.Request) {
	status, err := s.Federations.Status(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}

// etag is the number of decisions, for If-Match.
func etag(s *runner.Status) string { return fmt.Sprintf("%q", strconv.FormatUint(s.Decisions, 10)) }

func (s *site) auditJSON(w http.ResponseWriter, r *http.Request) {
	lines, err := s.Federations.AuditLog(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, lines)
}

// Declared is the body that declares a federation.
type Declared struct {
	Text   []byte `json:"text"`
	Roster []byte `json:"roster"`
	Model  []byte `json:"model,omitempty"`
}

func (s *site) declare(w http.ResponseWriter, r *http.Request) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDeclared))
	decoder.DisallowUnknownFields()
	var d Declared
	if err := decoder.Decode(&d); err != nil {
		problem(w, http.StatusBadRequest, "query", err.Error())
		return
	}
	id, err := s.Federations.Declare(r.Context(), d.Text, d.Roster, d.Model)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Location", "/v1/federations/"+id)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]string{"id": id})
}

// doJSON does what an operator's program says. If-Match has the ETag that it has seen, or
// a star.
func (s *site) doJSON(w http.ResponseWriter, r *http.Request) {
	what := r.PathValue("what")
	if !orders(what) {
		problem(w, http.StatusNotFound, "route", "pause, resume or end")
		return
	}
	var seen *uint64
	switch match := r.Header.Get("If-Match"); match {
	case "":
		problem(w, http.StatusPreconditionRequired, "match",
			"send If-Match: the ETag of the status, or *")
		return
	case "*":
		if r.Header.Get("Signature") != "" { // a copy of it could be sent again
			problem(w, http.StatusPreconditionFailed, "match", "a signed order takes the ETag of the status")
			return
		}
	default:
		n, err := strconv.ParseUint(strings.Trim(match, `"`), 10, 64)
		if seen = &n; err != nil {
			problem(w, http.StatusPreconditionFailed, "stale", "the ETag is not one of this resource")
			return
		}
	}
	status, err := s.Federations.Do(r.Context(), r.PathValue("id"), what, who(r).Name, seen)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(status))
	answer(w, status)
}

// metrics are in the text form of Prometheus. Names have no party.
func (s *site) metrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	line := func(name, labels string, value float64) {
		fmt.Fprintf(w, "hushsum_%s%s %v\n", name, labels, value)
	}
	if c := s.Counts; c != nil {
		line("door_requests_total", "", float64(c.Requests.Load()))
		line("door_refused_total", "", float64(c.Refused.Load()))
		line("door_bytes_in_total", "", float64(c.BytesIn.Load()))
		line("door_bytes_out_total", "", float64(c.BytesOut.Load()))
	}
	for _, f := range s.Federations.Listing(r.Context()) {
		labels := fmt.Sprintf("{federation=%q}", f.Name)
		line("rounds_begun_total", labels, float64(f.Round))
		line("rounds_lost_total", labels, float64(f.Lost))
		line("decisions_total", labels, float64(f.Decisions))
		line("epsilon_spent", labels, f.Epsilon)
		line("epsilon_budget", labels, f.Budget)
		for state, n := range states(f.Parties) {
			line("parties", fmt.Sprintf("{federation=%q,state=%q}", f.Name, state), float64(n))
		}
	}
}

// states counts parties by state.
func states(parties []runner.PartyStatus) map[string]int {
	out := map[string]int{"here": 0, "late": 0, "gone": 0, "never": 0}
	for _, p := range parties {
		out[p.State]++
	}
	return out
}
