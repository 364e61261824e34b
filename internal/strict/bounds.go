package strict

import (
	"bytes"
	"unicode/utf8"
)

// The bounds of a text that people write or that declares something: see [Bounded].
const (
	MaxDepth  = 16      // of tables and lists within one another
	MaxName   = 200     // characters of a key, or of a part of one with dots
	MaxKeys   = 2_000   // keys and parts of them, of which those of a list count once
	MaxNames  = 100_000 // keys, parts of them and tables
	MaxValues = 100_000 // values, those of lists among them
)

// Bounded refuses a text in JSON or TOML that a decoder would need much memory or time for: that
// is nested beyond [MaxDepth], or has longer keys or more of anything than the other constants say.
// Decoders of TOML compare each key with all before it, other than those of earlier elements of a
// list of tables, and make a table of each part of a key with dots. It reads the text once, keeps
// nothing of it, and takes a text that is invalid up to its first mistake for what it is. It fails
// with an [Error] that has a place.
func Bounded(text []byte) *Error {
	s := &scanner{text: text, key: true}
	for s.at < len(text) && s.wrong == nil {
		s.next()
	}
	return s.wrong
}

// scanner goes through a text and counts.
type scanner struct {
	text   []byte
	at     int
	key    bool // a key comes next, or the rest of one
	header int  // in the header of a table: how many brackets it has; else 0
	under  int  // depth of the table that lines belong to
	depth  int  // of what comes next
	open   [MaxDepth]bracket
	opened int      // how many of open are
	lists  []listed // lists of tables that headers have begun, each within the one before
	began  int      // where the header begins
	keys   int      // that are compared with those that follow
	names  int
	values int
	wrong  *Error
}

// bracket is one that is open, in a value.
type bracket struct {
	kind        byte
	depth, keys int
}

// listed is a list of tables by headers: its name, and how many keys there were before its first.
type listed struct {
	name []byte
	keys int
}

func (s *scanner) fail(reason, advice string) {
	line := 1 + bytes.Count(s.text[:s.at], []byte("\n"))
	column := s.at - bytes.LastIndexByte(s.text[:s.at], '\n')
	s.wrong = &Error{Line: line, Column: column, Reason: reason, Advice: advice}
}

// deeper counts a level.
func (s *scanner) deeper() {
	if s.depth++; s.depth > MaxDepth {
		s.fail("it is nested more than 16 deep", "use fewer tables and lists within one another")
	}
}

// next takes what comes next.
func (s *scanner) next() {
	c := s.text[s.at]
	switch {
	case c == '#':
		s.skip(bytes.IndexByte(s.text[s.at:], '\n'))
		return
	case c == '\n' && s.opened == 0:
		s.key, s.header, s.depth = true, 0, s.under
	case c == '[' && s.key && s.opened == 0 && s.header < 2:
		s.header++
		s.began, s.depth = s.at+1, 0
	case c == ']' && s.header > 0:
		s.table(s.text[s.began:s.at])
		return
	case c == '[' || c == '{':
		s.begin(c)
	case (c == ']' || c == '}') && s.opened > 0:
		s.opened--
		s.depth, s.key = s.open[s.opened].depth, false
		if c == ']' {
			s.keys = s.open[s.opened].keys
		}
	case c == ',' && s.opened > 0:
		s.another(&s.open[s.opened-1])
	case (c == '=' || c == ':') && s.key:
		s.key = false
		s.count(&s.values, MaxValues, "100,000 values")
	case c == '"' || c == '\'':
		length := s.quoted()
		if s.key {
			s.name(s.text[s.at : s.at+length])
		}
		s.at += length
		return
	case s.key && bare(c):
		rest := s.text[s.at:]
		length := bytes.IndexFunc(rest, func(r rune) bool { return r >= utf8.RuneSelf || !bare(byte(r)) })
		if length < 0 {
			length = len(rest)
		}
		s.name(rest[:length])
		s.at += length
		return
	}
	s.at++
}

func bare(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// begin opens a list or a table in a value.
func (s *scanner) begin(c byte) {
	if s.opened == MaxDepth || s.depth >= MaxDepth {
		s.depth = MaxDepth
		s.deeper()
		return
	}
	s.open[s.opened] = bracket{c, s.depth, s.keys}
	s.opened++
	s.key = c == '{'
	if s.key {
		s.count(&s.names, MaxNames, "100,000 keys and tables")
	} else {
		s.depth++
		s.count(&s.values, MaxValues, "100,000 values")
	}
}

// another goes on to the next element of a list or the next key of a table.
func (s *scanner) another(in *bracket) {
	s.depth, s.key = in.depth, in.kind == '{'
	if !s.key {
		s.depth++
		s.keys = in.keys
		s.count(&s.values, MaxValues, "100,000 values")
	}
}

// table ends a header, whose keys the lines below it are within.
func (s *scanner) table(name []byte) {
	n := len(s.lists)
	for ; n > 0; n-- { // of which lists it is a part
		rest, found := bytes.CutPrefix(name, s.lists[n-1].name)
		if found && (len(rest) == 0 || rest[0] == '.') {
			break
		}
	}
	s.lists = s.lists[:n]
	again := n > 0 && len(s.lists[n-1].name) == len(name)
	switch {
	case s.header == 1: // of a table, and not of a list
	case again:
		s.keys = s.lists[n-1].keys
	case n == MaxDepth:
		s.depth = MaxDepth
		s.deeper()
		return
	default:
		s.lists = append(s.lists, listed{name, s.keys})
	}
	if s.header == 2 && !again {
		n++
	}
	for range n { // elements of lists are a level each
		s.deeper()
	}
	s.at += s.header
	s.key, s.header, s.under = false, 0, s.depth
}

// name counts a key, or a part of one.
func (s *scanner) name(name []byte) {
	s.deeper()
	if utf8.RuneCount(name) > MaxName {
		s.fail("a key is longer than 200 characters", "use a shorter name")
		return
	}
	s.count(&s.keys, MaxKeys, "2,000 keys outside of lists of tables")
	s.count(&s.names, MaxNames, "100,000 keys and tables")
}

// count adds one to a number of things that has a bound.
func (s *scanner) count(n *int, most int, things string) {
	if *n++; *n > most && s.wrong == nil {
		s.fail("it has more than "+things, "write those that are alike as one, with a count")
	}
}

// skip goes on by a number of bytes, to the end if it is negative.
func (s *scanner) skip(n int) {
	if n < 0 {
		n = len(s.text) - s.at
	}
	s.at += n
}

// quoted returns how long the text between quotes is that begins here.
func (s *scanner) quoted() int {
	rest := s.text[s.at:]
	quote, long := rest[0], false
	if len(rest) > 2 && rest[1] == quote && rest[2] == quote && !s.key {
		long = true
	}
	i := 1
	if long {
		i = 3
	}
	for ; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && quote == '"':
			i++
		case c == '\n' && !long:
			return i // which is invalid
		case c == quote && !long:
			return i + 1
		case c == quote && i+2 < len(rest) && rest[i+1] == quote && rest[i+2] == quote:
			for i += 3; i < len(rest) && rest[i] == quote; i++ { // up to two that are in the text
			}
			return i
		}
	}
	return len(rest)
}
