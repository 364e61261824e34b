package harness

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// This file has the model of what a federation of processes shows to parties, readers and
// operators: none of it goes back.

// shown has what the door and the page of a federation have shown.
type shown struct {
	round  int // the last that was begun
	orders int // of operators, that were carried out
	spent  float64
}

// shows and saw are an operation, and its result.
type (
	shows struct {
		op   string // told, read, order
		what string // was read or ordered, or who was told
	}
	saw struct {
		shown
		unknown bool
	}
)

// forward is the model: whoever reads a status or has an order confirmed sees at least what anybody
// was shown or told before.
var forward = porcupine.NondeterministicModel{
	Init: func() []any { return []any{shown{}} },
	Step: func(now, in, out any) []any {
		s, i, o := now.(shown), in.(shows), out.(saw)
		switch {
		case o.unknown:
			return []any{s}
		case i.op == "told": // perhaps long after it was sent
			s.round = max(s.round, o.round)
			return []any{s}
		case o.round < s.round, o.orders < s.orders || o.spent < s.spent,
			i.op == "order" && o.orders == s.orders:
			return nil
		}
		return []any{o.shown}
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v: %v", in, out) },
}

// witness writes down what is shown. It is safe for concurrent use.
type witness struct {
	mutex  sync.Mutex
	ops    []porcupine.Operation
	models map[int][sha256.Size]byte // that each round began with
	wrong  []string
}

// saw writes down what a client was shown between two moments.
func (w *witness) saw(client int, in shows, began time.Time, out saw) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.ops = append(w.ops, porcupine.Operation{ClientId: client, Input: in, Call: began.UnixNano(),
		Output: out, Return: time.Now().UnixNano()})
}

// model compares the model that a round begins with to those that others were told.
func (w *witness) model(round int, file []byte, who string) {
	digest := sha256.Sum256(file)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if had, is := w.models[round]; is && had != digest {
		w.wrong = append(w.wrong, fmt.Sprintf("%s is told of another model in round %d", who, round))
	}
	w.models[round] = digest
}

// check fails a test if the history is not one of the model.
func (w *witness) check(t *testing.T) (ops int) {
	t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, text := range w.wrong {
		t.Error(text)
	}
	result := porcupine.CheckOperationsTimeout(forward.ToModel(), w.ops, time.Minute)
	if result != porcupine.Ok {
		t.Errorf("Porcupine says of %d operations: %s", len(w.ops), result)
		for _, o := range w.ops {
			t.Logf("%d to %d: %s", o.Call, o.Return, forward.DescribeOperation(o.Input, o.Output))
		}
	}
	return len(w.ops)
}
