package node_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	declaration "github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/keyexchange/keyfile"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/tensor"
	"github.com/hushsum/hushsum/simulation"
)

// roundsTrained is how many rounds of a training the service and a simulation are
// compared over.
const roundsTrained = 4

// trained is a training to compare: what its file has below what all have. %d is the most rows.
type trained struct {
	name      string
	file      string
	exchanges int // sums of a round; 0: 1
	perRound  int
}

// The service's models are the simulation's, number by number to the last bit, for every
// rule, mask and model, over real HTTP: parties hold their own rows, and what rules keep
// travels with the model.
func TestTrainingEqualsSimulation(t *testing.T) {
	inTurn(t)
	list := []trained{
		{name: "scaffold, hard mask, mlp", file: `model.name = "mlp:6"
training = { rule = "scaffold", mask = "hard", batch = 8 }
#%d
`},
		{name: "fedga, soft mask, weighted, adam", exchanges: 2, file: `model.name = "softmax"
training = { rule = "fedga", mask = "soft", steps = 4, rate = 0.3 }
server = { rule = "fedadam", beta1 = 0.9 }
sum.max_weight = %d
`},
		{name: "fedprox, clipped, momentum, sampled", perRound: 4, file: `model.name = "logistic"
training = { rule = "fedprox", steps = 5, rate = 1.0, lambda = 1e-4 }
server = { rule = "fedavgm", rate = 0.1, beta1 = 0.9 }
privacy.clip = 0.5
#%d
`},
		// Who was not drawn keeps its variates as they were.
		{name: "scaffold, sampled", perRound: 4, file: `model.name = "logistic"
training = { rule = "scaffold", steps = 5, rate = 0.5 }
#%d
`},
		{name: "weights by rows", file: `model.name = "logistic"
training = { submit = "weights", steps = 5, rate = 0.5 }
sum.max_weight = %d
`},
	}
	if suite.Longest() {
		list = append(list, allTrainings()...)
	}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) { compareTraining(t, c) })
	}
}

// allTrainings are the rules of parties and servers with every mask and model.
func allTrainings() (list []trained) {
	const weighted = "fedavg of weights"
	models := []string{"logistic", "softmax", "mlp:6", "lenet", "lenet-norm"}
	clients := map[string]string{
		"fedavg":         `rule = "fedavg"`,
		weighted:         `submit = "weights"`,
		"fedprox":        `rule = "fedprox"`,
		"scaffold":       `rule = "scaffold"`,
		"scaffold I":     `rule = "scaffold", variates = "gradient"`,
		"scaffold fresh": `rule = "scaffold", variates = "fresh"`,
		"fedga":          `rule = "fedga"`,
	}
	servers := []string{"fedavg", "fedavgm", "fedadagrad", "fedadam", "fedyogi"}
	masks := []string{"none", "soft", "hard"}
	k := 0
	for _, rule := range slices.Sorted(maps.Keys(clients)) {
		for _, mask := range masks {
			// Models and servers go round, so that each meets each mask and rule's kind.
			model, server := models[k%len(models)], servers[(k/2)%len(servers)]
			k++
			if rule == weighted && mask != "none" {
				continue
			}
			c := trained{name: fmt.Sprintf("%s, %s, %s, %s", rule, mask, model, server)}
			c.file = fmt.Sprintf("model.name = %q\ntraining = { %s, mask = %q, steps = 3, batch = 8, "+
				"rate = 0.05 }\n", model, clients[rule], mask)
			switch {
			case rule == weighted:
				c.file += "sum.max_weight = %d\n"
			case server != "fedavg":
				c.file += fmt.Sprintf("server = { rule = %q, rate = 0.01, beta1 = 0.9 }\n", server)
			}
			if rule != weighted {
				c.file += "#%d\n"
			}
			if rule == "fedga" || rule == "scaffold fresh" {
				c.exchanges = 2
			}
			list = append(list, c)
		}
	}
	return list
}

// rowsFor makes rows of two classes for a model, dealt unevenly.
func rowsFor(t *testing.T, lenet bool) (own []*learning.Dataset, test *learning.Dataset) {
	t.Helper()
	all, _, err := learning.Census(400, 5)
	if err != nil {
		t.Fatal(err)
	}
	if lenet { // the same numbers as images of 16 × 16
		images := &learning.Dataset{Features: 256, Labels: all.Labels[:120]}
		for i := range images.Labels {
			row := make([]float64, 256)
			copy(row, all.X[i*all.Features:(i+1)*all.Features])
			images.X = append(images.X, row...)
		}
		all = images
	}
	train, test, err := all.Split(0.25, 5)
	if err != nil {
		t.Fatal(err)
	}
	own, test, err = learning.Partition("dirichlet-quantity", train, test,
		learning.PartitionOptions{Clients: 5, Seed: 5, Concentration: 5})
	if err != nil {
		t.Fatal(err)
	}
	return own, test
}

func compareTraining(t *testing.T, c trained) {
	own, test := rowsFor(t, strings.Contains(c.file, `"lenet`))
	most := 0
	for _, rows := range own {
		most = max(most, rows.Len())
	}
	exchanges := max(1, c.exchanges)
	text := fmt.Sprintf(jobForm, roundsTrained, c.perRound, test.Features)
	text += fmt.Sprintf(c.file, most)
	over := trainBetweenMachines(t, text, own, 0)
	fed, included := over.fed, over.included
	written, err := declaration.Parse("job.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	j := simulation.Exactly(written, len(own))
	j.Rounds = roundsTrained
	settled, world, err := simulation.Settle(j, simulation.Rows{Parties: own, Test: test})
	if err != nil {
		t.Fatal(err)
	}
	if exchanges == 1 {
		world.Replay = included
	} else {
		for round, who := range included {
			if len(who) != len(own) {
				t.Skipf("a party was late in sum %d, and both sums of a round must be of the same", round+1)
			}
		}
	}
	want, err := simulation.Run(context.Background(), settled, world, nil)
	if err != nil {
		t.Fatal(err)
	}
	model := fed.Weights(over.model)
	if len(model) != len(want.Model) {
		t.Fatalf("%d weights, want %d", len(model), len(want.Model))
	}
	for k := range model {
		if math.Float64bits(model[k]) != math.Float64bits(want.Model[k]) {
			t.Fatalf("weight %d of %d is %v, simulated %v", k, len(model), model[k], want.Model[k])
		}
	}
	first := world.Training.Model.Init(j.Seed)
	if slices.Equal(first, model) {
		t.Error("nothing was learnt")
	}
}

// jobForm begins a job's file.
const jobForm = `name = "training"
rounds = %d
seed = 7
parties = { roster = "roster.txt", drop_out = 0.2, per_round = %d }
model.features = %d
model.classes = 2
`

// overHTTP holds the outcome of a federation.
type overHTTP struct {
	fed      *federation.Federation
	model    []float64
	included [][]int // who was in each sum
	status   *runner.Status
}

// trainBetweenMachines has a federation's parties train over HTTP. After stop sums, if that is
// above 0, the node is stopped and started again.
func trainBetweenMachines(
	t *testing.T, text string, own []*learning.Dataset, stop int,
) (out overHTTP) {
	t.Helper()
	identities, list := newPeople(t, "p", len(own))
	roster, err := list.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var mutex sync.Mutex
	last := 0
	enough := make(chan struct{}, 1)
	config := node.With(node.Options{
		Folder: filepath.Join(folder, "node"),
		Name:   "test",
		Listen: "127.0.0.1:0",
		Admin:  "127.0.0.1:0",
		Summed: func(round int, parties []int, _ [][]uint64) {
			mutex.Lock()
			defer mutex.Unlock()
			if round == last { // applied again, by a node that was stopped before it had recorded that
				return
			}
			last = round
			if out.included = append(out.included, slices.Clone(parties)); len(out.included) == stop {
				enough <- struct{}{}
			}
		},
	}, node.Hooks{Plain: true})
	n, err := node.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { n.Close() }()
	files := federation.Files{Text: []byte(text), Roster: roster}
	var helpers []ed25519.PrivateKey
	if strings.Contains(text, `"oneshot"`) {
		var committee *keyexchange.Roster
		helpers, committee = newPeople(t, "member-", jobMembers)
		if files.Committee, err = committee.MarshalText(); err != nil {
			t.Fatal(err)
		}
	}
	fed, err := n.Create(ctx, files)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for k, identity := range helpers {
		server, err := party.NewServer(n.Address, "", identity)
		if err != nil {
			t.Fatal(err)
		}
		m := party.Member{Federation: fed, Identity: identity, Server: server,
			Folder: filepath.Join(folder, fmt.Sprint("member-", k)), Key: &keyexchange.SealKey{1}}
		group.Go(func() {
			if err := m.Run(ctx); err != nil {
				t.Errorf("member %d: %v", k, err)
			}
		})
	}
	models := make([][]byte, len(own))
	for i := range own {
		dir := filepath.Join(folder, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		key, err := keyfile.SealKey(filepath.Join(dir, "seal.key"), true)
		if err != nil {
			t.Fatal(err)
		}
		server, err := party.NewServer(n.Address, "", identities[i])
		if err != nil {
			t.Fatal(err)
		}
		trainer, err := party.NewDeclared(fed, i, own[i], dir)
		if err != nil {
			t.Fatal(err)
		}
		p := party.Party{Federation: fed, Identity: identities[i], Server: server, Folder: dir, Key: key,
			Trainer: trainer}
		group.Add(1)
		go func() {
			defer group.Done()
			var err error
			if models[i], err = p.Run(ctx); err != nil {
				t.Errorf("party %d: %v", i, err)
			}
		}()
	}
	if stop > 0 {
		select {
		case <-enough:
		case <-ctx.Done():
			t.Fatal("too few sums to stop the node after")
		}
		config.Listen = strings.TrimPrefix(n.Address, "http://")
		n.Close()
		if n, err = node.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	out.fed = fed
	if _, out.model, _, err = tensor.Parse(models[0]); err != nil {
		t.Fatal(err)
	}
	if out.status, err = n.Status(ctx, fed.ID); err != nil {
		t.Fatal(err)
	}
	return out
}
