package door

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// prefixLog begins the paths of the public log.
const prefixLog = "/log/"

// logFiles are the names of files that tlog-tiles has, and of the key that verifies checkpoints.
var logFiles = regexp.MustCompile(`^(checkpoint|key|tile/(entries|[0-9]{1,2})/(x[0-9]{3}/)*` +
	`[0-9]{3}(\.p/[0-9]{1,3})?)$`)

// publicLog serves a file of the public log.
func (d *Door) publicLog(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, prefixLog)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		d.refuse(w, "method", "%.10s", r.Method)
		return
	}
	if !logFiles.MatchString(name) {
		d.refuse(w, "route", "the log has /log/checkpoint, /log/key and /log/tile/…")
		return
	}
	b, err := os.ReadFile(filepath.Join(d.PublicLog, filepath.FromSlash(name)))
	if err != nil {
		d.refuse(w, "route", "the log has no such file, or not yet")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if strings.HasPrefix(name, "tile/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Content-Type", "text/plain; charset=utf-8")
	}
	d.Counts.BytesOut.Add(int64(len(b)))
	_, _ = w.Write(b)
}

// mostCosignature is the longest text of a cosignature, in bytes.
const mostCosignature = 1 << 10

// cosignature takes a witness's cosignature of the public log's checkpoint: the witness's key and
// the line, each in a line.
func (d *Door) cosignature(w http.ResponseWriter, r *http.Request, c *caller) {
	text, ok := d.whole(w, r, c, mostCosignature)
	if !ok {
		return
	}
	if d.PublicLog == "" || d.Cosigned == nil {
		d.refuse(w, "route", "the server publishes no log")
		return
	}
	key, line, _ := strings.Cut(string(text), "\n")
	if err := d.Cosigned(key, line); err != nil {
		d.refuse(w, "message", "%v", err)
		return
	}
	held(w)
}
