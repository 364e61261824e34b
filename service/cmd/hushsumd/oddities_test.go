package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/oddities"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/service/federation"
)

// oddlyAsked is a federation that asks about x and y, and oddlyTrained one that declares training
// on them.
const oddlyAsked = `name = "xy"
parties = { roster = "roster.txt", rows = 9, drop_out = 0.25 }
column = [
  { name = "x", type = "number", range = [0.0, 100.0] },
  { name = "y", type = "number", range = [0.0, 100.0] },
]
query = [{ name = "n", kind = "count" }, { name = "sums", kind = "sum", column = "y" }]
`

const oddlyTrained = `name = "xy"
parties = { roster = "roster.txt", drop_out = 0.25 }
rounds = 1
model = { name = "logistic", features = 2, classes = 2 }
training = { batch = 2 }
`

// Every oddity of rows is read or refused by hushsumd join as the command's entries do, for queries
// and for declared training: the words are those of one table.
func TestOddities(t *testing.T) {
	var roster strings.Builder
	var identity ed25519.PrivateKey
	for _, name := range []string{"a", "b", "c", "d"} {
		identity = ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), 32))
		fmt.Fprintf(&roster, "%s %x\n", name, []byte(identity.Public().(ed25519.PublicKey)))
	}
	of := func(text string) *federation.Federation {
		f, err := federation.New(federation.Files{Roster: []byte(roster.String()), Text: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	asked, trained := of(oddlyAsked), of(oddlyTrained)
	try := func(f *federation.Federation, what, name, text, want string, reader sources.Reader) {
		t.Helper()
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		j := joining{rows: sources.Source{Rows: name, Reader: reader}}
		out := new(bytes.Buffer)
		_, err := j.trainer(t.Context(), f, identity, t.TempDir(), streams{out: out, err: out})
		if want == "" && err != nil || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	files, values := oddities.Read(t, "../../..")
	for _, c := range files {
		try(asked, c.What, "rows.csv", c.Head+strings.TrimPrefix(c.Rows, "\ufeff"), c.Want, nil)
		try(trained, c.What, "rows.csv", c.Rows, c.Want, nil)
	}
	for _, c := range values {
		value := c.Of(t)
		reader := func(_ context.Context, r sources.Request, read func(query.Table) error) error {
			return read(query.Table{Name: r.Name, Columns: []string{"x", "y", "class"},
				Rows: func(yield func([]any, error) bool) {
					_ = yield([]any{int64(1), 2.5, int64(0)}, nil) && yield([]any{int64(3), value, int64(1)}, nil)
				}})
		}
		for _, f := range []*federation.Federation{asked, trained} {
			try(f, c.Type+" "+c.Text, "rows.parquet", "PAR1", c.Want, reader)
		}
	}
}
