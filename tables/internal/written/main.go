// Written writes files of rows for tests of other modules, which do not bring the libraries:
//
//	written FILE.db       runs the SQL statements on standard input
//	written FILE.parquet  has the rows of the CSV text there, whose first line is such as
//	                      age:int,sex:text,consent:bool
package main

import (
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	_ "modernc.org/sqlite"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "written: name one file")
		os.Exit(2)
	}
	write := writeSQLite
	if filepath.Ext(os.Args[1]) == ".parquet" {
		write = writeParquet
	}
	if err := write(os.Args[1], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "written:", err)
		os.Exit(1)
	}
}

func writeSQLite(name string, in io.Reader) error {
	statements, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(string(statements))
	return err
}

// kinds are the types of columns, each with how a value is read.
var kinds = map[string]struct {
	node parquet.Node
	read func(string) (any, error)
}{
	"int": {parquet.Int(64),
		func(text string) (any, error) { return strconv.ParseInt(text, 10, 64) }},
	"text": {parquet.String(), func(text string) (any, error) { return text, nil }},
	"bool": {parquet.Leaf(parquet.BooleanType),
		func(text string) (any, error) { return strconv.ParseBool(text) }},
}

func writeParquet(name string, in io.Reader) error {
	records, err := csv.NewReader(in).ReadAll()
	if err != nil || len(records) == 0 {
		return fmt.Errorf("no rows: %w", err)
	}
	group := parquet.Group{}
	names := make([]string, len(records[0]))
	reads := make([]func(string) (any, error), len(records[0]))
	for i, head := range records[0] {
		column, kind, _ := strings.Cut(head, ":")
		if kinds[kind].node == nil {
			return fmt.Errorf("%q names no type", head)
		}
		names[i], reads[i], group[column] = column, kinds[kind].read, kinds[kind].node
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	to := parquet.NewGenericWriter[map[string]any](file, parquet.NewSchema("rows", group))
	for _, record := range records[1:] {
		row := map[string]any{}
		for i, text := range record {
			if row[names[i]], err = reads[i](text); err != nil {
				return err
			}
		}
		if _, err := to.Write([]map[string]any{row}); err != nil {
			return err
		}
	}
	return to.Close()
}
