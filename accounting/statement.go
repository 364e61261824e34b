package accounting

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hushsum/hushsum/internal/strict"
)

// A Statement says what an ε is about: whom it protects, against whom, and what it assumes besides.
// Statements are compared with ==. The zero Statement is that of a calculator: [Calculated] of
// PartyUnit. What all ε of this project assume, a genuine roster and the cryptography, is in every
// Statement and is said once, in SECURITY.md.
type Statement struct {
	unit       Unit
	adjacency  Adjacency
	server     Server // 0 in the zero Statement alone
	colluders  Colluders
	committees string // of [Committee], sorted, as committeesText writes them
	assumes    Assumptions
}

// Terms make a [Statement]. The packages that prove something about a sum fill them
// in; nobody else should.
type Terms struct {
	Unit      Unit
	Adjacency Adjacency
	Server    Server
	// Colluders may pool what they know with the server.
	Colluders Colluders
	// Committees lists the committees on whose members the ε rests; empty: on none.
	Committees []Committee
	Assumes    Assumptions
}

// A Committee is a list of members of whom some may be in league with the server.
type Committee struct {
	List     [32]byte // the digest of the list, zero: it is still to be named
	Members  int      // 1 to 255
	InLeague int      // the most that may be, 0 to Members
}

// Statement returns the statement with these terms. It fails with [ErrConfig].
func (t Terms) Statement() (Statement, error) {
	if err := t.Unit.check(); err != nil {
		return Statement{}, err
	}
	switch {
	case t.Adjacency < 0 || int(t.Adjacency) >= len(adjacencyNames):
		return Statement{}, configError("unknown adjacency %d", int(t.Adjacency))
	case t.Server < PublicServer || int(t.Server) >= len(serverNames):
		return Statement{}, configError("unknown server %d", int(t.Server))
	case t.Colluders < 0:
		return Statement{}, configError("%d colluders, want 0 or more", int(t.Colluders))
	case t.Server == PublicServer && (t.Colluders > 0 || len(t.Committees) > 0):
		return Statement{}, configError("those who see released sums are in league with nobody")
	case t.Assumes&^allAssumptions != 0:
		return Statement{}, configError("unknown assumptions %#x", uint(t.Assumes))
	}
	text, err := committeesText(t.Committees)
	return Statement{t.Unit, t.Adjacency, t.Server, t.Colluders, text, t.Assumes}, err
}

// Terms returns what the statement is made of.
func (s Statement) Terms() Terms {
	s = s.stated()
	return Terms{s.unit, s.adjacency, s.server, s.colluders, committeesOf(s.committees), s.assumes}
}

// Calculated returns the statement of a figure that was calculated from parameters of a mechanism,
// with no session from which its sums come: zero-out adjacency, a curious server without
// colluders, and the assumption [AssumesSums].
func Calculated(u Unit) Statement {
	return Statement{unit: u, server: CuriousServer, assumes: AssumesSums}
}

// stated is the statement, with its meaning in place of the zero one.
func (s Statement) stated() Statement {
	if s == (Statement{}) {
		return Calculated(PartyUnit)
	}
	return s
}

// Public returns what follows against those alone who see released sums, and neither run the
// server nor collude.
func (s Statement) Public() Statement {
	s = s.stated()
	s.server, s.colluders, s.committees = PublicServer, 0, ""
	return s
}

// Assuming returns the statement with more assumptions.
func (s Statement) Assuming(a Assumptions) Statement {
	s = s.stated()
	s.assumes |= a
	return s
}

// By returns the statement by other neighbours, for calculators: no theorem leads from one
// adjacency to another.
func (s Statement) By(a Adjacency) Statement {
	s = s.stated()
	s.adjacency = a
	return s
}

// Unit returns whom the statement protects.
func (s Statement) Unit() Unit { return s.unit }

// Server returns the strongest server against which it holds.
func (s Statement) Server() Server { return s.stated().server }

// View returns the view in which it holds: PublicView against those alone who see released sums.
func (s Statement) View() View {
	if s.Server() == PublicServer {
		return PublicView
	}
	return ServerView
}

// Assumes returns its assumptions.
func (s Statement) Assumes() Assumptions { return s.stated().assumes }

// Implies returns nil if an (ε, δ) about s is one about t too, and otherwise a [StatementError]
// that names the first difference: another unit or adjacency, a stronger server or more
// colluders in t, a committee on which t does not rest, or of whom more are in league, an
// assumption that t does not make.
func (s Statement) Implies(t Statement) error {
	s, t = s.stated(), t.stated()
	if t.server == PublicServer { // who sees released sums is in league with nobody
		s = s.Public()
	}
	differ := func(what, one, other string) error { return &StatementError{what, one, other} }
	against := func(c Colluders) string { return "against " + c.words() }
	switch {
	case s.unit != t.unit:
		return differ("unit", "for "+s.unit.Words(), "for "+t.unit.Words())
	case s.adjacency != t.adjacency:
		return differ("adjacency", s.adjacency.String(), t.adjacency.String())
	case s.server < t.server:
		return differ("server", "against "+s.server.Words(), "against "+t.server.Words())
	case s.colluders < t.colluders:
		return differ("colluders", against(s.colluders), against(t.colluders))
	}
	trusted := committeesOf(t.committees)
	for _, c := range committeesOf(s.committees) {
		i := slices.IndexFunc(trusted, func(o Committee) bool {
			return o.List == c.List && o.Members == c.Members
		})
		if i < 0 {
			return differ("committee", "with "+c.words(), "without that committee")
		}
		if trusted[i].InLeague > c.InLeague {
			return differ("committee", "with "+c.words(), "with "+trusted[i].words())
		}
	}
	if more := s.assumes &^ t.assumes; more != 0 {
		return differ("assumptions", "assuming "+more.String(), "without that assumption")
	}
	return nil
}

// Meet returns the strongest statement that both imply: what holds of a sum of lines. It fails
// with a [StatementError] over two units or adjacencies, which have none.
func (s Statement) Meet(t Statement) (Statement, error) {
	s, t = s.stated(), t.stated()
	if s.unit != t.unit {
		return Statement{}, &StatementError{"unit", "for " + s.unit.Words(), "for " + t.unit.Words()}
	}
	if s.adjacency != t.adjacency {
		return Statement{}, &StatementError{"adjacency", "by " + s.adjacency.String() + " neighbours",
			"by " + t.adjacency.String() + " ones"}
	}
	all := committeesOf(s.committees)
	for _, c := range committeesOf(t.committees) {
		i := slices.IndexFunc(all, func(o Committee) bool {
			return o.List == c.List && o.Members == c.Members
		})
		if i < 0 {
			all = append(all, c)
		} else {
			all[i].InLeague = min(all[i].InLeague, c.InLeague)
		}
	}
	text, err := committeesText(all)
	return Statement{s.unit, s.adjacency, min(s.server, t.server), min(s.colluders, t.colluders),
		text, s.assumes | t.assumes}, err
}

// Against says in words against whom the statement holds, as in "a server that cheats with any 1
// party and up to 3 of the 13 members of committee 3fc1…".
func (s Statement) Against() string {
	s = s.stated()
	var with []string
	if s.colluders > 0 {
		with = append(with, s.colluders.words())
	}
	for _, c := range committeesOf(s.committees) {
		with = append(with, c.words())
	}
	if len(with) == 0 {
		return s.server.Words()
	}
	return s.server.Words() + " with " + strings.Join(with, " and ")
}

// String says the statement in words, as in "each party, against a server that cheats with any 1
// party and up to 3 of the 13 members of committee 3fc1…; assumes coins".
func (s Statement) String() string {
	s = s.stated()
	text := s.unit.Words() + ", against " + s.Against()
	if s.adjacency != ZeroOut {
		text += ", by " + s.adjacency.String() + " neighbours"
	}
	if s.assumes != 0 {
		text += "; assumes " + s.assumes.String()
	}
	return text
}

// statementJSON is the text form of a statement, in the order in which it is written.
type statementJSON struct {
	Unit       Unit            `json:"unit"`
	Adjacency  Adjacency       `json:"adjacency"`
	Server     Server          `json:"server"`
	Colluders  Colluders       `json:"colluders"`
	Committees []committeeJSON `json:"committees"`
	Assumes    Assumptions     `json:"assumes"`
}

type committeeJSON struct {
	List     string `json:"list"`
	Members  int    `json:"members"`
	InLeague int    `json:"in_league"`
}

func (s Statement) json() statementJSON {
	t := s.Terms()
	out := statementJSON{t.Unit, t.Adjacency, t.Server, t.Colluders, []committeeJSON{}, t.Assumes}
	for _, c := range t.Committees {
		out.Committees = append(out.Committees, committeeJSON{hex.EncodeToString(c.List[:]), c.Members,
			c.InLeague})
	}
	return out
}

func (j statementJSON) statement() (Statement, error) {
	t := Terms{j.Unit, j.Adjacency, j.Server, j.Colluders, nil, j.Assumes}
	for _, c := range j.Committees {
		list, err := hex.DecodeString(c.List)
		if err != nil || len(list) != 32 {
			return Statement{}, configError("the list %.70q of a committee is not 64 hexadecimal digits",
				c.List)
		}
		t.Committees = append(t.Committees, Committee{[32]byte(list), c.Members, c.InLeague})
	}
	return t.Statement()
}

// MarshalJSON writes the only text form of the statement.
func (s Statement) MarshalJSON() ([]byte, error) { return json.Marshal(s.json()) }

// UnmarshalJSON reads what MarshalJSON writes. It fails with [ErrConfig].
func (s *Statement) UnmarshalJSON(text []byte) error {
	var in statementJSON
	if err := strict.JSON(text, &in); err != nil {
		return configError("a statement: %v", err)
	}
	out, err := in.statement()
	if err == nil {
		*s = out
	}
	return err
}

// A StatementError reports two ε that cannot be compared, added or bounded by each other, since
// they are about different things.
type StatementError struct {
	Differs    string // unit, adjacency, server, colluders, committee or assumptions
	One, Other string // in words
}

func (e *StatementError) Error() string {
	return fmt.Sprintf("accounting: an epsilon %s says nothing about one %s", e.One, e.Other)
}

// Is reports a match with [ErrStatement].
func (e *StatementError) Is(target error) bool { return target == ErrStatement }

// Colluders is how many parties may pool what they know with the server.
type Colluders int

// AnyColluders says that an ε holds whatever number of other parties collude.
const AnyColluders Colluders = math.MaxInt

func (c Colluders) words() string {
	switch c {
	case AnyColluders:
		return "any number of parties"
	case 0:
		return "no party"
	case 1:
		return "any 1 party"
	}
	return fmt.Sprintf("any %d parties", int(c))
}

// MarshalJSON writes a number, or "any".
func (c Colluders) MarshalJSON() ([]byte, error) {
	if c == AnyColluders {
		return []byte(`"any"`), nil
	}
	return strconv.AppendInt(nil, int64(c), 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes. It fails with [ErrConfig].
func (c *Colluders) UnmarshalJSON(text []byte) error {
	if string(text) == `"any"` {
		*c = AnyColluders
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 0 {
		return configError(`colluders is %.40q, want a number of 0 or more, or "any"`, text)
	}
	*c = Colluders(n)
	return nil
}

func (c Committee) words() string {
	if c.List == [32]byte{} {
		return fmt.Sprintf("up to %d of the %d members of the committee", c.InLeague, c.Members)
	}
	return fmt.Sprintf("up to %d of the %d members of committee %x…", c.InLeague, c.Members,
		c.List[:2])
}

// committeesText is the canonical text of committees: sorted by their lists, each of which occurs
// once.
func committeesText(all []Committee) (string, error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Committee) int {
		return cmp.Or(slices.Compare(a.List[:], b.List[:]), cmp.Compare(a.Members, b.Members))
	})
	var text strings.Builder
	for i, c := range all {
		if c.Members < 1 || c.Members > 255 || c.InLeague < 0 || c.InLeague > c.Members {
			return "", configError("a committee of %d members, %d of them in league: want 1 to 255, and "+
				"at most as many", c.Members, c.InLeague)
		}
		if i > 0 && c.List == all[i-1].List {
			return "", configError("the committee %x… is listed twice", c.List[:2])
		}
		text.Write(c.List[:])
		text.WriteByte(byte(c.Members))
		text.WriteByte(byte(c.InLeague))
	}
	return text.String(), nil
}

func committeesOf(text string) (all []Committee) {
	for c := range slices.Chunk([]byte(text), 34) {
		all = append(all, Committee{[32]byte(c[:32]), int(c[32]), int(c[33])})
	}
	return all
}
