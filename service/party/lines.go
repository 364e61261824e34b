package party

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/exchange"
)

// This file has the lines of the chain that a party keeps: it is a backup of the chain, for a
// server that has lost some of it.

// fetch has the lines that are missing up to the newest head fetched, next to what the party does.
func (h *heads) fetch(ctx context.Context) {
	if h == nil || !h.few {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.busy || h.head == nil || h.up() {
		return
	}
	h.busy = true
	h.fetches.Go(func() {
		err := h.lines(ctx)
		h.mutex.Lock()
		h.busy = false
		h.mutex.Unlock()
		if err != nil && ctx.Err() == nil {
			h.log("lines of the chain of decisions are missing", "error", err.Error())
		}
	})
}

// up reports whether the lines are there. The caller holds the mutex.
func (h *heads) up() bool {
	if h.chain == nil {
		return false
	}
	is, err := h.chain.Head()
	return err == nil && is.Compare(h.head) >= 0
}

// lines fetches the lines that follow, or all if those that there are have gaps.
func (h *heads) lines(ctx context.Context) error {
	h.mutex.Lock()
	c := h.chain
	h.mutex.Unlock()
	if c != nil && len(c.Lost) == 0 {
		if _, err := c.Head(); err == nil {
			err := h.further(ctx, c)
			if err == nil || !errors.Is(err, chain.ErrNext) {
				return err
			}
		}
	}
	c, _, err := h.whole(ctx)
	if err != nil {
		return err
	}
	return h.rewrite(c)
}

// further fetches the lines after those of a chain.
func (h *heads) further(ctx context.Context, c *chain.Chain) error {
	path := fmt.Sprintf("%s?from=%d", chainPath(h.id), c.Last().Number+1)
	b, _, err := h.server.read(ctx, path, mostChain)
	if err != nil {
		return err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if err := c.Append(line); err != nil {
			return err
		}
		if err := h.file.Append(line); err != nil {
			return err
		}
	}
	return nil
}

// lastLine fetches the line that a head ends with, nil if the server does not have it.
func (h *heads) lastLine(ctx context.Context, head *chain.Head) ([]byte, error) {
	h.mutex.Lock()
	from := uint64(0)
	if h.head != nil && h.head.Last == head.Last {
		defer h.mutex.Unlock()
		return h.has.Line, nil
	}
	if e, err := chain.Open(h.has.Line, h.id, h.has.Key); err == nil {
		from = e.Number
	}
	h.mutex.Unlock()
	b, _, err := h.server.read(ctx, fmt.Sprintf("%s?from=%d", chainPath(h.id), from), mostChain)
	if err != nil {
		return nil, err
	}
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		if chain.HashOf(line) == head.Last {
			return bytes.Clone(line), nil
		}
	}
	return nil, nil
}

// give gives the server the lines that it lacks after a head of its own.
func (h *heads) give(ctx context.Context, of []byte) error {
	b, err := json.Marshal(h.given(of))
	if err != nil {
		return err
	}
	_, err = h.server.post(ctx, chainPath(h.id), b)
	return err
}

// given returns the lines after a head of the server up to the party's own: the newest of them, as
// many as a server reads at once.
func (h *heads) given(of []byte) *exchange.Given {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var lines [][]byte
	if h.chain != nil {
		lines = h.chain.Lines(0)
	}
	ends := func(hash chain.Hash) int {
		return slices.IndexFunc(lines, func(line []byte) bool { return chain.HashOf(line) == hash })
	}
	lines = lines[:ends(h.head.Last)+1]
	if server, err := h.open(of); err == nil {
		lines = lines[ends(server.Last)+1:]
	}
	if len(lines) == 0 {
		lines = [][]byte{h.has.Begun, h.has.Line}
		if bytes.Equal(h.has.Begun, h.has.Line) {
			lines = lines[1:]
		}
	}
	size := 0
	for k, line := range slices.Backward(lines) {
		if size += len(line); size > exchange.MostLines {
			lines = lines[k+1:]
			break
		}
	}
	return &exchange.Given{Head: h.has.Note, Lines: lines}
}
