package tables

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/query"
	"github.com/hushsum/hushsum/query/sources"
)

// differential is a table that another writer wrote, as testdata/differential.mjs says.
type differential struct {
	File, Writer string
	Bytes        []byte
	Rows         int
	Columns      []struct {
		Name, Kind, Hash, Refused string
		Nulls                     int
	}
}

// asDifferential writes a value as text() of the script does.
func asDifferential(kind string, value any) string {
	switch v := value.(type) {
	case nil:
		return "none"
	case float32:
		return fmt.Sprintf("%08x", math.Float32bits(v))
	case float64:
		return fmt.Sprintf("%016x", math.Float64bits(v))
	case string:
		if kind == "text" || kind == "few" {
			return "text " + hex.EncodeToString([]byte(v))
		}
	case time.Time:
		switch kind {
		case "date":
			return v.Format(time.DateOnly)
		case "nano":
			return fmt.Sprint("ns ", v.UnixNano())
		}
		return fmt.Sprint("us ", v.UnixMicro())
	}
	return fmt.Sprint(value)
}

// written returns the tables of a folder.
func written(t testing.TB, folder string) (tables []differential) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "differential.json"))
	if err == nil {
		err = json.Unmarshal(text, &tables)
	}
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables: %v", len(tables), err)
	}
	return tables
}

// compare reads each column of the tables in a folder.
func compare(t *testing.T, folder string) {
	tables, files := written(t, folder), t.TempDir()
	read, refused := 0, 0
	for _, table := range tables {
		file := filepath.Join(files, table.File)
		if err := os.WriteFile(file, table.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, column := range table.Columns {
			hash, rows, nulls := sha256.New(), 0, 0
			r := sources.Request{Form: sources.Parquet, Name: table.File,
				Rows: file, Columns: []string{column.Name}}
			err := Read(t.Context(), r, func(got query.Table) error {
				for row, err := range got.Rows {
					if err != nil {
						return err
					}
					if rows++; row[0] == nil {
						nulls++
					}
					fmt.Fprintln(hash, asDifferential(column.Kind, row[0]))
				}
				return nil
			})
			if column.Refused != "" {
				refused++
				if !errors.Is(err, query.ErrRows) || !strings.Contains(err.Error(), column.Refused) {
					t.Errorf("%s, %s: %s: %v, want %s", table.File, table.Writer, column.Name, err,
						column.Refused)
				}
				continue
			}
			read++
			if err != nil || rows != table.Rows || nulls != column.Nulls ||
				hex.EncodeToString(hash.Sum(nil)) != column.Hash {
				t.Errorf("%s, %s: %s: %d rows, %d without a value, %v; the writer wrote %d and %d",
					table.File, table.Writer, column.Name, rows, nulls, err, table.Rows, column.Nulls)
			}
		}
	}
	t.Logf("%d tables: %d columns read, %d refused", len(tables), read, refused)
	if read == 0 || refused == 0 {
		t.Error("no column of a sort")
	}
}

// What other writers wrote, with each codec, encoding and version of pages, is read to the bit, or
// refused by the name of its type. The long form writes 200 tables; it takes node, and a folder
// with the packages that testdata/differential.mjs names, whose path HUSHSUM_PACKAGES has.
func TestDifferential(t *testing.T) {
	compare(t, "testdata")
	if !suite.Long() {
		return
	}
	packages := os.Getenv("HUSHSUM_PACKAGES")
	if packages == "" {
		t.Skip("HUSHSUM_PACKAGES names no folder of packages")
	}
	script, err := filepath.Abs("testdata/differential.mjs")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	c := exec.CommandContext(t.Context(), "node", script, folder, "200")
	c.Dir = packages
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	compare(t, folder)
}
