package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// rowFormat is a row of the table: 79 characters. noisyFormat is one with noise: 77.
const (
	rowFormat   = "%5s %9s %7s %7s %9s %8s %10s %9s %7s"
	noisyFormat = "%5s %9s %9s %9s %11s %11s %9s %7s"
)

// table is the reporter for people.
type table struct {
	screen
	options   *simulation.Options
	recovery  *protocol.Recovery    // with defaults filled in; nil without
	mechanism *simulation.Mechanism // nil without noise
}

func (t *table) begin(about string, o *simulation.Options) {
	weights := o.Train.Features
	t.printf("Federated averaging over a private sum, beside the same training in the clear\n\n")
	t.field("data", "%s", about)
	t.field("parties", "%s with %s each", grouped(o.Clients), plural(o.RowsPerClient, "row"))
	t.field("model", "logistic regression, %s", plural(weights, "weight"))
	t.field("training", "%s of %s; rate %v, lambda %v, seed %d", plural(o.Rounds, "round"), plural(o.LocalSteps, "local step"), o.Rate, o.Lambda, o.Seed)
	if m := t.mechanism; m != nil {
		t.noise(m)
	} else if layout, err := o.FedAvg(weights).Layout(); err == nil {
		t.field("ring", "%s for weight times rows: weights to %v, %s; %s for the number of rows", plural(layout[0].Bits, "bit"),
			o.Range, plural(o.FractionBits, "binary place"), plural(layout[1].Bits, "bit"))
	}
	t.screen.recovery(t.recovery, o.Colluders, o.Clients, o.DropOuts(), o.Clients)
	t.printf("\nBytes and milliseconds are for one party and round; the server's are for all.\n\n")
	if t.mechanism != nil {
		t.printf(noisyFormat+"\n", "round", "parties", "up", "sum ms", "eps server", "eps public", "accuracy", "MCC")
		return
	}
	t.printf(rowFormat+"\n", "round", "parties", "up", "down", "train ms", "sum ms", "server ms", "accuracy", "MCC")
}

// noise says how updates are summed with noise.
func (t *table) noise(m *simulation.Mechanism) {
	n := t.options.Noise
	t.field("ring", "%s for each of %s of a turned update, %.4g units to 1.0",
		plural(n.Bits, "bit"), plural(m.Sensitivity.Dimension, "coordinate"), m.Encoder.Scale)
	t.field("noise", "%s, multiplier %s; updates clipped to %v, L2 sensitivity %.4g units after rounding; %s must suffice, for a standard deviation of %.4g units in each coordinate of the sum, which is %.3g in the weights' own units",
		strings.ReplaceAll(laws[n.Law], "-", " "), short4(n.Multiplier), n.Clip, m.Sensitivity.L2,
		plural(m.Shares.MinHonest, "honest share"), n.Multiplier*m.Sensitivity.L2, m.StdDev())
	t.budget(n)
}

func (t *table) progress(round, done int) { t.screen.progress(round, done, t.options.Clients, "") }

func (t *table) round(r simulation.Round) {
	t.wipe()
	parties := fmt.Sprintf("%d/%d", r.Clients, t.options.Clients)
	if r.Lost != nil {
		parties = "lost"
	}
	if t.mechanism != nil {
		t.printf(noisyFormat+"\n", fmt.Sprint(r.Round), parties, grouped(int(r.Cost.BytesUp)), short(r.Cost.Client),
			epsilon(r.Server.Upper), epsilon(r.Public.Upper), fmt.Sprintf("%.4f", r.Private.Accuracy()), fmt.Sprintf("%.4f", r.Private.MCC()))
		return
	}
	t.printf(rowFormat+"\n",
		fmt.Sprint(r.Round),
		parties,
		grouped(int(r.Cost.BytesUp)),
		grouped(int(r.Cost.BytesDown)),
		short(r.Cost.Train),
		short(r.Cost.Client),
		short(r.Cost.Server),
		fmt.Sprintf("%.4f", r.Private.Accuracy()),
		fmt.Sprintf("%.4f", r.Private.MCC()))
}

func (t *table) end(s *simulation.Summary, took time.Duration) {
	t.wipe()
	if s.Stopped != nil {
		t.stopped(len(s.Rounds), s.Stopped)
	}
	if len(s.Rounds) == 0 {
		if s.Stopped == nil {
			t.printf("\nNo round was completed.\n")
		}
		if t.mechanism != nil && s.Server.Upper > 0 {
			t.privacy(t.options.Noise.Delta, s.Server, s.Public) // the one that failed may have shown something
		}
		return
	}
	t.lost(s.Lost(), len(s.Rounds))
	last := s.Rounds[len(s.Rounds)-1]
	t.outcome(last.Round, "the private sum", last.Private)
	t.compare(last.Private, last.Clear, last.MaxAbsDiff)
	if t.mechanism != nil {
		t.privacy(t.options.Noise.Delta, s.Server, s.Public)
	} else {
		largest := 0.0
		for _, r := range s.Rounds {
			largest = max(largest, r.LargestWeight)
		}
		t.printf("The largest weight of any party was %.3g; the ring takes up to %v.\n", largest, t.options.Range)
	}
	t.costs("Cost of a party, whole run", s.Setup, s.Total(), len(s.Rounds), int64(8*len(s.Private)*len(s.Rounds)))
	t.took(took)
}
