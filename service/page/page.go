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
	// After returns what a federation begins with that goes on from one that has ended.
	After(ctx context.Context, id string) (*federation.Files, error)
	AuditLog(ctx context.Context, id string) ([]record.Line, error)
	Declare(ctx context.Context, files federation.Files) (id string, err error)
	WriteBackup(ctx context.Context, w io.Writer) error
	ReadBackup(ctx context.Context, backup io.Reader) (ids []string, err error)
}

// Options make a page.
type Options struct {
	Federations Federations
	Tokens      *Tokens
	Operators   *Operators       // by their keys, beside tokens
	Open        bool             // anybody who reaches it may read
	Now         func() time.Time // nil: time.Now
	Patience    time.Duration    // as that of door.Options
	// Known, if not nil, is told of every request whose token or signature allows it, and by
	// whom it is.
	Known  func(r *http.Request, who string)
	Log    *slog.Logger
	Counts *door.Counts
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

// Routes are the patterns of all handlers.
var Routes = []string{
	"GET /{$}",
	"GET /federations/{id}",
	"GET /federations/{id}/live",
	"GET /federations/{id}/model.safetensors",
	"POST /federations/{id}/{what}",
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
	"POST /v1/federations/{id}/{what}",
	"GET /v1/backup",
	"POST /v1/restore",
	"GET /debug/pprof/{$}",
	"GET /debug/pprof/{profile}",
	"GET /debug/pprof/profile",
}

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
		"states":  states,
		"awaited": awaited,
		"reversed": func(h []runner.Past) []runner.Past {
			var out []runner.Past
			for i := len(h) - 1; i >= 0 && len(out) < 50; i-- {
				out = append(out, h[i])
			}
			return out
		},
	}).ParseFS(assets, "assets/*.html"))
	mux := http.NewServeMux()
	handlers := map[string]http.HandlerFunc{
		"GET /{$}":                                s.read(s.home),
		"GET /federations/{id}":                   s.read(s.federation),
		"GET /federations/{id}/live":              s.read(s.live),
		"GET /federations/{id}/model.safetensors": s.read(s.model),
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
		"GET /v1/federations/{id}/audit":          s.read(s.auditJSON),
		"GET /v1/federations/{id}/after":          s.read(s.afterJSON),
		"POST /v1/federations/{id}/{what}":        s.operate(s.doJSON),
		"GET /v1/backup":                          s.operate(s.backup),
		"POST /v1/restore":                        s.operate(s.restore),
		"GET /debug/pprof/{$}":                    s.operate(pprof.Index),
		"GET /debug/pprof/{profile}":              s.operate(pprof.Index),
		"GET /debug/pprof/profile":                s.operate(pprof.Profile),
	}
	for _, pattern := range Routes {
		mux.HandleFunc(pattern, handlers[pattern])
	}
	guard := http.NewCrossOriginProtection()
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(w, "origin", "send it from the server's own page, or without a browser")
	}))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; "+
			"connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "+
			"frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if _, pattern := mux.Handler(r); pattern != "" || !forPrograms(r) {
			mux.ServeHTTP(w, r)
		} else if otherMethod(mux, r) {
			problem(w, "method", fmt.Sprintf("%.10s", r.Method))
		} else {
			problem(w, "route", "see /v1/openapi.json")
		}
	})
	return door.Patient(guard.Handler(handler), o.Patience)
}

// otherMethod reports whether the path is there with another method.
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
	switch {
	case !orders(what):
		problem(w, "route", "pause, resume or end")
		return
	case isSigned(r): // which could be sent again: it names no state
		problem(w, "match", "a signed order goes to /v1"+r.URL.Path+", with If-Match")
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
