package table

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// all returns the columns and the values of a text, with their lines.
func all(text string, o Hints) (t *Table, records [][]string, lines [][]int, err error) {
	t, err = ReadCSV("a.csv", strings.NewReader(text), o)
	if err != nil {
		return nil, nil, nil, err
	}
	for row, err := range t.Rows {
		if err != nil {
			return t, records, lines, err
		}
		var values []string
		var at []int
		for _, value := range row {
			f := value.(*Field)
			values, at = append(values, f.Text), append(at, f.Line)
		}
		records, lines = append(records, values), append(lines, at)
	}
	return t, records, lines, nil
}

// Text is read as people and programs write it.
func TestCSV(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	header := Hints{Header: []string{"a", "b"}}
	for _, c := range []struct {
		text    string
		options Hints
		columns []string
		want    [][]string
	}{
		{"a,b\n1,2\n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"a,b\r\n1,2\r\n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"a,b\n1,2", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"\ufeffa,b\n1,2\n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"\ufeff\"a\",\"b\"\n1,2\n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"a;b\n1,5;2\n", Hints{}, []string{"a", "b"}, [][]string{{"1,5", "2"}}},
		{"a\tb\n 1 \t\n", Hints{}, []string{"a", "b"}, [][]string{{"1", ""}}},
		{"\"a,;\"\tb\n1\t2\n", Hints{}, []string{"a,;", "b"}, [][]string{{"1", "2"}}},
		{"\n \na , b\n\n 1 ,\u00a02\u00a0\n\n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2"}}},
		{"a,b\n \"1\" , \"2, 3\" \n", Hints{}, []string{"a", "b"}, [][]string{{"1", "2, 3"}}},
		{"a,b\n\"1\r\n2\",\"\"\"x\"\"\"\n", Hints{}, []string{"a", "b"}, [][]string{{"1\n2", `"x"`}}},
		{"\"a\n(years)\",b\n1,2\n", Hints{}, []string{"a\n(years)", "b"}, [][]string{{"1", "2"}}},
		{",a,\n0,1,\n", Hints{}, []string{"", "a", ""}, [][]string{{"0", "1", ""}}},
		{"a\n30\n\n60\n\n70\n", Hints{}, []string{"a"}, [][]string{{"30"}, {""}, {"60"}, {""}, {"70"}}},
		{"a\n30\n\"\"\n60\n\"\"\n70\n", Hints{}, []string{"a"},
			[][]string{{"30"}, {""}, {"60"}, {""}, {"70"}}},
		{"\n\n30\n", Hints{Bare: true}, []string{"column 1"}, [][]string{{""}, {""}, {"30"}}},
		{"\n1,2\n", Hints{Bare: true}, []string{"column 1", "column 2"}, [][]string{{"1", "2"}}},
		{"1;2,5\n", header, []string{"a", "b"}, nil},
		{"1;2,5,3\n", header, []string{"a", "b"}, [][]string{{"1", "2,5,3"}}},
		{"a,b\n" + long + ",2\n", Hints{}, []string{"a", "b"}, [][]string{{long, "2"}}},
		{"a,b\n\"" + long + "\",2\n", Hints{}, []string{"a", "b"}, [][]string{{long, "2"}}},
		{"1,2\n3\n\n4,5,6\n", Hints{Bare: true, Any: true}, []string{"column 1", "column 2"},
			[][]string{{"1", "2"}, {"3"}, {"4", "5", "6"}}},
	} {
		table, records, _, err := all(c.text, c.options)
		if c.want == nil {
			if err == nil {
				t.Errorf("%.40q: %q", c.text, records)
			}
			continue
		}
		if err != nil || !slices.Equal(table.Columns, c.columns) ||
			!slices.EqualFunc(records, c.want, slices.Equal[[]string]) {
			t.Errorf("%.40q: %v %.100q %v", c.text, table, records, err)
		}
	}
}

// A text says how it is written, and each value where it begins.
func TestDialect(t *testing.T) {
	table, _, lines, err := all("\ufeffa;b\n\"1\n\n2\";3\n\n4;5\n", Hints{})
	if err != nil || *table.Text != (Dialect{';', true, false, true, true}) ||
		fmt.Sprint(lines) != "[[2 4] [6 6]]" {
		t.Errorf("%+v %v %v", table.Text, lines, err)
	}
	var packed bytes.Buffer
	out := gzip.NewWriter(&packed)
	_, _ = out.Write([]byte("a\n1\n"))
	out.Close()
	table, records, _, err := all(packed.String(), Hints{Numbered: true})
	if err != nil || *table.Text != (Dialect{0, false, true, true, false}) || len(records) != 1 {
		t.Errorf("%+v %v %v", table.Text, records, err)
	}
	_, _, _, err = all(packed.String()[:packed.Len()-9], Hints{})
	if err == nil || !strings.Contains(err.Error(), "compressed by gzip, and not whole") {
		t.Error(err)
	}
	_, _, lines, err = all("a\n1\n\n\n2\n", Hints{})
	if err != nil || fmt.Sprint(lines) != "[[2] [3] [4] [5]]" {
		t.Error(lines, err)
	}
}

// utf16 is a text as Excel writes "Unicode text".
func utf16(text string, mark, swap bool) string {
	if mark {
		text = "\ufeff" + text
	}
	var b []byte
	for _, r := range text {
		if swap {
			b = append(b, byte(r>>8), byte(r))
		} else {
			b = append(b, byte(r), byte(r>>8))
		}
	}
	return string(b)
}

// What cannot be read exactly is refused by name, with its line, its column and what to do.
func TestCSVRefuses(t *testing.T) {
	const head = "a,b\n1,2\n"
	for _, c := range []struct{ text, want string }{
		{"", "a.csv: it is empty: there is no line that names the columns"},
		{"\n \n", "a.csv: it is empty"},
		{utf16("a,b\n", true, false), "a.csv: it is UTF-16, and not UTF-8; convert it: iconv -f " +
			"UTF-16 -t UTF-8 a.csv > utf8.csv"},
		{utf16("a,b\n", true, true), "it is UTF-16, and"},
		{utf16("a,b\n", false, false), "it is UTF-16LE, and"},
		{utf16("a,b\n", false, true), "it is UTF-16BE, and"},
		{"\xff\xfe\x00\x00a\x00\x00\x00", "it is UTF-32, and"},
		{"a,stra\xdfe\n", "a.csv:1: it is not UTF-8, but Latin-1 or another encoding of one byte a " +
			"character; convert it: iconv -f WINDOWS-1252 -t UTF-8 a.csv > utf8.csv"},
		{head + "1,\xe9\n", "a.csv:3: it is not UTF-8"},
		{head + "1,\x00\n", "a.csv:3: it holds bytes of value 0"},
		{head + "1\n", "a.csv:3: it has 1 values for 2 columns, separated by commas; write a row"},
		{head + "1,2,3\n", "a.csv:3: it has 3 values for 2 columns"},
		{"a;b,c\n", "a.csv:1: the first line has commas and semicolons, and either could separate"},
		{"a,b, a\n", "a.csv:1: a: it is in the header twice"},
		{"a,b\n1,\"2\n3,4\n5,6\n", "a.csv:2: b: a quotation mark opens here that nothing closes"},
		{"a,\"b\n3,4\n5,6\n", "a.csv:1: column 2: a quotation mark opens here that nothing closes"},
		{"a,b\n1,\"2\n3,\"4\"\n5,6\n", "a.csv:2: b: it has text after the quotation mark that closes a " +
			"value; the value begins here and goes on to another line"},
		{head + "1,5\" pipe\n", "a.csv:3: b: it has a quotation mark amid a value that does not begin"},
		{head + "1,\"5\" pipe\n", "a.csv:3: b: it has text after the quotation mark that closes a value;"},
		{"a,b\r1,2\r3,4\r", "a.csv:1: it has a carriage return that ends no line"},
		{head + "\"1\",a\r2\n", "carriage return that ends no line"},
	} {
		_, records, _, err := all(c.text, Hints{})
		if !errors.Is(err, ErrRows) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %q %v, want %q", c.text, records, err, c.want)
		}
	}
	_, _, _, err := all("a,b\n1,2\n\n3\n", Hints{Numbered: true})
	if err == nil || !strings.Contains(err.Error(), "a.csv: row 2: it has 1 values") {
		t.Error(err)
	}
	broken := errors.New("the disk is gone")
	text := io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))
	table, err := ReadCSV("a.csv", text, Hints{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range table.Rows {
	}
	if err == nil || !strings.Contains(err.Error(), "a.csv: it cannot be read: the disk is gone") {
		t.Error(err)
	}
}

// endless is a text without an end.
type endless struct{ begins, goes string }

func (e *endless) Read(b []byte) (n int, err error) {
	if e.begins != "" {
		n = copy(b, e.begins)
		e.begins = e.begins[n:]
		return n, nil
	}
	for n < len(b) {
		n += copy(b[n:], e.goes)
	}
	return n, nil
}

// A row without an end, and a quotation mark that nobody closes, end in an error before the memory
// is full.
func TestCSVIsBounded(t *testing.T) {
	line := strings.Repeat("x", 1000) + "\n"
	for _, c := range []struct{ begins, goes, want string }{
		{"a,b\n", strings.TrimSpace(line), "a.csv:2: a row has more than 64 MiB"},
		{"a,b\n1,\"", line, "a.csv:2: b: a quotation mark opens here, and nothing closes it within"},
		{"a,\"", line, "a.csv:1: a row has more than 64 MiB"},
	} {
		table, err := ReadCSV("a.csv", &endless{c.begins, c.goes}, Hints{})
		if err == nil {
			for _, err = range table.Rows {
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.begins, err, c.want)
		}
	}
}

// Numbers are taken as people write them, and equal those of package strconv to the last bit.
func TestNumber(t *testing.T) {
	for _, text := range []string{"0", "-0", "1", "+1", " 1\t", "007", ".5", "5.", "-1.25", "1e5",
		"1E-3", "1.e+2", "0.1", "123456789012345", "1234567890123456789",
		"0.000000000000001", "9007199254740993",
		"179769313486231570000000000000000000000", "1e308", "4.9e-324", "1e-999", "12345678901234.5",
		"0000000000000000000000.5", "3.14159265358979323846"} {
		want, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		x, ok := Number(text)
		if err != nil || !ok || math.Float64bits(x) != math.Float64bits(want) {
			t.Errorf("%q: %v %v, want %v, %v", text, x, ok, want, err)
		}
	}
	for _, text := range []string{"", " ", ".", "+", "-", "e5", "1e", "1e+", "1_0", "0x1p5", "0x10",
		"Inf", "-inf", "Infinity", "NaN", "nan", "1e999", "1,5", "1 000", "1.2.3", "--1", "1-", "½", "٣",
		"1e5.5", "0b1", "1d", "1e5e5", "NA"} {
		if x, ok := Number(text); ok {
			t.Errorf("%q is %v", text, x)
		}
	}
	for text, want := range map[string]string{
		"1,5": "decimal point", "1_000": "without separators", "1 000": "without separators",
		"1e999": "too large", "-inf": "no finite", "abc": `"abc" is not a number`,
		strings.Repeat("é", 50): "é\"… is not",
	} {
		if reason, advice := NotNumber(text); !strings.Contains(reason+advice, want) {
			t.Errorf("%q: %s; %s", text, reason, advice)
		}
	}
}

// What is read and written again by another writer reads to the same rows, and where package
// encoding/csv has nothing to forgive both read the same.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\ufeff\"a\";b\r\n\"1\r\n\"\"\";2\n", "a\n\n1\n",
		"a\tb\n\n", "a,b\n \"x\" , y\n", "1,2\n\n3,4"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, bare bool) {
		table, records, _, err := all(text, Hints{Bare: bare})
		if err != nil {
			if !errors.Is(err, ErrRows) {
				t.Fatal(err)
			}
			return
		}
		if len(records) == 0 {
			return
		}
		separator := table.Text.Separator
		if separator == 0 {
			separator = ','
		}
		var again strings.Builder
		write := func(record []string) {
			for i, field := range record {
				if i > 0 {
					again.WriteRune(separator)
				}
				again.WriteString(`"` + strings.ReplaceAll(field, `"`, `""`) + `"`)
			}
			again.WriteByte('\n')
		}
		if !bare {
			write(table.Columns)
		}
		for _, record := range records {
			write(record)
		}
		twin, same, _, err := all(again.String(), Hints{Bare: bare})
		switch {
		case err != nil || !slices.Equal(twin.Columns, table.Columns) ||
			!slices.EqualFunc(same, records, slices.Equal[[]string]):
			t.Fatalf("%q %q\n%q\n%q: %v", table.Columns, records, again.String(), same, err)
		}
		// Blanks at the ends and empty lines are where the two differ, by design.
		other := func(r rune) bool { return r != '\n' && (r <= ' ' || r > '~') }
		if strings.ContainsFunc(text, other) || len(table.Columns) == 1 || table.Text.Gzip {
			return
		}
		in := csv.NewReader(strings.NewReader(text))
		in.Comma = separator
		want, err := in.ReadAll()
		if !bare && len(want) > 0 {
			want = want[1:]
		}
		if err != nil || !slices.EqualFunc(records, want, slices.Equal[[]string]) {
			t.Fatalf("%q, and by package csv %q: %v", records, want, err)
		}
	})
}
