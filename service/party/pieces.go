package party

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/hushsum/hushsum/service/exchange"
)

// mostWaits is how often in a row a piece waits for something that passes by itself, such as the
// connection of the piece before, whose end the server has not noticed: for some 16 s in all.
const mostWaits = 8

// mostStalls is how often in a row a piece is sent again of which nothing came: for some 0.7 s in
// all, within which the party still counts as present.
const mostStalls = 3

// send sends a message: in one request, or if it is long in pieces, each starting where the one
// before ended. How many requests that takes, and how long each is, follows from the message's
// length and from the connections that break.
func (s *Server) send(ctx context.Context, path string, message []byte) error {
	path += "/messages"
	if len(message) <= exchange.PieceSize {
		_, err := s.post(ctx, path, message)
		return err
	}
	path += fmt.Sprintf("?upload=%x&length=%d", sha256.Sum256(message), len(message))
	at, asking := 0, true // asking how much has come
	failedAt, waits, stalls := -1, 0, 0
	var failed error
	for {
		var piece []byte
		if !asking {
			piece = message[at:min(at+exchange.PieceSize, len(message))]
		}
		answer, err := s.post(ctx, path+"&offset="+strconv.Itoa(at), piece)
		switch {
		case err == nil && answer.StatusCode == http.StatusAccepted:
			return nil
		case err == nil:
			text := answer.Header.Get(exchange.HeaderOffset)
			came, err := strconv.ParseUint(text, 10, 62)
			switch {
			case err != nil || came >= uint64(len(message)) || !asking && int(came) != at+len(piece):
				return fmt.Errorf("%w: %.20q of %d bytes have arrived", errOther, text, len(message))
			case failed != nil && int(came) <= failedAt && stalls == mostStalls:
				return failed // nothing has come since; the caller asks what is next
			case failed != nil && int(came) <= failedAt:
				if err := sleep(ctx, firstWait<<stalls); err != nil {
					return err
				}
				stalls++
			}
			if int(came) > at {
				waits, stalls = 0, 0
			}
			at, asking, failed = int(came), false, nil
		case ctx.Err() != nil:
			return err
		case clears(err) && waits < mostWaits:
			if err := sleep(ctx, min(firstWait<<waits, longestWait)); err != nil {
				return err
			}
			waits, asking = waits+1, true
		case asking || final(err):
			return err
		default:
			failed, failedAt, asking = err, at, true
		}
	}
}

// clears reports whether a refusal is temporary, while the upload is kept.
func clears(err error) bool {
	var refusal *RefusalError
	return errors.As(err, &refusal) && (refusal.Kind == "busy" || refusal.Kind == "rate")
}

// final reports whether the server has refused the message, rather than the piece: then nothing is
// kept.
func final(err error) bool {
	var refusal *RefusalError
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Kind {
	case "", "slow", "offset", "leader":
		return false
	}
	return true
}

// post sends a body, and reads the short answer.
func (s *Server) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	answer, err := s.do(ctx, http.MethodPost, path, body, nil)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 4<<10))
	return answer, answer.Body.Close()
}
