package simulate

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

// With or without virtual time the objects of rounds and of the whole run have the same keys, but
// for those that the help names.
func TestKeysInTime(t *testing.T) {
	const plain = `name = "few"
rounds = 2
parties.count = 4
model.name = "logistic"
training = { steps = 5, rate = 1.0 }
world.data.rows = 50
`
	const link = `
[[world.link]]
between = ["party", "server"]
latency = "10ms"
`
	round := map[bool][]string{
		false: {"clear_accuracy", "clear_mcc", "client_ms", "max_abs_diff", "refused", "server_ms",
			"spent", "spent_public", "train_ms"},
		true: {"seconds", "server_bytes_received"},
	}
	whole := map[bool][]string{
		false: {"alone_mcc", "member_bytes_down", "member_ms", "setup_bytes_down", "setup_bytes_up",
			"setup_client_ms", "setup_server_ms"},
	}
	var keys [2][2]map[string]bool // of rounds and of the whole, without time and with
	for k, text := range []string{plain, plain + link} {
		path := filepath.Join(t.TempDir(), "few.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := called(t.Context(), &out, &errs,
			[]string{"simulate", path, "--json"}); code != cli.ExitOK {
			t.Fatalf("%d: %s", code, errs.String())
		}
		for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			var o map[string]any
			if err := json.Unmarshal(line, &o); err != nil {
				t.Fatal(err)
			}
			of := 0
			switch {
			case o["party"] != nil:
				continue
			case o["summary"] == true:
				of = 1
			}
			keys[of][k] = map[string]bool{}
			for key := range o {
				keys[of][k][key] = true
			}
		}
	}
	for of := range keys {
		for _, timed := range []bool{false, true} {
			own, other := keys[of][0], keys[of][1]
			if timed {
				own, other = other, own
			}
			var got []string
			for key := range maps.Keys(own) {
				if !other[key] {
					got = append(got, key)
				}
			}
			want := slices.Clone(round[timed])
			if of == 1 {
				want = append(want, whole[timed]...)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("in virtual time: %v, whole: %v: own keys %v, want %v", timed, of == 1, got, want)
			}
		}
	}
}
