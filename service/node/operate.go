package node

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/record"
	"github.com/hushsum/hushsum/service/runner"
)

// This file lets operators reach the leader of a federation from any node.

// reply is the leader's answer.
type reply struct {
	Status  *runner.Status     `json:"status,omitempty"`
	Error   string             `json:"error,omitempty"`
	Before  []byte             `json:"before,omitempty"`
	Charges []accounting.Claim `json:"charges,omitempty"`
	Stale   bool               `json:"stale,omitempty"`
	Stopped bool               `json:"stopped,omitempty"`
}

const askTime = 5 * time.Second

// A NATS message has 1 MB at most. A status of some ten thousand parties is longer, and is sent
// compressed.
const (
	mostReply  = 700 << 10
	mostStatus = 256 << 20 // when it is whole again
)

// reply answers a question.
func (n *Node) reply(r *runner.Runner, m *nats.Msg) {
	ctx, cancel := context.WithTimeout(n.ctx, askTime)
	defer cancel()
	id := strings.TrimPrefix(m.Subject, subjectAsk)
	body, question, err := n.between.open(forOrder, id+"\n"+n.Name, number{}, m.Data)
	if err != nil {
		n.Log.Warn("an order over NATS is refused", "federation", id, "error", err.Error())
		return
	}
	var o page.Order // or a question: status, before, charges
	var out reply
	if err = json.Unmarshal(body, &o); err == nil {
		out, err = obey(ctx, r, o)
	}
	if err != nil {
		out = reply{
			Error:   err.Error(),
			Stale:   errors.Is(err, runner.ErrStale),
			Stopped: errors.Is(err, runner.ErrStopped),
		}
	}
	b, err := packReply(out)
	if err == nil {
		b, _, err = n.between.seal(forReply, id, question, b)
	}
	if err == nil {
		_ = m.Respond(b)
	}
}

// packReply encodes a reply as a message.
func packReply(out reply) ([]byte, error) {
	b, err := json.Marshal(out)
	if err != nil || len(b) <= mostReply {
		return b, err
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err = w.Write(b); err == nil {
		err = w.Close()
	}
	if err != nil || packed.Len() <= mostReply {
		return packed.Bytes(), err
	}
	return json.Marshal(reply{Error: "it is too large to be passed on; ask the leading node"})
}

// parseReply decodes a reply.
func parseReply(b []byte) (out reply, err error) {
	if !bytes.HasPrefix(b, []byte{'{'}) {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return out, err
		}
		if b, err = io.ReadAll(io.LimitReader(r, mostStatus)); err != nil {
			return out, err
		}
	}
	return out, json.Unmarshal(b, &out)
}

// obey carries out an order.
func obey(ctx context.Context, r *runner.Runner, o page.Order) (out reply, err error) {
	by := runner.By{Who: o.Who, Seen: o.Seen}
	switch o.What {
	case "status":
	case "before":
		out.Before, err = r.Before(ctx)
		return out, err
	case "charges":
		out.Charges, err = r.Charges(ctx)
		return out, err
	case orderReseal:
		err = r.Reseal(ctx)
	case "pause":
		err = r.Pause(ctx, by)
	case "resume":
		err = r.Resume(ctx, by)
	case "end":
		err = r.EndNow(ctx, by)
	case "exclude":
		err = r.Exclude(ctx, by, o.Party)
	case "readmit":
		err = r.Readmit(ctx, by, o.Party)
	case page.Forget:
		return out, r.Forget(ctx, by)
	default:
		return out, fmt.Errorf("node: there is no order %.20q", o.What)
	}
	if err != nil {
		return out, err
	}
	out.Status, err = r.Status(ctx)
	return out, err
}

// order asks the leader of a federation, on this node or another.
func (n *Node) order(ctx context.Context, id string, o page.Order) (reply, error) {
	n.mutex.Lock()
	e := n.entries[id]
	var r *runner.Runner
	var leader string
	if e != nil {
		r, leader = e.runner, e.leader.Node
	}
	n.mutex.Unlock()
	switch {
	case e == nil:
		return reply{}, record.ErrNone
	case r != nil:
		return obey(ctx, r, o)
	case leader == "":
		return reply{}, runner.ErrStopped
	}
	// For this leader only: a copy has no effect at the next one.
	b, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	sealed, question, err := n.between.seal(forOrder, id+"\n"+leader, number{}, b)
	if err != nil {
		return reply{}, err
	}
	m, err := n.conn.RequestWithContext(ctx, subjectAsk+id, sealed)
	if err != nil {
		return reply{}, runner.ErrStopped
	}
	if b, _, err = n.between.open(forReply, id, question, m.Data); err != nil {
		return reply{}, err
	}
	out, err := parseReply(b)
	switch {
	case err != nil:
		return out, err
	case out.Stale:
		return out, runner.ErrStale
	case out.Stopped:
		return out, runner.ErrStopped
	case out.Error != "":
		return out, errors.New(strings.ToValidUTF8(out.Error, ""))
	}
	return out, nil
}

// Status returns the status of a federation, as its leader reports it.
func (n *Node) Status(ctx context.Context, id string) (*runner.Status, error) {
	out, err := n.order(ctx, id, page.Order{What: "status"})
	return out.Status, err
}

// Do has a federation carry out an operator's order. It fails with runner.ErrStale if the operator
// has not seen the present orders.
func (n *Node) Do(ctx context.Context, id string, o page.Order) (*runner.Status, error) {
	if o.What == page.Forget || o.What == page.ForgetNames {
		return n.forgetOrder(ctx, id, o)
	}
	out, err := n.order(ctx, id, o)
	return out.Status, err
}

// Charges returns what each party of a federation has spent, in the order of the roster, as its
// leader reports it; nil without noise.
func (n *Node) Charges(ctx context.Context, id string) ([]accounting.Claim, error) {
	out, err := n.order(ctx, id, page.Order{What: "charges"})
	return out.Charges, err
}

// Model returns the last model of a federation, as a safetensors file: the leader's own model or,
// on other nodes and where no node leads, the recorded model.
func (n *Node) Model(ctx context.Context, id string) ([]byte, error) {
	n.mutex.Lock()
	e := n.entries[id]
	var r *runner.Runner
	if e != nil {
		r = e.runner
	}
	n.mutex.Unlock()
	switch {
	case e == nil:
		return nil, record.ErrNone
	case r != nil:
		return r.Broadcast(ctx, -1, 0)
	}
	return runner.RecordedModel(ctx, e.federation, n.records)
}

// Known returns a federation as it was declared.
func (n *Node) Known(id string) (door.Known, bool) {
	known, found := (*federations)(n).Find(id)
	return known, found && known.Federation != nil
}

// AuditLog reads a federation's audit log, as [record.Records.AuditLog] does.
func (n *Node) AuditLog(ctx context.Context, id string, from int, each func(record.Line) bool,
) (record.Log, error) {
	if _, found := (*federations)(n).Find(id); !found {
		return record.Log{}, record.ErrNone
	}
	return n.records.AuditLog(ctx, id, from, each)
}

// LastLines reads the last lines of a federation's audit log, at most a given number.
func (n *Node) LastLines(ctx context.Context, id string, most int) ([]record.Line, error) {
	if _, found := (*federations)(n).Find(id); !found {
		return nil, record.ErrNone
	}
	return n.records.LastLines(ctx, id, most)
}

// Declare declares a federation at an operator's order, and returns its identifier.
func (n *Node) Declare(
	ctx context.Context, who string, files federation.Files,
) (string, error) {
	f, err := n.create(ctx, files, "by "+who)
	if err != nil {
		return "", err
	}
	return f.ID, nil
}
