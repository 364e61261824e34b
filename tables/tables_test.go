package tables

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

const asked = `name = "asked"
parties = { count = 2, rows = 9 }
column = [
  { name = "age", type = "whole", range = [18, 100], missing = "drop", blank = ["999"] },
  { name = "dose", type = "number", range = [0.0, 1.0], outside = "drop", missing = "drop" },
  { name = "sex", type = "category", categories = ["F", "M"], missing = "category" },
  { name = "smokes", type = "category", categories = ["true", "false"], missing = "drop" },
  { name = "day", type = "category", categories = ["2024-01-31", "2024-02-01"], missing = "drop" },
]
query = [{ name = "n", kind = "count" }]
`

const asCSV = `id,age,dose,sex,smokes,day
1,20,0.25,F,true,2024-01-31
2,,,,,
3,17,0.1,X,false,2024-02-01
4,999,2.5,M,true,2024-03-01
`

// dated is a row of the same table, as Parquet has it.
type dated struct {
	ID     int32    `parquet:"id"`
	Age    *int64   `parquet:"age,optional"`
	Dose   *float32 `parquet:"dose,optional"`
	Sex    *string  `parquet:"sex,optional"`
	Smokes *bool    `parquet:"smokes,optional"`
	Day    *int32   `parquet:"day,optional,date"`
	Tags   []string `parquet:"tags,list"`
}

// inParquet are the rows of asCSV.
func inParquet() []dated {
	day := func(month time.Month, d int) *int32 {
		days := int32(time.Date(2024, month, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
		return &days
	}
	return []dated{
		{1, new(int64(20)), new(float32(0.25)), new("F"), new(true), day(1, 31), []string{"a", "b"}},
		{ID: 2},
		{3, new(int64(17)), new(float32(0.1)), new("X"), new(false), day(2, 1), nil},
		{4, new(int64(999)), new(float32(2.5)), new("M"), new(true), day(3, 1), []string{"c"}},
	}
}

func schemaOf(t testing.TB, text string) *query.Schema {
	t.Helper()
	j, err := job.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return query.NewSchema(j)
}

// write writes a file of a test, and returns its name.
func write(t testing.TB, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// sqliteFile writes a SQLite file by statements.
func sqliteFile(t testing.TB, statements ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rows.db")
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// parquetFile writes a Parquet file of rows, two in a group.
func parquetFile[T any](t testing.TB, rows []T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rows.parquet")
	if err := parquet.WriteFile(name, rows, parquet.MaxRowsPerRowGroup(2)); err != nil {
		t.Fatal(err)
	}
	return name
}

const create = `CREATE TABLE person
(id INTEGER, age INTEGER, dose REAL, sex TEXT, smokes BOOLEAN, day DATE)`

const insert = `INSERT INTO person VALUES (1, 20, 0.25, 'F', true, '2024-01-31'),
(2, NULL, NULL, NULL, NULL, NULL), (3, 17, 0.1, 'X', false, '2024-02-01'),
(4, 999, 2.5, 'M', true, '2024-03-01')`

// TestMain is the program hushsum-rows if it is called by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "hushsum-rows" {
		if sources.WriteAnswer(context.Background(), os.Stdin, os.Stdout, Read) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	folder, err := os.MkdirTemp("", "tables-*")
	if err != nil {
		panic(err)
	}
	own, err := os.Executable()
	if err == nil {
		err = os.Symlink(own, filepath.Join(folder, "hushsum-rows"))
	}
	if err != nil {
		panic(err)
	}
	os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// read reads a source in this process, and fails unless the program gives the same rows, the same
// report and the same error.
func read(
	t testing.TB, s sources.Source, schema *query.Schema,
) (*query.Rows, *query.Report, error) {
	t.Helper()
	other, told, failed := s.Read(t.Context(), schema)
	s.Reader = Read
	rows, report, err := s.Read(t.Context(), schema)
	if fmt.Sprint(rows) != fmt.Sprint(other) || !reflect.DeepEqual(report, told) {
		t.Errorf("%s: %v, %+v, by the program %v, %+v", s.Rows, rows, report, other, told)
	}
	var place, otherPlace *query.RowsError
	if fmt.Sprint(err) != fmt.Sprint(failed) ||
		errors.Is(err, sources.ErrSource) != errors.Is(failed, sources.ErrSource) ||
		errors.As(err, &place) != errors.As(failed, &otherPlace) ||
		place != nil && *place != *otherPlace {
		t.Errorf("%s: %v, by the program %v", s.Rows, err, failed)
	}
	return rows, report, err
}

// same fails unless a source has the rows of asCSV, with the same findings by row.
func same(t *testing.T, s sources.Source) {
	t.Helper()
	schema := schemaOf(t, asked)
	want, told, err := schema.Read("rows.csv", strings.NewReader(asCSV), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, report, err := read(t, s, schema)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		t.Errorf("%s: rows\n%s, of CSV\n%s", s.Rows, a, b)
	}
	for i := range told.Findings {
		for k := range told.Findings[i].Lines {
			if report.Table {
				told.Findings[i].Lines[k]-- // the head is a line, and no row
			}
		}
	}
	if !reflect.DeepEqual(report.Findings, told.Findings) || report.Rows != 4 {
		t.Errorf("%s: findings\n%+v, of CSV\n%+v", s.Rows, report.Findings, told.Findings)
	}
}

// The same rows are read alike from files of every form, nulls are missing, and columns that the
// job does not name are left alone, whatever their type.
func TestSame(t *testing.T) {
	same(t, sources.Source{Rows: write(t, "rows.csv", asCSV)})
	_, bare, _ := strings.Cut(asCSV, "\n")
	same(t, sources.Source{Rows: parquetFile(t, inParquet())})
	// SQLite has no truths: 1 and 0 are numbers, which the statement names.
	same(t, sources.Source{Rows: sqliteFile(t, create, insert),
		SQL: `SELECT *, x'00' AS bytes FROM (SELECT age, dose, sex, iif(smokes, 'true',
			iif(smokes IS NULL, NULL, 'false')) AS smokes, day FROM person ORDER BY id);  -- all`})
	rows, _, err := read(t, sources.Source{Rows: write(t, "bare", bare),
		Header: "id, age,dose,sex,smokes,day"}, schemaOf(t, asked))
	if err != nil || rows.Len() != 4 {
		t.Error(rows, err)
	}
}

// What a file or a statement has in a place of something else is refused: by its column if it is of
// one, and with what to do.
func TestRefuses(t *testing.T) {
	db := sqliteFile(t, create, insert, `CREATE TABLE odd (age, dose, sex, smokes, day)`,
		`INSERT INTO odd VALUES (x'2030', 1, 'F', 'true', NULL)`)
	before, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	columns := "SELECT age, dose, sex, 'true' AS smokes, day FROM "
	other := filepath.Join(t.TempDir(), "other.db")
	for _, c := range []struct {
		s    sources.Source
		want string
		kind error
	}{
		{sources.Source{Rows: "missing.csv"}, "no such file", sources.ErrSource},
		{sources.Source{Rows: db}, "add --sql 'SELECT …'", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "SELECT x FROM person"},
			"SQLite says: SQL logic error: no such column: x", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "DELETE FROM person"}, "does more than read", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "DELETE FROM person RETURNING *"}, "does more than read", sources.ErrSource},
		{sources.Source{Rows: db, SQL: columns + "person; DROP TABLE person"}, "", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "VACUUM INTO '" + other + "'"}, "does more than read", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "ATTACH '" + other + "' AS o"}, "does more than read", sources.ErrSource},
		{sources.Source{Rows: db, SQL: "PRAGMA query_only = 0"}, "does more than read", sources.ErrSource},
		{sources.Source{Rows: db, SQL: columns + "odd"}, "row 1: age: the value is of a type, bytes",
			query.ErrRows},
		{sources.Source{Rows: db, SQL: "SELECT age FROM person"}, "dose: there is no such column",
			query.ErrRows},
		{sources.Source{Rows: db, SQL: columns + "person", Header: "a"}, "--header is for CSV", sources.ErrSource},
		{sources.Source{Rows: write(t, "a.csv", asCSV), SQL: "SELECT 1"}, "it is not a database", sources.ErrSource},
		{sources.Source{Rows: write(t, "a.parquet", asCSV)}, "of a Parquet file, but it is not one", sources.ErrSource},
		{sources.Source{Rows: write(t, "a.db", "")}, "that of a SQLite file, but it is not one", sources.ErrSource},
		{sources.Source{Rows: write(t, "a.db", "12345678DUCK@\x00\x00\x00\x00\x00\x00\x00")},
			"it is a DuckDB file; export a table: duckdb ", sources.ErrSource},
		{sources.Source{Rows: write(t, "b", "SQLite format 3\x00"), SQL: "SELECT 1"}, "", sources.ErrSource},
		{sources.Source{Rows: write(t, "c", "PAR1")}, "not a valid Parquet file: it ends early", sources.ErrSource},
		{sources.Source{Rows: write(t, "c", "PAR1\xff\xff\xff\x7fPAR1")}, "it ends early", sources.ErrSource},
		{sources.Source{Rows: write(t, "c", "PARE0000\x04\x00\x00\x00PARE")}, "it is encrypted", sources.ErrSource},
		{sources.Source{Rows: parquetFile(t, []struct {
			Age int32 `parquet:"age"`
		}{{}})}, "dose: there is no such column", query.ErrRows},
		{sources.Source{Rows: parquetFile(t, []struct {
			Age                    int32 `parquet:"age,date"`
			Dose, Sex, Smokes, Day *int32
		}{{}})}, "there is no such column", query.ErrRows},
		{sources.Source{Rows: "postgres://ann:SECRET@localhost/x", SQL: "SELECT 1"},
			"others on this machine can see a password", sources.ErrSource},
		{sources.Source{Rows: "postgres://localhost/x?password=SECRET", SQL: "SELECT 1"},
			"others on this machine can see", sources.ErrSource},
		{sources.Source{Rows: "postgres://ann:SECRET@[::1/x", SQL: "SELECT 1"},
			"the address is not valid", sources.ErrSource},
		{sources.Source{Rows: "env:HUSHSUM_NO_SUCH", SQL: "SELECT 1"}, "does not hold the address", sources.ErrSource},
		{sources.Source{Rows: "postgres://localhost:1/x?connect_timeout=1", SQL: "SELECT 1"},
			"postgres://localhost:1/x: failed to connect", sources.ErrSource},
	} {
		rows, report, err := read(t, c.s, schemaOf(t, asked))
		if rows != nil || report == nil || !errors.Is(err, c.kind) || err == nil ||
			!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
	t.Setenv("HUSHSUM_TEST_ADDRESS", "postgres://ann:SECRET@localhost:1/x")
	in := sources.Source{Rows: "env:HUSHSUM_TEST_ADDRESS", SQL: "SELECT 1"}
	if _, _, err := read(t, in, schemaOf(t, asked)); !errors.Is(err, sources.ErrSource) ||
		strings.Contains(err.Error(), "SECRET") {
		t.Error(err)
	}
	t.Setenv("HUSHSUM_TEST_ADDRESS", "postgres://ann:SECRET@localhost:port/x")
	if _, _, err := read(t, in, schemaOf(t, asked)); !errors.Is(err, sources.ErrSource) ||
		strings.Contains(err.Error(), "SECRET") {
		t.Error(err)
	}
	if after, err := os.ReadFile(db); err != nil || string(after) != string(before) {
		t.Errorf("the database has changed: %v", err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a statement has made a file")
	}
}

// A statement that takes long ends with its context, in the program too.
func TestEnds(t *testing.T) {
	for _, reader := range []sources.Reader{Read, nil} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		s := sources.Source{Rows: sqliteFile(t, create), SQL: `WITH RECURSIVE n(age) AS
			(SELECT 20 UNION ALL SELECT age + 1 FROM n) SELECT count(*) AS age FROM n`, Reader: reader}
		if _, _, err := s.Read(ctx, schemaOf(t, asked)); err == nil {
			t.Error("it ended")
		}
		file := sources.Source{Rows: parquetFile(t, inParquet()), Reader: reader}
		if _, _, err := file.Read(ctx, schemaOf(t, asked)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// kinds has a column of every type that is taken.
type kinds struct {
	Int8      int8      `parquet:"int8"`
	Int32     int32     `parquet:"int32"`
	Int64     int64     `parquet:"int64"`
	Uint32    uint32    `parquet:"uint32"`
	Uint64    uint64    `parquet:"uint64"`
	Float     float32   `parquet:"float"`
	Double    float64   `parquet:"double"`
	Bool      bool      `parquet:"bool"`
	Decimal32 int32     `parquet:"decimal32,decimal(2:9)"`
	Decimal64 int64     `parquet:"decimal64,decimal(3:18)"`
	Decimal   [16]byte  `parquet:"decimal,decimal(2:38)"`
	Text      string    `parquet:"text,dict,snappy"`
	Enum      string    `parquet:"enum,enum,zstd"`
	Day       int32     `parquet:"day,date"`
	Moment    time.Time `parquet:"moment,timestamp(microsecond)"`
}

// Each type of Parquet's that is a number or a text is read as what it says.
func TestParquetTypes(t *testing.T) {
	row := kinds{-8, -32, 64, 1<<32 - 1, 1<<64 - 1, 0.1, 0.2, true, -150, 1500, [16]byte{}, "F", "M",
		19753, time.Date(2024, 1, 31, 6, 30, 0, 0, time.UTC)}
	for i := range row.Decimal { // -1.50, in two's complement
		row.Decimal[i] = 0xff
	}
	row.Decimal[15] = 0x6a
	name := parquetFile(t, []kinds{row, {}, row})
	want := map[string]string{"int8": "-8", "int32": "-32", "int64": "64",
		"uint32": "4.294967295e+09", "float": "0.1", "double": "0.2", "bool": "1",
		"decimal32": "-1.5", "decimal64": "1.5", "decimal": "-1.5"}
	for column, number := range want {
		schema := schemaOf(t, "name = \"a\"\nparties.count = 2\n"+
			"column = [{ name = \""+column+"\", type = \"number\", range = [-1e12, 1e12] }]\n"+
			"query = [{ name = \"n\", kind = \"count\" }]\n")
		rows, _, err := read(t, sources.Source{Rows: name}, schema)
		if err != nil || fmt.Sprint(rows) != "&{[["+number+"] [0] ["+number+"]] []}" {
			t.Errorf("%s: %v %v, want %s", column, rows, err, number)
		}
	}
	for column, word := range map[string]string{"text": "F", "enum": "M", "day": "2024-01-31",
		"moment": "2024-01-31 06:30:00", "bool": "TRUE", "int8": "-8", "decimal": "-1.50",
		"uint64": "18446744073709551615"} {
		schema := schemaOf(t, "name = \"a\"\nparties.count = 2\ncolumn = [{ name = \""+column+
			"\", type = \"category\", categories = [\"x\", \""+word+"\"], missing = \"category\" }]\n"+
			"query = [{ name = \"n\", kind = \"count\" }]\n")
		rows, _, err := read(t, sources.Source{Rows: name}, schema)
		if err != nil || !strings.HasPrefix(fmt.Sprint(rows), "&{[[1] [2] [1]] []}") {
			t.Errorf("%s: %v %v", column, rows, err)
		}
	}
	schema := schemaOf(t, strings.ReplaceAll(asked, `{ name = "age", type = "whole"`,
		`{ name = "day", type = "whole"`)[:strings.Index(asked, "  { name = \"dose\"")]+
		"]\nquery = [{ name = \"n\", kind = \"count\" }]\n")
	if _, _, err := read(t, sources.Source{Rows: name}, schema); !errors.Is(err, query.ErrRows) ||
		!strings.Contains(err.Error(), "row 1: day: the value is of a type, a date,") {
		t.Error(err)
	}
}

// Rows come one after the other: those behind a fault are not read, and many are no burden.
func TestManyRows(t *testing.T) {
	schema := schemaOf(t, asked)
	s := sources.Source{Rows: sqliteFile(t, create), SQL: `WITH RECURSIVE n(i) AS
		(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT 20 + i % 50 AS age, 0.5 AS dose,
		'F' AS sex, 'true' AS smokes, '2024-01-31' AS day FROM n`}
	rows, report, err := read(t, s, schema)
	if err != nil || rows.Len() != 3000 || len(report.Findings) != 0 {
		t.Error(report, err)
	}
	people := make([]dated, 3000)
	for i := range people {
		people[i] = inParquet()[0]
	}
	name := filepath.Join(t.TempDir(), "many.parquet")
	if err := parquet.WriteFile(name, people, parquet.MaxRowsPerRowGroup(1100)); err != nil {
		t.Fatal(err)
	}
	rows, report, err = read(t, sources.Source{Rows: name}, schema)
	if err != nil || rows.Len() != 3000 || len(report.Findings) != 0 {
		t.Error(report, err)
	}
}

// PostgreSQL has the same rows as CSV. It takes a server, whose address HUSHSUM_POSTGRES has.
func TestPostgres(t *testing.T) {
	address := os.Getenv("HUSHSUM_POSTGRES")
	if address == "" {
		t.Skip("HUSHSUM_POSTGRES names no server")
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	schema := fmt.Sprintf("hushsum_test_%d", os.Getpid())
	for _, statement := range []string{"CREATE SCHEMA " + schema,
		"CREATE TYPE " + schema + ".sexes AS ENUM ('F', 'M', 'X')",
		"CREATE TABLE " + schema + ".person (id bigserial, age smallint, dose real, sex " + schema +
			".sexes, smokes boolean, day date, weight numeric(5,2), noted jsonb, seen timestamptz)",
		strings.Replace(insert, "person", schema+".person (id, age, dose, sex, smokes, day)", 1),
		"UPDATE " + schema + ".person SET weight = 61.50, noted = '{}', seen = now()"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	defer db.Exec("DROP SCHEMA " + schema + " CASCADE")
	from := " FROM " + schema + ".person ORDER BY id"
	same(t, sources.Source{Rows: "env:HUSHSUM_POSTGRES", SQL: "SELECT *" + from})
	same(t, sources.Source{Rows: "env:HUSHSUM_POSTGRES", SQL: "SELECT age::text, dose::numeric, " +
		"sex::text, smokes, to_char(day, 'YYYY-MM-DD') AS day" + from + ";"})
	if u, err := url.Parse(address); err == nil && u.User != nil {
		if password, given := u.User.Password(); given { // as psql's own variable has it
			t.Setenv("PGPASSWORD", password)
			u.User = url.User(u.User.Username())
			same(t, sources.Source{Rows: u.String(), SQL: "SELECT *" + from})
		}
	}
	weighed := schemaOf(t, "name = \"a\"\nparties.count = 2\ncolumn = [{ name = \"weight\", "+
		"type = \"number\", range = [0.0, 100.0] }]\nquery = [{ name = \"n\", kind = \"count\" }]\n")
	s := sources.Source{Rows: "env:HUSHSUM_POSTGRES", SQL: "SELECT weight" + from}
	rows, _, err := read(t, s, weighed)
	if err != nil || !strings.HasPrefix(fmt.Sprint(rows), "&{[[61.5]") {
		t.Error(rows, err)
	}
	mixed := sources.Source{Rows: s.Rows, SQL: "SELECT noted, weight, array[1] AS many" + from}
	if rows, _, err := read(t, mixed, weighed); err != nil || rows.Len() != 4 {
		t.Error(rows, err)
	}
	d, err := mixed.Describe(t.Context())
	if d == nil || d.Rows != 4 ||
		!strings.Contains(fmt.Sprint(err), "noted: its type, JSONB, is not") ||
		d.Columns[0].Refusal == nil || *d.Columns[1].Most != 61.5 || d.Columns[2].Refusal == nil {
		t.Error(d, err)
	}
	for _, c := range []struct{ statement, want string }{
		{"SELECT noted AS weight" + from, "weight: its type, JSONB,"},
		{"SELECT array[1] AS weight", "weight: its type, _INT4,"},
		{"SELECT seen AS weight" + from, "row 1: weight: the value is of a type, a date"},
		{"SELECT 1 AS wight", "weight: there is no such column"},
		{"SELECT no_such" + from, "PostgreSQL says: column \"no_such\" does not exist"},
		{"DELETE FROM " + schema + ".person", "does more than read"},
		{"SELECT 1 AS weight; DROP SCHEMA public", "cannot insert multiple commands"},
		{"SELECT 'SECRET'::int AS weight", "code 22P02"},
		{"SELECT sex::text::int AS weight" + from, "code 22P02"},
		{"COMMIT", "weight: there is no such column"},
		{"", "add --sql"},
	} {
		s.SQL = c.statement
		_, _, err := read(t, s, weighed)
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %q", c.statement, err, c.want)
		}
	}
}

// A statement that PostgreSQL works on ends there too when its context does.
func TestPostgresHearsTheEnd(t *testing.T) {
	address := os.Getenv("HUSHSUM_POSTGRES")
	if address == "" {
		t.Skip("HUSHSUM_POSTGRES names no server")
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	mark := fmt.Sprintf("'hushsum %d'", os.Getpid())
	until := func(want int) {
		for n := -1; n != want && t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
			if err := db.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "+
				"position($1 in query) > 0 AND pid <> pg_backend_pid()", mark).Scan(&n); err != nil {
				t.Error(err)
				return
			}
		}
	}
	for _, reader := range []sources.Reader{Read, nil} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(0, func() {
			until(1)
			cancel()
		})
		s := sources.Source{Rows: "env:HUSHSUM_POSTGRES", Reader: reader,
			SQL: "SELECT 1 AS age, pg_sleep(600), " + mark + " AS mark"}
		if _, _, err := s.Read(ctx, schemaOf(t, asked)); !errors.Is(err, sources.ErrSource) {
			t.Error(err)
		}
		until(0)
	}
}

// kindNames are columns of the tables in testdata.
var kindNames = []string{"int8", "int64", "uint32", "float", "double", "bool", "text", "few",
	"date", "nano", "large", "half"}

// readColumns reads columns of a file one by one, and expects each to be read or refused.
func readColumns(t *testing.T, name string) {
	t.Helper()
	for _, column := range kindNames {
		rows := 0
		r := sources.Request{Form: sources.Parquet, Name: name, Rows: name,
			Columns: []string{column}}
		err := Read(t.Context(), r, func(table query.Table) error {
			for _, err := range table.Rows {
				if err != nil {
					return err
				}
				if rows++; rows > 100_000 { // a run of a few bytes may be as many as it says
					return nil
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, sources.ErrSource) && !errors.Is(err, query.ErrRows) {
			t.Fatal(err)
		}
	}
}

// Whatever bytes a Parquet file has, it is read or refused.
func FuzzParquet(f *testing.F) {
	text, err := os.ReadFile(parquetFile(f, inParquet()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, 40, byte(0xff))
	for _, table := range written(f, "testdata") {
		f.Add(table.Bytes, -1, byte(0))
	}
	schema := schemaOf(f, asked)
	name := filepath.Join(f.TempDir(), "rows")
	f.Fuzz(func(t *testing.T, text []byte, at int, with byte) {
		if at >= 0 && at < len(text) {
			text[at] ^= with
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, report, err := (&sources.Source{Rows: name, Reader: Read}).Read(t.Context(), schema)
		if report == nil || err != nil && !errors.Is(err, sources.ErrSource) &&
			!errors.Is(err, query.ErrRows) {
			t.Fatal(report, err)
		}
		readColumns(t, name)
	})
}

// Bytes of a Parquet file may be damaged, and its end be missing.
func TestDamagedParquet(t *testing.T) {
	text, err := os.ReadFile(parquetFile(t, inParquet()))
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, asked)
	name := filepath.Join(t.TempDir(), "rows")
	refused := 0
	read := func(text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := (&sources.Source{Rows: name, Reader: Read}).Read(t.Context(), schema)
		if err != nil {
			refused++
			if !errors.Is(err, sources.ErrSource) && !errors.Is(err, query.ErrRows) {
				t.Fatal(err)
			}
		}
	}
	for i := 0; i < len(text); i += 17 {
		damaged := []byte(string(text))
		damaged[i] ^= 0x15
		read(damaged)
	}
	for i := 0; i < len(text); i += 97 {
		read(text[:i])
	}
	if refused < 50 {
		t.Errorf("%d of some %d files are refused", refused, len(text)/17+len(text)/97)
	}

	// So may the head of a page of the only column that is wanted.
	text = written(t, "testdata")[9].Bytes
	for i := 0; i < len(text); i += 5 {
		damaged := []byte(string(text))
		damaged[i] ^= 0x0e
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		readColumns(t, name)
	}
}
