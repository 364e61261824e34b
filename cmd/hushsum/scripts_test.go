package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// A script runs this program as a shell would.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"hushsum": main})
}

// The files of testdata/scripts call each command: its help, a good use, and mistakes with the exit
// code and the text on standard error.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/scripts",
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":      code,
			"free":      free,
			"mode":      mode,
			"terminate": terminate,
			"until":     until,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
