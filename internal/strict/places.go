package strict

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// This file finds where things stand. Of TOML it uses a parser that its library calls unstable:
// values come from the stable one, so that at worst a message lacks its line.

// Places holds paths whose places in a text are looked for: names of keys and numbers of elements
// of lists, as in world.party.2.rows. It is one path, within which others are. The zero value looks
// for none; of a nil one nothing is looked for.
type Places struct {
	line, column int // from 1; 0: not found
	tables       int // of a list of tables: how many headers began one so far
	within       map[string]*Places
}

// Add has a path looked for.
func (p *Places) Add(path string) {
	for name := range strings.SplitSeq(path, ".") {
		if p.within == nil {
			p.within = map[string]*Places{}
		}
		if p.within[name] == nil {
			p.within[name] = new(Places)
		}
		p = p.within[name]
	}
}

// Step returns what a name leads to, nil if that is not looked for. A name with dots is several.
func (p *Places) Step(name string) *Places {
	for more := true; more && p != nil; {
		var first string
		first, name, more = strings.Cut(name, ".")
		p = p.within[first]
	}
	return p
}

// Note keeps the first place of a path.
func (p *Places) Note(line, column int) {
	if p != nil && p.line == 0 {
		p.line, p.column = line, column
	}
}

// Of returns where a path that was added stands, or else what it is a part of; 0: nowhere.
func (p *Places) Of(path string) (line, column int) {
	for name := range strings.SplitSeq(path, ".") {
		if p = p.within[name]; p.line > 0 {
			line, column = p.line, p.column
		}
	}
	return line, column
}

// TOML notes the places in a text that is known to be valid.
func (p *Places) TOML(text []byte) {
	t := &locating{lines: LinesOf(text)}
	t.parser.Reset(text)
	under := p
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		if e.Kind == unstable.KeyValue {
			t.keyValue(e, under)
			continue
		}
		under = p
		for keys := e.Key(); keys.Next() && under != nil; {
			node := keys.Node()
			if under = under.Step(string(node.Data)); under == nil {
				break
			}
			under.Note(t.at(node))
			if e.Kind == unstable.ArrayTable && keys.IsLast() {
				under.tables++
			}
			if under.tables > 0 {
				under = under.Step(strconv.Itoa(under.tables - 1))
				under.Note(t.at(node))
			}
		}
	}
}

// locating is a text of TOML that is read for places.
type locating struct {
	parser unstable.Parser
	lines  Lines
}

func (t *locating) at(node *unstable.Node) (line, column int) {
	return t.lines.At(int(node.Raw.Offset))
}

// keyValue notes a key, and those within its value.
func (t *locating) keyValue(e *unstable.Node, under *Places) {
	last := e
	for keys := e.Key(); keys.Next() && under != nil; {
		last = keys.Node()
		under = under.Step(string(last.Data))
		under.Note(t.at(last))
	}
	t.value(e.Value(), under, last)
}

// value notes what is within the value of a key.
func (t *locating) value(v *unstable.Node, under *Places, key *unstable.Node) {
	if under == nil || under.within == nil {
		return
	}
	i := 0
	for it := v.Children(); it.Next(); {
		switch node := it.Node(); {
		case v.Kind == unstable.InlineTable:
			t.keyValue(node, under)
		case v.Kind == unstable.Array && node.Kind != unstable.Comment:
			element := under.Step(strconv.Itoa(i))
			element.Note(t.at(key))
			t.value(node, element, key)
			i++
		}
	}
}

// Lines holds the offsets at which lines begin: counting them anew for each key would take time in
// proportion to the square of a text's length.
type Lines []int

// LinesOf returns the lines of a text.
func LinesOf(text []byte) Lines {
	starts := Lines{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// At returns the line and the column of an offset, from 1.
func (l Lines) At(offset int) (line, column int) {
	line, found := slices.BinarySearch(l, offset)
	if !found {
		line--
	}
	return line + 1, offset - l[line] + 1
}
