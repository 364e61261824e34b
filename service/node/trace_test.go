package node_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

// traced runs a federation of two rounds, in which one party fails, and returns its spans by the
// span that they are in, and those that are in none.
func traced(t *testing.T, members int) (rounds []tracetest.SpanStub, in map[string][]string,
	all tracetest.SpanStubs,
) {
	t.Helper()
	folder, ctx := t.TempDir(), context.Background()
	prepareJob(t, folder, 2, job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5,
		Step: "1h", Members: members})
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	s := startIn(t, folder, node.With(node.Options{Traces: provider},
		node.Hooks{Grace: 500 * time.Millisecond}))
	for i := range smallParties {
		s.run(ctx, i, nil, new(safeBuffer), func() error {
			if i == 3 && members > 0 {
				return errors.New("no rows")
			}
			return nil
		})
	}
	for k := range members {
		s.help(ctx, k)
	}
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	s.group.Wait()
	s.node.Close()
	if status.Lost > 0 {
		t.Fatalf("%+v", status.History)
	}
	in, all = map[string][]string{}, exporter.GetSpans()
	for _, span := range all {
		if span.Name == "round" {
			rounds = append(rounds, span)
		}
		what := span.Name
		for _, a := range span.Attributes {
			switch a.Key {
			case "hushsum.party", "hushsum.step", "hushsum.parties", "hushsum.round":
				what += " " + a.Value.String()
			case "hushsum.federation", "hushsum.node":
			default:
				t.Errorf("%s tells %s", span.Name, a.Key)
			}
		}
		parent := ""
		if span.Parent.IsValid() {
			parent = span.Parent.SpanID().String()
		}
		in[parent] = append(in[parent], what)
	}
	return rounds, in, all
}

// Each round is a span; in it are its steps, each party's submission, by name and nothing else, and
// the sum.
func TestTraces(t *testing.T) {
	inTurn(t)
	for _, members := range []int{0, jobMembers} {
		rounds, in, all := traced(t, members)
		parties := smallParties
		if members > 0 {
			parties--
		}
		want := []string{"step applying", "step revealing", "step signing", "step submitting",
			fmt.Sprint("sum ", parties)}
		for i := range parties {
			want = append(want, fmt.Sprint("submission party-", i))
		}
		slices.Sort(want)
		if len(rounds) != 2 {
			t.Fatalf("%d rounds: %v", len(rounds), in)
		}
		for k, round := range rounds {
			got := in[round.SpanContext.SpanID().String()]
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) { // a step may come again
				t.Errorf("%d members: in round %d are %v, want %v", members, k+1, got, want)
			}
			if round.Status.Code == codes.Error || !slices.Contains(in[""],
				fmt.Sprintf("round %d %d", k+1, parties)) {
				t.Errorf("%d members: %v of %v", members, round.Status, in[""])
			}
		}
		for _, span := range all {
			for _, round := range rounds {
				if span.Parent.SpanID() == round.SpanContext.SpanID() &&
					(span.StartTime.Before(round.StartTime) || span.StartTime.After(round.EndTime)) {
					t.Errorf("%v begins at %v, the round lasts from %v to %v", span.Attributes, span.StartTime,
						round.StartTime, round.EndTime)
				}
			}
			if span.EndTime.Before(span.StartTime) {
				t.Errorf("%+v", span)
			}
		}
	}
}

// A round that an operator ends is a span that has failed, and so is one whose node stops.
func TestTracesOfNoSum(t *testing.T) {
	inTurn(t)
	for what, stop := range map[string]func(s *small) error{
		"the federation is ended": func(s *small) error {
			_, err := s.node.Do(context.Background(), s.fed.ID, page.Order{What: "end", Who: "ann"})
			return err
		},
		"the node stops": func(*small) error { return nil },
	} {
		folder := t.TempDir()
		prepareJob(t, folder, 2, job{Address: "http://127.0.0.1:1", Parties: smallParties, Length: 5,
			Step: "1h"})
		exporter := tracetest.NewInMemoryExporter()
		s := startIn(t, folder, node.With(
			node.Options{Traces: trace.NewTracerProvider(trace.WithSyncer(exporter))},
			node.Hooks{Grace: 500 * time.Millisecond}))
		ctx, cancel := context.WithCancel(context.Background())
		for i := range smallParties {
			s.run(ctx, i, nil, new(safeBuffer), func() error {
				<-ctx.Done()
				return ctx.Err()
			})
		}
		s.await("a round", func(s *runner.Status) bool { return s.Stage == "submitting" })
		if err := stop(s); err != nil {
			t.Error(err)
		}
		cancel()
		s.group.Wait()
		s.node.Close()
		ended := 0
		for _, span := range exporter.GetSpans() {
			if span.Name == "round" && span.Status.Code == codes.Error && span.Status.Description != "" {
				ended++
			}
		}
		if ended != 1 {
			t.Errorf("%s: %d rounds without a sum: %+v", what, ended, exporter.GetSpans())
		}
	}
}
