package job

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/accounting"
)

// A Derivation says how an ε follows from what runs, in steps that each rest on a theorem and on
// what earlier steps give. A program that shares no code with this one can check it:
// docs/derivations.md defines its JSON, and tools/proof/check.py certifies the ε.
type Derivation struct {
	Version int    `json:"derivation"` // 1
	Steps   []Step `json:"steps"`
}

// A Step is a step of a [Derivation]. The last one has a Claim, and all others a theorem.
type Step struct {
	N       int               `json:"n"`                 // from 1
	Kind    string            `json:"kind"`              // sum, bound, law, coin, rounds, failure, claim
	Theorem string            `json:"theorem,omitempty"` // its name, as job fields --theorems lists them
	Where   string            `json:"where,omitempty"`   // where it is proved
	Words   string            `json:"words,omitempty"`
	Given   any               `json:"given,omitempty"` // values by name, as exact texts
	Gives   any               `json:"gives,omitempty"`
	Claim   *accounting.Claim `json:"claim,omitempty"`
}

// values are those of a step, by name.
type values map[string]any

// exact writes values as texts that lose nothing.
func (n values) exact() map[string]any {
	out := map[string]any{}
	for name, x := range n {
		switch x := x.(type) {
		case float64:
			out[name] = strconv.FormatFloat(x, 'g', -1, 64)
		case []float64:
			all := make([]string, len(x))
			for i, c := range x {
				all[i] = strconv.FormatFloat(c, 'g', -1, 64)
			}
			out[name] = all
		default: // whole values and words
			out[name] = fmt.Sprint(x)
		}
	}
	return out
}

// whereProved says where a theorem is proved: as the table of theorems has it, or on the page of
// proofs. Nobody proves how many parties are in a sum that a calculator assumes.
func whereProved(id string) string {
	for i := range theTheorems {
		if theTheorems[i].id == id {
			return theTheorems[i].where
		}
	}
	if id == "assumed" {
		return "nowhere"
	}
	return "docs/privacy-proofs.md"
}

func (d *Derivation) add(kind, id string, given, gives values, words string, a ...any) {
	d.Steps = append(d.Steps, Step{N: len(d.Steps) + 1, Kind: kind, Theorem: id,
		Where: whereProved(id), Words: fmt.Sprintf(words, a...), Given: given.exact(),
		Gives: gives.exact()})
}

// claim ends a derivation.
func (d *Derivation) claim(c accounting.Claim) {
	d.Steps = append(d.Steps, Step{N: len(d.Steps) + 1, Kind: "claim", Claim: &c})
}

// Lines returns the derivation as a table, for people.
func (d *Derivation) Lines() (lines []string) {
	for _, s := range d.Steps {
		words := s.Words
		if s.Claim != nil {
			lines = append(lines, fmt.Sprintf("%-2d %-8s%v", s.N, s.Kind, s.Claim))
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%-2d %-8s%-15s %-24s %s", s.N, s.Kind,
			s.Theorem, s.Where, words)))
	}
	return lines
}

// squareOf is the largest whole number that a bound of a norm allows for its square, and the L1
// norm that goes with it in so many coordinates.
func squareOf(l2 float64, dimension int) (square, l1 *big.Int) {
	x := new(big.Float).SetPrec(200).SetFloat64(l2)
	square, _ = x.Mul(x, x).Int(nil)
	l1 = new(big.Int).Mul(square, big.NewInt(int64(dimension)))
	if l1.Sqrt(l1); l1.Cmp(square) > 0 {
		l1.Set(square)
	}
	return square, l1
}
