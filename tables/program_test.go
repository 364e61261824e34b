package tables

import (
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// all returns the table that a reader gives, each value with its type and all its bits.
func all(t *testing.T, reader sources.Reader, r sources.Request) (values, columns []string) {
	t.Helper()
	err := reader(t.Context(), r, func(table query.Table) error {
		columns = slices.Clone(table.Columns)
		for row, err := range table.Rows {
			if err != nil {
				return err
			}
			for _, value := range row {
				switch v := value.(type) {
				case float64:
					value = math.Float64bits(v)
				case float32:
					value = math.Float32bits(v)
				case time.Time: // of which the name of the zone alone is lost
					value = v.Format("2006-01-02 15:04:05.999999999 -07:00:00")
				case []byte: // no column takes them
					value = nil
				}
				values = append(values, fmt.Sprintf("%T %q %v", value, value, value))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values, columns
}

// asProgram fails unless the program gives the table that this process reads.
func asProgram(t *testing.T, r sources.Request) {
	t.Helper()
	values, columns := all(t, Read, r)
	others, otherColumns := all(t, sources.Program, r)
	if !slices.Equal(values, others) || !slices.Equal(columns, otherColumns) {
		t.Errorf("%v %v: %q %q, by the program %q %q", r.Form, r.SQL, columns, values, otherColumns,
			others)
	}
	if len(values) == 0 {
		t.Errorf("%v: no values", r.Form)
	}
}

// texts are drawn with what a text between programs may lose: quotes, ends of lines, zeros, bytes
// that are no UTF-8, lengths beyond a buffer.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "NULL", "\"a,b\"\r\n", "\x00",
		"\xff\xfe", "1e400", strings.Repeat("ä", 40_000)}))
}

// moments are drawn from years that Parquet's numbers of nanoseconds hold.
func moments() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(-9e9, 9e9).Draw(t, "s"),
			rapid.Int64Range(0, 1e9-1).Draw(t, "ns"))
	})
}

// A SQLite file of any values is the same table in this process and by the program.
func TestSQLiteByProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rapid.Check(t, func(r *rapid.T) {
		if _, err := db.Exec("DROP TABLE IF EXISTS a; CREATE TABLE a (x, y, z DATETIME)"); err != nil {
			r.Fatal(err)
		}
		value := rapid.OneOf(rapid.Just(any(nil)), rapid.Int64().AsAny(), rapid.Float64().AsAny(),
			texts().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny(), rapid.Bool().AsAny())
		for range rapid.IntRange(1, 5).Draw(r, "rows") {
			var z any
			if rapid.Bool().Draw(r, "some") {
				z = moments().Draw(r, "z").UTC()
			}
			if _, err := db.Exec("INSERT INTO a VALUES (?, ?, ?)", value.Draw(r, "x"),
				value.Draw(r, "y"), z); err != nil {
				r.Fatal(err)
			}
		}
		asProgram(t, sources.Request{Form: sources.SQLite, Name: name, Rows: name,
			SQL: "SELECT *, y AS x, 1 AS unread FROM a", Columns: []string{"z", "x", "y", "none"}})
	})
}

// anything has a column of each type of Go that Parquet's types come from.
type anything struct {
	Int    *int64     `parquet:"int,optional"`
	Uint   *uint64    `parquet:"uint,optional"`
	Float  *float32   `parquet:"float,optional"`
	Double *float64   `parquet:"double,optional"`
	Bool   *bool      `parquet:"bool,optional"`
	Text   *string    `parquet:"text,optional"`
	Day    *int32     `parquet:"day,optional,date"`
	Moment *time.Time `parquet:"moment,optional,timestamp(nanosecond)"`
	Cents  int64      `parquet:"cents,decimal(2:18)"`
}

// So is a Parquet file.
func TestParquetByProgram(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rows.parquet")
	var columns []string
	for i := range reflect.TypeFor[anything]().NumField() {
		tag := reflect.TypeFor[anything]().Field(i).Tag.Get("parquet")
		column, _, _ := strings.Cut(tag, ",")
		columns = append(columns, column)
	}
	rapid.Check(t, func(r *rapid.T) {
		people := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) anything {
			return anything{
				Int:    rapid.Ptr(rapid.Int64(), true).Draw(r, "int"),
				Uint:   rapid.Ptr(rapid.Uint64(), true).Draw(r, "uint"),
				Float:  rapid.Ptr(rapid.Float32(), true).Draw(r, "float"),
				Double: rapid.Ptr(rapid.Float64(), true).Draw(r, "double"),
				Bool:   rapid.Ptr(rapid.Bool(), true).Draw(r, "bool"),
				Text:   rapid.Ptr(texts(), true).Draw(r, "text"),
				Day:    rapid.Ptr(rapid.Int32(), true).Draw(r, "day"),
				Moment: rapid.Ptr(moments(), true).Draw(r, "moment"),
				Cents:  rapid.Int64().Draw(r, "cents"),
			}
		}), 1, 5).Draw(r, "rows")
		people[0].Double = rapid.SampledFrom([]*float64{new(math.NaN()), new(math.Inf(-1)),
			new(math.Copysign(0, -1)), new(math.SmallestNonzeroFloat64)}).Draw(r, "odd")
		if err := parquet.WriteFile(name, people, parquet.MaxRowsPerRowGroup(2)); err != nil {
			r.Fatal(err)
		}
		asProgram(t, sources.Request{Form: sources.Parquet, Name: name, Rows: name, Columns: columns})
	})
}
