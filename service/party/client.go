package party

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// ErrServer: the server's address or certificate cannot be used, or belongs to another server.
var ErrServer = errors.New("party: not the server that was named")

// RefusalError is a refusal by the server.
type RefusalError struct {
	Status int
	Kind   string // such as due, see package door
	Detail string
	last   uint64 // number of a question, of the kind copied
}

func (e *RefusalError) Error() string {
	if e.Kind == "" { // not a node's own words
		text := fmt.Sprintf("party: something between here and the server refuses (%d)", e.Status)
		if e.Status == http.StatusRequestEntityTooLarge {
			text += ": let the proxy pass longer bodies, as client_max_body_size 0 does for nginx"
		}
		return text
	}
	text := fmt.Sprintf("party: the server refuses (%d", e.Status)
	text += ", " + e.Kind + ")"
	if e.Detail != "" {
		text += fmt.Sprintf(": %.300s", e.Detail)
	}
	return text
}

// Server is a client of one server. It is safe for concurrent use.
type Server struct {
	Now func() time.Time // the time that requests are signed with; nil: time.Now

	bases    []string
	at       atomic.Int64 // which of them; the next after one that does not answer
	sent     atomic.Int64
	number   atomic.Uint64 // of the last question; it begins with a time
	identity crypto.Signer
	client   *http.Client
	pins     *pins // nil: certificates that this machine trusts
}

// Where parties and members of the committee send questions and messages.
func partyPath(id string) string  { return "/v1/federations/" + id }
func memberPath(id string) string { return partyPath(id) + "/committee" }

// Times of requests.
const (
	dialTime   = 10 * time.Second
	answerTime = 60 * time.Second
	mostJSON   = 1 << 20
	mostRoster = 256 << 20
)

// do sends a signed request, to the next node if one does not answer or cannot help, and to each at
// most once. The caller closes the answer's body.
func (s *Server) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	for tried := 1; ; tried++ {
		at := s.at.Load()
		answer, err := s.doAt(ctx, s.bases[int(at)%len(s.bases)], method, path, body)
		if err == nil || ctx.Err() != nil || !elsewhere(err) {
			return answer, err
		}
		s.at.CompareAndSwap(at, at+1)
		if tried == len(s.bases) {
			return nil, err
		}
	}
}

// elsewhere reports whether another node may answer better: this one does not answer, has no leader
// or record, has not read its federations or has another clock, or something in its place answers.
func elsewhere(err error) bool {
	var refusal *RefusalError
	if !errors.As(err, &refusal) {
		return true
	}
	switch refusal.Kind {
	case "", "unknown", "clock":
		return true
	}
	return refusal.Status >= http.StatusInternalServerError
}

// doAt sends a signed request to one node.
func (s *Server) doAt(
	ctx context.Context, base, method, path string, body []byte,
) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, base+path, reader)
	if err != nil {
		return nil, err
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	if err := signature.Sign(r, body, s.identity, now()); err != nil {
		return nil, err
	}
	s.sent.Add(int64(len(body)))
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, withAdvice(err)
	}
	s.learn(ctx, base, answer.Header.Get(door.HeaderCertificates))
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		refusal := &RefusalError{Status: answer.StatusCode}
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		var p door.Problem
		if json.Unmarshal(text, &p) == nil {
			refusal.Kind, refusal.Detail = strings.TrimPrefix(p.Type, door.ProblemPrefix), p.Detail
			refusal.last, _ = strconv.ParseUint(answer.Header.Get(door.HeaderNumber), 10, 62)
		}
		return nil, refusal
	}
	return answer, nil
}

// withAdvice adds advice for the case that no version of TLS is shared, as with a proxy that ends
// it and whose certificate's fingerprint was given. The library has no type for that alert.
func withAdvice(err error) error {
	if !strings.Contains(err.Error(), "protocol version") {
		return err
	}
	return fmt.Errorf("%w; what answers there, perhaps a proxy, speaks too old a TLS: turn on 1.3, "+
		"or leave out its fingerprint if an authority has signed its certificate, in which case 1.2 "+
		"will do",
		err)
}

// read sends a request and reads an answer of at most a given number of bytes.
func (s *Server) read(ctx context.Context, path string, most int64) ([]byte, http.Header, error) {
	answer, err := s.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	b, err := bodyOf(answer, most)
	return b, answer.Header, err
}

// bodyOf reads an answer of at most a given number of bytes, into a buffer of the answer's length
// if the answer states it.
func bodyOf(answer *http.Response, most int64) ([]byte, error) {
	if answer.ContentLength > most {
		return nil, fmt.Errorf("%w: it answers more than %d bytes", ErrServer, most)
	}
	if answer.ContentLength >= 0 {
		b := make([]byte, answer.ContentLength)
		_, err := io.ReadFull(answer.Body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%w: it answers more than %d bytes", ErrServer, most)
	}
	return b, err
}

func strictJSON(b []byte, into any) error {
	if err := strict.JSON(b, into); err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	return nil
}

// List returns the server's federations.
func (s *Server) List(ctx context.Context) ([]door.Listed, error) {
	b, _, err := s.read(ctx, "/v1/federations", mostJSON)
	if err != nil {
		return nil, err
	}
	var out []door.Listed
	return out, strictJSON(b, &out)
}

// Describe returns the server's description of a federation.
func (s *Server) Describe(ctx context.Context, id string) (*door.Description, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id), mostJSON)
	if err != nil {
		return nil, err
	}
	out := new(door.Description)
	return out, strictJSON(b, out)
}

// Roster returns the text of a federation's roster, as the server has it.
func (s *Server) Roster(ctx context.Context, id string) ([]byte, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/roster", mostRoster)
	return b, err
}

// Committee returns the text of the committee of a federation, as the server has it.
func (s *Server) Committee(ctx context.Context, id string) ([]byte, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/committee", mostJSON)
	return b, err
}

// Before returns the text of what the parties of a federation have spent before.
func (s *Server) Before(ctx context.Context, id string) ([]byte, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/before", mostRoster)
	return b, err
}

// successors returns the federations that, according to the server, continue another.
func (s *Server) successors(ctx context.Context, id string) ([]door.Successor, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/successors", mostJSON)
	if err != nil {
		return nil, err
	}
	var out []door.Successor
	return out, strictJSON(b, &out)
}

// Model returns the broadcast of a round, or with round 0 the last model.
func (s *Server) Model(ctx context.Context, id string, round int, most int64) ([]byte, error) {
	path := "/v1/federations/" + id + "/model"
	if round > 0 {
		path = "/v1/federations/" + id + "/rounds/" + strconv.Itoa(round) + "/model"
	}
	b, _, err := s.read(ctx, path, most)
	return b, err
}

// Next asks what is next.
func (s *Server) Next(
	ctx context.Context, id string, ask runner.Ask, most int64,
) (runner.Next, error) {
	return s.next(ctx, partyPath(id), ask, most, nil)
}

// next calls due with the answer before its message is read; if due fails the message is not read.
func (s *Server) next(
	ctx context.Context, path string, ask runner.Ask, most int64, due func(next *runner.Next) error,
) (runner.Next, error) {
	q := make(url.Values)
	var sessions []string
	for _, n := range ask.Sessions {
		sessions = append(sessions, strconv.FormatUint(n, 10))
	}
	if sessions != nil {
		q.Set("sessions", strings.Join(sessions, ","))
	}
	if ask.Seen != nil {
		q.Set("seen", strings.Join(ask.Seen, ","))
	}
	if ask.Working {
		q.Set("working", "true")
	}
	if ask.Absent > 0 {
		q.Set("absent", strconv.FormatUint(ask.Absent, 10))
	}
	if ask.Offer > 0 {
		q.Set("offer", strconv.FormatUint(ask.Offer, 10))
	}
	q.Set("number", strconv.FormatUint(s.numbered(), 10))
	q.Set("least", strconv.FormatUint(ask.Least, 10))
	q.Set("round", strconv.FormatUint(ask.Round, 10))
	answer, err := s.do(ctx, http.MethodGet, path+"/next?"+q.Encode(), nil)
	var refusal *RefusalError
	if errors.As(err, &refusal) && refusal.Kind == "copied" {
		s.above(refusal.last)
		q.Set("number", strconv.FormatUint(s.numbered(), 10))
		answer, err = s.do(ctx, http.MethodGet, path+"/next?"+q.Encode(), nil)
	}
	if err != nil {
		return runner.Next{}, err
	}
	defer answer.Body.Close()
	next, err := nextOf(answer)
	if err != nil || next.Kind == runner.Nothing {
		return next, err
	}
	if due != nil {
		if err := due(&next); err != nil {
			return runner.Next{}, err
		}
	}
	next.Message, err = bodyOf(answer, most)
	return next, err
}

// numbered returns the number of the next question. It counts from when the Server was made, and so
// reveals nothing of when a party did what.
func (s *Server) numbered() uint64 { return s.number.Add(1) }

// above makes the number of the next question larger than a given one.
func (s *Server) above(number uint64) {
	for last := s.number.Load(); last < number; last = s.number.Load() {
		s.number.CompareAndSwap(last, number)
	}
}

// errOther: an answer that no server of this kind sends, such as a proxy's own page.
var errOther = errors.New("party: something else answers instead of the server")

// nextOf reads what is next from an answer.
func nextOf(answer *http.Response) (runner.Next, error) {
	h := answer.Header
	next := runner.Next{Kind: runner.Kind(h.Get(door.HeaderNext)), Item: h.Get(door.HeaderItem)}
	if nothing := answer.StatusCode == http.StatusNoContent; nothing != (next.Kind == runner.Nothing) {
		return runner.Next{}, fmt.Errorf("%w: status %d and %s %.20q", errOther, answer.StatusCode,
			door.HeaderNext, next.Kind)
	}
	if next.Kind == runner.Nothing {
		return next, nil
	}
	var e1 error
	next.Session, e1 = strconv.ParseUint(h.Get(door.HeaderSession), 10, 64)
	round, e2 := strconv.ParseUint(h.Get(door.HeaderRound), 10, 31)
	if e1 != nil || e2 != nil || len(next.Item) > 64 || strings.ContainsAny(next.Item, ",") {
		return runner.Next{}, fmt.Errorf("%w: the headers of its answer", ErrServer)
	}
	next.Round = int(round)
	return next, nil
}

// Send sends a message.
func (s *Server) Send(ctx context.Context, id string, message []byte) error {
	return s.send(ctx, partyPath(id), message)
}

// mostInitial is the maximum size of a federation's first model in bytes.
const mostInitial = 8<<27 + 2<<20

// Sent returns how many bytes of messages were sent, including repetitions.
func (s *Server) Sent() int64 { return s.sent.Load() }

// Initial returns the file of a federation's first model.
func (s *Server) Initial(ctx context.Context, id string) ([]byte, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/initial", mostInitial)
	return b, err
}
