package main

import (
	"slices"
	"strings"
)

// testCase is a command to run, with the part of its output that is compared.
type testCase struct {
	args string   // " | " has a command read what the one before it prints
	slow bool     // takes minutes
	omit []string // keys whose values are left out, at any depth
	only []string // if not nil, of the outermost objects only these keys
}

// withoutNoise lists simulations without noise.
var withoutNoise = []string{
	"simulate",
	"simulate --clients 10 --rounds 5 --rows-per-client 100 --seed 7",
	"simulate --drop 0.1",
	"simulate --clients 20 --rounds 5 --drop 0.2 --adversary curious --colluders 2",
	"simulate --data adult --rounds 10",
	"simulate --data adult --clients 30 --rounds 5 --rule fedprox+fedadam --mask soft",
	"simulate --data digits --rounds 10",
	"simulate --data digits --rounds 4 --rule scaffold --mask hard --per-round 5",
	"simulate --data digits --rounds 4 --model mlp:20 --split dirichlet-labels --drop 0.1",
	"simulate --data digits --rounds 4 --rule fedga+fedyogi --clip 0.5",
	"simulate --model softmax --clients 12 --rounds 3 --split dirichlet-quantity",
}

// withNoise lists simulations with noise.
var withNoise = []string{
	"simulate --epsilon 4 --rounds 5",
	"simulate --noise skellam --noise-multiplier 0.5 --clients 20 --rounds 4",
	"simulate --noise discrete-laplace --clients 20 --rounds 3 --drop 0.1",
	"simulate --noise discrete-gaussian --noise-multiplier 2 --epsilon 3 --clients 20 --rounds 20",
	"simulate --data digits --epsilon 8 --rounds 3 --mask soft",
}

// cases returns all cases.
func cases() []testCase {
	var all []testCase
	for _, args := range withoutNoise {
		all = append(all, testCase{args: args + " --json"})
	}
	for _, args := range withNoise {
		all = append(all, testCase{args: args + " --json", omit: drawn})
	}
	for i, args := range slices.Concat(withoutNoise, withNoise) {
		c := testCase{args: args + " --print | simulate - --json"}
		if i >= len(withoutNoise) {
			c.omit = drawn
		}
		all = append(all, c)
	}
	all = append(all, scenarioCases()...)
	for _, args := range []string{
		"account gaussian --noise-multiplier 1 --rate 0.01 --rounds 10000 --delta 1e-6",
		"account gaussian --noise-multiplier 0.5",
		"account gaussian --replace-one",
		"account gaussian --delta 0",
		"account laplace --noise-multiplier 0.5 --delta 0",
		"account laplace --rate 0.01 --rounds 1000 --delta 1e-9",
		"account discrete-gaussian --noise-multiplier 2 --sensitivity 5 --rounds 100 --delta 1e-6",
		"account discrete-gaussian --sensitivity 50 --dimension 64 --shares 10",
		"account discrete-laplace --noise-multiplier 2 --sensitivity 3 --delta 0",
		"account skellam --sensitivity 1000 --dimension 4096 --rounds 20",
		"account skellam --sensitivity 20 --rate 0.1 --rounds 10",
		"calibrate gaussian --epsilon 8 --rate 0.1 --rounds 1000",
		"calibrate gaussian --epsilon 4 --find rounds --noise-multiplier 5 --adversary server",
		"calibrate gaussian --epsilon 4 --find rate --noise-multiplier 2 --rounds 1000",
		"calibrate laplace --epsilon 2 --rounds 5",
		"calibrate discrete-laplace --epsilon 0.5 --delta 0",
		"calibrate discrete-gaussian --epsilon 1 --sensitivity 100 --dimension 32 --shares 4",
		"calibrate skellam --epsilon 1 --sensitivity 20",
	} {
		all = append(all, testCase{args: args + " --json"})
	}
	return append(all, testCase{
		args: "attack --json",
		only: []string{"attack", "adversary", "defence", "case", "metric", "verdict"},
	})
}

// scenarioCases run the files of simulation/scenarios unchanged, and over some of the values that
// the tables of docs/scenarios.md cover. All that is drawn there follows from the seed, including
// noise.
func scenarioCases() (all []testCase) {
	for _, s := range []struct {
		name, sweep string
		slow        bool
	}{
		{name: "latency"},
		{name: "digits"},
		{name: "digits", sweep: "epsilon=0.01,0.1,1,8"},
		{name: "digits-certified"},
		{name: "digits-certified", sweep: "epsilon=1,8"},
		{name: "budgets-two"},
		{name: "budgets-least"},
		{name: "budgets-own"},
		{name: "budgets-certified"},
		{name: "serverless"},
		{name: "kdd-published"},
		{name: "kdd-published", sweep: "epsilon=0.01,0.1,1"},
		{name: "kdd"},
		{name: "kdd", sweep: "epsilon=0.1,1,8"},
		{name: "correlation"},
		{name: "correlation", sweep: "seed=1,2"},
		{name: "hospitals"},
		{name: "committee"},
		{name: "open"},
		{name: "network-1"},
		{name: "network-2"},
		{name: "network-3"},
		{name: "thousands", slow: true},
		{name: "hundred-thousand", slow: true},
		{name: "complete", slow: true},
	} {
		more := " --json"
		if s.sweep != "" {
			more = " --sweep " + s.sweep + " --json"
		}
		all = append(all, testCase{
			args: "simulate ROOT/simulation/scenarios/" + s.name + ".toml" + more,
			slow: s.slow,
		})
	}
	return all
}

// drawn lists the keys of simulate that depend on noise, which is new in every run.
var drawn = []string{
	"accuracy", "mcc", "max_abs_diff", "largest_weight",
	"mean_norm", "max_norm", "cosine", "clipped", "clip_norm", "mask",
}

// reduce removes from an outermost object everything that is not compared.
func (c *testCase) reduce(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if c.only != nil {
		for key := range object {
			if !slices.Contains(c.only, key) {
				delete(object, key)
			}
		}
	}
	return c.strip(object)
}

// strip removes times and omitted keys, at any depth.
func (c *testCase) strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.HasSuffix(key, "_ms") || slices.Contains(c.omit, key) {
				delete(v, key)
				continue
			}
			v[key] = c.strip(value)
		}
	case []any:
		for i := range v {
			v[i] = c.strip(v[i])
		}
		return v
	}
	return v
}
