package door

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// slowestBytes is how many bytes of a body must come in a second, and go of an answer, with
// what a connection's owner is given besides.
const slowestBytes = 16 << 10

// DefaultPatience is how long a server waits for the first bytes of headers and bodies.
const DefaultPatience = 10 * time.Second

// pauses is how many times as long a body may pause once it has begun to arrive: TCP waits for some
// seconds before it sends lost bytes again.
const pauses = 3

// patient ends bodies that do not arrive.
type patient struct {
	next     http.Handler
	patience time.Duration
	now      func() time.Time
}

// Patient returns a handler that reads bodies under deadlines, which grow with the bytes received:
// a long body may take its time, but if nothing arrives for as long as patience, 0 for
// [DefaultPatience], the connection ends. That holds even if the next handler does not read the
// body, when package http looks for its end in order to use the connection again.
func Patient(next http.Handler, patience time.Duration) http.Handler {
	return newPatient(next, patience, time.Now)
}

func newPatient(next http.Handler, patience time.Duration, now func() time.Time) patient {
	if patience == 0 {
		patience = DefaultPatience
	}
	return patient{next, patience, now}
}

// ServeHTTP has the next handler read the body under deadlines.
func (p patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		p.next.ServeHTTP(w, r)
		return
	}
	b := &patientBody{ReadCloser: r.Body, patient: p, control: http.NewResponseController(w)}
	_ = b.control.SetReadDeadline(p.now().Add(p.patience))
	defer b.end()
	r.Body = b
	p.next.ServeHTTP(patientWriter{w, b, r.ContentLength < 0 || r.ContentLength > shortBody}, r)
}

// shortBody is how long a body is at most that its sender sends at once, whatever the answer.
const shortBody = 64 << 10

// patientWriter is the answer to a request with a body.
type patientWriter struct {
	http.ResponseWriter
	body *patientBody
	long bool
}

// Unwrap is for [http.ResponseController].
func (w patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unread reports whether the body is long, and nothing of it was read.
func (w patientWriter) unread() bool {
	w.body.mutex.Lock()
	defer w.body.mutex.Unlock()
	return w.long && w.body.began.IsZero()
}

// patientBody sets its connection's deadline before each read. Readers other than the handler, such
// as a proxy's transport, may read it too, and after the handler's end its connection's deadlines
// belong to another request.
type patientBody struct {
	io.ReadCloser
	patient
	control *http.ResponseController

	mutex sync.Mutex
	began time.Time // zero until the first read
	came  int64
	ended bool
}

// Read reads what has arrived, by the deadline that follows from the bytes received before.
func (b *patientBody) Read(p []byte) (n int, err error) {
	if !b.wait() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err = b.ReadCloser.Read(p)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.came += int64(n)
	if err == io.EOF && !b.ended {
		// From here on package http reads to notice that the client is gone, however long the
		// answer takes.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// wait sets the deadline, unless the handler has ended.
func (b *patientBody) wait() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.ended {
		return false
	}
	now := b.now()
	if b.began.IsZero() {
		b.began = now
	}
	limit := b.began.Add(b.patience + bytesTime(b.came))
	if pause := now.Add(pauses * b.patience); pause.Before(limit) {
		limit = pause
	}
	_ = b.control.SetReadDeadline(limit)
	return true
}

func (b *patientBody) end() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.ended = true
}

// bytesTime is how long bytes may take at the lowest speed that is accepted.
func bytesTime(n int64) time.Duration {
	return time.Duration(float64(n) / slowestBytes * float64(time.Second))
}
