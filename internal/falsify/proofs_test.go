package falsify

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// F6: a program that shares no code with package accounting certifies the ε of each derivation.
func TestProofs(t *testing.T) {
	check := suite.Checker(t)
	over(t, 6, func(x *tried) (bool, error) {
		if x.settled.Mechanism() == nil {
			return false, nil
		}
		if !suite.Long() && x.random(61).IntN(8) > 0 {
			return true, nil // a derivation and its check take tenths of a second
		}
		d, err := x.settled.Derive()
		if err != nil {
			return true, err
		}
		if math.IsInf(d.Steps[len(d.Steps)-1].Claim.Bare().Upper, 1) {
			return true, nil // nothing is claimed
		}
		text, err := json.Marshal(d)
		if err != nil {
			return true, err
		}
		if said := check(text); !strings.HasPrefix(said, "0 certified: ") {
			return true, fmt.Errorf("%s\n%s", said, strings.Join(d.Lines(), "\n"))
		}
		return true, nil
	})
}
