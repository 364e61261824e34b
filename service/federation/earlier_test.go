package federation_test

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/federation"
)

// This file has the tests of files of earlier releases, under which federations end.

const earlierGood = `name = "study-7"
roster = "roster.txt"
rounds = 4
step_time = "5s"

[model]
dtype = "float32"
personal = ["bn*"]
[[model.tensor]]
name = "layer"
shape = [3, 4]
[[model.tensor]]
name = "bn1"
shape = [4]

[server]
rule = "fedadam"
rate = 0.1

[recovery]
adversary = "cheating"
colluders = 1
drop_out = 0.2

[privacy]
noise = "discrete-gaussian"
epsilon = 8.0
delta = 1e-5
clip = 1.0

[metrics]
share = 0.2
`

const earlierDeclared = `name = "trained"
rounds = 6
seed = 3
[training]
model = "mlp:4"
rule = "fedga"
beta = 0.1
mask = "soft"
by_rows = true
steps = 3
rate = 0.1
[training.rows]
features = 5
classes = 3
most = 40
[recovery]
drop_out = 0.2
[privacy]
noise = "none"
`

// A file of an earlier release declares what its job of today does; its identifier is over all its
// text.
func TestEarlier(t *testing.T) {
	f, err := federation.New(federation.Files{Text: []byte(earlierGood), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	today, err := federation.New(federation.Files{Text: []byte(good), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	compareFederations(t, today, f)
	same(t, "meaning", f.Meaning(), today.Meaning())
	// Whatever is changed, the identifier is another; line ends of editors are not.
	same, err := federation.New(federation.Files{
		Text: []byte(strings.ReplaceAll(earlierGood, "\n", "\r\n")), Roster: rosterOf(t, 10)})

	if err != nil || same.ID != f.ID {
		t.Errorf("line ends changed the identifier: %v", err)
	}
	seen := map[string]string{f.ID: "itself"}
	for _, change := range [][2]string{{"rounds = 4", "rounds = 5"}, {"share = 0.2", "share = 0.3"},
		{"rate = 0.1", "rate = 0.2"}, {`["bn*"]`, `["nothing"]`}, {"clip = 1.0", "clip = 2.0"},
		{`"5s"`, `"6s"`}, {`"layer"`, `"other"`}} {
		other, err := federation.New(federation.Files{
			Text: []byte(strings.Replace(earlierGood, change[0], change[1], 1)), Roster: rosterOf(t, 10)})

		if err != nil {
			t.Fatal(change, err)
		}
		if had := seen[other.ID]; had != "" {
			t.Errorf("%v: the identifier is that of %s", change, had)
		}
		seen[other.ID] = change[1]
	}
	other, err := federation.New(federation.Files{Text: []byte(earlierGood), Roster: rosterOf(t, 11)})
	if err != nil || seen[other.ID] != "" {
		t.Errorf("another roster, one identifier: %v", err)
	}
}

// Every mistake is found with its line and what to do.
func TestEarlierMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{"rounds = 4", "rounds = 0", 3, "rounds"},
		{"rounds = 4", "rouds = 4", 3, "no key rouds"},
		{"epsilon = 8.0", "epsilon = 1.0\nEPSILON = 100.0", 28, "no key privacy.EPSILON"},
		{"epsilon = 8.0", "Epsilon = 8.0", 27, "did you mean epsilon"},
		{"shape = [3, 4]", "SHAPE = [3, 4]", 11, "did you mean shape"},
		{"[privacy]", "[Privacy]", 25, "did you mean privacy"},
		{"rounds = 4", "rounds = \"4\"", 3, ""},
		{"rounds = 4", "rounds = ", 3, ""},
		{`name = "study-7"`, `name = "a b"`, 1, "name"},
		{`step_time = "5s"`, `step_time = "5"`, 4, "missing unit"},
		{`dtype = "float32"`, `dtype = "int8"`, 7, "float32, float64"},
		{"shape = [3, 4]", "shape = [3, 0]", 0, "shape"},
		{`name = "bn1"`, `name = "layer"`, 10, "is taken"},
		{`personal = ["bn*"]`, `personal = ["*"]`, 8, "share at least one"},
		{`personal = ["bn*"]`, `personal = ["["]`, 8, "not a pattern"},
		{`rule = "fedadam"`, `rule = "adam"`, 17, "fedavg"},
		{"rate = 0.1", "rate = -1.0", 18, "server.rate"},
		{`adversary = "cheating"`, `adversary = "evil"`, 21, "semi-malicious"},
		{"drop_out = 0.2", "drop_out = 0.6", 23, "drop_out"},
		{"colluders = 1", "colluders = 9", 22, "olluders"},
		{`noise = "discrete-gaussian"`, `noise = "gauss"`, 26, "discrete-gaussian"},
		{"epsilon = 8.0", "epsilon = 0.0", 27, "epsilon"},
		{"delta = 1e-5", "delta = 2.0", 28, "delta"},
		{"clip = 1.0", "clip = 0.0", 29, "clip"},
		{"share = 0.2", "share = 1.0", 32, "share"},
		{"rounds = 4", "rounds = 4\nstart = \"tomorrow\"", 4, "2026-11-30"},
		{"rounds = 4", "rounds = 4\nsampling = 1.5", 4, "write a part"},
		{"rounds = 4", "rounds = 4\nsampling = 0.5", 4, "write 8 or more"},
		{`dtype = "float32"`, `init = "normal"`, 7, "zeros, uniform"},
	} {
		text := strings.Replace(earlierGood, c.from, c.to, 1)
		_, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
		expectMistake(t, c.to, err, c.line, c.want)
	}
}

// What cannot be run is refused with its line and what to do.
func TestEarlierTrainingMistakes(t *testing.T) {
	for _, c := range []struct {
		from, to string
		line     int
		want     string
	}{
		{`model = "mlp:4"`, `model = "mlp:x"`, 5, "mlp:N"},
		{`model = "mlp:4"`, `model = "tree"`, 5, "softmax"},
		{`model = "mlp:4"`, `model = "logistic"`, 5, "use softmax"},
		{`rule = "fedga"`, `rule = "fedadam"`, 6, "fedavg, fedprox"},
		{"beta = 0.1", "beta = -1.0", 7, "above 0"},
		{"beta = 0.1", "mu = 0.1", 7, "fedprox"},
		{`mask = "soft"`, `mask = "sotf"`, 8, "did you mean soft"},
		{`mask = "soft"`, "mask_threshold = 0.4", 8, "no mask"},
		{`mask = "soft"`, `variates = "fresh"`, 8, "scaffold"},
		{`mask = "soft"`, `variates = "old"`, 8, "gradient, fresh"},
		{"steps = 3", "steps = -3", 10, "1 to 1,000,000"},
		{"rate = 0.1", "rate = 0.0", 11, "a learning rate"},
		{"most = 40", "", 9, "nothing bounds how many rows"},
		{"by_rows = true", "", 15, "by_rows"},
		{"features = 5", "", 0, "features"},
		{"features = 5", "features = 9223372036854775807", 13, "1 to 4,194,304"},
		{`model = "mlp:4"`, `model = "mlp:16384,16384"`, 5, "fewer"},
		{"rounds = 6", "rounds = 5", 2, "twice the number"},
		{"[training]", "[model]\nfile = \"m\"\n[training]", 5, "model.file"},
		{"[training]", "[metrics]\nshare = 0.1\n[training]", 5, "no metrics"},
		{`noise = "none"`, "noise = \"discrete-gaussian\"\nepsilon = 8.0\nclip = 1.0", 6, "use fedavg"},
		{`noise = "none"`, "epsilon = 8.0", 0, "there is no noise"},
		{"rate = 0.1", "rate = 0.1\nrange = -1.0", 12, "above 0"},
	} {
		text := strings.Replace(earlierDeclared, c.from, c.to, 1)
		_, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
		expectMistake(t, c.to, err, c.line, c.want)
	}
}

// Without beta fedga is fedavg, of one sum a step: a federation that runs under such a file holds
// as many sums as it began with.
func TestEarlierWithoutBeta(t *testing.T) {
	text := strings.Replace(earlierDeclared, "beta = 0.1\n", "", 1)
	f, err := federation.New(federation.Files{Text: []byte(text), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Settled.Rounds(); got != 6 {
		t.Errorf("%d sums", got)
	}
}
