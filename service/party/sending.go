package party

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/service/federation"
)

// This file has what a carrier sends, and the models that it fetches.

// Send is a method of [host.Carrier]. A message that the server does not wait for is no error: the
// answer to the next question says what it does wait for.
func (c *carrier) Send(ctx context.Context, message io.WriterTo) error {
	c.turn.restIdle()
	b, err := bytesOf(message)
	if err != nil {
		return err
	}
	c.papers.sends(b)
	taken, err := c.post(ctx, b)
	if err != nil {
		return marked(err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !taken && c.offer > 0 { // and the same would not be
		c.absent = c.offer
	}
	c.offer = 0
	return nil
}

// bytesOf returns a message in one piece.
func bytesOf(message io.WriterTo) ([]byte, error) {
	if b, ok := message.(*bytes.Buffer); ok {
		return b.Bytes(), nil
	}
	var b bytes.Buffer
	if sized, ok := message.(interface{ Size() int64 }); ok {
		b.Grow(int(sized.Size()))
	}
	_, err := message.WriteTo(&b)
	return b.Bytes(), err
}

// post sends a message, and reports whether the server accepted it. A refusal because it is not
// wanted is no error.
func (c *carrier) post(ctx context.Context, message []byte) (taken bool, err error) {
	err = c.server.send(ctx, c.path, message)
	var refusal *RefusalError
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		case "due", "ended":
			c.log.Info("an answer arrived too late", "kind", refusal.Kind, "detail", refusal.Detail)
			return false, nil
		case "message":
			c.log.Warn("an answer was refused", "kind", refusal.Kind, "detail", refusal.Detail)
			return false, nil
		}
	}
	return err == nil, err
}

// missing notes that the submission in a round is gone.
func (c *carrier) missing(round uint64, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.absent = round
	c.log.Warn("the round continues without this party", "round", round, "error", err.Error())
}

// errRound: a round without a number, which cannot be one of the federation's.
var errRound = fmt.Errorf("%w: it names no round", ErrServer)

// Cast is a method of [host.Carrier]: it fetches the broadcast that a round begins with. A party
// that is absent from the round needs none.
func (c *carrier) Cast(ctx context.Context, round uint64) (*host.Cast, error) {
	c.mutex.Lock()
	absent := c.absent
	c.mutex.Unlock()
	switch round {
	case 0:
		return nil, fmt.Errorf("%w: %w", host.ErrCast, errRound)
	case absent: // asked again before it could say so
		return nil, nil
	}
	file, err := c.server.Model(ctx, c.federation.ID, int(round), mostModel(c.federation))
	var refusal *RefusalError
	switch {
	case errors.As(err, &refusal) && refusal.Kind == "due": // the round went on
		return nil, nil
	case err != nil:
		return nil, marked(err)
	}
	w, err := open(c.federation, file, int(round))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", host.ErrCast, err)
	}
	cast := &host.Cast{Round: round, Digest: job.BroadcastDigest(file), Model: w}
	if c.federation.Settled.Oneshot() != nil {
		digest := oneshot.NewBroadcastHash()
		_, _ = digest.Write(file) // a hash takes all
		cast.Digest = [32]byte(digest.Sum(nil))
	}
	return cast, nil
}

// last receives the last model.
func (c *carrier) last(ctx context.Context) ([]byte, error) {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		b, err := c.server.Model(ctx, c.federation.ID, 0, mostModel(c.federation))
		if err == nil || fatal(err) {
			return b, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// mostModel is how long a model's file is at most, in bytes.
func mostModel(f *federation.Federation) int64 { return int64(f.Spec.Len())*8 + 2<<20 }
