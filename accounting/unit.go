package accounting

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Unit says whom an ε protects: neighbours differ in one unit. No ε of one unit is one of
// another: see docs/privacy-proofs.md. The zero Unit is PartyUnit.
type Unit string

const (
	// PartyUnit is a party with all its data.
	PartyUnit Unit = ""
	// RecordUnit is one record of a party: neighbours differ in what that record adds to every sum.
	// RecordUnit promises little to a party as a whole if it has many records.
	RecordUnit Unit = "record"
)

const recordsOf = "records of each "

// RecordsOf returns the unit of all records at a party that are about one person, such as a
// patient.
func RecordsOf(person string) Unit { return Unit(recordsOf + person) }

// OfRecords reports whether the unit is smaller than a party.
func (u Unit) OfRecords() bool { return u != PartyUnit }

// String returns the name of the unit: "party", "record", "records of each patient".
func (u Unit) String() string {
	if u == PartyUnit {
		return "party"
	}
	return string(u)
}

// Words says whom an epsilon of the unit protects, as in "each patient's records at a party".
func (u Unit) Words() string {
	if person, ok := strings.CutPrefix(string(u), recordsOf); ok {
		return "each " + person + "'s records at a party"
	}
	if u == RecordUnit {
		return "each record of a party"
	}
	return "each " + u.String()
}

func (u Unit) check() error {
	person, ok := strings.CutPrefix(string(u), recordsOf)
	if u != PartyUnit && u != RecordUnit && (!ok || person == "" || len(person) > 200 ||
		!utf8.ValidString(person) || strings.ContainsFunc(person, unicode.IsControl)) {
		return configError("unit %.80q, want party, record, or %sPERSON", string(u), recordsOf)
	}
	return nil
}

// MarshalText returns the name. It fails with [ErrConfig] if u is not a unit.
func (u Unit) MarshalText() ([]byte, error) { return []byte(u.String()), u.check() }

// UnmarshalText reads a name. It fails with [ErrConfig].
func (u *Unit) UnmarshalText(text []byte) error {
	read := Unit(text)
	if read == "party" {
		read = PartyUnit
	} else if read == "" {
		return configError("unit is empty, want party, record, or %sPERSON", recordsOf)
	}
	if err := read.check(); err != nil {
		return err
	}
	*u = read
	return nil
}

// Adjacency says how neighbours differ.
type Adjacency int

const (
	// ZeroOut neighbours differ in a unit whose contribution is zeros: of a party the zero vector, of
	// a record the sum without it. Only ZeroOut is about sums of a session.
	ZeroOut Adjacency = iota
	// AddRemove neighbours differ in whether the unit is among those that are sampled.
	AddRemove
	// ReplacesOne neighbours differ in what one unit contributes.
	ReplacesOne
)

var adjacencyNames = []string{"zero-out", "add-remove", "replace-one"}

func (a Adjacency) String() string {
	if a < 0 || int(a) >= len(adjacencyNames) {
		return fmt.Sprintf("adjacency(%d)", int(a))
	}
	return adjacencyNames[a]
}

// MarshalText returns the name.
func (a Adjacency) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a name. It fails with [ErrConfig].
func (a *Adjacency) UnmarshalText(text []byte) error {
	i := slices.Index(adjacencyNames, string(text))
	if i < 0 {
		return configError("adjacency %.40q, want one of %s", text, strings.Join(adjacencyNames, ", "))
	}
	*a = Adjacency(i)
	return nil
}

// Server is the adversary at the server, from the weakest to the strongest.
type Server int

const (
	// PublicServer is nobody at the server: those who see what is released.
	PublicServer Server = iota + 1
	// CuriousServer follows the protocol, and learns what it can.
	CuriousServer
	// SemiMaliciousServer cheats from the exchange of keys on.
	SemiMaliciousServer
	// CheatingServer cheats in any way.
	CheatingServer
)

var serverNames = []string{"", "public", "curious", "semi-malicious", "cheating"}

// Words names the server, as in "a server that cheats".
func (s Server) Words() string {
	switch s {
	case PublicServer:
		return "those who see released sums"
	case CuriousServer:
		return "a server that is curious"
	case SemiMaliciousServer:
		return "a server that cheats once keys are exchanged"
	case CheatingServer:
		return "a server that cheats"
	}
	return fmt.Sprintf("server(%d)", int(s))
}

// String returns the name of the adversary, as sum.adversary of a job has it.
func (s Server) String() string {
	if s < 1 || int(s) >= len(serverNames) {
		return fmt.Sprintf("server(%d)", int(s))
	}
	return serverNames[s]
}

// MarshalText returns the name.
func (s Server) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name. It fails with [ErrConfig].
func (s *Server) UnmarshalText(text []byte) error {
	i := slices.Index(serverNames[1:], string(text))
	if i < 0 {
		return configError("server %.40q, want one of %s", text, strings.Join(serverNames[1:], ", "))
	}
	*s = Server(i + 1)
	return nil
}

// Assumptions is a set of what an ε assumes besides what every one does.
type Assumptions uint

const (
	// AssumesGraph: which parties drop out does not depend on the graph of a round. The probability
	// of a graph that falls apart is in δ.
	AssumesGraph Assumptions = 1 << iota
	// AssumesProgram: what a party's own program makes of a unit, and whether it ends, depends on
	// that unit alone.
	AssumesProgram
	// AssumesTime: how long that program takes does so too.
	AssumesTime
	// AssumesLastBit: what it makes of a unit does so to the last bit.
	AssumesLastBit
	// AssumesCoins: no side channel shows a party's secret coins.
	AssumesCoins
	// AssumesInstant: the time at which a party submits is not covered.
	AssumesInstant
	// AssumesAhead: later lines were fixed before earlier sums were seen.
	AssumesAhead
	// AssumesSums: nobody has checked how many honest parties are in a sum.
	AssumesSums
)

const allAssumptions = AssumesSums<<1 - 1

var assumptionNames = []string{"graph", "program", "time", "last-bit", "coins", "instant", "ahead",
	"sums"}

// assumptionWords say what each assumes.
var assumptionWords = []string{
	"which parties drop out does not depend on who is whose neighbour in a round",
	"what a party's own program makes of a unit, and whether it ends, depends on that unit alone",
	"how long a party's own program takes for a unit depends on that unit alone",
	"what a party's own program makes of a unit depends on that unit alone to the last bit",
	"nothing but a party's submissions shows how its secret coins fell",
	"the time at which a party submits shows nothing",
	"what is summed later was fixed before earlier sums were seen",
	"sums have as many honest parties as was said, which nothing checks",
}

// ParseAssumptions reads names of assumptions. It fails with [ErrConfig].
func ParseAssumptions(names ...string) (a Assumptions, err error) {
	for _, name := range names {
		i := slices.Index(assumptionNames, name)
		if i < 0 {
			return 0, configError("assumption %.40q, want one of %s", name,
				strings.Join(assumptionNames, ", "))
		}
		a |= 1 << i
	}
	return a, nil
}

// Names returns the names of the assumptions, in the order of their declaration.
func (a Assumptions) Names() []string {
	names := []string{}
	for i, name := range assumptionNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Words says what each of the assumptions is, as in "coins: nothing but …".
func (a Assumptions) Words() (words []string) {
	for i, name := range assumptionNames {
		if a&(1<<i) != 0 {
			words = append(words, name+": "+assumptionWords[i])
		}
	}
	return words
}

// String returns the names with commas between them.
func (a Assumptions) String() string { return strings.Join(a.Names(), ", ") }

// MarshalJSON writes a list of names.
func (a Assumptions) MarshalJSON() ([]byte, error) { return json.Marshal(a.Names()) }

// UnmarshalJSON reads what MarshalJSON writes: each name once, in order. It fails with [ErrConfig].
func (a *Assumptions) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return configError("assumptions are no list of names: %v", err)
	}
	read, err := ParseAssumptions(names...)
	if err != nil {
		return err
	}
	if !slices.Equal(read.Names(), names) {
		return configError("assumptions %q, want %q", names, read.Names())
	}
	*a = read
	return nil
}
