package sidecar

import (
	"context"
	"fmt"
	"testing"
)

// An answer belongs to the question that the program was handed. One that comes when the job has
// asked another since is dropped, and is not taken for the answer to that.
func TestLateAnswer(t *testing.T) {
	j := &job{events: make(chan jobEvent, 2)}
	s := &sidecar{ctx: t.Context(), objects: map[uint64]any{1: j}}
	call := func(f handler, blobs ...blob) (any, error) {
		out, _, err := f(s, &request{with: []byte(`{"job":1}`), blobs: blobs})
		return out, err
	}
	ask := func(ctx context.Context, round uint64) <-chan string {
		told := make(chan string, 1)
		go func() {
			v, err := j.ask(ctx, jobEvent{jobEventJSON: jobEventJSON{Event: "work", Round: round}})
			u, _ := update[float64](v)
			told <- fmt.Sprint(u.Vector, err)
		}()
		return told
	}
	broken, cut := context.WithCancel(t.Context())
	first := ask(broken, 1)
	if e, err := call(nextOfJob); err != nil || e.(jobEventJSON).Round != 1 {
		t.Fatal(e, err)
	}
	cut() // the connection, while the program is at work
	if got := <-first; got != "[] context canceled" {
		t.Error(got)
	}
	second := ask(t.Context(), 2)
	vector := func(x float64) blob { return blob{bytes: floatBlob([]float64{x})} }
	if _, err := call(answerJob, vector(1)); err != nil {
		t.Error(err)
	}
	if e, err := call(nextOfJob); err != nil || e.(jobEventJSON).Round != 2 {
		t.Fatal(e, err)
	}
	if _, err := call(answerJob, vector(2)); err != nil {
		t.Error(err)
	}
	if got := <-second; got != "[2] <nil>" {
		t.Errorf("round 2 is answered with %s", got)
	}
	if _, err := call(answerJob, vector(3)); err == nil {
		t.Error("an answer to nothing is taken")
	}
}
