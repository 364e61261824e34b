package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hushsum/hushsum/internal/charset"
)

// mostRow is how many bytes a row may have, so that a quotation mark that nobody closes does not
// fill the memory.
const mostRow = 64 << 20

// Hints say what of CSV text its reader cannot see.
type Hints struct {
	Header   []string // names of the columns, where the first line is a row
	Bare     bool     // columns have no names, and the first line is a row
	Numbered bool     // rows have numbers: the text was never a file
	Any      bool     // rows may have different numbers of values
}

// ReadCSV returns the rows of CSV text (RFC 4180), of which it reads the first line; name is that
// of its file. The text is UTF-8, perhaps with a byte-order mark, or such text compressed by gzip.
// Values are separated by commas, semicolons or tabs, whichever the first line has. Blanks around
// values and around quoted values do not count. An empty line is a row of a missing value where
// there is one column, and none otherwise. It fails with an [Error], as the rows do, on all that
// could be read in two ways.
func ReadCSV(name string, text io.Reader, o Hints) (*Table, error) {
	c := &reader{hints: o, in: bufio.NewReaderSize(text, 1<<16)}
	c.table = Table{Name: name, Text: &Dialect{Named: !o.Bare && o.Header == nil, Lines: !o.Numbered},
		Rows: c.rows}
	if err := c.begin(); err != nil {
		return nil, err
	}
	return &c.table, nil
}

// reader reads CSV text.
type reader struct {
	hints  Hints
	table  Table
	in     *bufio.Reader
	lines  int     // that were read
	read   int     // rows
	record []byte  // a row's text, perhaps of several lines
	fields []Field // of the row
	spans  []span  // of the row, where it has quotation marks
	blank  int     // empty lines before the first row
	first  bool    // fields are those of a first line that names no columns
	held   []Field // those, while empty lines come before them
}

// wrong makes an error at the line that was read last.
func (c *reader) wrong(advice, reason string, a ...any) *Error {
	return c.wrongAt(c.lines, -1, advice, reason, a...)
}

// wrongAt makes an error at a line, of a column unless that is -1.
func (c *reader) wrongAt(line, column int, advice, reason string, a ...any) *Error {
	e := &Error{File: c.table.Name, Line: line, Reason: fmt.Sprintf(reason, a...), Advice: advice}
	if c.hints.Numbered {
		e.Line, e.Row = 0, c.read+1
	}
	switch {
	case column < 0:
	case column < len(c.table.Columns):
		e.Column = c.table.Columns[column]
	default:
		e.Column = fmt.Sprint("column ", column+1)
	}
	return e
}

// unreadable is the error of a text that cannot be read, at no line.
func (c *reader) unreadable(advice, reason string, a ...any) *Error {
	return &Error{File: c.table.Name, Reason: fmt.Sprintf(reason, a...), Advice: advice}
}

// foreign is the error of a text in another encoding.
func (c *reader) foreign(encoding string, line int) *Error {
	reason, advice := charset.Foreign(encoding, c.table.Name)
	e := c.unreadable(advice, "%s", reason)
	if !c.hints.Numbered {
		e.Line = line
	}
	return e
}

// begin reads the first line, and finds how the text is written.
func (c *reader) begin() error {
	begin, _ := c.in.Peek(2) // an error is the next one's, too
	if bytes.Equal(begin, []byte("\x1f\x8b")) {
		unpacked, err := gzip.NewReader(c.in)
		if err != nil {
			return c.unreadable("", "it is not valid gzip: %v", err)
		}
		c.in, c.table.Text.Gzip = bufio.NewReaderSize(unpacked, 1<<16), true
	}
	if begin, _ = c.in.Peek(64); len(begin) > 0 {
		if what := charset.Of(begin); strings.HasPrefix(what, "UTF") {
			return c.foreign(what, 0)
		}
	}
	if bytes.HasPrefix(begin, []byte(charset.Mark)) {
		_, _ = c.in.Discard(len(charset.Mark))
		c.table.Text.Mark = true
	}
	first, err := c.firstLine()
	if err != nil {
		return err
	}
	if err := c.separator(first); err != nil {
		return err
	}
	if err := c.split(first); err != nil {
		return err
	}
	c.table.Columns, c.first = c.hints.Header, true
	switch {
	case c.table.Text.Named:
		c.first = false
		for _, f := range c.fields {
			c.table.Columns = append(c.table.Columns, f.Text)
		}
	case c.hints.Bare:
		for i := range c.fields {
			c.table.Columns = append(c.table.Columns, fmt.Sprint("column ", i+1))
		}
	}
	return c.distinct()
}

// firstLine returns the first line that is not empty.
func (c *reader) firstLine() ([]byte, error) {
	for {
		line, err := c.line()
		if err != nil && errors.Is(err, io.EOF) {
			what := "names the columns"
			if !c.table.Text.Named {
				what = "is a row"
			}
			return nil, c.unreadable("", "it is empty: there is no line that %s", what)
		}
		switch {
		case err != nil:
			return nil, err
		case !empty(line):
			return c.whole(line)
		}
		c.blank++
	}
}

var quote = []byte{'"'}

// whole returns the first line together with the lines on which a name in quotation marks goes on.
// Its separator is found before its names are.
func (c *reader) whole(line []byte) ([]byte, error) {
	begins := c.lines
	quotes := bytes.Count(line, quote)
	if quotes%2 == 0 {
		return line, nil
	}
	for line = bytes.Clone(line); quotes%2 == 1; {
		more, err := c.line()
		if errors.Is(err, io.EOF) {
			c.lines = begins // where the mark is that nothing closes
			break
		}
		if err != nil {
			return nil, err
		}
		quotes += bytes.Count(more, quote)
		if line = append(append(line, '\n'), more...); len(line) > mostRow {
			c.lines = begins
			return nil, c.tooLong()
		}
	}
	return line, nil
}

// empty reports whether a line has nothing on it.
func empty(line []byte) bool { return len(line) == 0 || len(bytes.Trim(line, " ")) == 0 }

// separators are those that a first line may have.
var separators = []struct {
	mark byte
	name string
}{{',', "commas"}, {';', "semicolons"}, {'\t', "tabs"}}

// separator finds the separator of the values of the first line.
func (c *reader) separator(first []byte) error {
	var found []int
	var counts [3]int
	for i, s := range separators {
		quoted := false
		for _, b := range first {
			if b == '"' {
				quoted = !quoted
			} else if b == s.mark && !quoted {
				counts[i]++
			}
		}
		if counts[i] > 0 {
			found = append(found, i)
		}
	}
	if len(found) > 1 && c.hints.Header != nil { // which says how many values there are
		fits := slices.DeleteFunc(slices.Clone(found), func(i int) bool {
			return counts[i]+1 != len(c.hints.Header)
		})
		if len(fits) == 1 {
			found = fits
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		c.table.Text.Separator = rune(separators[found[0]].mark)
		return nil
	}
	advice := "put names that contain one of them in quotation marks"
	if !c.table.Text.Named {
		advice = "write numbers with a decimal point"
	}
	return c.wrong(advice, "the first line has %s and %s, and either could separate values",
		separators[found[0]].name, separators[found[1]].name)
}

// distinct fails if two columns have one name.
func (c *reader) distinct() error {
	seen := make(map[string]bool, len(c.table.Columns))
	for i, name := range c.table.Columns {
		if seen[name] && name != "" {
			return c.wrongAt(1, i, "give one of them another name", "it is in the header twice")
		}
		seen[name] = true
	}
	return nil
}

// line reads a line, whose bytes are good until the next.
func (c *reader) line() ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = c.in.ReadSlice('\n')
			if long = append(long, line...); len(long) > mostRow {
				c.lines++
				return nil, c.tooLong()
			}
		}
		line = long
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if c.table.Text.Gzip {
			return nil, c.unreadable("", "it is compressed by gzip, and not whole: %v", err)
		}
		return nil, c.unreadable("", "it cannot be read: %v", err)
	}
	if len(line) == 0 {
		return nil, io.EOF
	}
	c.lines++
	line = bytes.TrimRight(bytes.TrimSuffix(line, []byte{'\n'}), "\r")
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return nil, c.foreign("binary", c.lines)
	case !utf8.Valid(line):
		return nil, c.foreign("Latin-1", c.lines)
	}
	return line, nil
}

// tooLong is the error of a row that goes on and on.
func (c *reader) tooLong() *Error {
	return c.wrong("", "a row has more than %d MiB", mostRow>>20)
}

// next reads the fields of the next row.
func (c *reader) next() error {
	switch {
	case c.blank > 0 && c.first && c.single():
		if c.held == nil {
			c.held = c.fields
		}
		c.fields = []Field{{"", c.lines - c.blank}}
		c.blank--
		c.read++
		return nil
	case c.first:
		if c.held != nil {
			c.fields = c.held
		}
		c.first = false
		c.read++
		return c.count()
	}
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		if empty(line) {
			if !c.single() {
				continue
			}
			c.fields = append(c.fields[:0], Field{"", c.lines})
			c.read++
			return nil
		}
		if err := c.split(line); err != nil {
			return err
		}
		c.read++
		return c.count()
	}
}

// single reports whether there is one column, of which an empty line is a missing value.
func (c *reader) single() bool { return len(c.table.Columns) == 1 && !c.hints.Any }

// count fails if the row has not as many values as there are columns.
func (c *reader) count() error {
	if n := len(c.table.Columns); len(c.fields) != n && !c.hints.Any {
		by := ""
		for _, s := range separators {
			if c.table.Text.Separator == rune(s.mark) {
				by = ", separated by " + s.name
			}
		}
		e := c.wrong("write a row with a value for each column, an empty one where there is none",
			"it has %d values for %d columns%s", len(c.fields), n, by)
		if e.Row > 0 {
			e.Row = c.read
		} else if len(c.fields) > 0 {
			e.Line = c.fields[0].Line
		}
		return e
	}
	return nil
}

// rows yields the rows.
func (c *reader) rows(yield func([]any, error) bool) {
	var row []any
	for {
		err := c.next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if len(row) != len(c.fields) || len(row) > 0 && row[0] != any(&c.fields[0]) {
			row = row[:0]
			for i := range c.fields {
				row = append(row, &c.fields[i])
			}
		}
		if c.hints.Numbered {
			for i := range c.fields {
				c.fields[i].Line = 0
			}
		}
		if !yield(row, nil) {
			return
		}
	}
}
