package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/scripts",
		Setup: func(env *testscript.Env) error {
			env.Setenv("ROOT", root) // of the clone
			return nil
		},
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

// Every command has a script that asks for its help, uses it, and has it refuse a mistake.
func TestScriptsAreWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(text), "\n-- ")
		lines.WriteString(script + "\n")
	}
	for _, c := range commands() {
		names := []string{c.Name}
		if c.Below != nil {
			names = nil
		}
		for _, below := range c.Below {
			names = append(names, c.Name+" "+below.Name)
		}
		for _, name := range names {
			for what, pattern := range map[string]string{
				"the help":  "exec hushsum (help NAME( .*)?|NAME -h)",
				"a use":     "!? ?exec hushsum NAME( .*)?",
				"a mistake": "code [12] hushsum NAME( .*)?",
			} {
				pattern = "(?m)^" + strings.ReplaceAll(pattern, "NAME", name) + "$"
				runs := regexp.MustCompile(pattern).FindAllString(lines.String(), -1)
				runs = slices.DeleteFunc(runs, func(line string) bool {
					return what == "a use" && strings.HasSuffix(line, " -h")
				})
				if len(runs) == 0 {
					t.Errorf("no script has %s of %s", what, name)
				}
			}
		}
	}
}
