// Package flat reads columns of Parquet files (github.com/apache/parquet-format) that are not
// nested: each row has a value, or none.
//
// It holds one page of a column at a time, and the column's dictionary, at most 1 GiB of all
// columns. What it does not read exactly it refuses by name: an error is [ErrFormat] for a file
// that is not as the format says, and [ErrUnread] for what the format allows and this package
// lacks.
//
// Two libraries were tried over the samples of apache/parquet-testing and over what DuckDB and the
// Rust library of Arrow write (TestDifferential of package tables). parquet-go v0.32.0 reads other
// values with the codec LZ4_RAW, of booleans in runs (RLE), and of some 32-bit integers in
// DELTA_BINARY_PACKED. arrow-go v18.8.0 fails at these integers, panics at logical types that it
// does not know, and compares no checksums. Neither reads LZ4, nor a page of version 2 that holds
// no value and no compressed byte.
//
// A library would do if what it reads wrongly could be refused by name before it is read. Other
// values and panics cannot: no error tells a number that a decoder has made up, and a damaged page
// without its checksum is other rows. This package refuses nested columns, which a library reads: a
// job has no type for them. A program that reads one column by arrow-go has 23 MB, by this package
// 1,700 lines and, with SQLite and PostgreSQL next to it, 16 MB.
package flat

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The kinds of errors.
var (
	ErrFormat = errors.New("it is not a valid Parquet file")
	ErrUnread = errors.New("it has what is not read here")
)

// failure is an error of one of the kinds, whose text is the reason alone.
type failure struct {
	kind   error
	reason string
}

func (f *failure) Error() string { return f.reason }
func (f *failure) Unwrap() error { return f.kind }

func invalid(reason string, a ...any) error {
	return &failure{ErrFormat, fmt.Sprintf(reason, a...)}
}

func unread(reason string, a ...any) error {
	return &failure{ErrUnread, fmt.Sprintf(reason, a...)}
}

var errEnds = invalid("it ends early")

// Type is how values are stored.
type Type int32

// The types, as the format numbers them.
const (
	Boolean Type = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedLenByteArray
)

var types = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
	"FIXED_LEN_BYTE_ARRAY"}

func (t Type) String() string { return named(types, int32(t), "type") }

// named returns the name that the format has for a number, or the number.
func named(names []string, k int32, what string) string {
	if k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("%s %d", what, k)
}

// bytes returns how many bytes a value takes, or 0 if that differs.
func (c *Column) bytes() int {
	switch c.Type {
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return int(c.Length)
	}
	return 0
}

// Column is a field of the table.
type Column struct {
	Name    string
	Type    Type    // unless it is a group
	Length  int32   // in bytes, of a FixedLenByteArray
	Logical Logical // what values mean
	Group   bool    // it has fields of its own
	List    bool    // a row has any number of values

	optional bool
	leaf     int // the place among the columns of a group of rows
}

// File is an open file.
type File struct {
	Columns []Column // in order; those within others are not listed

	from   io.ReaderAt
	end    int64 // of the pages
	rows   int64
	groups []group
	room   int // that pages have
}

// group is a group of rows.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is where a group of rows has the values of a column.
type chunk struct {
	path       string // names, outermost first, with a zero byte between them
	kind       Type
	codec      int32
	values     int64
	data       int64 // where pages begin
	dictionary int64 // where its page is; 0: none
	elsewhere  bool  // in another file
	encrypted  bool
	known      bool // all of the above was there
}

const (
	magic      = "PAR1"
	mostFooter = 1 << 27 // bytes
	mostFields = 1 << 17 // of a file
	mostGroups = 1 << 20
)

// Open reads the footer of a file of a size.
func Open(from io.ReaderAt, size int64) (*File, error) {
	var end [8]byte
	if size < int64(len(magic)+len(end)) {
		return nil, errEnds
	}
	if _, err := from.ReadAt(end[:], size-int64(len(end))); err != nil {
		return nil, err
	}
	if string(end[4:]) == "PARE" {
		return nil, unread("it is encrypted")
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	f := &File{from: from, end: size - int64(len(end)) - length}
	switch {
	case string(end[4:]) != magic || f.end < int64(len(magic)):
		return nil, errEnds
	case length > mostFooter:
		return nil, unread("it has a footer of more than %d MiB", mostFooter>>20)
	}
	t := &thrift{Reader: bufio.NewReader(io.NewSectionReader(from, f.end, length))}
	var fields []field
	t.structure(func(id int, kind byte) {
		switch {
		case id == 2 && kind == kindList:
			t.list(kindStruct, mostFields, func() { fields = append(fields, t.field()) })
		case id == 3:
			f.rows = t.int64(kind)
		case id == 4 && kind == kindList:
			t.list(kindStruct, mostGroups, func() { f.groups = append(f.groups, t.group()) })
		default:
			t.skip(kind, 0)
		}
	})
	if t.err != nil {
		return nil, t.err
	}
	paths, err := f.schema(fields)
	if err != nil {
		return nil, err
	}
	if err := f.agree(paths); err != nil {
		return nil, err
	}
	return f, nil
}

// agree compares the groups with the schema.
func (f *File) agree(paths []string) error {
	left := f.rows
	for i := range f.groups {
		g := &f.groups[i]
		if g.rows < 0 || g.rows > left {
			return invalid("its groups have more rows than the file")
		}
		left -= g.rows
		if len(g.chunks) != len(paths) {
			return invalid("group %d has %d columns of %d", i+1, len(g.chunks), len(paths))
		}
		for k, c := range g.chunks {
			if c.known && c.path != paths[k] {
				return invalid("group %d has its columns in another order than the schema", i+1)
			}
		}
	}
	if left != 0 {
		return invalid("its groups have fewer rows than the file")
	}
	return nil
}

// field is an element of the schema.
type field struct {
	Column
	repetition int32
	children   int32
	typed      bool
	old        int32 // what values mean, as earlier versions of the format say it; -1: nothing
	scale      int32
	logical    Logical
}

func (t *thrift) field() field {
	f := field{old: -1}
	f.Type = -1
	found := false
	t.structure(func(id int, kind byte) {
		switch id {
		case 1:
			f.Type, f.typed = Type(t.int32(kind)), true
		case 2:
			f.Length = t.int32(kind)
		case 3:
			f.repetition = t.int32(kind)
		case 4:
			f.Name, found = t.name(kind), true
		case 5:
			f.children = t.int32(kind)
		case 6:
			f.old = t.int32(kind)
		case 7:
			f.scale = t.int32(kind)
		case 10:
			f.logical = t.logical(kind)
		default:
			t.skip(kind, 0)
		}
	})
	if !found {
		t.fail(invalid("a column has no name"))
	}
	return f
}

func (t *thrift) group() (g group) {
	t.structure(func(id int, kind byte) {
		switch {
		case id == 1 && kind == kindList:
			t.list(kindStruct, mostFields, func() { g.chunks = append(g.chunks, t.chunk()) })
		case id == 3:
			g.rows = t.int64(kind)
		default:
			t.skip(kind, 0)
		}
	})
	return g
}

func (t *thrift) chunk() (c chunk) {
	found := 0
	t.structure(func(id int, kind byte) {
		switch id {
		case 1:
			c.elsewhere = t.name(kind) != ""
		case 3:
			t.inner(kind, func(id int, kind byte) {
				found |= 1 << (id & 15)
				switch {
				case id == 1:
					c.kind = Type(t.int32(kind))
				case id == 3 && kind == kindList:
					var path []string
					t.list(kindBinary, mostFields, func() { path = append(path, t.text()) })
					c.path = strings.Join(path, "\x00")
				case id == 4:
					c.codec = t.int32(kind)
				case id == 5:
					c.values = t.int64(kind)
				case id == 9:
					c.data = t.int64(kind)
				case id == 11:
					c.dictionary = t.int64(kind)
				default:
					t.skip(kind, 0)
				}
			})
		case 8, 9:
			c.encrypted = true
			t.skip(kind, 0)
		default:
			t.skip(kind, 0)
		}
	})
	const needed = 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<9
	if c.known = found&needed == needed; !c.known && !c.encrypted {
		t.fail(invalid("a column of a group lacks its description"))
	}
	return c
}

// schema lists the columns, and returns the paths of all that have values.
func (f *File) schema(fields []field) (paths []string, err error) {
	if len(fields) == 0 || fields[0].typed {
		return nil, invalid("it has no schema")
	}
	rest := fields[1:]
	var walk func(n int32, path []string) error
	walk = func(n int32, path []string) error {
		if len(path) > mostDepth {
			return unread("it has columns nested more than %d deep", mostDepth)
		}
		for ; n > 0; n-- {
			if len(rest) == 0 {
				return invalid("its schema ends early")
			}
			e := rest[0]
			rest = rest[1:]
			if e.children < 0 || e.typed == (e.children > 0) {
				return invalid("column %q is both a group and a value, or neither", e.Name)
			}
			if e.repetition < 0 || e.repetition > 2 || e.typed && int(e.Type) >= len(types) ||
				e.typed && e.Type < 0 || e.Type == FixedLenByteArray && e.Length <= 0 {
				return invalid("the type of column %q is not valid", e.Name)
			}
			c := e.Column
			c.optional, c.List, c.Group = e.repetition == 1, e.repetition == 2, !e.typed
			c.Logical = e.meaning()
			if c.leaf = len(paths); e.typed {
				paths = append(paths, strings.Join(append(path, e.Name), "\x00"))
			}
			if len(path) == 0 {
				f.Columns = append(f.Columns, c)
			}
			if err := walk(e.children, append(path, e.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(fields[0].children, nil); err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, invalid("its schema has more elements than columns")
	}
	return paths, nil
}
