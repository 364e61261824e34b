package labels

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write SPEC-REGISTRY.md and testdata/registry.json anew")

const (
	root         = "../.."
	registryPage = "SPEC-REGISTRY.md"
)

// named is a name of the registry.
type named struct {
	Name  string `json:"name"`
	Value int    `json:"value,omitempty"` // of a kind
	Use   string `json:"use"`
}

// registry has the members of testdata/registry.json, in the order of the source.
type registry struct {
	Labels   []named `json:"labels"`
	Messages []named `json:"messages"`
	Frames   []named `json:"frames"`
	Errors   []named `json:"errors"`
}

// constants returns the constants of a file that a pattern matches, with their comments.
func constants(t *testing.T, file string, pattern string) (out []named) {
	t.Helper()
	match := regexp.MustCompile(pattern)
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 || !match.MatchString(spec.Names[0].Name) {
			return true
		}
		literal, is := spec.Values[0].(*ast.BasicLit)
		if !is {
			return true
		}
		one := named{Name: spec.Names[0].Name, Use: strings.TrimSpace(spec.Comment.Text())}
		if literal.Kind == token.STRING {
			one.Name, err = strconv.Unquote(literal.Value)
		} else {
			one.Value, err = strconv.Atoi(literal.Value)
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no constant %s", file, pattern)
	}
	return out
}

// kinds returns constants named by a prefix and a word, by the word.
func kinds(t *testing.T, file, prefix string) []named {
	t.Helper()
	out := constants(t, file, "^"+prefix+"[A-Z]")
	for i := range out {
		out[i].Name = strings.ToLower(strings.TrimPrefix(out[i].Name, prefix)[:1]) +
			strings.TrimPrefix(out[i].Name, prefix)[1:]
	}
	return out
}

func read(t *testing.T) *registry {
	t.Helper()
	return &registry{
		Labels: constants(t, "internal/labels/labels.go", "."),
		Messages: append(kinds(t, "internal/wire/wire.go", "Type"),
			kinds(t, "oneshot/message.go", "type")...),
		Frames: kinds(t, "link/frame.go", "Kind"),
		Errors: faults(t, "keyexchange", "internal/wire", "protocol", "oneshot", "oneshot/normproof",
			"link"),
	}
}

// faults returns the errors that packages declare, with their texts.
func faults(t *testing.T, dirs ...string) (out []named) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			declared := regexp.MustCompile(`(?m)^(?:var|\t)\s*(Err[A-Z]\w*)\s+= ` +
				`errors\.New\(\s*("(?:[^"\n]|" \+\s+")*")\)`)
			for _, m := range declared.FindAllStringSubmatch(string(b), -1) {
				text := regexp.MustCompile(`" \+\s+"`).ReplaceAllString(m[2], "")
				of, said, _ := strings.Cut(strings.Trim(text, `"`), ": ")
				out = append(out, named{Name: of + "." + m[1], Use: said})
			}
		}
	}
	return out
}

// No label begins as another does, so that no bytes stand behind two labels in two ways; all are of
// one generation.
func TestLabels(t *testing.T) {
	all := read(t).Labels
	form := regexp.MustCompile(`^hushsum/1 [a-z]+( [a-z]+)*$`)
	uses := regexp.MustCompile(
		`^(hash|key|signature|associated data|point|challenge|file|saved state), .`)
	for i, a := range all {
		if !form.MatchString(a.Name) || len(a.Name) >= 64 {
			t.Errorf("%q is no label", a.Name)
		}
		if !uses.MatchString(a.Use) {
			t.Errorf("%q has no use and page: %q", a.Name, a.Use)
		}
		for k, b := range all {
			if i != k && strings.HasPrefix(b.Name, a.Name) {
				t.Errorf("%q begins as %q does", b.Name, a.Name)
			}
		}
	}
}

// No other place has a label of its own: of Go, of Python, or in a page that is not listed.
func TestLabelsAreListed(t *testing.T) {
	known := map[string]bool{}
	for _, l := range read(t).Labels {
		known[l.Name] = true
	}
	label := regexp.MustCompile(`hushsum/(?:[a-z]+/)?v?[0-9]+ [a-z][a-z ]*[a-z]`)
	short := regexp.MustCompile(`hushsum/1 (oneshot proof|joint|oblivious) $`)
	used := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(path)
		switch {
		case d.IsDir() && d.Name() != ".." &&
			(strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir(), strings.Contains(name, "internal/labels/"), filepath.Base(name) == registryPage:
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".py", ".md", ".json":
		default:
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range label.FindAllString(string(b), -1) {
			switch {
			case strings.HasSuffix(name, ".go") && bytes.Contains(code(b), []byte(found)):
				t.Errorf("%s writes %q: take it from package labels", name, found)
			case !known[found] && !short.MatchString(found+" "):
				t.Errorf("%s has %q, which package labels has not", name, found)
			}
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			for _, found := range regexp.MustCompile(`\blabels\.([A-Z]\w*)`).FindAllSubmatch(b, -1) {
				used[string(found[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("labels.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^\t(\w+) += "hushsum`).FindAllSubmatch(source, -1) {
		if name := string(found[1]); !used[name] && name != "FlowerState" {
			t.Errorf("nothing uses labels.%s", name)
		}
	}
}

// code returns the source of a Go file without whole lines of comments.
func code(source []byte) []byte {
	return regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAll(source, nil)
}

// The page and the file for programs are made from the source.
func TestRegistry(t *testing.T) {
	r := read(t)
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{
		registryPage:             page(r),
		"testdata/registry.json": append(data, '\n'),
	} {
		file := filepath.Join(root, name)
		if *rewrite {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the source has: go test ./internal/labels -rewrite (%v)", name, err)
		}
	}
}

func page(r *registry) []byte {
	var b bytes.Buffer
	b.WriteString(strings.ReplaceAll(introduction, "~", "`"))
	table := func(title, head string, all []named, row func(n named) string) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, head)
		for _, n := range all {
			fmt.Fprintln(&b, row(n))
		}
	}
	kind := func(n named) string { return fmt.Sprintf("| %d | %s | %s |", n.Value, n.Name, n.Use) }
	const numbered = "| kind | name | from → to: what it says |\n|---|---|---|"
	table("1 Labels", "| label | what it stands in front of, and where |\n|---|---|", r.Labels,
		func(n named) string { return fmt.Sprintf("| `%s` | %s |", n.Name, n.Use) })
	table("2 Messages", numbered, r.Messages, kind)
	table("3 Frames of the transport", numbered, r.Frames, kind)
	table("4 Errors", "| error | what it says |\n|---|---|", r.Errors,
		func(n named) string { return fmt.Sprintf("| `%s` | %s |", n.Name, n.Use) })
	return b.Bytes()
}

// introduction begins the page, with ~ for a back quote.
const introduction = `# The registry of names

Every text and number that tells one thing from another on the wire, in a hash, a key, a signature
or a file, of all pages of this series. This page and ~testdata/registry.json~ are made from the
source, and a test compares them (~go test ./internal/labels~). Refusals over HTTP are in the
OpenAPI document of the door.

All labels are of one generation, ~hushsum/1~, and none begins as another does: where one label
stands in front of bytes no other can. A change to what follows a label needs another label; a
change to all of them is a new generation.

What is signed under a label begins with a byte, the label's length, which is below 64, and the
label; or, where it is a text, with the label itself. Nothing else that the same keys sign begins
so:

| signed | begins with |
|---|---|
| by TLS 1.3 (RFC 8446, section 4.4.3) | 64 spaces |
| a certificate | 0x30, and a length of DER |
| a request (RFC 9421) | ~"@method"~ |
| a head or a checkpoint, a note of C2SP | its name, which never has a space |
| a party's cosignature of a checkpoint | ~cosignature/v1~ |
`
