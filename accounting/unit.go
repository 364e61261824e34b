package accounting

import (
	"fmt"
	"slices"
)

// A Unit says whom an ε protects: by what neighbours differ.
type Unit int

const (
	// PartyUnit is a party with all its data.
	PartyUnit Unit = iota
	// RecordUnit is one record of a party, or all records of one person within it: neighbours differ
	// in what that adds to every sum. It says little about a party that has many.
	RecordUnit
)

var unitNames = []string{PartyUnit: "party", RecordUnit: "record"}

func (u Unit) String() string {
	if u < 0 || int(u) >= len(unitNames) {
		return fmt.Sprintf("unit(%d)", int(u))
	}
	return unitNames[u]
}

// MarshalText returns the name. It fails with [ErrConfig] if u is not a unit.
func (u Unit) MarshalText() ([]byte, error) {
	if u < 0 || int(u) >= len(unitNames) {
		return nil, configError("unknown %v", u)
	}
	return []byte(unitNames[u]), nil
}

// UnmarshalText reads a name. It fails with [ErrConfig].
func (u *Unit) UnmarshalText(text []byte) error {
	i := slices.Index(unitNames, string(text))
	if i < 0 {
		return configError("unit %.40q, want party or record", text)
	}
	*u = Unit(i)
	return nil
}

// unitOf is the unit that charges are about; mechanisms are about any.
func unitOf(charges []charge) (unit Unit, err error) {
	found := false
	for _, c := range charges {
		if c.Round == nil {
			continue
		}
		if found && c.Round.Unit != unit {
			return 0, configError("rounds of the units %v and %v: account for each by itself", unit,
				c.Round.Unit)
		}
		unit, found = c.Round.Unit, true
	}
	return unit, nil
}
