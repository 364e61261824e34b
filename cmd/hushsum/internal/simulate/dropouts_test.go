package simulate

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/clitest"
	"github.com/hushsum/hushsum/cmd/hushsum/internal/show"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/learning"
	"github.com/hushsum/hushsum/simulation"
)

// dropping is a quick run of ten parties of which two drop out of each round.
const dropping = "simulate --clients 10 --rows-per-client 20 --rounds 3 --local-steps 5 --drop 0.2"

func TestDropOutsTable(t *testing.T) {
	code, out, errs := call(t.Context(), strings.Fields(dropping)...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	for _, want := range []string{
		"recovery  cheating server, 0 colluders; 5 of 9 shares rebuild a secret;\n          at least " +
			"8 of 10 parties in a sum\n",
		"drop-outs 2 of 10 parties in each round, at random moments",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	rows := regexp.MustCompile(`(?m)^ +[123] +(8|9|10)/10 +[\d,]+ +[\d,]+ +[\d.]+ +[\d.]+ +[\d.]+` +
		`    0\.\d{4} +-?[01]\.\d{4}$`)
	if n := len(rows.FindAllString(out, -1)); n != 3 {
		t.Errorf("%d rows of rounds, want 3:\n%s", n, out)
	}
	if strings.Contains(out, "lost") {
		t.Errorf("a lost round:\n%s", out)
	}

	// The flags of recovery, without drop-outs.
	args := "simulate --clients 10 --rows-per-client 20 --rounds 1 --local-steps 5 --recovery " +
		"--adversary curious --colluders 1 --min-survivors 9"
	code, out, errs = call(t.Context(), strings.Fields(args)...)
	if code != 0 || errs != "" ||
		!strings.Contains(out,
			"curious server, 1 colluder; 2 of 9 shares rebuild a secret;\n          at least 9 of 10") ||
		strings.Contains(out, "drop-outs") {
		t.Errorf("code %d, %q:\n%s", code, errs, out)
	}
}

func TestLostRounds(t *testing.T) {
	args := append(strings.Fields(dropping), "--drop", "0.5")
	code, out, errs := call(t.Context(), args...)
	const why = "hushsum simulate: there is no sum: every round was lost\nLower --drop.\n"
	if code != 1 || errs != why {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	if strings.Contains(out, "in the clear, same seeds") || strings.Contains(out, "difference") {
		t.Errorf("two models are compared that are both the first one:\n%s", out)
	}
	if n := strings.Count(out, "    lost "); n != 3 ||
		!strings.Contains(out, "3 of 3 rounds were lost") || !strings.Contains(out, "Lower --drop") {
		t.Errorf("%d rows of lost rounds, want 3:\n%s", n, out)
	}

	code, out, errs = call(t.Context(), append(args, "--json")...)
	if code != 1 || errs != why {
		t.Fatalf("code %d, %q", code, errs)
	}
	for i, o := range decode(t, out) {
		if o["lost"] != true || o["clients"] != 0.0 || i < 3 && o["dropped"] != 5.0 {
			t.Errorf("object %d: %v", i, o)
		}
		if i == 3 && (o["lost_rounds"] != 3.0 || o["dropped"] != 15.0 || o["complete"] != true ||
			o["round"] != 3.0) {
			t.Errorf("summary: %v", o)
		}
	}
}

func TestDropOutsJSON(t *testing.T) {
	outcome := func(more ...string) []map[string]any {
		t.Helper()
		code, out, errs := call(t.Context(),
			append(append(strings.Fields(dropping), "--json"), more...)...)
		if code != 0 || errs != "" {
			t.Fatalf("code %d, %q", code, errs)
		}
		objects := decode(t, out)
		if len(objects) != 4 {
			t.Fatalf("%d objects, want 4", len(objects))
		}
		return objects
	}
	objects := outcome()
	for i, o := range objects[:3] {
		if o["dropped"] != 2.0 || o["lost"] != false || o["clients"].(float64) < 8 ||
			o["max_abs_diff"].(float64) > 1e-4 {
			t.Errorf("object %d: %v", i, o)
		}
	}
	last := objects[3]
	for key, want := range map[string]any{
		"dropped": 6.0, "lost": false, "lost_rounds": 0.0, "recovery": "cheating", "drop": 0.2,
		"colluders": 0.0, "threshold": 5.0, "min_survivors": 8.0, "clients": objects[2]["clients"],
	} {
		if last[key] != want {
			t.Errorf("summary: %s is %v, want %v", key, last[key], want)
		}
	}
	again := outcome("--adversary", "curious", "--colluders", "2")[3]
	if again["recovery"] != "curious" || again["colluders"] != 2.0 || again["mcc"] != last["mcc"] {
		t.Errorf("against a curious server: %v", again)
	}
	off := outcome("--drop", "0")[3]
	if off["recovery"] != "off" || off["threshold"] != 0.0 || off["min_survivors"] != 10.0 ||
		off["dropped"] != 0.0 {
		t.Errorf("without recovery: %v", off)
	}
}

// Every key that is printed is explained.
func TestHelpExplainsJSON(t *testing.T) {
	_, help, _ := call(t.Context(), "help", "simulate", "all")
	_, out, _ := call(t.Context(), append(strings.Fields(dropping), "--json")...)
	for _, o := range decode(t, out) {
		for key := range o {
			if !regexp.MustCompile(`(?m)(^  |, |")` + key + `\b`).MatchString(help) {
				t.Errorf("help does not explain %s", key)
			}
		}
	}
}

// The header and the last lines at their longest and shortest.
func TestHeaderAndCosts(t *testing.T) {
	args := "simulate --clients 2 --rows-per-client 1 --rounds 1 --local-steps 1 --fraction-bits 1 " +
		"--range 1234567.5 " +
		"--rate 0.12345678901234567 --lambda 1.2345678901234567e-10 --seed 9223372036854775807"
	code, out, errs := call(t.Context(), strings.Fields(args)...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %q", code, errs)
	}
	clitest.Width(t, out)
	for _, want := range []string{"2 with 1 row each", "1 round of 1 local step;",
		"seed 9223372036854775807", "1 binary\n          place;", "After 1 round ", ", 1 round "} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	// One of something that is named in the plural; "13.1 ms" is none.
	plural := regexp.MustCompile(`(?:^|[^.\d])(1 \w{2,}s)\b`)
	if wrong := plural.FindStringSubmatch(out); wrong != nil && wrong[1] != "1 rows" {
		t.Errorf("%q:\n%s", wrong[1], out)
	}

	end := func(s *simulation.Result, took time.Duration) string {
		var b bytes.Buffer
		run := &run{described: described{averaging: true}, result: s, took: took,
			job:   (&job.Job{}).WithDefaults(),
			world: simulation.World{Rows: simulation.Rows{Parties: make([]*learning.Dataset, 100)}}}
		run.foot(&grid{Screen: show.Screen{Std: cli.Streams{Out: &b}}})
		clitest.Width(t, b.String())
		return b.String()
	}
	score := &learning.Matrix{Classes: 2, Counts: []int{3, 1, 1, 3}}
	s := &simulation.Result{Model: make([]float64, 100),
		Rounds: []simulation.RoundResult{{Round: 1, Test: score, Clear: score, Exchanges: 1}}}
	s.Setup = simulation.Cost{Client: 60 * time.Millisecond, BytesUp: 1000, BytesDown: 6200}
	s.Rounds[0].Cost = simulation.Cost{Train: 40 * time.Millisecond, BytesUp: 1000, BytesDown: 1800}
	got := end(s, 35*time.Millisecond)
	for _, want := range []string{
		"The largest part of a party's time (60%) and of its bytes (72%) goes into the\nkey exchange.\n",
		"The run took 35.0 ms in all.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the output lacks %q:\n%s", want, got)
		}
	}
	s.Rounds[0].Cost.Train = 540 * time.Millisecond
	got = end(s, 61*time.Second)
	for _, want := range []string{
		"The largest part of a party's time goes into training (90%), of its bytes into\nthe key " +
			"exchange (72%).\n",
		"The run took 61.0 s in all.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the output lacks %q:\n%s", want, got)
		}
	}
}

// Of sums by ring messages are lost on their way, and whole rounds: the run says how many, and
// noise of the fewest that arrive is enough.
func TestMessagesLost(t *testing.T) {
	const run = "simulate --clients 20 --rows-per-client 30 --rounds 10 --steps 2 --noise skellam " +
		"--noise-multiplier 2 --clip 0.5 --factorise 5 --set world.fidelity=ring --drop 0.2 " +
		"--set world.lost_rounds=3"
	code, out, errs := call(t.Context(), strings.Fields(run+" --drop-out 0.3")...)
	if code != 0 || !warnedOrQuiet(errs) {
		t.Fatalf("code %d, %q", code, errs)
	}
	words := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"losses 4 of 20 messages in each round; at least 14 in a sum",
		"losses 3 of 10 whole rounds, drawn by seed", "14 honest shares must suffice"} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "too few parties") || strings.Contains(out, "recovery") {
		t.Errorf("\n%s", out)
	}
	clitest.Width(t, out)
	_, out, _ = call(t.Context(), strings.Fields(run+" --drop-out 0.3 --json")...)
	objects := decode(t, out)
	last := objects[len(objects)-1]
	if last["lost_rounds"] != 3.0 || last["min_survivors"] != 14.0 || last["recovery"] != "off" ||
		last["drop"] != 0.2 || last["noise_shares"] != 14.0 {
		t.Errorf("%v", last)
	}
	for _, c := range []struct{ more, want string }{
		{" --drop-out 0.1", "of 20 messages of a round 4 are lost, and a sum takes at least 18"},
		{" --drop-out 0.3 --set world.lost_rounds=10", "none of the 10 rounds would have a sum"},
		{" --drop-out 0.3 --set world.fidelity=messages", "sums simulated by message are lost through what"},
	} {
		code, _, errs := call(t.Context(), strings.Fields(run+c.more)...)
		if said := strings.Join(strings.Fields(errs), " "); code != 2 || !strings.Contains(said, c.want) {
			t.Errorf("%s: code %d, %q", c.more, code, errs)
		}
	}
}

// Sums that are not by message cost nothing but training, and the table says no bytes of theirs.
func TestCostsWithoutMessages(t *testing.T) {
	const run = "simulate --clients 5 --rounds 2 --rows-per-client 40 --set world.fidelity="
	for _, c := range []struct{ fidelity, says string }{
		{"ring", "ring 25 bits for weight times rows"},
		{"clear", "sum in the clear, on floating-point numbers"},
	} {
		code, out, errs := call(t.Context(), strings.Fields(run+c.fidelity)...)
		if code != 0 || errs != "" {
			t.Fatalf("%s: code %d, %q", c.fidelity, code, errs)
		}
		clitest.Width(t, out)
		words := strings.Join(strings.Fields(out), " ")
		for _, want := range []string{c.says, "Cost of a party, whole run: ",
			" ms of training. The sums were taken without messages.", "The run took "} {
			if !strings.Contains(words, want) {
				t.Errorf("%s: no %q in\n%s", c.fidelity, want, out)
			}
		}
		if strings.Contains(out, "-,") || strings.Contains(out, "broadcast model") {
			t.Errorf("%s:\n%s", c.fidelity, out)
		}
	}
}
