package harness

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/anishathalye/porcupine"
)

// state has what a record promises of a federation.
type state struct {
	holder  string // the node that claimed it last
	value   string // of the last decision, with all that it names; empty: nothing was decided
	charged uint64 // rounds
	orders  int
}

// What is done to a record, and what it says to that.
type (
	input struct {
		op      op
		node    string
		value   string
		charged uint64
		orders  int
	}
	output struct {
		result  result
		value   string
		charged uint64
		orders  int
		// named says that a loss was named: what stands in its place is of some decision that was tried.
		named, tried bool
	}
	op     string
	result string
)

const (
	claim  op = "claim"
	keep   op = "keep"
	decide op = "decide"
	read   op = "read"
	model  op = "model"

	ok      result = "ok"
	lost    result = "lost"    // another node leads
	refused result = "refused" // by name, so that nothing was done
	unknown result = "unknown" // it ended without an answer
)

// promises is the model: claims fence the holder before, decisions are read by all who follow, and
// what is lost is named, with no charge given back.
var promises = porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(now, in, out any) []any {
		return now.(state).step(in.(input), out.(output))
	},
	DescribeOperation: func(in, out any) string {
		i, o := in.(input), out.(output)
		return fmt.Sprintf("%s %s %s/%d/%d: %s %s/%d/%d named %t tried %t", i.node, i.op, i.value,
			i.charged, i.orders, o.result, o.value, o.charged, o.orders, o.named, o.tried)
	},
}

func (s state) step(i input, o output) []any {
	after := s
	switch i.op {
	case claim:
		after.holder = i.node
		switch {
		case o.result == lost || o.result == refused:
			return []any{s, after}
		case o.result == unknown:
			return []any{s, after}
		case o.named:
			if o.charged < s.charged || o.value != "" && !o.tried {
				return nil
			}
			back := state{i.node, o.value, o.charged, o.orders}
			return []any{after, back} // it is so with the next decision
		}
		return s.shows(o, after)
	case keep:
		if o.result == ok && s.holder != i.node {
			return nil
		}
		return []any{s}
	case read, model:
		if o.result != ok {
			return []any{s}
		}
		return s.shows(o, s)
	}
	after.value, after.charged, after.orders = i.value, i.charged, i.orders
	mine := s.holder == i.node && i.charged >= s.charged
	switch {
	case o.result == ok && mine:
		return []any{after}
	case o.result == ok:
		return nil
	case o.result == unknown && mine:
		return []any{s, after}
	}
	return []any{s}
}

// shows compares what is read with the state, from which after follows.
func (s state) shows(o output, after state) []any {
	if o.value != s.value || o.charged != s.charged || o.orders != s.orders {
		return nil
	}
	return []any{after}
}

// never stands for the end of an operation that has no answer.
const never = 1 << 62

// history has what was done to a federation. Its clock counts what happens.
type history struct {
	mutex sync.Mutex
	clock int64
	ops   []porcupine.Operation
	tried map[string]bool // values
	told  map[uint64]string
	wrong []string // that no model says
}

func newHistory() *history {
	return &history{tried: make(map[string]bool), told: make(map[uint64]string)}
}

func (h *history) tick() int64 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.clock++
	return h.clock
}

// do records what a client does.
func (h *history) do(client int, in input, call func() output) output {
	began := h.tick()
	out := call()
	out.tried = h.tried[out.value]
	end := h.tick()
	if out.result == unknown {
		end = never
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: began, Output: out,
		Return: end})
	return out
}

// tell has a decision told to parties: no other has its number.
func (h *history) tell(number uint64, value string) {
	if had, is := h.told[number]; is && had != value {
		h.wrong = append(h.wrong, fmt.Sprintf("decision %d was told as %s and as %s", number, had, value))
	}
	h.told[number] = value
}

// verdict is empty if a history keeps all promises.
func (h *history) verdict() string {
	wrong := slices.Clone(h.wrong)
	if !porcupine.CheckOperations(promises.ToModel(), h.ops) {
		wrong = append(wrong, "Porcupine refuses it")
	}
	return strings.Join(wrong, "; ")
}

// String lists the operations by time.
func (h *history) String() string {
	ops := slices.Clone(h.ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var out strings.Builder
	for _, o := range ops {
		end := fmt.Sprint(o.Return)
		if o.Return == never {
			end = "…"
		}
		fmt.Fprintf(&out, "%4d to %4s  %s\n", o.Call, end,
			promises.DescribeOperation(o.Input, o.Output))
	}
	return out.String()
}
