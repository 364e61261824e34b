package sidecar

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	declared "github.com/hushsum/hushsum/job"
)

const firstJob = `name = "first"
rounds = 20
parties.count = 10
model.name = "logistic"
privacy = { noise = "discrete-gaussian", epsilon = 8.0, delta = 1e-5, clip = 1.0 }
`

// A job is the same for a program in another language, as text of either form, and all that is
// wrong with one is told.
func TestJobParse(t *testing.T) {
	c := start(t)
	want, err := declared.Parse("", []byte(firstJob))
	if err != nil {
		t.Fatal(err)
	}
	digest := want.Digest()
	text := []byte(firstJob)
	for range 2 {
		result, _ := c.call("job.parse", map[string]any{}, text)
		privacy, _ := result["job"].(map[string]any)["privacy"].(map[string]any)
		if result["digest"] != hex.EncodeToString(digest[:]) || privacy["epsilon"] != 8.0 ||
			privacy["delta"] != nil || fmt.Sprint(result["explain"]) != fmt.Sprint(want.Explain()) {
			t.Errorf("%v, want digest %x", result, digest)
		}
		if text, err = json.Marshal(result["job"]); err != nil {
			t.Fatal(err)
		}
	}
	wrong := c.try("job.parse", map[string]any{"name": "a.toml"},
		[]byte("name = \"a\"\nrounds = 0\nprivacy.epsilon = \"much\"\n")).Error
	if wrong == nil || wrong.Kind != "config" || wrong.Field != "rounds" ||
		wrong.Reason != "0 is outside its range" || len(wrong.Mistakes) != 2 ||
		wrong.Mistakes[1].Line != 3 || wrong.Mistakes[1].Path != "privacy.epsilon" ||
		wrong.Mistakes[1].Advice == "" {
		t.Errorf("%+v", wrong)
	}
}

func TestJobFields(t *testing.T) {
	result, _ := start(t).call("job.fields", nil)
	var fields []declared.Field
	text, err := json.Marshal(result["fields"])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	same := func(a, b declared.Field) bool {
		return a.Path == b.Path && a.Kind == b.Kind && a.Range == b.Range && a.Default == b.Default &&
			a.Sentence == b.Sentence && a.Unit == b.Unit && a.Required == b.Required &&
			a.Part == b.Part && a.Flag == b.Flag && a.Arg == b.Arg && slices.Equal(a.Words, b.Words)
	}
	if want := slices.Collect(declared.Fields()); !slices.EqualFunc(fields, want, same) {
		t.Errorf("%+v, want %+v", fields, want)
	}
}
