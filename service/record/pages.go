package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/internal/chain"
)

// This file has nodes ask each other for the lines of their files. A reply takes some of them; who
// wants more asks again from where it ended.

// subjectLines is the subject, with a federation after it, of a question: a number. Others answer
// with their lines from there on.
const subjectLines = "hushsum.lines."

const (
	mostReply = 512 << 10 // bytes of lines in a reply
	// pageTime is how long a further reply of a node that has replied may take: it reads its whole
	// file for each.
	pageTime = 3 * time.Second
	// headerMore is in a reply of a node that has further lines.
	headerMore = "Hushsum-More"
)

// replyTime is how long a node may take to reply at first; tests have it longer.
var replyTime = 300 * time.Millisecond

// reply answers a node that asks for lines.
func (r *Records) reply(m *nats.Msg) {
	o := r.ownedBy(strings.TrimPrefix(m.Subject, subjectLines))
	if o == nil || len(m.Data) != 8 {
		return
	}
	lines, more := o.linesFrom(binary.BigEndian.Uint64(m.Data))
	if len(lines) == 0 {
		return
	}
	answer := nats.NewMsg(m.Reply)
	if answer.Data = lines; more {
		answer.Header.Set(headerMore, "true")
	}
	_ = m.RespondMsg(answer)
}

// linesFrom returns lines of the file from a number on, as many as a reply takes, and whether there
// are more. Lines of one number, of several histories, are in one reply, unless they are too long
// for one. Whoever asks checks their signatures.
func (o *own) linesFrom(number uint64) (reply []byte, more bool) {
	last, err := o.last()
	if err != nil || last == nil || last.entry.Number < number {
		return nil, false
	}
	had, err := o.file.Read()
	if err != nil {
		return nil, false
	}
	type numbered struct {
		number uint64
		line   []byte
	}
	var lines []numbered
	for line := range bytes.SplitSeq(had.Bytes, []byte("\n")) {
		if e, err := chain.Parse(line); err == nil && e.Number >= number {
			lines = append(lines, numbered{e.Number, line})
		}
	}
	slices.SortStableFunc(lines, func(a, b numbered) int { return cmp.Compare(a.number, b.number) })
	whole := 0 // bytes of the lines whose numbers are all in
	for k, x := range lines {
		if k > 0 && x.number != lines[k-1].number {
			whole = len(reply)
		}
		if len(reply)+len(x.line)+1 > mostReply {
			if whole > 0 {
				reply = reply[:whole]
			}
			return reply, true
		}
		reply = append(append(reply, x.line...), '\n')
	}
	return reply, false
}

// ask asks the other nodes for all their lines from a number on. It waits for those that do not
// answer no longer than that they might.
func (r *Records) ask(ctx context.Context, o *own, from uint64) (copies [][]byte) {
	replied, wait := 0, replyTime
	for {
		page := r.askFor(ctx, o.id, from, replied, wait)
		next, more := uint64(0), false
		ends := make([]uint64, len(page)) // what each node has, at least
		for k, m := range page {
			copies = append(copies, m.Data)
			// Whoever can publish can say that there is more: what is signed comes to an end.
			if ends[k] = o.ends(m.Data); m.Header.Get(headerMore) != "" && ends[k] >= from {
				ends[k]++
				if !more || ends[k] < next {
					next, more = ends[k], true
				}
			}
		}
		if !more {
			return copies
		}
		ends = slices.DeleteFunc(ends, func(last uint64) bool { return last < next })
		from, replied, wait = next, len(ends), pageTime
	}
}

// ends returns the highest number of a signed line, 0 if there is none.
func (o *own) ends(lines []byte) uint64 {
	for _, line := range slices.Backward(bytes.Split(lines, []byte("\n"))) {
		if e, err := chain.Open(line, o.id, o.public()); err == nil {
			return e.Number
		}
	}
	return 0
}

// askFor asks for one page, and waits for a given number of replies; 0: for all that come in time.
func (r *Records) askFor(ctx context.Context, id string, from uint64, replies int,
	wait time.Duration,
) (page []*nats.Msg) {
	conn := r.js.Conn()
	inbox := conn.NewInbox()
	answers, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil
	}
	defer func() { _ = answers.Unsubscribe() }()
	question := binary.BigEndian.AppendUint64(nil, from)
	if conn.PublishRequest(subjectLines+id, inbox, question) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for replies == 0 || len(page) < replies {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		if len(m.Data) <= mostReply {
			page = append(page, m)
		}
	}
	return page
}
