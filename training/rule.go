package training

import (
	"fmt"

	"github.com/hushsum/hushsum/aggregation"
)

// ClientKind is the rule by which parties train.
type ClientKind int

const (
	// FedAvg is plain local training (McMahan 2017).
	FedAvg ClientKind = iota
	// FedProx pulls towards the round's model: see aggregation.Proximal.
	FedProx
	// SCAFFOLD corrects every gradient by control variates: see
	// aggregation.Scaffold. It takes parties without momentum.
	SCAFFOLD
	// FedGA displaces the start by how far a party's gradient is from the mean,
	// which takes a sum of gradients before every round: see aggregation.Displace.
	// With one local step it is GradAlign.
	FedGA
)

func (k ClientKind) String() string {
	switch k {
	case FedAvg:
		return "fedavg"
	case FedProx:
		return "fedprox"
	case SCAFFOLD:
		return "scaffold"
	case FedGA:
		return "fedga"
	}
	return fmt.Sprintf("rule(%d)", int(k))
}

// ClientRule is a rule with its parameter.
type ClientRule struct {
	Kind ClientKind
	Mu   float64 // of FedProx, 0 or more
	Beta float64 // of FedGA, 0 or more
	// OptionI makes SCAFFOLD take the gradient at the round's model for the new control
	// variate, which costs a pass over the rows; otherwise the mean of the gradients
	// on the way, option II.
	OptionI bool
	// Fresh makes SCAFFOLD correct by the gradients at the round's model, own and mean,
	// instead of control variates from earlier rounds: "Implicit Gradient Alignment"
	// compares with that. It takes a sum of gradients before every round, as FedGA does.
	Fresh bool
}

// Stored reports whether parties keep control variates from round to round.
func (c ClientRule) Stored() bool { return c.Kind == SCAFFOLD && !c.Fresh }

// Sums returns how many sums a step of the model takes.
func (c ClientRule) Sums() int {
	if c.Kind == FedGA || c.Fresh {
		return 2
	}
	return 1
}

// ClipKind says what is clipped to an L2 norm.
type ClipKind int

const (
	// NoClip clips nothing.
	NoClip ClipKind = iota
	// DifferenceClip clips updates, the differences of models.
	DifferenceClip
	// ModelClip clips the weights themselves. It is worse, as "Understanding Clipping
	// for Federated Learning" shows, and there to be compared.
	ModelClip
)

// Clipping says how updates are bounded without noise.
type Clipping struct {
	Kind ClipKind
	// Norm is the L2 norm, above 0. With Factor it is the first round's.
	Norm float64
	// Factor, if above 0, makes each round clip to Factor times the mean update norm of
	// the round before, which nothing protects.
	Factor float64
	// Adaptive makes the norm follow a quantile of the update norms by votes that are
	// summed with the updates, from Norm on: see aggregation.AdaptiveClip. Its own
	// Norm is not read.
	Adaptive *aggregation.AdaptiveClip
}

// Names of rules and masks, as jobs have them.
var (
	ClientRules = map[string]ClientKind{
		"fedavg":   FedAvg,
		"fedprox":  FedProx,
		"scaffold": SCAFFOLD,
		"fedga":    FedGA,
	}
	ServerRules = map[string]aggregation.Rule{
		"fedavg":     aggregation.RuleFedAvg,
		"fedavgm":    aggregation.RuleMomentum,
		"fedadagrad": aggregation.RuleFedAdagrad,
		"fedadam":    aggregation.RuleFedAdam,
		"fedyogi":    aggregation.RuleFedYogi,
	}
	masks = map[string]aggregation.MaskKind{
		"none": aggregation.NoMask,
		"soft": aggregation.SoftMask,
		"hard": aggregation.HardMask,
	}
)
