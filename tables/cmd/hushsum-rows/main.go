// Hushsum-rows reads Parquet files, SQLite files and PostgreSQL databases for hushsum and hushsumd,
// which start it and speak with it as package sources says.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/hushsum/hushsum/query/sources"
	"github.com/hushsum/hushsum/tables"
)

const usage = `Usage: hushsum-rows

It reads rows of Parquet files, SQLite files and PostgreSQL databases. hushsum
query, hushsum join and hushsumd join start it when such rows are named, and
find it next to themselves or on PATH. It is not called by hand.
'hushsum-rows version' prints what was built.
`

func main() {
	if len(os.Args) > 1 {
		if os.Args[1] == "version" {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = new(debug.BuildInfo)
			}
			fmt.Println("hushsum-rows", info.Main.Version)
			return
		}
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	// What interrupts all programs of a terminal ends the one that started this one, and so this one.
	signal.Ignore(os.Interrupt)
	if sources.WriteAnswer(context.Background(), os.Stdin, os.Stdout, tables.Read) != nil {
		os.Exit(1) // the other side has the error
	}
}
