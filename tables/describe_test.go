package tables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// Sources without a list of wanted columns give all of theirs, in order, to a description and to
// training, in this process and by the program.
func TestAllColumns(t *testing.T) {
	type measured struct {
		X float64
		Y float32
		C int32
	}
	parquet := parquetFile(t, []measured{{1, 0.1, 0}, {2.5, 3, 1}, {-1, 4, 1}})
	db := sqliteFile(t, `CREATE TABLE measured (X REAL, Y REAL, C INTEGER)`,
		`INSERT INTO measured VALUES (1, 0.1, 0), (2.5, 3, 1), (-1, 4, 1)`)
	j := &job.Job{Model: job.Model{Features: 2, Classes: 2}}
	for _, s := range []sources.Source{
		{Rows: parquet}, {Rows: db}, {Rows: db, SQL: "SELECT * FROM measured"},
	} {
		for _, reader := range []sources.Reader{nil, Read} {
			s.Reader = reader
			d, err := s.Describe(t.Context())
			if err != nil || d.Rows != 3 {
				t.Fatal(d, err)
			}
			var told []string
			for _, c := range d.Columns {
				told = append(told, fmt.Sprint(c.Name, " ", c.Type, " ", *c.Most))
			}
			if got := strings.Join(told, ", "); got != "X number 2.5, Y number 4, C whole 1" {
				t.Errorf("%s: %s", s.Rows, got)
			}
			if s.SQL == "" && s.Rows == db {
				continue // training wants a statement
			}
			own, err := s.ReadTraining(t.Context(), j)
			if err != nil || !slices.Equal(own.X, []float64{1, 0.1, 2.5, 3, -1, 4}) ||
				!slices.Equal(own.Labels, []int{0, 1, 1}) {
				t.Errorf("%s: %+v %v", s.Rows, own, err)
			}
		}
	}
}

// refusing are columns of Parquet files that are refused, each next to ones that are read.
type refusing struct {
	Age  int64
	Tags []string `parquet:"tags,list"`
	Dose float64
	Raw  []byte
	Who  [16]byte `parquet:"who,uuid"`
	Many []int32  `parquet:"many"`
}

// A column that cannot be read leaves the others readable: a description has all of them, a query
// that does not name the column reads the file, and one that does gets the words of the
// description, as training does, which takes all columns.
func TestRefusedColumns(t *testing.T) {
	parquet := parquetFile(t, []refusing{{Age: 30, Dose: 0.5}, {Age: 40, Dose: 1}, {Age: 50}})
	wrong := damaged(t, parquet)
	db := sqliteFile(t, `CREATE TABLE r (Age INTEGER, Dose REAL, Raw BLOB)`,
		`INSERT INTO r VALUES (30, 0.5, NULL), (40, 1, x'00'), (50, 0, x'00')`)
	for _, c := range []struct {
		rows    string
		columns string
		reasons []string // by refused column
	}{
		{parquet, "Age whole 30 50 3, tags none, Dose number 0 1 3, Raw none, who none, many none",
			[]string{"tags: its type, a group of others, is not one that a column takes",
				"Raw: its type, BYTE_ARRAY, is not one that a column takes",
				"who: its type, UUID, is not one that a column takes",
				"many: its type, a list, is not one that a column takes"}},
		{wrong, "Age whole 30 50 3, tags none, Dose none, Raw none, who none, many none",
			[]string{"tags: its type",
				"Dose: it is not a valid Parquet file: the checksum of a page is wrong",
				"Raw: its type", "who: its type", "many: its type"}},
		{db, "Age whole 30 50 3, Dose number 0 1 3, Raw none",
			[]string{"row 2: Raw: the value is of a type, bytes, that the column does not take"}},
	} {
		for _, reader := range []sources.Reader{nil, Read} {
			s := sources.Source{Rows: c.rows, Reader: reader}
			d, err := s.Describe(t.Context())
			if d == nil || !errors.Is(err, query.ErrRows) {
				t.Fatal(d, err)
			}
			var told []string
			refused := 0
			for _, column := range d.Columns {
				text := column.Name + " " + column.Type
				if column.Least != nil {
					text += fmt.Sprint(" ", *column.Least, " ", *column.Most, " ", d.Rows)
				}
				told = append(told, text)
				if column.Refusal == nil {
					continue
				}
				want := c.reasons[refused]
				if refused++; refused == 1 && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", c.rows, err, want)
				}
				if s.SQL = ""; c.rows == db {
					s.SQL = "SELECT * FROM r"
				}
				_, _, asked := s.Read(t.Context(), schemaOf(t, numberJob(column.Name)))
				var words *query.RowsError
				if !errors.As(asked, &words) || words.Column != column.Name ||
					words.Reason != column.Refusal.Reason || words.Advice != column.Refusal.Advice ||
					words.Row != column.Refusal.Row || !strings.Contains(asked.Error(), want) {
					t.Errorf("%s: %v, described %+v, want %q", c.rows, asked, column.Refusal, want)
				}
			}
			if got := strings.Join(told, ", "); got != c.columns || refused != len(c.reasons) {
				t.Errorf("%s: %s\nwant %s", c.rows, got, c.columns)
			}
			rows, _, asked := s.Read(t.Context(), schemaOf(t, numberJob("Age")))
			if asked != nil || fmt.Sprint(rows) != "&{[[30] [40] [50]] []}" {
				t.Errorf("%s: %v %v", c.rows, rows, asked)
			}
			_, trained := s.ReadTraining(t.Context(),
				&job.Job{Model: job.Model{Features: len(d.Columns) - 1, Classes: 99}})
			if c.rows == db && !strings.Contains(fmt.Sprint(trained), "row 1: Raw: the value is missing") ||
				c.rows != db && fmt.Sprint(trained) != fmt.Sprint(err) {
				t.Errorf("%s: %v in training, described %v", c.rows, trained, err)
			}
		}
	}
	// Where no column can be read, no row is.
	lists := sources.Source{Rows: parquetFile(t, []struct {
		Tags []string `parquet:"tags,list"`
	}{{}, {}}), Reader: Read}
	if d, err := lists.Describe(t.Context()); d == nil || d.Rows > 1 || err == nil ||
		d.Columns[0].Refusal == nil {
		t.Error(d, err)
	}
}

// numberJob is a job that sums a column.
func numberJob(column string) string {
	return "name = \"a\"\nparties.count = 2\ncolumn = [{ name = \"" + column +
		"\", type = \"number\", range = [0.0, 100.0] }]\nquery = [{ name = \"n\", kind = \"count\" }]\n"
}

// damaged returns a copy of a file of parquetFile in which the numbers of Dose in the first group
// are others.
func damaged(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	half := binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.5))
	half = binary.LittleEndian.AppendUint64(half, math.Float64bits(1))
	at := bytes.Index(text, half)
	if at < 0 {
		t.Fatal("0.5 is not in the file as it is")
	}
	text[at] ^= 1
	return write(t, "damaged.parquet", string(text))
}
