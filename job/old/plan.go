package old

import (
	"errors"
	"fmt"
	"math"

	"github.com/hushsum/hushsum/internal/strict"
	"github.com/hushsum/hushsum/job"
)

// plan is a plan's JSON. The roster, and the committee, were arguments of what settled it.
type plan struct {
	Name      string  `json:"name"`
	Rounds    int     `json:"rounds"`
	Length    int     `json:"length"`
	Clip      float64 `json:"clip"`
	Bits      int     `json:"bits"`
	Noise     string  `json:"noise"`
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	DropOut   float64 `json:"drop_out"`
	Colluders int     `json:"colluders"`
	Adversary int     `json:"adversary"`
	Classical bool    `json:"classical"`
	Protocol  string  `json:"protocol"`
	Faults    int     `json:"faults"`
	Covered   bool    `json:"covered"`
}

// adversaries are the words for a plan's numbers.
var adversaries = []string{"cheating", "semi-malicious", "curious"}

func (c *conversion) plan() error {
	p := new(plan)
	if err := strict.JSON(c.text, p); err != nil {
		var wrong *strict.Error
		key := ""
		if errors.As(err, &wrong) {
			key = wrong.Key
		}
		return c.mistake(key, "write a plan's JSON, as Plan has it", "%v", err)
	}
	j := c.job
	j.Rounds, j.Model.Length = p.Rounds, p.Length
	j.Name = c.named(p.Name)
	j.Parties.DropOut, j.Parties.Colluders = p.DropOut, p.Colluders
	j.Sum.Protocol, j.Sum.Faults, j.Sum.Covered = p.Protocol, p.Faults, p.Covered
	j.Sum.Classical = p.Classical
	c.refuse(p.Adversary < 0 || p.Adversary >= len(adversaries), "adversary",
		"write 0 for cheating, 1 for semi-malicious, 2 for curious", "there is no %d", p.Adversary)
	if p.Adversary > 0 && p.Adversary < len(adversaries) {
		j.Sum.Adversary = adversaries[p.Adversary]
	}
	j.Privacy = job.Privacy{Noise: p.Noise, Epsilon: p.Epsilon, Delta: p.Delta, Clip: p.Clip,
		Bits: p.Bits}
	c.refuse(p.Clip == 0, "clip", "write the L2 norm that vectors are clipped to", "it is missing")
	c.later = append(c.later, c.whoTakesPart)
	c.recovers("a plan's")
	c.clear(true)
	c.note("a weighting that was given to settle in Python is now sum.max_weight, and model.length " +
		"does not count the weight")
	if !j.Oneshot() {
		return nil
	}
	if j.Noisy() && p.Bits == 0 {
		j.Privacy.Bits = 32
		c.note("privacy.bits = 32 is written: by default, one-message sums have as many as their keys " +
			"need")
	}
	c.note("the committee was an argument: sum.committee names its file; in a simulation " +
		"sum.members counts its members, 13 by default")
	return nil
}

// whoTakesPart demands the parties of a plan, which does not say who they are.
func (c *conversion) whoTakesPart() error {
	if c.job.Size() > 0 || c.job.Parties.Roster != "" {
		return nil
	}
	return c.mistake("", "give parties.count=10, or parties.roster=roster.txt",
		"a plan does not say who takes part, and a job does")
}

// named returns the name of a job for one that may have characters that it cannot have.
func (c *conversion) named(name string) string {
	out := plain(name)
	if out != name {
		c.note("the name %q is %q: letters, digits, dots, dashes and underscores", name, out)
	}
	return out
}

// recovers has sums recover as those of plans and federations always did.
func (c *conversion) recovers(whose string) {
	j := c.job
	if j.Recovers() || j.Oneshot() {
		return
	}
	j.Sum.Recovery = true
	c.note("sum.recovery = true is written: %s sums always recovered, and a job's do so only with it "+
		"or with parties.drop_out", whose)
}

// Of sums without noise.
const (
	presetRange  = 64 // unless said
	presetPlaces = 20 // unless said
	mostPlaces   = 40
	mostUnits    = 40 // of a coordinate, as a power of two: there is room for a million parties
)

// clear brings sums without noise to the encoding that they have now: coordinates of a fixed range
// and places. They had a ring, and with follows a scale that followed from the clip; range and
// places then do where the presets are too small, or too coarse for the clip.
func (c *conversion) clear(follows bool) {
	j := c.job
	if j.Noisy() {
		return
	}
	if j.Privacy.Bits != 0 {
		c.note("bits = %d is left out: sums without noise have sum.range and sum.fraction_bits",
			j.Privacy.Bits)
		j.Privacy.Bits = 0
	}
	clip := j.Privacy.Clip
	if !follows || !(clip > 0) || math.IsInf(clip, 1) {
		return
	}
	text := "sums without noise are of fixed-point numbers, exact but for rounding"
	if clip < 1 || clip > presetRange {
		j.Sum.Range = clip // no coordinate is larger
		text += fmt.Sprintf(": sum.range = %v, as the clip", clip)
	}
	exponent := int(math.Ceil(math.Log2(clip)))
	switch {
	case exponent < 0:
		j.Sum.FractionBits = min(presetPlaces-exponent, mostPlaces)
	case exponent > mostUnits-presetPlaces:
		j.Sum.FractionBits = max(mostUnits-exponent, 1)
	}
	if j.Sum.FractionBits != 0 {
		text += fmt.Sprintf(", and sum.fraction_bits = %d", j.Sum.FractionBits)
	}
	c.note("%s", text)
}
