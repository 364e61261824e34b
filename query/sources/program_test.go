package sources

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

// mode is a variable that says what hushsum-rows, which this test is by another name, does.
const mode = "HUSHSUM_TEST_ROWS"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == programName:
		os.Exit(serve(os.Getenv(mode)))
	case os.Getenv(mode) == "parent":
		_, _, err := asked().Read(context.Background(), schema())
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// two are the columns and the rows of a table.
var two = query.Table{Name: "rows.db", Columns: []string{"age", "sex"}, Rows: rowsOf(
	[]any{int64(20), "F"}, []any{nil, "M"}, []any{30.5, nil})}

func rowsOf(rows ...[]any) func(func([]any, error) bool) {
	return func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// answered returns the answer of a program that is asked for a table.
func answered(t query.Table, err error) []byte {
	var out bytes.Buffer
	r := Request{Form: SQLite, Columns: t.Columns}
	_ = WriteAnswer(context.Background(), bytes.NewReader(appendRequest(nil, &r)), &out,
		func(_ context.Context, _ Request, read func(query.Table) error) error {
			return errors.Join(read(t), err)
		})
	return out.Bytes()
}

// serve is a program that fails in one of several ways, and returns its code.
func serve(how string) int {
	if len(os.Args) > 1 { // which others on this machine see
		return 9
	}
	whole := answered(two, nil)
	if how == "waits" || how == "parent" {
		_ = WriteAnswer(context.Background(), os.Stdin, os.Stdout,
			func(ctx context.Context, _ Request, _ func(query.Table) error) error {
				fmt.Fprintln(os.Stderr, "waits")
				<-ctx.Done()
				fmt.Fprintln(os.Stderr, "ends")
				return os.WriteFile(filepath.Join(os.Getenv("PATH"), "ended"), nil, 0o600)
			})
		return 1
	}
	f := frames{Reader: bufio.NewReader(os.Stdin)}
	if r := f.request(); f.err != nil || r.SQL != asked().SQL {
		return 8
	}
	code := 0
	switch how {
	case "dies":
		whole, code = whole[:len(whole)-2], 3
	case "is killed":
		_, _ = os.Stdout.Write(whole[:len(whole)-2])
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	case "has no end":
		whole = whole[:len(whole)-2]
	case "fails":
		code = 1
	case "says more":
		whole = append(whole, 0)
	case "counts less":
		whole[len(whole)-1]--
	case "is older":
		whole[len(greeting)-2]--
	case "is none":
		whole = []byte("Usage: something else\n")
	case "refuses":
		whole, code = answered(two, &query.RowsError{File: "rows.db", Row: 3, Column: "sex",
			Reason: "no value", Advice: "add one"}), 1
	}
	_, _ = os.Stdout.Write(whole)
	return code
}

// installed puts the program on PATH, which has nothing else.
func installed(t *testing.T, how string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	own, err := os.Executable()
	if err == nil {
		err = os.Symlink(own, filepath.Join(folder, programName))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Setenv(mode, how)
	return folder
}

func asked() *Source {
	return &Source{Rows: "env:HUSHSUM_NO_SUCH", SQL: "SELECT * FROM person"}
}

func schema() *query.Schema {
	j, err := job.Parse("job.toml", []byte(`name = "a"
parties.count = 2
column = [{ name = "age", type = "number", range = [0.0, 100.0], missing = "drop" },
  { name = "sex", type = "category", categories = ["F", "M"], missing = "category" }]
query = [{ name = "n", kind = "count" }]
`))
	if err != nil {
		panic(err)
	}
	return query.NewSchema(j)
}

// Rows of a program are a table if it has sent all of them, and says so, and ends well; else there
// is an error, and no table.
func TestProgram(t *testing.T) {
	for _, c := range []struct{ how, want string }{
		{"sends all", ""},
		{"dies", "ended before its rows did: exit status 3"},
		{"is killed", "ended before its rows did: signal: killed"},
		{"has no end", "ended before its rows did: exit status 0"},
		{"fails", "ended before its rows did: exit status 1"},
		{"says more", "is no hushsum-rows of this release"},
		{"counts less", "is no hushsum-rows of this release"},
		{"is older", "is no hushsum-rows of this release"},
		{"is none", "is no hushsum-rows of this release"},
		{"refuses", "table: rows.db: row 3: sex: no value; add one"},
	} {
		installed(t, c.how)
		rows, report, err := asked().Read(t.Context(), schema())
		switch {
		case c.want == "":
			if err != nil || fmt.Sprint(rows) != "&{[[20 0] [NaN 1] [30.5 2]] []}" || report.Rows != 3 {
				t.Errorf("%s: %v, %v, %+v", c.how, err, rows, report)
			}
		case rows != nil || report == nil || err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, %v", c.how, rows, err)
		case errors.Is(err, ErrSource) == (c.how == "refuses"):
			t.Errorf("%s: the kind of %v", c.how, err)
		}
	}
}

// Without the program the error names the line that builds it.
func TestProgramIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, _, err := asked().Read(t.Context(), schema())
	if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(),
		"PostgreSQL is read by the program hushsum-rows, which is neither next to this one nor on PATH; "+
			"run 'go install github.com/hushsum/hushsum/tables/cmd/hushsum-rows'") {
		t.Error(err)
	}
}

// A program that still reads ends by itself when its context does, so that a server hears of it.
func TestProgramIsCancelled(t *testing.T) {
	folder := installed(t, "waits")
	said, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	own := os.Stderr
	os.Stderr = to
	defer func() { os.Stderr = own }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = bufio.NewReader(said).ReadString('\n')
		cancel()
	}()
	if _, _, err := asked().Read(ctx, schema()); !errors.Is(err, context.Canceled) ||
		!errors.Is(err, ErrSource) {
		t.Error(err)
	}
	to.Close()
	if _, err := os.Stat(filepath.Join(folder, "ended")); err != nil {
		t.Error(err)
	}
}

// A program that is found next to the one that started it ends with that one, even if that is
// killed: nobody holds its standard error any longer.
func TestProgramIsNoOrphan(t *testing.T) {
	folder := installed(t, "parent")
	t.Setenv("PATH", t.TempDir())
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	starter := filepath.Join(folder, "starter")
	if err := os.WriteFile(starter, binary, 0o700); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(starter)
	said, err := parent.StderrPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	text := bufio.NewReader(said)
	if line, err := text.ReadString('\n'); line != "waits\n" {
		t.Fatal(line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(text)
	if err != nil || string(rest) != "ends\n" {
		t.Errorf("%q, %v", rest, err)
	}
	_ = parent.Wait()
}

// bits writes a value so that only the same one is written alike.
func bits(value any) string {
	switch v := value.(type) {
	case float64:
		return fmt.Sprintf("d%x", math.Float64bits(v))
	case float32:
		return fmt.Sprintf("g%x", math.Float32bits(v))
	case time.Time:
		return v.Format("2006-01-02 15:04:05.999999999 -07:00:00")
	}
	return fmt.Sprintf("%T%q", value, value)
}

// Whatever the values, a table is the same on the other side; and an answer that ends anywhere
// before its end is an error.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		zoned := rapid.Custom(func(r *rapid.T) time.Time {
			zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(r, "zone"))
			return time.Unix(rapid.Int64Range(-1e11, 1e11).Draw(r, "s"),
				rapid.Int64Range(0, 1e9-1).Draw(r, "ns")).In(zone)
		})
		value := rapid.OneOf(rapid.Just(any(nil)), rapid.String().AsAny(), rapid.Bool().AsAny(),
			rapid.Int64().AsAny(), rapid.Uint64().AsAny(), rapid.Float32().AsAny(),
			rapid.Float64().AsAny(), zoned.AsAny(),
			rapid.Just(any(strings.Repeat("x", 70_000))), rapid.Just(any(math.NaN())))
		table := query.Table{Name: rapid.String().Draw(r, "name"),
			Columns: rapid.SliceOfN(rapid.String(), 0, 4).Draw(r, "columns")}
		rows := rapid.SliceOfN(rapid.SliceOfN(value, len(table.Columns), len(table.Columns)), 0,
			5).Draw(r, "rows")
		table.Rows = rowsOf(rows...)
		whole := answered(table, nil)
		read := func(from []byte) (got []string, err error) {
			err = readAnswer(bytes.NewReader(from), func(other query.Table) error {
				if other.Name != table.Name || !slices.Equal(other.Columns, table.Columns) {
					return fmt.Errorf("%q %q", other.Name, other.Columns)
				}
				for row, err := range other.Rows {
					if err != nil {
						return err
					}
					for _, value := range row {
						got = append(got, bits(value))
					}
				}
				return nil
			})
			return got, err
		}
		var want []string
		for _, value := range slices.Concat(rows...) {
			want = append(want, bits(value))
		}
		if got, err := read(whole); err != nil || !slices.Equal(got, want) {
			r.Errorf("%q, %v, want %q", got, err, want)
		}
		short := rapid.IntRange(0, len(whole)-1).Draw(r, "short")
		if _, err := read(whole[:short]); !errors.Is(err, io.ErrUnexpectedEOF) {
			r.Errorf("%d of %d bytes: %v", short, len(whole), err)
		}
	})
}

// A type that no column takes is refused by its place, as are rows of another length.
func TestOddRows(t *testing.T) {
	for _, c := range []struct {
		row  []any
		want string
	}{
		{[]any{1, "F"}, "table: rows.db: row 2: age: a value is of a type, int, that no column takes"},
		{[]any{nil}, "table: rows.db: row 2: it has 1 values for 2 columns"},
		{[]any{[]byte("AB"), "F"}, "row 2: age: the value is of a type, bytes, that the column does"},
	} {
		table := two
		table.Rows = rowsOf([]any{nil, nil}, c.row)
		err := readAnswer(bytes.NewReader(answered(table, nil)), func(t query.Table) error {
			_, _, err := schema().ReadTable(t)
			return err
		})
		if !errors.Is(err, query.ErrRows) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.row, err)
		}
	}
	var out bytes.Buffer
	if err := WriteAnswer(t.Context(), strings.NewReader("SELECT 1\n"), &out, nil); err == nil ||
		!strings.HasPrefix(out.String(), greeting) {
		t.Errorf("%v, %q", err, out.String())
	}
}

// A request is the same on the other side.
func TestRequest(t *testing.T) {
	want := Request{Form: Parquet, Name: "a", Rows: "b\xff", SQL: "SELECT 'ä'\n;",
		Columns: []string{"", "x"}}
	f := frames{Reader: bufio.NewReader(bytes.NewReader(appendRequest(nil, &want)))}
	if got := f.request(); f.err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q, %v, want %q", got, f.err, want)
	}
}

// Whatever a program says is a table or an error, and takes no more memory than it has bytes.
func FuzzAnswer(f *testing.F) {
	f.Add(answered(two, nil))
	f.Add(answered(two, &query.RowsError{Reason: "a"}))
	f.Add(append([]byte(greeting), "T\x01a\xff\xff\xff\xff\xff\xff\xff\xff\x01"...)) // columns
	f.Fuzz(func(t *testing.T, said []byte) {
		_ = readAnswer(bytes.NewReader(said), func(table query.Table) error {
			for row, err := range table.Rows {
				if err != nil {
					return err
				}
				if len(row) != len(table.Columns) {
					t.Fatal("a row of another length")
				}
			}
			return nil
		})
	})
}
