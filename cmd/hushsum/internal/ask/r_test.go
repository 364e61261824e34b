package ask

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/query"
)

// TestMain is the program hushsum if it is called as that, with the command query.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "query" {
		os.Exit(clitest.Run(context.Background(), os.Stdout, os.Stderr, os.Args[1:], Command()))
	}
	os.Exit(m.Run())
}

const forR = `name = "for-r"
parties = { count = 4, rows = 228 }
column = [
  { name = "time", type = "whole", range = [1, 34] },
  { name = "status", type = "category", categories = ["lost", "dead"] },
  { name = "arm", type = "category", categories = ["m", "f"] },
  { name = "number", type = "whole", range = [1, 2] },
  { name = "flat", type = "whole", range = [0, 100] },
]
query = [
  { name = "curve", kind = "survival", column = "time", bins = 34, event = "status = dead" },
  { name = "test", kind = "logrank", column = "time", by = "arm", bins = 34, event = "status = dead" },
  { name = "model", kind = "linear", column = "time", on = ["number"] },
  { name = "flat", kind = "linear", column = "time", on = ["flat"] },
]
`

// The R package asks by the program, and its data frames have what R's survfit, survdiff and lm say
// of the rows; what cannot be known is NA with a reason; JSON and CSV say the same.
func TestR(t *testing.T) {
	program, err := exec.LookPath("Rscript")
	if err == nil {
		err = exec.Command(program, "-e", "library(survival); library(jsonlite)").Run()
	}
	if err != nil {
		if os.Getenv("HUSHSUM_REQUIRE_R") == "1" {
			t.Fatal("HUSHSUM_REQUIRE_R is 1, and R with its packages survival and jsonlite is not here: ",
				err)
		}
		t.Skip("R with its packages survival and jsonlite is not here; Debian has r-cran-survival and " +
			"r-cran-jsonlite")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	code, text, errs := call(t, clitest.Written(t, study), "--rows", write("rows.csv", rows), "--json",
		"--set", "privacy.noise=discrete-gaussian", "--set", "privacy.epsilon=2")
	if code != 0 {
		t.Fatal(errs)
	}
	write("answers.json", text)
	var answers []query.Answer
	var csv strings.Builder
	if err := json.Unmarshal([]byte(text), &answers); err != nil {
		t.Fatal(err)
	}
	if err := query.WriteCSV(&csv, answers); err != nil {
		t.Fatal(err)
	}
	write("answers.csv", csv.String())
	write("job.toml", forR)
	lib := filepath.Join(dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("R", "CMD", "INSTALL", "--no-docs", "--library="+lib, "../../../../r")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run(program, "testdata/agree.R", dir, own)
}
