package kept

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was kept is there again; a line that a killed run has cut short is not, and the
// next one is written in its place.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	k, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for key, outcome := range map[string]string{"a": `{"Values":[1,null]}`, "b": `{"Values":[2]}`} {
		if err := k.Save(key, []byte(outcome)); err != nil {
			t.Fatal(err)
		}
	}
	k.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, `{"key":"c","outc`...), 0o666); err != nil {
		t.Fatal(err)
	}
	if k, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if got, ok := k.Load("a"); !ok || string(got) != `{"Values":[1,null]}` {
		t.Errorf("%q, %v", got, ok)
	}
	if _, ok := k.Load("c"); ok {
		t.Error("half a line is an outcome")
	}
	if err := k.Save("c", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	k.Close()
	text, err = os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 3 ||
		!strings.HasSuffix(string(text), "\n") {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.WriteFile(path, []byte("something else\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{path, t.TempDir()} {
		if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), "cannot use ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
