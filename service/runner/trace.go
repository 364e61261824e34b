package runner

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/hushsum/hushsum/drive"
	"github.com/hushsum/hushsum/internal/wire"
)

// Attributes of spans. None holds what a party submits, or anything that follows from that alone.
const (
	attributeFederation = attribute.Key("hushsum.federation")
	attributeNode       = attribute.Key("hushsum.node")
	attributeRound      = attribute.Key("hushsum.round")
	attributeParties    = attribute.Key("hushsum.parties") // in the sum
	attributeParty      = attribute.Key("hushsum.party")   // by name
	attributeStep       = attribute.Key("hushsum.step")
)

// tracing makes spans: of each round that this runner leads, and within it of its steps, of each
// party's submission, from its first byte at the door on, and of the making of the next model.
// Steps that set a session up belong to no round. The runner's lock guards it.
type tracing struct {
	tracer       trace.Tracer
	common       []attribute.KeyValue
	span         trace.Span      // of the round that is open; nil: none is
	ctx          context.Context // of the last round's span
	round        uint64          // the last
	began, ended drive.Time      // of it; ended is 0 while it is open
}

func (r *Runner) newTracing() tracing {
	p := r.Traces
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return tracing{tracer: p.Tracer("github.com/hushsum/hushsum/service"), ctx: context.Background(),
		common: []attribute.KeyValue{attributeFederation.String(r.Federation.Job.Name),
			attributeNode.String(r.Node)}}
}

// start begins a span within a round, or that of one.
func (t *tracing) start(
	ctx context.Context, name string, at drive.Time, more ...attribute.KeyValue,
) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithTimestamp(*atTime(at)),
		trace.WithAttributes(append(more, t.common...)...))
}

// follow begins the span of a round that has begun, including one under another runner, and ends
// the span of one whose end was not reported.
func (t *tracing) follow(at drive.Status, now drive.Time) {
	open := at.Stage >= drive.Submitting && at.Ended == ""
	if t.span != nil && !(open && at.Round == t.round) {
		t.end(now, 0, "the round was not completed")
	}
	if open && t.span == nil && at.Round != t.round {
		t.round, t.began, t.ended = at.Round, min(at.Begun, at.Since), 0
		t.ctx, t.span = t.start(context.Background(), "round", t.began,
			attributeRound.Int64(int64(at.Round)))
	}
}

// end ends the span of a round with the sum of a given number of parties, or the reason why there
// is none.
func (t *tracing) end(now drive.Time, parties int, lost string) {
	if t.span == nil {
		return
	}
	t.span.SetAttributes(attributeParties.Int(parties))
	if lost != "" {
		t.span.SetStatus(codes.Error, lost)
	}
	t.span.End(trace.WithTimestamp(*atTime(now)))
	t.span, t.ended = nil, now
}

// step records a step that is over.
func (t *tracing) step(name string, since, until drive.Time) {
	ctx := context.Background()
	if t.round > 0 && since >= t.began && (t.span != nil || since < t.ended) {
		ctx = t.ctx
	}
	_, span := t.start(ctx, "step", since, attributeStep.String(name))
	span.End(trace.WithTimestamp(*atTime(until)))
}

// submission records one that arrived, and was accepted unless err is not nil.
func (t *tracing) submission(party string, came time.Time, now drive.Time, err error) {
	if t.span == nil {
		return
	}
	_, span := t.start(t.ctx, "submission", drive.Time(came.UnixNano()), attributeParty.String(party))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(*atTime(max(now, drive.Time(came.UnixNano())))))
}

// sum begins the span in which a sum becomes the next model; done ends it.
func (t *tracing) sum(now drive.Time, parties int) (done func(err error)) {
	_, span := t.start(t.ctx, "sum", now, attributeParties.Int(parties))
	return func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// submits reports whether a party's message contains its masked input, by its first bytes; with a
// committee parties send nothing else.
func (r *Runner) submits(p Peer, begins []byte) bool {
	if r.sums != nil {
		return !p.Member
	}
	return len(begins) > 1 && wire.Type(begins[1]) == wire.TypeMasked
}

// atTime returns a time of the runner's clock.
func atTime(t drive.Time) *time.Time {
	out := time.Unix(0, int64(t)).UTC()
	return &out
}
