package describe

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/table"
)

// TestMain is the program hushsum-rows if it is called by that name. Of its two columns one is
// nested.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "hushsum-rows" {
		os.Exit(m.Run())
	}
	err := sources.WriteAnswer(context.Background(), os.Stdin, os.Stdout,
		func(_ context.Context, r sources.Request, read func(query.Table) error) error {
			nested := &table.Error{File: r.Name, Column: "tags", Reason: "its type is a list",
				Advice: "write it without"}
			return read(query.Table{Name: r.Name, Columns: []string{"tags", "age"},
				Rows: func(yield func([]any, error) bool) {
					_ = yield([]any{nested, int64(30)}, nil) && yield([]any{nil, int64(40)}, nil)
				}})
		})
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A column that cannot be read is named with its reason, among those that can.
func TestRefusedColumn(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(own, filepath.Join(folder, "hushsum-rows")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	file := clitest.Written(t, "PAR1")
	code, out, errs := clitest.Call(t.Context(), []string{"rows", file}, Command())
	if want := "tags                     none           0  refused: its type is a list\n" +
		"age                      whole          0  30 to 40\n"; code != 1 ||
		!strings.Contains(out, want) {
		t.Errorf("code %d, %s, want %s", code, out, want)
	}
	const told = "tags: its type is a list Write it without."
	if !strings.Contains(clitest.Flat(errs), told) {
		t.Errorf("%s, want %s", errs, told)
	}
	code, out, _ = clitest.Call(t.Context(), []string{"rows", file, "--json"}, Command())
	var got struct {
		Rows    int
		Columns []struct {
			Name, Type string
			Refusal    *table.Refusal
		}
		Refusal *table.Refusal
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 1 || got.Rows != 2 ||
		len(got.Columns) != 2 || got.Columns[0].Type != "none" || got.Columns[1].Refusal != nil ||
		*got.Columns[0].Refusal != (table.Refusal{Reason: "its type is a list",
			Advice: "write it without"}) ||
		*got.Refusal != (table.Refusal{Column: "tags", Reason: "its type is a list",
			Advice: "write it without"}) {
		t.Errorf("code %d, %v, %s", code, err, out)
	}
}
