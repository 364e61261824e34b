package verify

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// known copies a file of internal/receipt's testdata into a folder, and returns its path there.
func known(t *testing.T, folder, name string) string {
	t.Helper()
	from := filepath.Join("..", "..", "..", "..", "internal", "receipt", "testdata", name)
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, folder, name, b)
}

func written(t *testing.T, folder, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What verifies exits with 0 and says from whose word, what does not exits with 1, and evidence is
// written where two histories meet, and nowhere else.
func TestReceipts(t *testing.T) {
	folder := t.TempDir()
	a, b := known(t, folder, "a.receipt"), known(t, folder, "b.receipt")
	later, all := known(t, folder, "later.receipt"), known(t, folder, "chain.txt")
	text, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	short := written(t, folder, "short.txt", bytes.Join(lines[:8], nil)) // up to entry 7, no head
	gap := written(t, folder, "gap.txt", bytes.Join(append(lines[:3:3], lines[4:16]...), nil))
	rest := written(t, folder, "rest.txt", bytes.Join(lines[4:], nil))
	key := "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	for _, c := range []struct {
		args     string
		code     int
		says     string
		evidence string
	}{
		{"receipt " + a, 0, "the message with that digest is in the sum", ""},
		{"receipt " + a + " --key " + key, 0, "as given", ""},
		{"receipt " + a + " --key " + strings.Repeat("01", 32), 1, "under another key", ""},
		{"receipt " + a + " " + later, 0, "not contradicted", ""},
		{"receipt " + a + " " + all, 1, "it is no receipt", ""},
		{"receipt " + a + " " + b, 1, "two heads of one size", "a.evidence"},
		{"receipt " + a + " " + b, 1, "two heads of one size", "a.evidence"}, // it is there already
		{"receipt " + later + " " + b, 1, "two entries of one number", "later.evidence"},
		{"receipt " + all, 1, "it is no receipt", ""},
		{"chain " + all + " " + a + " " + later, 0, "none was left out", ""},
		{"chain " + all + " --key " + key, 0, "as given", ""},
		{"chain " + all + " --key " + strings.Repeat("01", 32), 1, "has no entry", ""},
		{"chain " + all + " " + b, 1, "two entries of one number", "b.evidence"},
		{"chain " + short, 0, "not signed in this file", ""},
		{"chain " + short + " " + a, 1, "get the rest", ""},
		{"chain " + gap, 0, "missing", ""},
		{"chain " + rest, 1, "names the key", ""},
		{"chain " + a, 1, "it has", ""},
	} {
		code, out, errs := clitest.Call(t.Context(), append([]string{"verify"},
			strings.Fields(c.args)...), Command())
		if code != c.code || !strings.Contains(clitest.Flat(out+errs), c.says) ||
			(out == "") != (code == 1) {
			t.Errorf("%s: code %d, %s%s", c.args, code, out, errs)
		}
		clitest.Width(t, out)
		code, out, errs = clitest.Call(t.Context(), append([]string{"verify", "--json"},
			strings.Fields(c.args)...), Command())
		var f checked
		if err := json.Unmarshal([]byte(out), &f); err != nil || code != c.code || errs != "" ||
			f.Verifies != (code == 0) || (f.Error == "") != (code == 0) {
			t.Fatalf("%s: code %d, %s%s: %v", c.args, code, out, errs, err)
		}
		if want := c.evidence; want == "" != (f.Evidence == "") ||
			want != "" && f.Evidence != filepath.Join(folder, want) {
			t.Errorf("%s: evidence in %q", c.args, f.Evidence)
		}
	}
	for _, name := range []string{"a.evidence", "b.evidence", "later.evidence"} {
		file := filepath.Join(folder, name)
		code, out, errs := clitest.Call(t.Context(), []string{"verify", file}, Command())
		if code != 0 || !strings.HasPrefix(out, "convicts") {
			t.Errorf("%s: code %d, %s%s", name, code, out, errs)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		changed := written(t, folder, "changed", b)
		if code, out, _ := clitest.Call(t.Context(), []string{"verify", changed}, Command()); code != 1 {
			t.Errorf("%s, changed: %s", name, out)
		}
	}
}
