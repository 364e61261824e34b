package table

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
)

// span says where a row's text has a field.
type span struct {
	from, to int
	line     int
	doubled  bool // it has quotation marks that are written as two
}

// split finds the fields of a row that begins with a line, and reads more lines if the row has
// them.
func (c *reader) split(line []byte) error {
	c.fields = c.fields[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		return c.splitQuoted(line)
	}
	if i := bytes.IndexByte(line, '\r'); i >= 0 {
		return c.carriage()
	}
	text, separator := string(line), byte(c.table.Text.Separator)
	for {
		i := -1
		if separator != 0 {
			i = strings.IndexByte(text, separator)
		}
		if i < 0 {
			c.fields = append(c.fields, Field{trim(text), c.lines})
			return nil
		}
		c.fields = append(c.fields, Field{trim(text[:i]), c.lines})
		text = text[i+1:]
	}
}

// trim cuts blanks off both ends.
func trim(text string) string {
	if text == "" || text[0] > ' ' && text[0] < 0x80 && text[len(text)-1] > ' ' &&
		text[len(text)-1] < 0x80 {
		return text
	}
	return strings.TrimSpace(text)
}

// carriage is the error of a carriage return amid a line.
func (c *reader) carriage() *Error {
	return c.wrong(`end lines with line feeds: tr '\r' '\n' < FILE > lines.csv`,
		"it has a carriage return that ends no line")
}

// splitQuoted finds the fields of a row that has quotation marks.
func (c *reader) splitQuoted(line []byte) error {
	c.record, c.spans = append(c.record[:0], line...), c.spans[:0]
	separator := byte(c.table.Text.Separator)
	for i := 0; ; i++ {
		for i < len(c.record) && (c.record[i] == ' ' || c.record[i] == '\t' && separator != '\t') {
			i++
		}
		s := span{from: i, to: i, line: c.lines}
		var err error
		if i < len(c.record) && c.record[i] == '"' {
			s.from++
			i, err = c.quoted(i, &s)
		} else {
			i, err = c.unquoted(i, &s)
		}
		if err != nil {
			return err
		}
		c.spans = append(c.spans, s)
		if i >= len(c.record) {
			break
		}
	}
	text := string(c.record)
	for _, s := range c.spans {
		field := text[s.from:s.to]
		if s.doubled {
			field = strings.ReplaceAll(field, `""`, `"`)
		}
		c.fields = append(c.fields, Field{field, s.line})
	}
	if c.hints.Any || !c.table.Text.Named || c.table.Columns != nil {
		return nil
	}
	for i := range c.fields { // names
		c.fields[i].Text = strings.TrimSpace(c.fields[i].Text)
	}
	return nil
}

// unquoted finds the end of a field, and returns where the separator is, or the row's end.
func (c *reader) unquoted(i int, s *span) (int, error) {
	n := len(c.record)
	if separator := byte(c.table.Text.Separator); separator != 0 {
		if k := bytes.IndexByte(c.record[i:], separator); k >= 0 {
			n = i + k
		}
	}
	field := c.record[i:n]
	switch {
	case bytes.IndexByte(field, '"') >= 0:
		return 0, c.wrongAt(c.lines, len(c.spans), "put the whole value in quotation marks, and write "+
			"those that it has twice", "it has a quotation mark amid a value that does not begin with one")
	case bytes.IndexByte(field, '\r') >= 0:
		return 0, c.carriage()
	}
	s.from = n - len(bytes.TrimLeftFunc(field, unicode.IsSpace))
	s.to = s.from + len(bytes.TrimSpace(field))
	return n, nil
}

// quoted finds the end of a field that begins with a quotation mark at i, and returns where the
// separator is, or the row's end.
func (c *reader) quoted(i int, s *span) (int, error) {
	for i++; ; {
		k := bytes.IndexByte(c.record[i:], '"')
		if k < 0 {
			i = len(c.record)
			if err := c.more(s); err != nil {
				return 0, err
			}
			continue
		}
		i += k + 1
		if i == len(c.record) || c.record[i] != '"' {
			break
		}
		s.doubled = true
		i++
	}
	s.to = i - 1
	for i < len(c.record) && c.record[i] == ' ' {
		i++
	}
	if i < len(c.record) && c.record[i] != byte(c.table.Text.Separator) {
		advice, opens := "write quotation marks within a value twice", ""
		if s.line != c.lines {
			opens = "; the value begins here and goes on to another line"
		}
		return 0, c.wrongAt(s.line, len(c.spans), advice,
			"it has text after the quotation mark that closes a value%s", opens)
	}
	return i, nil
}

// more adds a line to a row of which a value goes on there.
func (c *reader) more(s *span) error {
	line, err := c.line()
	switch {
	case errors.Is(err, io.EOF):
		return c.wrongAt(s.line, len(c.spans), "close it, or write quotation marks within a value twice",
			"a quotation mark opens here that nothing closes")
	case err != nil:
		return err
	}
	if c.record = append(append(c.record, '\n'), line...); len(c.record) > mostRow {
		return c.wrongAt(s.line, len(c.spans), "close it", "a quotation mark opens here, and nothing "+
			"closes it within %d MiB", mostRow>>20)
	}
	return nil
}
