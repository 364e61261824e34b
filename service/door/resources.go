package door

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
)

func (d *Door) healthy(w http.ResponseWriter, _ *http.Request) {
	if d.Healthy != nil {
		if err := d.Healthy(); err != nil {
			d.refuse(w, "record", "%v", err)
			return
		}
	}
	_, _ = io.WriteString(w, "ok\n")
}

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

func (d *Door) certificates(w http.ResponseWriter, _ *http.Request) {
	all := []exchange.NextCertificate{}
	if d.Certificates != nil {
		all = append(all, d.Certificates()...)
	}
	answer(w, all)
}

// digestOf returns a digest of statements that does not depend on their order.
func digestOf(all []exchange.NextCertificate) string {
	var signatures []string
	for _, c := range all {
		signatures = append(signatures, string(c.Signature))
	}
	slices.Sort(signatures)
	h := sha256.New()
	for _, s := range signatures {
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (d *Door) list(w http.ResponseWriter, _ *http.Request) {
	out := []exchange.Listed{}
	for _, e := range d.Federations.Entries() {
		out = append(out, exchange.Listed{Name: e.Federation.Job.Name, ID: e.Federation.ID})
	}
	answer(w, append(out, d.Federations.Archive()...))
}

func (d *Door) describe(w http.ResponseWriter, _ *http.Request, c *caller) {
	f := c.Federation
	digest := f.Settled.Roster().Digest()
	committee := ""
	if one := f.Settled.Oneshot(); one != nil {
		digest := one.Committee.Digest()
		committee = hex.EncodeToString(digest[:])
	}
	answer(w, exchange.Description{
		Committee: committee,
		Name:      f.Job.Name,
		ID:        f.ID,
		Job:       f.JobDigest,
		Text:      string(f.Text),
		Roster:    hex.EncodeToString(digest[:]),
		Initial:   f.Job.Model.File != "",
		Before:    c.Files.Before != nil,
		Meaning:   f.Meaning(),
		Key:       hex.EncodeToString(f.Key),
	})
}

func (d *Door) roster(w http.ResponseWriter, _ *http.Request, c *caller) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(c.Files.Roster)
}

func (d *Door) committee(w http.ResponseWriter, _ *http.Request, c *caller) {
	if c.Files.Committee == nil {
		d.refuse(w, "route", "the federation has no committee")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(c.Files.Committee)
}

func (d *Door) initial(w http.ResponseWriter, r *http.Request, c *caller) {
	if c.Files.Model == nil {
		d.refuse(w, "route", "the federation names no first model")
		return
	}
	d.serveModel(w, r, c.Files.Model)
}

func (d *Door) before(w http.ResponseWriter, _ *http.Request, c *caller) {
	if c.Files.Before == nil {
		d.refuse(w, "route", "the federation continues none")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(c.Files.Before)
}

func (d *Door) successors(w http.ResponseWriter, _ *http.Request, c *caller) {
	out := []exchange.Successor{}
	for _, e := range d.Federations.Entries() {
		f := e.Federation
		before := f.Settled.Before()
		if before == nil || before.Federation != c.Federation.ID {
			continue
		}
		out = append(out, exchange.Successor{
			Name:       f.Job.Name,
			ID:         f.ID,
			Succession: append([]byte{}, e.Files.Succession...),
		})
	}
	answer(w, out)
}

// model serves the broadcast of a round, or the last model, with ranges.
func (d *Door) model(w http.ResponseWriter, r *http.Request, c *caller) {
	round := 0
	if r.PathValue("round") != "" {
		var ok bool
		if round, ok = d.round(w, r); !ok {
			return
		}
	}
	b, err := c.Runner.Broadcast(r.Context(), c.peer.Index, round)
	switch {
	case errors.Is(err, runner.ErrNotDue):
		d.refuse(w, "due", "the round takes no submissions")
		return
	case err != nil:
		d.refuse(w, "leader", "%v", err)
		return
	}
	d.serveModel(w, r, b)
}

// round reads the round in a path.
func (d *Door) round(w http.ResponseWriter, r *http.Request) (round int, ok bool) {
	text := r.PathValue("round")
	round, err := strconv.Atoi(text)
	if err != nil || round < 1 || strconv.Itoa(round) != text {
		d.refuse(w, "query", "a round is a number from 1")
		return 0, false
	}
	return round, true
}

// receipt serves a party's receipt of a round.
func (d *Door) receipt(w http.ResponseWriter, r *http.Request, c *caller) {
	round, ok := d.round(w, r)
	if !ok {
		return
	}
	b, err := c.Runner.Receipt(r.Context(), c.peer.Index, round)
	switch {
	case errors.Is(err, runner.ErrNoReceipt):
		d.refuse(w, "receipt", "ask for the rounds that the party was in, soon after each")
	case err != nil:
		d.refuse(w, "leader", "%v", err)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(b)
	}
}

// serveModel serves a file, with ranges and its digest as ETag.
func (d *Door) serveModel(w http.ResponseWriter, r *http.Request, b []byte) {
	digest := sha256.Sum256(b)
	w.Header().Set("ETag", `"`+hex.EncodeToString(digest[:])+`"`)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "private, no-cache")
	file := newCounted(b, &d.Counts.BytesOut)
	http.ServeContent(&served{ResponseWriter: w, door: d}, r, "", time.Time{}, file)
}

// served turns refusals of package http into problems.
type served struct {
	http.ResponseWriter
	door    *Door
	refused bool
}

// WriteHeader begins the answer.
func (w *served) WriteHeader(status int) {
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		w.refused = true
		w.door.refuse(w.ResponseWriter, "range", "it has %s",
			strings.TrimPrefix(w.Header().Get("Content-Range"), "bytes */")+" bytes")
	case http.StatusPreconditionFailed:
		w.refused = true
		w.door.refuse(w.ResponseWriter, "match", "take it without If-Match, and compare its ETag")
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write continues the answer.
func (w *served) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
