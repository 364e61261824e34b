package show

import (
	"fmt"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/job"
)

// Derivation prints a derivation as a table or, exactly, as JSON.
func Derivation(d *job.Derivation, asJSON bool, std cli.Streams) int {
	if asJSON {
		return JSON(std, d)
	}
	for _, line := range d.Lines() {
		fmt.Fprintln(std.Out, line)
	}
	return cli.ExitOK
}
