package old

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
)

var rewrite = flag.Bool("rewrite", false, "write what declarations are converted to anew")

// declared are the old declarations of testdata, by folder, with the form that each has.
var declared = map[string]string{
	"plans":       FormPlan,
	"federations": FormFederation,
	"specs":       FormSpec,
	"scenarios":   FormScenario,
}

// unsaid lists what an old form does not say.
var unsaid = map[string][]string{FormPlan: {"parties.count=10"}}

// each reads all old declarations.
func each(t *testing.T, check func(t *testing.T, file string, text []byte, form string, j *job.Job,
	notes []string)) {
	t.Helper()
	seen := 0
	for folder, form := range declared {
		files, err := filepath.Glob(filepath.Join("testdata", folder, "*.[jt]*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "roster.txt" {
				continue
			}
			seen++
			t.Run(folder+"/"+filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				j, got, notes, err := Read(file, text, unsaid[form]...)
				if err != nil || got != form {
					t.Fatalf("it is a %s: %v", got, err)
				}
				check(t, file, text, form, j, notes)
			})
		}
	}
	if seen < 45 {
		t.Errorf("%d declarations: the test does not see them", seen)
	}
}

// Old declarations become the jobs of testdata/jobs, which are valid and read back as themselves.
func TestGolden(t *testing.T) {
	each(t, func(t *testing.T, file string, _ []byte, form string, j *job.Job, notes []string) {
		text, err := j.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		back, err := job.Parse("x.toml", text)
		if err != nil || back.Digest() != j.Digest() {
			t.Fatalf("it reads back as another: %v", err)
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "# a %s\n", form)
		for _, note := range notes {
			fmt.Fprintf(&b, "# %s\n", note)
		}
		b.Write(text)
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		golden := filepath.Join("testdata", "jobs", form+"-"+name+".toml")
		if *rewrite {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%v: %s is not what it becomes; -rewrite writes it\n%s", err, golden, b.Bytes())
		}
	})
}
