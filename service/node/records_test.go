package node_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/hushsum/hushsum/accounting"
	declaration "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// census deals 300 made-up rows to parties, and keeps 100 to judge by.
func census(t *testing.T, parties int) (own []*learning.Dataset, test *learning.Dataset) {
	t.Helper()
	all, _, err := learning.Census(400, 5)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := all.Split(0.25, 5)
	if err != nil {
		t.Fatal(err)
	}
	own, test, err = learning.Partition("iid", train, test,
		learning.PartitionOptions{Clients: parties, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return own, test
}

// Ten hospitals train over HTTP, and epsilon protects each record of theirs: the model is
// that of the same steps in the clear, where next to no noise is added and all records are drawn.
func TestRecordsBetweenMachines(t *testing.T) {
	inTurn(t)
	own, test := census(t, 10)
	text := fmt.Sprintf(jobForm, 4, 0, test.Features) + fmt.Sprintf(`model.name = "logistic"
training.lambda = 0.01
server = { rule = "fedadam", rate = 0.3, beta1 = 0.9, average = 0.5 }
[privacy]
unit = "record"
submit_after = "300ms"
records = %d
noise = "discrete-gaussian"
multiplier = 1e-4
bits = 50
clip = 0.5
`, 300)
	out := trainBetweenMachines(t, text, own, 0)
	fed := out.fed
	for round, who := range out.included {
		if len(who) != len(own) {
			t.Skipf("a party was late in round %d, and its records are not in the sum", round+1)
		}
	}
	if r := fed.Settled.Round(); r.Statement.Unit() != accounting.RecordUnit {
		t.Errorf("%+v", r)
	}
	declared, err := fed.Trained(own[0])
	if err != nil {
		t.Fatal(err)
	}
	written, err := declaration.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	j := simulation.Exactly(written, len(own))
	j.Rounds, j.World.Fidelity, j.Training.Batch = 4, simulation.Clear, 0
	settled, world, err := simulation.Settle(j, simulation.Rows{Parties: own, Test: test})
	if err != nil {
		t.Fatal(err)
	}
	world.Training = declared.Options()
	want, err := simulation.Run(context.Background(), settled, world, nil)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0.0
	for k, x := range fed.Weights(out.model) {
		if math.Abs(x-want.Model[k]) > 1e-2 {
			t.Errorf("weight %d is %v, in the clear %v", k, x, want.Model[k])
		}
		moved = math.Hypot(moved, x)
	}
	if moved < 0.1 {
		t.Error("nothing was learnt")
	}
}
