package oneshot

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/noise"
	"github.com/hushsum/hushsum/oneshot/normproof"
)

// Terms are the numbers of a configuration.
type Terms struct {
	// Length is the number of values of an input, 1 to 2^26.
	Length int
	// Bits, 1 to 40, bounds each value v: −2^(Bits−1) ≤ v < 2^(Bits−1).
	Bits int
	// Noise is the discrete Gaussian law that the noise of MinSurvivors − Colluders parties adds up
	// to in each coordinate; each party's share of the noise must have a standard deviation of at
	// least 6.4, since it also hides the key. The zero Law means exact sums, which cost 13 to 18 bits
	// more a value.
	Noise noise.Law
	// CommitteeNoise has the members deal the noise, each in a message of its own without an input.
	// Noise is then the law that the noise of C − Faults − InLeague members of a committee of C adds
	// up to: every sum has the noise of at least that many honest members, no matter who the parties
	// are.
	// Parties add only the noise that hides their keys, with a standard deviation of 6.4. Needs
	// Noise. With Norm members prove that the norm of their noise is not larger than that of honest
	// noise, and the server draws it: see [Server.Coin].
	CommitteeNoise bool
	// MinSurvivors is the least number of parties in a sum.
	MinSurvivors int
	// Colluders is c, how many parties may collude with the server. MinSurvivors − Colluders must be
	// at least 2, or the colluders could read the input of a single honest party.
	Colluders int
	// Faults is f, how many members may lie or be silent and cost no sum: at least 1.
	Faults int
	// InLeague is t, how many members, those that lie among them, may pool what they know with the
	// server: Faults to C − 2·Faults − 1 for a committee of C. Zero stands for Faults. A party may be
	// a member too, with one key for both; InLeague is then Colluders at most.
	InLeague int
	// Disputes is Δ, how many parties' boxes a member may dispute alone before it is out of the round:
	// 1 to the number n of parties; zero stands for ⌈n/(10·Faults)⌉. Members that lie keep out
	// Faults·(Δ + 1) honest parties at most.
	Disputes int
	// PerPolynomial is ρ, how many secrets each of the members' polynomials carries: 1 to C −
	// 2·Faults − InLeague for a committee of C. Zero stands for the most for which a sum needs no more
	// members than sign who is in it, and at least 1: ⌊(C + InLeague)/2⌋ + 1 − Faults − InLeague. More
	// make messages shorter, and leave fewer members to lose: see [Figures.Spoilers].
	PerPolynomial int
	// Covered hides submissions from the server until the committee has agreed on which parties are
	// in the sum. Covered removes the assumption that the set is chosen independently of the
	// submissions. It costs 32 bytes a party and member, and the server must be given the submissions
	// a second time.
	Covered bool
	// Norm, if it is not zero, has every party prove that the Euclidean norm of its values with their
	// noise is not above what honest values within Norm have. No number of parties can then spoil a
	// sum, and a party that cheats adds a vector of [Figures.Factor] times Norm at most, or is named,
	// with [Evidence]. Needs Noise, and costs some 95 kB a party. 1 to 2^32 − 1. If the roster has
	// weights, a party of weight w proves that its values multiplied by w are within w·Norm, which is
	// 2^32 − 1 at most.
	Norm int64
	// Groups, if it is more than 1, has a round take a sum of each of that many groups, to which the
	// parties are dealt anew in each round, and return the median of the groups' means: a party that
	// cheats spoils one group at most. MinSurvivors and Colluders are then of a group; more than half
	// of the groups must have MinSurvivors parties, and the others are left out. At most 1024, without
	// Covered and CommitteeNoise. Zero stands for 1.
	Groups int
	// KEM names the scheme of the members' keys.
	KEM KEM
	// Stale, if it is not zero, lets a party submit in a round an input made from the broadcast of an
	// earlier round, at most Stale rounds before, so that slow parties need not keep up. The party
	// signs the number of that round. 0 to 2^20.
	Stale int
}

// Figures follow from the terms: see SPEC-ONESHOT.md §3.
type Figures struct {
	Modulus     uint64 // q, a prime that is 1 modulo 4096
	ModulusBits int    // ⌈log₂ q⌉
	Scale       int64  // T, by which noise is multiplied: 1, or in exact sums more than their range
	Spare       int    // coordinates that carry noise alone; none with Norm

	PerPolynomial int // ρ
	Polynomials   int // that carry the key
	InLeague      int // t
	Threshold     int // r = t + ρ: parts that determine it
	Answers       int // r + f: parts that are needed when none is wrong
	Quorum        int // signatures on who is in the sum
	Keys          int // of members, that a round opens with: it needs as many answers
	Disputes      int // Δ

	// Spoilers is how many parties, by boxes that do not open, may put honest members out of a round
	// that still has a sum. They are not named, but are out themselves.
	Spoilers int

	// With Norm: Factor times Norm bounds the vector that a party that cheats may add, and MemberAdds
	// that of a member that cheats in its noise and has luck, 0 unless members deal it. With weights
	// it is Factor times w·Norm for a party of weight w, and Factor is that of the lightest party, the
	// largest.
	Factor, MemberAdds float64

	// Bytes: what a party sends and receives, and what a member receives and holds for each party.
	Up, Down, MemberDown, MemberHeld int

	// PartyTime and MemberTime are about how long a party's one message and a member's check of one
	// party take on one core of the machine of BENCHMARKS.md.
	PartyTime, MemberTime time.Duration

	// BlockSize is β of the cheapest primal attack known on Ring-LWE with the half of the deviation
	// that the published reduction from Hint-RLWE leaves. The other fields are logarithms of costs
	// to base 2: one sieve (core-SVP), and the whole attack in the model of the Homomorphic
	// Encryption Standard.
	BlockSize               int
	CoreSVP, CoreSVPQuantum float64
	Classical, Quantum      float64
	// HintLoss is the logarithm of the advantage that the reduction adds for an adversary, for all
	// parties together.
	HintLoss float64
}

// Fixed numbers of this version.
const (
	degree      = 2048    // N
	maxLength   = 1 << 26 // of an input
	maxBits     = 40
	maxStale    = 1 << 20
	maxNorm     = 1<<32 - 1
	maxMembers  = 255
	maxGroups   = 1024
	minSpare    = 16
	minClassic  = 128 // bits that an attack must cost
	spareBits   = 64  // a false key passes the spare coordinates with 2^-64
	lanesSpread = 13  // deviations that a sum of noise may reach
)

// minVariance is 6.4², below which noise does not hide the key: the reduction from
// Hint-RLWE leaves 3.2.
var minVariance = big.NewRat(1024, 25)

// keyLaw is the law of the key's coefficients.
func keyLaw() noise.Law {
	law, err := noise.DiscreteGaussian(minVariance)
	if err != nil {
		panic("oneshot: " + err.Error()) // a constant
	}
	return law
}

// KeyNoise returns the law of [Terms.Noise] of as many parties as a sum has honest ones at least,
// MinSurvivors − Colluders, each of which adds the least that hides its key, and nothing more. It
// protects no vector.
func KeyNoise(honest int) noise.Law {
	variance := new(big.Rat).SetInt64(int64(max(1, honest)))
	law, err := noise.DiscreteGaussian(variance.Mul(variance, minVariance))
	if err != nil {
		panic("oneshot: " + err.Error()) // of any number of parties that a configuration takes
	}
	return law
}

// primes[k − 20] is the largest prime of k bits that is 1 modulo 2N.
var primes = [...]uint64{
	0xfc001, 0x1f6001, 0x3fa001, 0x7fe001, 0xffc001,
	0x1fff001, 0x3fff001, 0x7ff6001, 0xfff0001, 0x1fff2001, 0x3fff4001,
	0x7ffe9001, 0xffffd001, 0x1ffff9001, 0x3fffed001, 0x7ffff9001, 0xfffffd001,
	0x1ffffe0001, 0x3ffffeb001, 0x7ffffff001, 0xffffff7001, 0x1fffffff001,
	0x3ffffffa001, 0x7fffffdd001, 0xfffffffc001, 0x1fffffff9001, 0x3ffffffe5001,
	0x7ffffffec001, 0xffffffffc001, 0x1ffffffff9001, 0x3ffffffffc001,
}

// Parameters returns the figures for n parties and a committee of the given size. It fails with
// [ErrConfig] where numbers are out of range, sums would not fit the largest modulus, fewer than
// two honest inputs could make up a sum, or the best attack known on the masks costs less than
// 2^128.
//
// A roster with weights has other figures: see [Config.Parameters].
func Parameters(parties, members int, t Terms) (Figures, error) {
	d, err := derive(parties, members, &t)
	if err != nil {
		return Figures{}, err
	}
	return d.Figures, nil
}

// derived is Figures with what only the package needs.
type derived struct {
	Figures
	share  noise.Law // of a party's noise in a coordinate
	member noise.Law // of a member's, if members deal noise
	tail   int64     // |Σ e| stays below it
	off    int64     // and so does a sum of what has no input; with Norm, any sum
	limit  int64     // values are −limit to limit − 1
	lanes  lanes

	// With Norm, else 0 and nil: β² of parties, and of members if they deal noise.
	bound, memberBound   uint64
	scheme, memberScheme *normproof.Scheme
	schemes              map[int]*normproof.Scheme // of parties by weight; nil without weights
}

func derive(n, members int, t *Terms) (*derived, error) { return weighed(n, members, t, nil) }

// weighed is derive with how many parties there are of each weight, nil if they have none. With
// weights bound and scheme are those of the heaviest party.
func weighed(n, members int, t *Terms, weights map[int]int) (*derived, error) {
	if err := t.count(n, members); err != nil {
		return nil, err
	}
	switch {
	case t.Length < 1 || t.Length > maxLength:
		return nil, fmt.Errorf("%w: Length %d, want 1 to 2^26", ErrConfig, t.Length)
	case t.Bits < 1 || t.Bits > maxBits:
		return nil, fmt.Errorf("%w: Bits %d, want 1 to %d", ErrConfig, t.Bits, maxBits)
	case t.PerPolynomial < 0 || t.PerPolynomial > members-2*t.Faults-t.inLeague():
		return nil, fmt.Errorf("%w: PerPolynomial %d, want 1 to %d", ErrConfig, t.PerPolynomial,
			members-2*t.Faults-t.inLeague())
	case t.Disputes < 0 || t.Disputes > n:
		return nil, fmt.Errorf("%w: Disputes %d, want 1 to the %d parties", ErrConfig, t.Disputes, n)
	case t.Stale < 0 || t.Stale > maxStale:
		return nil, fmt.Errorf("%w: Stale %d, want 0 to 2^20", ErrConfig, t.Stale)
	case t.KEM > KEMX25519:
		return nil, fmt.Errorf("%w: KEM %d", ErrConfig, t.KEM)
	case t.Norm < 0 || t.Norm > maxNorm:
		return nil, fmt.Errorf("%w: Norm %d, want 0 for no bound, or 1 to 2^32 − 1", ErrConfig, t.Norm)
	case t.Norm != 0 && t.Noise.Family() == 0:
		return nil, fmt.Errorf("%w: %w", ErrConfig, ErrExactNorm)
	case t.CommitteeNoise && t.Noise.Family() == 0:
		return nil, fmt.Errorf("%w: CommitteeNoise without Noise", ErrConfig)
	case weights != nil && t.Norm == 0:
		return nil, fmt.Errorf("%w: %w", ErrConfig, ErrFreeWeight)
	}
	d := &derived{limit: 1 << (t.Bits - 1), share: keyLaw(), lanes: narrow}
	d.Scale = 1
	group := t.largest(n) // parties in a sum
	if t.Noise.Family() != 0 {
		if err := d.shareOf(group, members, t); err != nil {
			return nil, err
		}
	}
	variance, _ := d.share.Scale().Float64()
	sigma := math.Sqrt(variance)
	dealers, spread := n, sigma*math.Sqrt(float64(group))
	if t.CommitteeNoise {
		dealers += members
		spread = math.Sqrt(variance*float64(group) + ratFloat(d.member.Scale())*float64(members))
	}
	tail := math.Ceil(lanesSpread * spread)
	if tail > 1<<48 {
		return nil, fmt.Errorf("%w: the noise is too wide for any modulus", ErrConfig)
	}
	d.tail = int64(tail)
	d.off = d.tail
	if t.Norm != 0 {
		if err := d.bounded(group, members, t, weights); err != nil {
			return nil, err
		}
	}
	if err := d.modulus(group, t.Noise.Family() == 0); err != nil {
		return nil, err
	}
	d.committee(n, members, t)
	if t.Norm != 0 {
		if err := d.provers(t, weights); err != nil {
			return nil, err
		}
	}
	d.bytes(members, t)
	return d, d.margin(dealers, t.Length, sigma)
}

// shareOf sets the law of a party's noise, or of a member's if members deal it.
func (d *derived) shareOf(n, members int, t *Terms) error {
	if t.Noise.Family() != noise.FamilyDiscreteGaussian {
		return fmt.Errorf("%w: the noise is %v, want a discrete Gaussian: no other law hides the key",
			ErrConfig, t.Noise)
	}
	shares := noise.Shares{Parties: n, MinHonest: t.MinSurvivors - t.Colluders, Law: t.Noise}
	who, share := "party", &d.share
	if t.CommitteeNoise {
		shares.Parties, shares.MinHonest = members, members-t.Faults-t.inLeague()
		who, share = "member", &d.member
	}
	law, err := shares.Party()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if law.Scale().Cmp(minVariance) < 0 {
		v, _ := law.Scale().Float64()
		return &fault.Error{
			Kind: ErrConfig, Err: ErrQuiet,
			Reason: fmt.Sprintf(
				"a %s's noise deviates by %.2f, want 6.4 at least, for it also hides the key", who,
				math.Sqrt(v)),
			Advice: "scale the inputs up, or ask for exact sums",
		}
	}
	*share = law
	return nil
}

// modulus chooses q, the scale of the noise and the spare coordinates.
func (d *derived) modulus(n int, exact bool) error {
	need := new(big.Int)
	if exact {
		// Sums lie in −T/2 … T/2 − 1, and T·Σe is added to them.
		d.Scale = d.limit << (1 + bits.Len(uint(n-1)))
		need.Mul(big.NewInt(d.Scale), big.NewInt(2*d.tail+2))
	} else {
		// Twice the largest sum; and four times what noise alone spreads over, so that a false key
		// shows.
		need.Mul(big.NewInt(d.limit), big.NewInt(int64(n))).Add(need, big.NewInt(d.off)).Lsh(need, 1)
		if wide := big.NewInt(8 * d.off); wide.Cmp(need) > 0 {
			need = wide
		}
	}
	if d.bound != 0 { // proofs bound all that there is in a coordinate, and no long vector looks short
		need.SetInt64(2*d.off + 1)
		if long := d.unwrapped(); long.Cmp(need) > 0 {
			need = long
		}
	}
	k := max(need.BitLen(), 20)
	for ; k-20 < len(primes); k++ {
		if q := primes[k-20]; need.Cmp(new(big.Int).SetUint64(q)) < 0 {
			d.Modulus, d.ModulusBits = q, k
			if d.bound == 0 { // else the key is compared with commitments
				window := math.Log2(float64(q) / float64(2*d.off+1))
				d.Spare = max(minSpare, int(math.Ceil(spareBits/window)))
			}
			return nil
		}
	}
	if d.bound != 0 {
		return tooLong("vectors of %d parties take a modulus of %d bits, and 50 is the most", n,
			need.BitLen())
	}
	return fmt.Errorf("%w: sums take a modulus of %d bits, and 50 is the most: fewer bits a value, "+
		"or noise in place of exact sums",
		ErrConfig, need.BitLen())
}

func (d *derived) committee(n, members int, t *Terms) {
	d.InLeague = t.inLeague()
	d.Quorum = (members+d.InLeague)/2 + 1
	d.PerPolynomial = t.PerPolynomial
	if d.PerPolynomial == 0 {
		d.PerPolynomial = max(1, d.Quorum-t.Faults-d.InLeague)
	}
	scalars := d.lanes.scalars()
	if t.Norm != 0 {
		scalars++ // the blind of the commitment to the key
	}
	d.Polynomials = (scalars + d.PerPolynomial - 1) / d.PerPolynomial
	d.Threshold = d.InLeague + d.PerPolynomial
	d.Answers = d.Threshold + t.Faults
	d.Keys = max(d.Answers, d.Quorum)
	d.Disputes = t.Disputes
	if d.Disputes == 0 {
		d.Disputes = (n + 10*t.Faults - 1) / (10 * t.Faults)
	}
	d.Spoilers = min(n, d.Disputes*(members-t.Faults-d.Keys+1))
	if t.CommitteeNoise {
		d.Keys = max(d.Keys, members-t.Faults)
	}
}

// margin estimates the attack on the masks and refuses what is too cheap.
func (d *derived) margin(n, length int, sigma float64) error {
	half := math.Sqrt(ratFloat(minVariance)) / 2
	cost := primal(ringLWE{
		Dimension:   degree,
		LogModulus:  math.Log2(float64(d.Modulus)),
		SecretSigma: half,
		ErrorSigma:  sigma / 2,
		Samples:     min(length+d.Spare, 4*degree),
	})
	d.BlockSize = cost.BlockSize
	d.CoreSVP, d.CoreSVPQuantum = cost.CoreSVP, cost.CoreSVPQuantum
	d.Classical, d.Quantum = cost.Classical, cost.Quantum
	if d.Classical < minClassic {
		return fmt.Errorf("%w: an attack on the masks costs 2^%.0f, want 2^%d", ErrConfig, d.Classical,
			minClassic)
	}
	// σ/2 ≥ √(ln(2D(1 + 1/ε)))/π (Kim, Lee, Seo, Song 2023), D = N + all errors:
	// ε = 2D·exp(−(π·σ/2)²), and 2ε for each party.
	logEpsilon := 1 + math.Log2(float64(degree+length+d.Spare)) - math.Pow(math.Pi*half, 2)/math.Ln2
	d.HintLoss = logEpsilon + 1 + math.Log2(float64(n))
	return nil
}

func ratFloat(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
