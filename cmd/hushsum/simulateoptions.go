package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/hushsum/hushsum/aggregation"
	"github.com/hushsum/hushsum/internal/named"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
	"github.com/hushsum/hushsum/training"
)

// options makes the run of the flags, on the data.
func (v *simulateFlags) options(train, test *learning.Dataset) (o simulation.Options, err error) {
	o = simulation.Options{
		Test:   test,
		Rounds: v.rounds,
		Local: learning.SGD{Rate: v.rate, Momentum: v.momentum, WeightDecay: v.decay,
			Batch: v.batch, Epochs: v.epochs, Steps: v.steps},
		PerRound:     v.perRound,
		Sum:          simulation.Private,
		Range:        v.rangeLimit,
		FractionBits: v.fractionBits,
		Drop:         v.drop,
		Beside:       true,
		Seed:         v.seed,
	}
	if v.recovery {
		o.Recovery, o.Colluders = &v.withRecovery, v.colluders
	}
	if v.oneshot {
		o.Oneshot = &v.committee
	}
	if v.noisy() {
		o.Noise, o.Budget = &v.noise, v.budget
	} else if v.set["clip"] {
		o.Clip = simulation.Clipping{Kind: simulation.DifferenceClip, Norm: v.noise.Clip}
	}
	if err := v.rules(&o); err != nil {
		return o, err
	}
	if o.Parties, o.Test, err = v.deal(train, test); err != nil {
		return o, err
	}
	if v.oneshot && v.noisy() && !v.set["bits"] {
		v.noise.Bits = max(v.noise.Bits, simulation.OneshotBits(len(o.Parties)))
	}
	if o.Model, err = v.modelFor(o.Parties, o.Test); err != nil {
		return o, err
	}
	if v.averaging() && !v.noisy() || v.byRows {
		for _, d := range o.Parties {
			o.MaxSamples = max(o.MaxSamples, d.Len())
		}
		o.Models = v.averaging()
	}
	return o, nil
}

// unknown says that a flag names nothing that there is.
func unknown(flag, name string, known []string) error {
	return &problem{
		cause:  fmt.Sprintf("--%s: there is no %q", flag, name),
		advice: didYouMean(name, known, "%s", "Use one of "+strings.Join(known, ", ")+"."),
	}
}

// adaptiveRate is the server's rate with adaptive rules, whose steps are about as
// large as their signs.
const adaptiveRate = 0.01

// serverRules are those next to averaging, as the flag has them.
var serverRules = map[string]aggregation.Rule{
	"momentum":   aggregation.RuleMomentum,
	"fedadagrad": aggregation.RuleFedAdagrad,
	"fedadam":    aggregation.RuleFedAdam,
	"fedyogi":    aggregation.RuleFedYogi,
}

// rules sets the rules of parties and server, and the mask.
func (v *simulateFlags) rules(o *simulation.Options) error {
	parties, servers := 0, 0
	for _, name := range strings.Split(v.rule, "+") {
		if kind, ok := training.ClientRules[name]; ok {
			o.Client.Kind = kind
			parties++
		} else if rule, ok := serverRules[name]; ok {
			o.Server.Rule = rule
			servers++
		} else {
			known := append(slices.Sorted(maps.Keys(training.ClientRules)),
				slices.Sorted(maps.Keys(serverRules))...)
			return unknown("rule", name, known)
		}
	}
	if parties > 1 || servers > 1 {
		return &problem{cause: fmt.Sprintf("--rule: %s has two rules for one side", v.rule),
			advice: "Use one rule of the parties and one of the server, as in fedprox+fedadam."}
	}
	switch {
	case !(v.serverRate >= 0) || math.IsInf(v.serverRate, 1):
		return &problem{cause: fmt.Sprintf("--server-rate: %v is no learning rate", v.serverRate),
			advice: "Use a number above 0, or 0 for the rule's own."}
	case !(v.maskThreshold >= 0 && v.maskThreshold <= 1):
		return &problem{cause: fmt.Sprintf("--mask-threshold: %v is no agreement", v.maskThreshold),
			advice: "Use a number from 0 to 1, such as 0.4."}
	}
	o.Server.Rate = v.serverRate
	if o.Server.Rule != aggregation.RuleFedAvg {
		o.Server.Beta1 = .9
		if o.Server.Rate == 0 {
			o.Server.Rate = adaptiveRate
		}
		if o.Server.Rule == aggregation.RuleMomentum && v.serverRate == 0 {
			o.Server.Rate = 1 - o.Server.Beta1 // steps then add up to the updates
		}
	}
	if o.Client.Kind == simulation.FedProx || v.set["mu"] {
		o.Client.Mu = v.mu
	}
	if o.Client.Kind == simulation.FedGA || v.set["beta"] {
		o.Client.Beta = v.beta
	}
	kind, ok := training.Masks[v.mask]
	if !ok {
		return unknown("mask", v.mask, slices.Sorted(maps.Keys(training.Masks)))
	}
	o.Mask = aggregation.GradientMask{Kind: kind, Threshold: v.maskThreshold}
	return nil
}

// modelFor makes the model for the rows.
func (v *simulateFlags) modelFor(
	parties []*learning.Dataset, test *learning.Dataset,
) (learning.Model, error) {
	classes := named.Classes(append([]*learning.Dataset{test}, parties...)...)
	m, err := named.Model(v.model, test.Features, classes, v.lambda)
	var wrong *named.ModelError
	switch {
	case errors.As(err, &wrong) && wrong.Unknown:
		return nil, unknown("model", v.model, named.Models)
	case errors.As(err, &wrong) && wrong.Lambda:
		return nil, &problem{cause: "--lambda: " + wrong.Reason, advice: wrong.Advice}
	case errors.As(err, &wrong):
		return nil, &problem{cause: "--model: " + wrong.Reason, advice: wrong.Advice}
	}
	return m, err
}
