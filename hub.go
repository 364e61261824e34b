package hushsum

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hushsum/hushsum/host"
	"github.com/hushsum/hushsum/link"
)

// hub is who is connected to a coordinator through one listener, and what comes from
// them.
type hub struct {
	there   map[int]*connection // by party or member; the host's lock guards it
	events  chan arrival
	notices chan Event // to report, such as that somebody was refused
	spools  string     // folder for long messages
	limit   int64      // of their length
	frame   int        // longest frame of a party whose hello was good
	told    map[int]time.Time
	running sync.WaitGroup // of all that the hub has started

	// serve sends a connection what there is for it, until it ends.
	serve func(ctx context.Context, party int, to *connection)
	mutex sync.Mutex // over sending, of connections
}

// refusedTime is how long a party that was refused has to read why.
const refusedTime = 2 * time.Second

// maxNotices is how many wait to be reported, beyond which they are left out.
const maxNotices = 16

func newHub(spools string, frame int) *hub {
	return &hub{
		there:   make(map[int]*connection),
		events:  make(chan arrival, 64),
		notices: make(chan Event, maxNotices),
		spools:  spools,
		frame:   frame,
		told:    make(map[int]time.Time),
	}
}

// maxFrame is the longest frame that a party or member has a reason to send: what is longer goes in
// parts.
func maxFrame(s *Settled) int {
	return min(max(maxMessage(s), link.MaxText)+2, link.MaxFrame)
}

// maxMessage is the length of the longest message of the job.
func maxMessage(s *Settled) int {
	if o := s.Oneshot(); o != nil {
		return o.MaxMessage()
	}
	return s.Config(0).MaxMessage()
}

// sendMessage sends a message, in parts if it is long.
func sendMessage(send func(frame []byte) error, message ...[]byte) error {
	body := net.Buffers(message)
	return link.SendBody(link.KindMessage, &body, send)
}

// connection is a party that is there.
type connection struct {
	link    Link
	greeted bool
	judged  chan struct{} // closed once its hello was read
	refusal []byte        // set before judged is closed; nil: it was let in
	cancel  context.CancelFunc
	sending time.Time // since when it sends the same; zero: nothing
	strange int       // messages Announce in a row that belong to no session
}

// arrival holds what comes from a party: a frame, or the end of its connection.
type arrival struct {
	party int
	from  *connection
	frame []byte
	long  *link.Spool // in place of the frame of a message that came in parts
	err   error
}

// ofListener has the kinds of events that a listener's notices are.
var ofListener = map[link.NoticeKind]host.EventKind{
	link.Unknown:    host.Unknown,
	link.Unfinished: host.Unfinished,
	link.Strained:   host.Strained,
}

// noticeTime is how often, at most, a listener's notices are reported, and the refusals of a party.
const noticeTime = time.Second

// watch reports what a listener does with strangers.
func (h *hub) watch(ctx context.Context, listener interface{ Notices() []link.Notice }) {
	ticker := time.NewTicker(noticeTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, n := range listener.Notices() {
			select {
			case h.notices <- Event{Kind: ofListener[n.Kind], Count: n.Count, Err: n.Err}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// accept takes connections and reads from them.
func (h *hub) accept(ctx context.Context, listener Listener, failed context.CancelCauseFunc) {
	if l, ok := listener.(interface{ Notices() []link.Notice }); ok {
		h.running.Go(func() { h.watch(ctx, l) })
	}
	for {
		party, conn, err := listener.Accept(ctx)
		if err != nil {
			failed(err)
			return
		}
		running := ctx
		ctx, cancel := context.WithCancel(ctx)
		from := &connection{
			link:   conn,
			judged: make(chan struct{}),
			cancel: cancel,
		}
		h.running.Go(func() {
			defer cancel()
			h.write(ctx, party, from)
		})
		h.running.Go(func() {
			defer cancel()
			h.read(ctx, running, party, from)
		})
	}
}

// write sends a connection why it was refused, or what there is for it, until it ends.
func (h *hub) write(ctx context.Context, party int, from *connection) {
	defer from.link.Close()
	select {
	case <-from.judged:
	case <-ctx.Done():
		return
	}
	if from.refusal == nil {
		h.serve(ctx, party, from)
	} else if from.link.Send(ctx, from.refusal) == nil {
		<-ctx.Done()
	}
}

// sends notes since when a connection has been sending the same.
func (h *hub) sends(from *connection, since time.Time) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	from.sending = since
}

// unclog hangs up on those who have not taken in such a time what they are sent: they keep others
// from what is theirs.
func (h *hub) unclog(after time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, c := range h.there {
		if !c.sending.IsZero() && time.Since(c.sending) > after {
			c.cancel()
		}
	}
}

// read reads from a connection until it ends, and reports the end, no matter which side caused it,
// for as long as the hub is running: a party that is thought to be there is waited for.
func (h *hub) read(ctx, running context.Context, party int, from *connection) {
	for first := true; ; first = false {
		a := arrival{party: party, from: from}
		if first {
			a.frame, a.err = from.hello(ctx)
		} else {
			a.frame, a.long, a.err = h.receive(ctx, from)
		}
		select {
		case h.events <- a:
		case <-running.Done():
			a.long.Drop()
			return
		}
		if a.err != nil || first && !h.wanted(ctx, from) {
			return
		}
	}
}

// hello returns the first frame, which nothing may precede.
func (c *connection) hello(ctx context.Context) ([]byte, error) {
	in, err := c.link.Receive(ctx)
	if err != nil {
		return nil, err
	}
	if len(in) == 0 || in[0] != link.KindHello {
		return nil, fmt.Errorf("%w: a connection begins with hello", ErrFrame)
	}
	return in, nil
}

// wanted waits until the hello of a connection was read, and reports whether what comes next
// is. A party that was refused has a moment to read why.
func (h *hub) wanted(ctx context.Context, from *connection) bool {
	select {
	case <-from.judged:
	case <-ctx.Done():
		return false
	}
	if from.refusal == nil {
		link.Limit(from.link, h.frame)
		return true
	}
	link.Limit(from.link, link.MaxText)
	ctx, cancel := context.WithTimeout(ctx, refusedTime)
	defer cancel()
	for {
		if _, err := from.link.Receive(ctx); err != nil {
			return false
		}
	}
}

// receive returns the next frame, or the next message that comes in parts.
func (h *hub) receive(
	ctx context.Context, from *connection,
) (in []byte, long *link.Spool, err error) {
	defer func() {
		if err != nil {
			long.Drop()
			long = nil
		}
	}()
	for {
		if in, err = from.link.Receive(ctx); err != nil {
			return nil, long, err
		}
		switch {
		case len(in) > 1 && in[0] == link.KindPart && in[1] == link.KindMessage:
			if long == nil {
				if long, err = link.NewSpool(h.spools, h.limit); err != nil {
					return nil, nil, err
				}
			}
			if _, err = long.Write(in[2:]); err != nil {
				return nil, long, err
			}
			link.Reuse(from.link, in)
		case long != nil && len(in) > 0 && in[0] == link.KindMessage:
			_, err = long.Write(in[1:])
			return in[:1], long, err
		case long != nil || len(in) > 0 && in[0] == link.KindPart:
			return nil, long, fmt.Errorf("%w: parts of no message", ErrFrame)
		default:
			return in, nil, nil
		}
	}
}

// admit makes a connection its party's, and reports whether that ended an older one.
func (h *hub) admit(a arrival) (replaced bool) {
	old := h.there[a.party]
	if old != nil {
		old.cancel()
	}
	a.from.greeted = true
	close(a.from.judged)
	h.there[a.party] = a.from
	return old != nil
}

// gone takes the end of a connection, and reports whether it was its party's.
func (h *hub) gone(a arrival) bool {
	a.from.cancel()
	if h.there[a.party] != a.from {
		return false
	}
	delete(h.there, a.party)
	return true
}

// refuse tells a connection why the coordinator does not go on with it, and has that
// reported, of one party not more than once a second.
func (h *hub) refuse(a arrival, r *link.Refusal) {
	a.from.greeted, a.from.refusal = true, link.JSONFrame(link.KindRefusal, r)
	close(a.from.judged)
	if last, found := h.told[a.party]; found && time.Since(last) < noticeTime {
		return
	}
	h.told[a.party] = time.Now()
	var why error = &DifferenceError{Field: r.Field, Ours: r.Ours, Theirs: r.Theirs}
	if r.Field == "" {
		why = fmt.Errorf("%w: %.200q", ErrFrame, r.Ours)
	}
	select {
	case h.notices <- Event{Kind: host.Rejected, Party: a.party, Err: why}:
	default:
	}
}

// greetingOf returns how somebody with the job begins.
func greetingOf(s *Settled) link.Hello {
	roster, digest := s.Roster().Digest(), s.Digest()
	return link.Hello{
		Job:    s.Job().Greeting(link.MaxText / 2),
		Roster: hex.EncodeToString(roster[:]),
		Digest: hex.EncodeToString(digest[:]),
	}
}

// checkGreeting reads a greeting, and returns a refusal if it is of another job.
func checkGreeting(s *Settled, body []byte) (link.Hello, *link.Refusal) {
	var h link.Hello
	if err := link.ParseJSON(body, &h); err != nil {
		return h, &link.Refusal{Ours: err.Error()}
	}
	var differs *DifferenceError
	ours := greetingOf(s)
	if errors.As(s.Job().Compare(h.Job), &differs) {
		short := func(text string) string { return fmt.Sprintf("%.200s", text) }
		return h, &link.Refusal{Field: short(differs.Field), Ours: short(differs.Ours),
			Theirs: short(differs.Theirs)}
	}
	if h.Roster != ours.Roster {
		return h, &link.Refusal{Field: "roster", Ours: ours.Roster,
			Theirs: fmt.Sprintf("%.64s", h.Roster)}
	}
	if h.Digest != ours.Digest {
		return h, &link.Refusal{Field: "digest", Ours: ours.Digest,
			Theirs: fmt.Sprintf("%.64s", h.Digest)}
	}
	return h, nil
}
