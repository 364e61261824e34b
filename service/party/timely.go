package party

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/hushsum/hushsum/service/exchange"
)

// This file finds out that a node does not answer although its machine keeps the connection: its
// process is frozen, or its disk. Questions are answered within a time that the server states, so
// that each question is a sign of life, and no other is needed.

// errSilent: a node did not answer, or its answer broke off.
var errSilent = errors.New("party: the node does not answer")

// slowest is how many bytes of a body have to leave in a second, as at the door.
const slowest = 16 << 10

// patience is how long the server may take to answer, or to go on with an answer.
func (s *Server) patience() time.Duration {
	return exchange.Late + time.Duration(s.wait.Load())
}

// timely sends a request, once it is signed, and fails with errSilent if no answer begins in time
// or if one that has begun stands still while it is read.
func (s *Server) timely(
	ctx context.Context, method, address string, body []byte, sign func(*http.Request) error,
) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	patience := s.patience()
	silent := fmt.Errorf("%w within %v", errSilent, patience)
	timer := time.AfterFunc(patience+time.Duration(len(body)/slowest)*time.Second, func() {
		cancel(silent)
	})
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { timer.Reset(patience) },
		})
	}
	r, err := http.NewRequestWithContext(ctx, method, address, reader)
	if err == nil && sign != nil {
		err = sign(r)
	}
	var answer *http.Response
	if err == nil {
		answer, err = s.client.Do(r)
	}
	timer.Stop()
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	answer.Body = &timelyBody{answer.Body, ctx, timer, patience, cancel}
	return answer, nil
}

// timelyBody is the body of an answer that is given up if nothing of it comes for long.
type timelyBody struct {
	io.ReadCloser
	ctx      context.Context
	timer    *time.Timer
	patience time.Duration
	cancel   context.CancelCauseFunc
}

func (b *timelyBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if cause := context.Cause(b.ctx); err != nil && errors.Is(cause, errSilent) {
		err = cause
	}
	return n, err
}

// Close ends the request.
func (b *timelyBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
