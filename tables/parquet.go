package tables

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hushsum/hushsum/internal/fault"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/tables/internal/flat"
)

// readParquet reads rows of a Parquet file, of which it reads the wanted columns alone.
func (s *source) readParquet(ctx context.Context, read func(query.Table) error) error {
	file, err := os.Open(s.Rows)
	if err != nil {
		return &fault.Error{Kind: sources.ErrSource, Reason: err.Error(), Err: err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s.failed("", err)
	}
	if !info.Mode().IsRegular() {
		return s.wrong("copy it to a file", "Parquet is read only from files")
	}
	opened, err := flat.Open(file, info.Size())
	if err != nil {
		reason, advice := parquetReason(err)
		return &fault.Error{Kind: sources.ErrSource, Reason: s.Name + ": " + reason, Advice: advice,
			Err: err}
	}
	t := query.Table{Name: s.Name}
	var wanted []flat.Wanted
	for i := range opened.Columns {
		c := &opened.Columns[i]
		if len(s.Columns) > 0 && !slices.Contains(s.Columns, c.Name) {
			continue
		}
		w := flat.Wanted{Column: c}
		var kind string
		if w.Convert, kind = conversionOf(c); w.Convert == nil {
			w.Refused = s.refused(c.Name, kind, "write a column of numbers or text instead")
		}
		t.Columns, wanted = append(t.Columns, c.Name), append(wanted, w)
	}
	t.Rows = func(yield func([]any, error) bool) {
		k, more := 0, true
		err := opened.Rows(wanted, func(column int, err error) error {
			return s.columnError(t.Columns[column], err)
		}, func(row []any) bool {
			if k++; k%batch == 1 && ctx.Err() != nil {
				return false
			}
			more = yield(row, nil)
			return more
		})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil && more {
			yield(nil, err)
		}
	}
	return read(t)
}

// columnError says why a column cannot be read.
func (s *source) columnError(column string, err error) *query.RowsError {
	var refused *query.RowsError
	if errors.As(err, &refused) {
		return refused
	}
	reason, advice := parquetReason(err)
	return &query.RowsError{File: s.Name, Column: column, Reason: reason, Advice: advice}
}

// batch is how many rows are read before the context is looked at.
const batch = 512

// parquetReason says what is wrong with a file, or what of the format is not read, and what to do.
func parquetReason(err error) (reason, advice string) {
	switch {
	case errors.Is(err, flat.ErrFormat):
		return "it is not a valid Parquet file: " + err.Error(), "write it again from its source"
	case errors.Is(err, flat.ErrUnread):
		return err.Error() + ", which is not read here",
			"write it without, such as by 'COPY … TO … (FORMAT parquet)' of DuckDB"
	}
	return err.Error(), ""
}

// conversion makes a value of a column one that tables have.
type conversion = func(bits uint64, bytes []byte) (any, error)

// conversionOf returns that of a column, or nil for a type that tables have not, and the type's
// name. A meaning that does not fit how the values are stored is a type that tables have not.
func conversionOf(c *flat.Column) (convert conversion, kind string) {
	switch {
	case c.Group && !c.List:
		return nil, "a group of others"
	case c.List:
		return nil, "a list"
	}
	kind = c.Logical.Kind
	if kind == "" {
		return plainConversion(c.Type), c.Type.String()
	}
	number, whole := integers[c.Type]
	switch kind {
	case flat.String, flat.Enum:
		if c.Type == flat.ByteArray {
			convert = func(_ uint64, b []byte) (any, error) { return string(b), nil }
		}
	case flat.Null:
		convert = func(uint64, []byte) (any, error) { return nil, nil }
	case flat.Float16:
		if c.Type == flat.FixedLenByteArray && c.Length == 2 {
			convert = func(_ uint64, b []byte) (any, error) { return flat.Half(b), nil }
		}
	case flat.Date:
		if c.Type == flat.Int32 {
			convert = func(bits uint64, _ []byte) (any, error) {
				return time.Unix(int64(int32(bits))*24*60*60, 0).UTC(), nil
			}
		}
	case flat.Timestamp:
		if units := c.Logical.Units; c.Type == flat.Int64 && units > 0 {
			convert = func(bits uint64, _ []byte) (any, error) {
				x := int64(bits)
				return time.Unix(x/units, x%units*(1e9/units)).UTC(), nil
			}
		}
	case flat.Signed:
		if whole && fits(c) {
			convert = func(bits uint64, _ []byte) (any, error) { return number(bits), nil }
		}
	case flat.Unsigned:
		switch {
		case !whole || !fits(c):
		case c.Type == flat.Int64:
			convert = func(bits uint64, _ []byte) (any, error) { return bits, nil }
		default:
			convert = func(bits uint64, _ []byte) (any, error) { return int64(uint32(bits)), nil }
		}
	case flat.Decimal:
		convert = decimalConversion(c)
	}
	return convert, kind
}

// fits reports whether a column stores integers of its size as the format says.
func fits(c *flat.Column) bool {
	switch c.Logical.Bits {
	case 8, 16, 32:
		return c.Type == flat.Int32
	case 64:
		return c.Type == flat.Int64
	}
	return false
}

// integers are the types that hold whole numbers.
var integers = map[flat.Type]func(bits uint64) int64{
	flat.Int32: func(bits uint64) int64 { return int64(int32(bits)) },
	flat.Int64: func(bits uint64) int64 { return int64(bits) },
}

// plainConversion is that of a type that means what it says. Bytes may be anything, and an INT96 a
// time of one zone or another.
func plainConversion(t flat.Type) conversion {
	switch t {
	case flat.Boolean:
		return func(bits uint64, _ []byte) (any, error) { return bits != 0, nil }
	case flat.Int32, flat.Int64:
		number := integers[t]
		return func(bits uint64, _ []byte) (any, error) { return number(bits), nil }
	case flat.Float:
		return func(bits uint64, _ []byte) (any, error) {
			return math.Float32frombits(uint32(bits)), nil
		}
	case flat.Double:
		return func(bits uint64, _ []byte) (any, error) { return math.Float64frombits(bits), nil }
	}
	return nil
}

const (
	mostScale  = 1000 // digits behind the point of a decimal number
	mostDigits = 1000 // bytes of the whole number
)

// decimalConversion is that of decimal numbers.
func decimalConversion(c *flat.Column) conversion {
	scale := int(c.Logical.Scale)
	if scale < 0 || scale > mostScale {
		return nil
	}
	if number, whole := integers[c.Type]; whole {
		return func(bits uint64, _ []byte) (any, error) {
			return scaled(big.NewInt(number(bits)), scale), nil
		}
	}
	if c.Type != flat.ByteArray && c.Type != flat.FixedLenByteArray {
		return nil
	}
	return func(_ uint64, b []byte) (any, error) {
		if len(b) > mostDigits {
			return nil, fmt.Errorf("a decimal number has %d bytes", len(b))
		}
		return scaled(signed(b), scale), nil
	}
}

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
	text, sign := new(big.Int).Abs(x).String(), ""
	if x.Sign() < 0 {
		sign = "-"
	}
	if scale == 0 {
		return sign + text
	}
	if lacking := scale + 1 - len(text); lacking > 0 {
		text = strings.Repeat("0", lacking) + text
	}
	point := len(text) - scale
	return sign + text[:point] + "." + text[point:]
}
