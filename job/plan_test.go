package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	"github.com/hushsum/hushsum/job"
)

func testPlan() *job.Plan {
	return &job.Plan{Name: "test", Rounds: 6, Length: 5, Clip: 100, DropOut: 0.3}
}

// Plans that cannot be kept are refused by the field that is at fault.
func TestPlanErrors(t *testing.T) {
	roster := rosterOf(t, 10)
	noisy := func(change func(p *job.Plan)) func(p *job.Plan) {
		return func(p *job.Plan) {
			p.Noise, p.Epsilon = accounting.FamilySkellam, 8
			change(p)
		}
	}
	for field, change := range map[string]func(p *job.Plan){
		"Name":      func(p *job.Plan) { p.Name = "" },
		"Rounds":    func(p *job.Plan) { p.Rounds = 0 },
		"Length":    func(p *job.Plan) { p.Length = 0 },
		"Clip":      func(p *job.Plan) { p.Clip = 0 },
		"Bits":      func(p *job.Plan) { p.Bits = 7 },
		"Noise":     func(p *job.Plan) { p.Epsilon = 8 },
		"Epsilon":   noisy(func(p *job.Plan) { p.Epsilon = 0 }),
		"Delta":     noisy(func(p *job.Plan) { p.Delta = 1 }),
		"DropOut":   func(p *job.Plan) { p.DropOut = 0.6 }, // two lists of survivors could be certified
		"Colluders": func(p *job.Plan) { p.Colluders = -1 },
	} {
		plan := testPlan()
		change(plan)
		_, err := plan.Settle(roster)
		var c *job.ConfigError
		if !errors.Is(err, job.ErrConfig) || !errors.As(err, &c) || c.Path != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	// Noise that does not fit the ring names the bits.
	plan := testPlan()
	plan.Noise, plan.Epsilon, plan.Bits, plan.Length = accounting.FamilyDiscreteGaussian, 0.01, 8, 1000
	var c *job.ConfigError
	if _, err := plan.Settle(roster); !errors.As(err, &c) || c.Path != "Bits" {
		t.Errorf("8 bits: %v", err)
	}
}

// The JSON form is strict, and gives the plan back.
func TestPlanJSON(t *testing.T) {
	const text = `{"name":"a","rounds":2,"length":3,"clip":1,"noise":"discrete-gaussian","epsilon":8,"drop_out":0.2}`
	p, err := job.ParsePlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p.Noise != accounting.FamilyDiscreteGaussian || p.DropOut != 0.2 {
		t.Errorf("%+v", p)
	}
	for _, key := range []string{"EPSILON", "Epsilon", "epsilon", "drop_Out", "faults"} {
		twice := strings.TrimSuffix(text, "}") + `,"` + key + `":100}`
		if key == "faults" {
			twice = strings.Replace(twice, key, key+`":1,"`+key, 1)
		}
		var c *job.ConfigError
		_, err := job.ParsePlan([]byte(twice))
		if !errors.As(err, &c) || !strings.Contains(c.Reason, key) {
			t.Errorf("%s: %v", twice, err)
		}
	}
	for _, bad := range []string{"", "{", text + "x", strings.Replace(text, "clip", "clipp", 1),
		strings.Replace(text, `"clip":1`, `"clip":-1`, 1),
		strings.Replace(text, "discrete-gaussian", "gaussian", 1)} {
		if _, err := job.ParsePlan([]byte(bad)); !errors.Is(err, job.ErrConfig) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
