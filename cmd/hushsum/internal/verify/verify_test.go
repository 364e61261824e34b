package verify

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
)

// vector returns the path of evidence of both kinds.
func vector(name string) string {
	return filepath.Join("..", "..", "..", "..", "oneshot", "testdata", name+".evidence")
}

// Evidence that holds names its party and exits with 0; one that was changed names nobody as a
// cheat, and exits with 1, as what is no evidence does.
func TestVerify(t *testing.T) {
	changed := filepath.Join(t.TempDir(), "changed")
	b, err := os.ReadFile(vector("proof"))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-40] ^= 1 // of the proof, so that the signature is on another one
	if err := os.WriteFile(changed, b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file  string
		code  int
		party string
		about string
		says  string
	}{
		{vector("proof"), 0, "party-1", "proof", "proof of its norm that does not hold"},
		{vector("shares"), 0, "party-3", "shares", "shares for member-4 that do not match"},
		{vector("noise"), 0, "member-4", "proof", "member-4 of the committee cheated in the noise"},
		{changed, 1, "party-1", "proof", "it does not convict party-1"},
		{"verify_test.go", 1, "", "", "it is not evidence"},
	} {
		code, out, errs := clitest.Call(t.Context(), []string{"verify", c.file}, Command())
		if code != c.code || !strings.Contains(clitest.Flat(out+errs), c.says) ||
			(out == "") != (code == 1) {
			t.Errorf("%s: code %d, %s%s", c.file, code, out, errs)
		}
		clitest.Width(t, out)
		code, out, errs = clitest.Call(t.Context(), []string{"verify", c.file, "--json"}, Command())
		var f finding
		if err := json.Unmarshal([]byte(out), &f); err != nil || code != c.code || errs != "" {
			t.Fatalf("%s: code %d, %s%s: %v", c.file, code, out, errs, err)
		}
		if f.Convicts != (c.code == 0) || (f.Accused != nil) != (c.party != "") ||
			f.Accused != nil && (f.Name != c.party || f.About != c.about || len(f.Key) != 64 ||
				len(f.Configuration) != 64 || f.Round != 1 || f.Label != "test") {
			t.Errorf("%s: %s", c.file, out)
		}
	}
}
