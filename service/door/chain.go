package door

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
)

// This file has what a party hears of the chain of decisions, and gives of it to a server whose
// record is behind.

// heard takes the head that a question tells, and reports whether the question may go on.
func (d *Door) heard(w http.ResponseWriter, r *http.Request, c *caller) (note []byte, ok bool) {
	note, err := exchange.ParseHead(r.Header)
	if err == nil {
		err = c.Runner.Hear(r.Context(), c.peer, note)
	} else {
		err = errors.Join(runner.ErrHead, err)
	}
	if err != nil {
		d.refuseHead(w, c, err)
		return nil, false
	}
	return note, true
}

// refuseHead refuses a head, or the lines that end with it.
func (d *Door) refuseHead(w http.ResponseWriter, c *caller, err error) {
	switch {
	case errors.Is(err, runner.ErrHead):
		d.refuse(w, "head", "%v", err)
	case errors.Is(err, runner.ErrBehind):
		exchange.SetHead(w.Header(), c.Runner.Head())
		d.refuse(w, "behind", "give the lines of the chain after Hushsum-Head, and ask again")
	default:
		d.refuse(w, "leader", "%v", err)
	}
}

// chain serves the lines of the chain of decisions from a number on.
func (d *Door) chain(w http.ResponseWriter, r *http.Request, c *caller) {
	query := r.URL.Query()
	from, err := strconv.ParseUint(query.Get("from"), 10, 62)
	if err != nil || len(query) != 1 || len(query["from"]) != 1 {
		d.refuse(w, "query", "from is the number of the first entry, and there is nothing else")
		return
	}
	lines, note := c.Runner.Lines(from)
	if note == nil {
		d.refuse(w, "leader", "the chain has no head; ask again")
		return
	}
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	exchange.SetHead(w.Header(), note)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	for _, line := range lines {
		n, err := w.Write(append(line[:len(line):len(line)], '\n'))
		if d.Counts.BytesOut.Add(int64(n)); err != nil {
			return
		}
	}
}

// lines takes lines of the chain of decisions that the record lacks.
func (d *Door) lines(w http.ResponseWriter, r *http.Request, c *caller) {
	text, ok := d.whole(w, r, c, 2*exchange.MostLines)
	if !ok {
		return
	}
	var given exchange.Given
	if err := strict.JSON(text, &given); err != nil {
		d.refuse(w, "head", "%v", err)
		return
	}
	if err := c.Runner.Give(r.Context(), c.peer, &given); err != nil {
		d.refuseHead(w, c, err)
		return
	}
	held(w)
}

// whole reads a body of at most a given length, which has nothing to do with rounds.
func (d *Door) whole(w http.ResponseWriter, r *http.Request, c *caller, most int64,
) (text []byte, ok bool) {
	switch {
	case r.ContentLength < 0:
		d.refuse(w, "length", "send Content-Length")
		return nil, false
	case r.ContentLength > most:
		d.refuse(w, "oversized", "%d bytes, at most %d are read", r.ContentLength, most)
		return nil, false
	case r.URL.RawQuery != "":
		d.refuse(w, "query", "there are no parameters")
		return nil, false
	}
	b, err := d.newBody(r.ContentLength)
	if err != nil {
		d.refuseRoom(w, err)
		return nil, false
	}
	defer b.Close()
	if err := b.readFrom(r.Body, r.ContentLength); err != nil {
		d.refuse(w, "slow", "the body did not arrive whole")
		return nil, false
	}
	if [32]byte(b.digest.Sum(nil)) != c.signed.Digest {
		d.refuse(w, "digest", "Content-Digest does not match")
		return nil, false
	}
	from, err := b.reader()
	if err == nil {
		text, err = io.ReadAll(from)
	}
	if err != nil {
		d.refuseRoom(w, err)
		return nil, false
	}
	d.Counts.BytesIn.Add(b.size)
	return text, true
}
