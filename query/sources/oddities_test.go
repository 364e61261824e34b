package sources

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/oddities"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/table"
)

const numbersXY = `name = "xy"
parties = { count = 2, rows = 9 }
column = [
  { name = "x", type = "number", range = [0.0, 100.0] },
  { name = "y", type = "number", range = [0.0, 100.0] },
]
query = [{ name = "n", kind = "count" }, { name = "sums", kind = "sum", column = "y" }]
`

// askedAs and trained read a file as queries and as training do: hushsum query, which simulates all
// parties, hushsum join and hushsumd join call the same two methods. Each gives the values of two
// columns.
func askedAs(t *testing.T, s Source) (string, error) {
	j, err := job.Parse("job.toml", []byte(numbersXY))
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := s.Read(t.Context(), query.NewSchema(j))
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(read), "&{"), " []}"), err
}

func trained(t *testing.T, s Source) (string, error) {
	d, err := s.ReadTraining(t.Context(), &job.Job{Model: job.Model{Features: 2, Classes: 2}})
	if err != nil {
		return "", err
	}
	var text []string
	for i := range d.Len() {
		text = append(text, fmt.Sprint(d.X[2*i:2*i+2]))
	}
	return "[" + strings.Join(text, " ") + "]", nil
}

// write writes a file, perhaps compressed.
func write(t *testing.T, name, text string, packed bool) Source {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(text)
	if packed {
		b.Reset()
		out := gzip.NewWriter(&b)
		_, _ = out.Write([]byte(text))
		out.Close()
	}
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return Source{Rows: name}
}

// Every oddity of CSV (package oddities) gives queries and training the same rows, compressed or
// not, or is refused in the same words at the same line; and so are the values of tables.
func TestOddities(t *testing.T) {
	const want = "[[1 2.5] [3 4]]"
	files, _ := oddities.Read(t, "../..")
	for _, c := range files {
		for _, packed := range []bool{false, true} {
			name := "rows.csv"
			if packed {
				name += ".gz"
			}
			headed := c.Head + strings.TrimPrefix(c.Rows, "\ufeff")
			asked, asking := askedAs(t, write(t, name, headed, packed))
			own, training := trained(t, write(t, name, c.Rows, packed))
			if c.Want == "" {
				if asking != nil || training != nil || asked != want || own != want {
					t.Errorf("%s, packed %v: %s %v, in training %s %v", c.What, packed, asked, asking, own,
						training)
				}
				continue
			}
			var one, other *table.Error
			if !errors.As(asking, &one) || !errors.As(training, &other) ||
				!strings.Contains(asking.Error(), c.Want) || !strings.Contains(training.Error(), c.Want) {
				t.Errorf("%s, packed %v: %v, in training %v; want %q", c.What, packed, asking, training,
					c.Want)
				continue
			}
			above := strings.Count(c.Head, "\n")
			if other.Line > 0 && one.Line > 1 && one.Line != other.Line+above {
				t.Errorf("%s, packed %v: at line %d, in training %d", c.What, packed, one.Line, other.Line)
			}
		}
	}
}

// The values of another reader's table are the same to queries and to training, or refused in the
// same words.
func TestOdditiesOfTables(t *testing.T) {
	reader := func(value any) Reader {
		return func(_ context.Context, r Request, read func(query.Table) error) error {
			return read(query.Table{Name: r.Name, Columns: []string{"x", "y", "class"},
				Rows: rowsOf([]any{int64(1), 2.5, int64(0)}, []any{uint64(3), value, int64(1)})})
		}
	}
	_, values := oddities.Read(t, "../..")
	for _, c := range values {
		s := write(t, "rows.parquet", "PAR1", false)
		s.Reader = reader(c.Of(t))
		asked, asking := askedAs(t, s)
		own, training := trained(t, s)
		if c.Want == "" {
			if asking != nil || training != nil || asked != "[[1 2.5] [3 4]]" || own != asked {
				t.Errorf("%v: %s %v, in training %s %v", c, asked, asking, own, training)
			}
			continue
		}
		for _, err := range []error{asking, training} {
			var wrong *table.Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.Want) || wrong.Row != 2 ||
				wrong.Column != "y" {
				t.Errorf("%v: %v, want row 2 and %q", c, err, c.Want)
			}
		}
	}
}

// Files that nobody here reads are told by how they begin, whatever their names are.
func TestOtherForms(t *testing.T) {
	for text, want := range map[string]string{
		"PK\x03\x04":                       "it is a ZIP archive, as Excel's workbooks are; save the sheet",
		"\xd0\xcf\x11\xe0\xa1\xb1":         "old Excel workbook",
		"\x28\xb5\x2f\xfd\x04":             "compressed by zstd; run zstd -d",
		"BZh91AY&SY":                       "compressed by bzip2",
		"\xfd7zXZ\x00":                     "compressed by xz",
		"ARROW1\x00\x00":                   "an Arrow file",
		"Obj\x01":                          "an Avro file",
		"01234567DUCK\x40\x00\x00\x00\x00": "it is a DuckDB file; export a table: duckdb",
	} {
		for _, name := range []string{"rows.csv", "rows.db", "rows"} {
			if name == "rows.db" && !strings.Contains(want, "DuckDB") {
				continue
			}
			s := write(t, name, text, false)
			_, err := askedAs(t, s)
			if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", text, err, want)
			}
		}
	}
}

// A source is described as it is read.
func TestDescribe(t *testing.T) {
	s := write(t, "rows.csv.gz", "\ufeffa;b;c;d;e\n1;0.5;x;;1\n2; -3 ;x;;x\n;4e1;y;;3\n", true)
	d, err := s.Describe(t.Context())
	if err != nil || d.Form != CSV || d.Rows != 3 || *d.Text != (table.Dialect{Separator: ';',
		Mark: true, Gzip: true, Named: true, Lines: true}) {
		t.Fatalf("%+v %v", d, err)
	}
	var told []string
	for _, c := range d.Columns {
		text := fmt.Sprintf("%s %s %d %d %d %d", c.Name, c.Type, c.Missing, c.Different, c.Numbers,
			c.Other)
		if c.Least != nil {
			text += fmt.Sprint(" ", *c.Least, " ", *c.Most)
		}
		told = append(told, text)
	}
	if want := "a whole 1 0 0 0 1 2, b number 0 0 0 0 -3 40, c text 0 2 0 0, d empty 3 0 0 0, " +
		"e text 0 3 2 3"; strings.Join(told, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(told, ", "), want)
	}
	d, err = (&Source{Rows: write(t, "rows.csv", "1,2\n3\n", false).Rows}).Describe(t.Context())
	if !errors.Is(err, table.ErrRows) || d == nil || d.Rows != 1 || d.Text.Named ||
		d.Columns[1].Name != "column 2" {
		t.Errorf("%+v %v", d, err)
	}
	// What is read of a pipe is gone, so that it is read once.
	for text, want := range map[string]string{
		"a,b\n1,2\n": "", "1,2\n3,4\n": "add --bare, or --header",
	} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = out.WriteString(text)
		out.Close()
		d, err := (&Source{Rows: fmt.Sprint("/dev/fd/", in.Fd())}).Describe(t.Context())
		in.Close()
		switch {
		case errors.Is(err, os.ErrNotExist): // a system without such names
		case want == "" && (err != nil || d.Rows != 1 || d.Columns[0].Name != "a"):
			t.Errorf("of a pipe: %+v %v", d, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("of a pipe: %+v %v", d, err)
		}
	}
	// Of a SQLite file the statement may be left out if it has one table.
	for _, names := range [][]string{{"per\"son"}, {"a", "b"}, {}} {
		s := write(t, "rows.db", sqliteMagic, false)
		s.Reader = func(_ context.Context, r Request, read func(query.Table) error) error {
			if strings.Contains(r.SQL, "sqlite_master") {
				var rows [][]any
				for _, name := range names {
					rows = append(rows, []any{name})
				}
				return read(query.Table{Name: r.Name, Columns: []string{"name"}, Rows: rowsOf(rows...)})
			}
			return read(query.Table{Name: r.Name, Columns: []string{"t", "b"},
				Rows: rowsOf([]any{true, nil})})
		}
		d, err := s.Describe(t.Context())
		switch {
		case len(names) == 1 && (err != nil || d.SQL != `SELECT * FROM "per""son"` || d.Form != SQLite ||
			d.Columns[0].Type != "truth" || d.Columns[1].Missing != 1):
			t.Errorf("%+v %v", d, err)
		case len(names) == 2 && (err == nil || !strings.Contains(err.Error(),
			`it has 2 tables: "a", "b"; add --sql`)):
			t.Error(err)
		case len(names) == 0 && (err == nil || !strings.Contains(err.Error(), "without a table")):
			t.Error(err)
		}
	}
}
