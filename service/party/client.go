package party

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/signature"
)

// ErrServer: the server's address or certificate cannot be used, or belongs to another server.
var ErrServer = errors.New("party: not the server that was named")

// RefusalError is a refusal by the server.
type RefusalError struct {
	Status int
	Kind   string // such as due, see package exchange
	Detail string
	last   uint64 // number of a question, of the kind copied
	head   []byte // of the server, of the kind behind
	again  bool   // the same node answers if asked again at once
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
	// Dial connects to an address of the server; nil: over TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	bases    []*base
	at       atomic.Int64 // which of them; the next after one that does not answer
	wait     atomic.Int64 // how long the server lets a question wait, nanoseconds
	sent     atomic.Int64
	number   atomic.Uint64 // of the last question; it begins with a time
	process  uint64        // a random number of this one
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
	mostJSON   = 1 << 20
	mostRoster = 256 << 20
)

// base is the address of a node.
type base struct {
	address string
	silent  atomic.Int64 // when it last did not answer, 0: it has answered since
}

// passOver is how long a node that did not answer is asked only if others do not either.
const passOver = time.Minute

// move has the next request go to another node than the one at a place: to the next one that has
// not been silent of late.
func (s *Server) move(at int64) {
	to := at + 1
	for k := at + 1; k < at+int64(len(s.bases)); k++ {
		if time.Since(time.Unix(0, s.base(k).silent.Load())) >= passOver {
			to = k
			break
		}
	}
	s.at.CompareAndSwap(at, to)
}

func (s *Server) base(at int64) *base { return s.bases[int(at)%len(s.bases)] }

// do sends a signed request, to the next node if one does not answer or cannot help, and to as many
// as there are at most; and to a node once more that says that another leads by now. head is the
// note of the newest head that the sender has, nil: it does not say.
func (s *Server) do(ctx context.Context, method, path string, body, head []byte,
) (*http.Response, error) {
	tries, again := len(s.bases), true
	for {
		at := s.at.Load()
		answer, err := s.doAt(ctx, s.base(at), method, path, body, head)
		if err == nil || ctx.Err() != nil || !elsewhere(err) {
			return answer, err
		}
		var refusal *RefusalError
		refused := errors.As(err, &refusal)
		if refused && refusal.again && again {
			again = false
			continue
		}
		if !refused {
			s.base(at).silent.Store(time.Now().UnixNano())
		}
		s.move(at)
		if tries--; tries == 0 {
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
	ctx context.Context, to *base, method, path string, body, head []byte,
) (*http.Response, error) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	answer, err := s.timely(ctx, method, to.address+path, body, func(r *http.Request) error {
		s.sent.Add(int64(len(body)))
		exchange.SetHead(r.Header, head)
		return signature.Sign(r, body, s.identity, now())
	})
	if err != nil {
		return nil, withAdvice(err)
	}
	to.silent.Store(0)
	if answer.Header.Get(exchange.HeaderWait) != "" {
		s.wait.Store(int64(exchange.ParseWait(answer.Header)))
	}
	s.learn(ctx, to.address, answer.Header.Get(exchange.HeaderCertificates))
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return nil, refusalOf(answer, text)
	}
	return answer, nil
}

// refusalOf reads the body of an answer that refuses; another program than the server, such as a
// proxy, may have written it, and then there is a status alone.
func refusalOf(answer *http.Response, text []byte) *RefusalError {
	refusal := &RefusalError{Status: answer.StatusCode}
	var p exchange.Problem
	if strict.JSON(text, &p) == nil {
		refusal.Kind, refusal.Detail = strings.TrimPrefix(p.Type, exchange.ProblemPrefix), p.Detail
		refusal.last, _ = strconv.ParseUint(answer.Header.Get(exchange.HeaderNumber), 10, 62)
		refusal.head, _ = exchange.ParseHead(answer.Header)
		refusal.again = answer.Header.Get("Retry-After") == "0"
	}
	return refusal
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
	answer, err := s.do(ctx, http.MethodGet, path, nil, nil)
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
func (s *Server) List(ctx context.Context) ([]exchange.Listed, error) {
	b, _, err := s.read(ctx, "/v1/federations", mostJSON)
	if err != nil {
		return nil, err
	}
	var out []exchange.Listed
	return out, strictJSON(b, &out)
}

// Describe returns the server's description of a federation.
func (s *Server) Describe(ctx context.Context, id string) (*exchange.Description, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id), mostJSON)
	if err != nil {
		return nil, err
	}
	out := new(exchange.Description)
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
func (s *Server) successors(ctx context.Context, id string) ([]exchange.Successor, error) {
	b, _, err := s.read(ctx, "/v1/federations/"+url.PathEscape(id)+"/successors", mostJSON)
	if err != nil {
		return nil, err
	}
	var out []exchange.Successor
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
	ctx context.Context, id string, ask exchange.Ask, most int64,
) (exchange.Next, error) {
	return s.next(ctx, partyPath(id), ask, most, nil, nil)
}

// next calls due with the answer, and what that tells of the chain of decisions, before its message
// is read; if due fails the message is not read. head is that of [Server.do].
func (s *Server) next(
	ctx context.Context, path string, ask exchange.Ask, most int64, head []byte,
	due func(next *exchange.Next, told *exchange.Told) error,
) (exchange.Next, error) {
	ask.Number, ask.Process = s.numbered(), s.process
	answer, err := s.do(ctx, http.MethodGet, path+"/next?"+ask.Query().Encode(), nil, head)
	var refusal *RefusalError
	if errors.As(err, &refusal) && refusal.Kind == "twice" {
		s.above(refusal.last) // and the party says so
	}
	if errors.As(err, &refusal) && refusal.Kind == "copied" {
		s.above(refusal.last)
		ask.Number = s.numbered()
		answer, err = s.do(ctx, http.MethodGet, path+"/next?"+ask.Query().Encode(), nil, head)
	}
	if err != nil {
		return exchange.Next{}, err
	}
	defer answer.Body.Close()
	next, err := nextOf(answer)
	if err != nil || next.Kind == exchange.Nothing {
		return next, err
	}
	if due != nil {
		told, err := exchange.ParseTold(answer.Header)
		if err == nil {
			err = due(&next, told)
		}
		if err != nil {
			return exchange.Next{}, err
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
func nextOf(answer *http.Response) (exchange.Next, error) {
	kind := exchange.Kind(answer.Header.Get(exchange.HeaderNext))
	if nothing := answer.StatusCode == http.StatusNoContent; nothing != (kind == exchange.Nothing) {
		return exchange.Next{}, fmt.Errorf("%w: status %d and %s %.20q", errOther, answer.StatusCode,
			exchange.HeaderNext, kind)
	}
	next, err := exchange.ParseNext(answer.Header)
	if err != nil {
		return exchange.Next{}, fmt.Errorf("%w: %w", ErrServer, err)
	}
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
