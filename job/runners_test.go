package job

import (
	"strings"
	"testing"
)

// A field that a runner lacks is refused at its own path, with the caller's advice, and its default
// and the values that the runner does support are not.
func TestLacks(t *testing.T) {
	for _, c := range []struct {
		set    string
		runner Runner
		path   string // empty: the runner supports it
	}{
		{"training.rule=fedga", Timed, "training.rule"},
		{"training.rule=fedprox", Timed, ""},
		{"training.rule=fedga", Sums, ""},
		{"sum.max_weight=5", Crowd, "sum.max_weight"},
		{"sum.max_weight=0", Crowd, ""},
		{"world.fidelity=clear", Timed, "world.fidelity"},
		{"world.fidelity=ring", Timed, ""},
		{"world.fidelity=crowd", Sums, "world.fidelity"},
		{"sum.buffer=2", Sums, "sum.buffer"},
		{"world.servers=a,b", Sums, "world.servers"},
		{"training.mask=soft", Programs, "training.mask"},
		{"privacy.clip_quantile=0.5", Machines, "privacy.clip_quantile"},
		{"world.evaluate_every=2", Timed, ""},
		{"world.malicious=0", Timed, ""},
		{"world.malicious=0.1", Timed, "world.malicious"},
		{"world.tolerance=0.5", Crowd, "world.tolerance"},
	} {
		j, err := Parse("", []byte("name = \"x\"\nrounds = 2\nparties.count = 3\n"+
			"model.name = \"logistic\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		path, text, _ := strings.Cut(c.set, "=")
		if err := j.Set(path, text); err != nil {
			t.Fatal(err)
		}
		e := j.Lacks(c.runner, "leave it out")
		if (e != nil) != (c.path != "") || e != nil && (e.Path != c.path || e.Advice != "leave it out" ||
			e.Reason == "") {
			t.Errorf("%s, %s: %v", c.set, c.runner, e)
		}
		if e := j.WithDefaults().Lacks(c.runner, ""); (e != nil) != (c.path != "") {
			t.Errorf("%s, %s with defaults: %v", c.set, c.runner, e)
		}
	}
}
