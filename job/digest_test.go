package job

import (
	"encoding/hex"
	"testing"
)

// Digests are the same in every release and language.
func TestDigests(t *testing.T) {
	for text, want := range map[string]string{
		first: "92990a9484d01222925fa805a51830090e0329f4c3089ef56aeda51cf6dff11a",
		`name = "mean"
rounds = 3
model.length = 5000
parties = { count = 5, drop_out = 0.2, colluders = 1 }
sum.classical = true
`: "de867dcabd26b1e31516cab47357c8f5859addffe4a70b6fe1ca2d4524b258b6",
	} {
		j := parse(t, text)
		digest := j.Digest()
		if got := hex.EncodeToString(digest[:]); got != want {
			t.Errorf("%s, want %s, of\n%q", got, want, j.Lines())
		}
	}
}
