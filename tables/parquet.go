package tables

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/hushsum/hushsum/query"
)

// readParquet reads rows of a Parquet file, of which it reads the columns of the schema alone.
func (s *Source) readParquet(
	ctx context.Context, schema *query.Schema, file *os.File,
) (rows *query.Rows, report *query.Report, err error) {
	defer func() {
		// The library may panic on bytes that are not as its writer leaves them.
		if wrong := recover(); wrong != nil {
			rows, report, err = nil, s.report(), s.broken(fmt.Errorf("%v", wrong))
		}
	}()
	opened, err := s.openParquet(file)
	if err != nil {
		return nil, s.report(), err
	}
	t := query.Table{Name: s.name()}
	var leaves []leaf
	for _, name := range schema.Columns() {
		column := opened.Root().Column(name)
		if column == nil {
			continue // which ReadTable says
		}
		convert, kind := conversion(column)
		if convert == nil {
			return nil, s.report(), &query.RowsError{File: t.Name, Column: name,
				Reason: "its type, " + kind + ", is not one that a column takes",
				Advice: "write a column of numbers or text instead"}
		}
		t.Columns = append(t.Columns, name)
		leaves = append(leaves, leaf{column.Index(), convert})
	}
	t.Rows = func(yield func([]any, error) bool) {
		for _, group := range opened.RowGroups() {
			more, err := s.group(ctx, group, leaves, yield)
			if err != nil {
				yield(nil, err)
			}
			if !more {
				return
			}
		}
	}
	return schema.ReadTable(t)
}

// broken is the error of a file that is not as the format says.
func (s *Source) broken(err error) error {
	return s.wrong("write it again from its source", "it is not a valid Parquet file: %v", err)
}

// leastParquet is the length of both marks and that of the footer, without it.
const leastParquet = 12

// openParquet reads the footer, whose length it checks before there is room for it.
func (s *Source) openParquet(file *os.File) (*parquet.File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, s.failed("", err)
	}
	if !info.Mode().IsRegular() {
		return nil, s.wrong("copy it to a file", "Parquet is read only from files")
	}
	var end [8]byte
	if _, err := file.ReadAt(end[:], info.Size()-int64(len(end))); err != nil {
		return nil, s.broken(errors.New("it ends early"))
	}
	switch footer := int64(binary.LittleEndian.Uint32(end[:])); {
	case string(end[4:]) == "PARE":
		return nil, s.wrong("write it without", "it is encrypted")
	case string(end[4:]) != "PAR1" || footer > info.Size()-leastParquet:
		return nil, s.broken(errors.New("it ends early"))
	}
	opened, err := parquet.OpenFile(file, info.Size(), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, s.broken(err)
	}
	return opened, nil
}

// leaf is a column of a file, and what becomes of its values.
type leaf struct {
	index   int
	convert func(parquet.Value) any
}

// batch is how many values of a column are read at a time.
const batch = 512

// group yields the rows of one group, and reports whether there are to be more. After an error
// there are none.
func (s *Source) group(
	ctx context.Context, group parquet.RowGroup, leaves []leaf, yield func([]any, error) bool,
) (more bool, err error) {
	chunks := group.ColumnChunks()
	columns := make([]reader, len(leaves))
	for i, l := range leaves {
		if l.index >= len(chunks) {
			return false, s.broken(errors.New("a column is missing"))
		}
		columns[i].values = parquet.NewColumnChunkValueReader(chunks[l.index])
		defer columns[i].values.Close()
	}
	row := make([]any, len(leaves))
	for k := range group.NumRows() {
		if k%batch == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		for i := range columns {
			value, err := columns[i].next()
			if err != nil {
				return false, s.broken(err)
			}
			row[i] = nil
			if !value.IsNull() {
				row[i] = leaves[i].convert(value)
			}
		}
		if !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

// reader reads the values of one column, one after the other.
type reader struct {
	values parquet.ColumnChunkValueReader
	buffer [batch]parquet.Value
	read   []parquet.Value // of the buffer, those that are to come
}

func (r *reader) next() (parquet.Value, error) {
	for empty := 0; len(r.read) == 0; empty++ {
		n, err := r.values.ReadValues(r.buffer[:])
		switch {
		case n > 0:
			r.read = r.buffer[:n]
		case errors.Is(err, io.EOF), err == nil && empty > batch:
			return parquet.Value{}, errors.New("a column has fewer values than there are rows")
		case err != nil:
			return parquet.Value{}, err
		}
	}
	value := r.read[0]
	r.read = r.read[1:]
	return value, nil
}

// conversion returns what makes a value of the column one that tables have, or nil for a type that
// they have not, and the type's name.
func conversion(column *parquet.Column) (convert func(parquet.Value) any, kind string) {
	switch {
	case !column.Leaf():
		return nil, "a group of others"
	case column.Repeated():
		return nil, "a list"
	}
	t := column.Type()
	kind = t.String()
	if logical := t.LogicalType(); logical != nil && logical.Value != nil {
		return logicalConversion(logical.Value, t), kind
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }, kind
	case parquet.Int32:
		return func(v parquet.Value) any { return int64(v.Int32()) }, kind
	case parquet.Int64:
		return func(v parquet.Value) any { return v.Int64() }, kind
	case parquet.Float:
		return func(v parquet.Value) any { return v.Float() }, kind
	case parquet.Double:
		return func(v parquet.Value) any { return v.Double() }, kind
	}
	return nil, kind
}

// logicalConversion is that of a type that says what its numbers or bytes mean.
func logicalConversion(logical format.LogicalTypeValue, t parquet.Type) func(parquet.Value) any {
	wide := t.Kind() == parquet.Int64
	number := func(v parquet.Value) int64 {
		if wide {
			return v.Int64()
		}
		return int64(v.Int32())
	}
	switch logical := logical.(type) {
	case *format.StringType, *format.EnumType:
		return func(v parquet.Value) any { return string(v.ByteArray()) }
	case *format.NullType:
		return func(parquet.Value) any { return nil }
	case *format.DateType:
		return func(v parquet.Value) any { return time.Unix(int64(v.Int32())*24*60*60, 0).UTC() }
	case *format.TimestampType:
		switch logical.Unit.Value.(type) {
		case *format.MilliSeconds:
			return func(v parquet.Value) any { return time.UnixMilli(v.Int64()).UTC() }
		case *format.MicroSeconds:
			return func(v parquet.Value) any { return time.UnixMicro(v.Int64()).UTC() }
		case *format.NanoSeconds:
			return func(v parquet.Value) any { return time.Unix(0, v.Int64()).UTC() }
		}
	case *format.IntType:
		switch {
		case logical.IsSigned:
			return func(v parquet.Value) any { return number(v) }
		case wide:
			return func(v parquet.Value) any { return v.Uint64() }
		}
		return func(v parquet.Value) any { return int64(v.Uint32()) }
	case *format.DecimalType:
		scale := int(logical.Scale)
		if scale < 0 || scale > mostScale {
			return nil
		}
		if t.Kind() == parquet.Int32 || wide {
			return func(v parquet.Value) any { return scaled(big.NewInt(number(v)), scale) }
		}
		return func(v parquet.Value) any { return scaled(signed(v.ByteArray()), scale) }
	}
	return nil
}

// mostScale is the most digits behind the point of a decimal number.
const mostScale = 1000

// signed reads a whole number in two's complement, the highest byte first.
func signed(b []byte) *big.Int {
	x := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}

// scaled writes a decimal number of that many digits behind the point.
func scaled(x *big.Int, scale int) string {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(x, power).FloatString(scale)
}
