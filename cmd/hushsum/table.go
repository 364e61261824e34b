package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/protocol"
	"github.com/hushsum/hushsum/simulation"
)

// rowFormat is a row of the table: 79 characters. noisyFormat is one with noise: 74.
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
	if r := t.recovery; r == nil {
		t.field("recovery", "off: every party must submit")
	} else {
		t.field("recovery", "%v, %s; %d of %s rebuild a secret;", r.Adversary, plural(r.Colluders, "colluder"),
			r.Threshold, plural(r.Degree, "share"))
		t.field("", "at least %d of %s in a sum", r.MinSurvivors, plural(o.Clients, "party"))
	}
	if o.Drop > 0 {
		t.field("drop-outs", "%d of %s in each round, at random moments", o.DropOuts(), plural(o.Clients, "party"))
	}
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
	if n.Epsilon == 0 {
		t.field("privacy", "epsilon is stated at delta %v; there is no budget", n.Delta)
		return
	}
	t.field("privacy", "budget of each party: epsilon %v at delta %v against the server", n.Epsilon, n.Delta)
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
		if len(s.Rounds) == 0 {
			return
		}
	}
	if len(s.Rounds) == 0 {
		t.printf("\nNo round was completed.\n")
		return
	}
	if lost := s.Lost(); lost > 0 {
		were := "were"
		if lost == 1 {
			were = "was"
		}
		t.sentence("%d of %s %s lost: too few parties were left to unmask the sum, and training went on with the old model. Lower --drop to lose fewer.",
			lost, plural(len(s.Rounds), "round"), were)
	}
	t.outcome(s)
	if last := s.Rounds[len(s.Rounds)-1]; t.mechanism != nil {
		t.privacy(t.options.Noise.Delta, last.Server, last.Public)
	}
	t.costs(s)
	if took < time.Second {
		t.printf("\nThe run took %s ms in all.\n", short(took))
		return
	}
	t.printf("\nThe run took %.1f s in all.\n", took.Seconds())
}

// outcome sets the two models side by side.
func (t *table) outcome(s *simulation.Summary) {
	last := s.Rounds[len(s.Rounds)-1]
	p, c := last.Private, last.Clear
	largest := 0.0
	for _, r := range s.Rounds {
		largest = max(largest, r.LargestWeight)
	}
	t.printf("\n%-28s %9s %9s\n", fmt.Sprintf("After %s", plural(last.Round, "round")), "accuracy", "MCC")
	t.printf("%-28s %9.4f %9.4f\n", "  over the private sum", p.Accuracy(), p.MCC())
	t.printf("%-28s %9.4f %9.4f\n", "  in the clear, same seeds", c.Accuracy(), c.MCC())
	t.printf("%-28s %+9.4f %+9.4f\n", "  difference", p.Accuracy()-c.Accuracy(), p.MCC()-c.MCC())
	t.printf("\nThe largest difference between two weights of the models is %.2g.\n", last.MaxAbsDiff)
	if t.mechanism != nil {
		return
	}
	t.printf("The largest weight of any party was %.3g; the ring takes up to %v.\n", largest, t.options.Range)
}

// part is one part of a party's cost over the whole run.
type part struct {
	name     string // as a row
	work     string // what takes the time
	traffic  string // what takes the bytes
	time     time.Duration
	up, down int64
}

func (p *part) bytes() int64 { return p.up + p.down }

func parts(s *simulation.Summary) []part {
	total := s.Total()
	rounds := plural(len(s.Rounds), "round")
	model := int64(8 * len(s.Private) * len(s.Rounds))
	return []part{
		{"key exchange, once", "the key exchange", "the key exchange", s.Setup.Client, s.Setup.BytesUp, s.Setup.BytesDown},
		{"training, " + rounds, "training", "the broadcast model", total.Train, 0, model},
		{"private sum, " + rounds, "the private sum", "the private sum", total.Client, total.BytesUp, total.BytesDown - model},
	}
}

// costs says what a party and the server spent, and on what most.
func (t *table) costs(s *simulation.Summary) {
	var spent time.Duration
	var bytes int64
	list := parts(s)
	slowest, largest := list[0], list[0]
	for _, p := range list {
		spent += p.time
		bytes += p.bytes()
		if p.time > slowest.time {
			slowest = p
		}
		if p.bytes() > largest.bytes() {
			largest = p
		}
	}
	t.printf("\n%-28s %9s %9s %9s %11s\n", "Cost of a party, whole run", "ms", "share", "bytes up", "bytes down")
	for _, p := range list {
		t.printf("  %-26s %9s %8.0f%% %9s %11s\n", p.name, short(p.time), percent(p.time, spent), grouped(int(p.up)), grouped(int(p.down)))
	}
	total := s.Total()
	t.printf("  %-26s %9s\n", "the server, for all", short(s.Setup.Server+total.Server))
	time, traffic := percent(slowest.time, spent), percent(largest.bytes(), bytes)
	if slowest.work == largest.traffic {
		t.sentence("The largest part of a party's time (%.0f%%) and of its bytes (%.0f%%) goes into %s.", time, traffic, slowest.work)
		return
	}
	t.sentence("The largest part of a party's time goes into %s (%.0f%%), of its bytes into %s (%.0f%%).",
		slowest.work, time, largest.traffic, traffic)
}

func percent[T ~int | ~int64](d, of T) float64 {
	if of <= 0 {
		return 0
	}
	return 100 * float64(d) / float64(of)
}

// short prints milliseconds with about three digits.
func short(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	}
	return grouped(int(ms + 0.5))
}

// epsilon prints an upper bound with four decimals, or digits if it is large or
// small, rounded up.
func epsilon(e float64) string {
	switch {
	case math.IsInf(e, 1) || math.IsNaN(e):
		return "infinite"
	case e >= 10000:
		return fmt.Sprintf("%.4g", e*(1+5e-4))
	}
	if e > 0 && e < .01 {
		unit := math.Pow(10, math.Floor(math.Log10(e))-3)
		return fmt.Sprintf("%.4g", math.Ceil(e/unit)*unit)
	}
	return fmt.Sprintf("%.4f", math.Ceil(e*1e4)/1e4)
}

// lowerBound prints a lower bound, rounded down, or a dash if none is proved.
func lowerBound(s accounting.Spent) string {
	switch {
	case s.Lower <= 0:
		return "-"
	case math.IsInf(s.Lower, 1):
		return "infinite"
	case s.Lower >= 10000:
		return fmt.Sprintf("%.4g", s.Lower*(1-5e-4))
	}
	if s.Lower < .01 {
		unit := math.Pow(10, math.Floor(math.Log10(s.Lower))-3)
		return fmt.Sprintf("%.4g", math.Floor(s.Lower/unit)*unit)
	}
	return fmt.Sprintf("%.4f", math.Floor(s.Lower*1e4)/1e4)
}

// short4 prints a number with four digits.
func short4(x float64) string { return fmt.Sprintf("%.4g", x) }

// grouped prints a number of 0 or more with commas between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return grouped(n) + " " + stem + "ies"
	}
	return grouped(n) + " " + noun + "s"
}
