package hushsum_test

import (
	"os"
	"strings"
	"testing"
)

// The Go code that the README shows is that of this package's example, which compiles and runs, and
// the output is the example's.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	if len(blocks) == 0 {
		t.Error("the README shows no code")
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(example), code) {
			t.Errorf("this code of the README is not in example_test.go:\n%s", code)
		}
	}
	_, output, _ := strings.Cut(string(example), "// Output:\n")
	if output = strings.ReplaceAll(output, "\t// ", ""); !strings.Contains(string(readme),
		"```\n"+strings.TrimSuffix(output, "}\n")+"```\n") {
		t.Errorf("the README does not show the example's output:\n%s", output)
	}
}
