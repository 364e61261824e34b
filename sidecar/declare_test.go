package sidecar

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
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

// settleJob settles the text of a job, for parties whose seeds it returns.
func (c *client) settleJob(n int, text string) (result map[string]any, seeds [][]byte) {
	c.Helper()
	for range n {
		_, seed := c.call("identity", map[string]any{})
		seeds = append(seeds, seed[0])
	}
	return c.settle(seeds, text), seeds
}

// settle settles the text of a job for the parties with the given seeds.
func (c *client) settle(seeds [][]byte, text string) map[string]any {
	c.Helper()
	var roster []memberJSON
	for i, seed := range seeds {
		identity, _ := c.call("identity", map[string]any{}, seed)
		roster = append(roster, memberJSON{fmt.Sprint("party", i), identity["public"].(string)})
	}
	result, _ := c.call("job.settle", map[string]any{"roster": roster}, []byte(text))
	return result
}

const vectorJob = `name = "vectors"
rounds = 2
parties = { count = 3, drop_out = 0.4 }
model.length = 2
`

// A job that a program settles is the library's, and its sessions weigh, clip and mask.
func TestJobSettle(t *testing.T) {
	c := start(t)
	text := vectorJob + "sum = { adversary = \"curious\", max_weight = 8 }\nprivacy.clip = 5.0\n"
	result, seeds := c.settleJob(3, text)
	want, err := declared.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var members []memberJSON
	for _, m := range result["roster"].([]any) {
		m := m.(map[string]any)
		members = append(members, memberJSON{m["name"].(string), m["key"].(string)})
	}
	roster, err := parseRoster(members)
	if err != nil {
		t.Fatal(err)
	}
	settled, err := want.Settle(declared.Files{Roster: roster})
	if err != nil {
		t.Fatal(err)
	}
	digest := settled.Digest()
	if result["digest"] != hex.EncodeToString(digest[:]) || result["rounds"] != 2.0 ||
		result["length"] != 2.0 || result["weighs"] != true || result["max_weight"] != 8.0 ||
		result["trains"] != false || result["min_survivors"] != 2.0 {
		t.Errorf("%v", result)
	}
	explained, _ := c.call("job.explain", map[string]any{"settled": result["settled"]})
	if fmt.Sprint(explained["explain"]) != fmt.Sprint(want.Explain()) {
		t.Errorf("%v", explained)
	}
	s := c.sit(result["settled"].(float64), 1, seeds)
	s.begin("a round")
	broadcast := digestOf("a round")
	for i, k := range []struct {
		weight any
		vector []float64
	}{{3, []float64{1, 2}}, {100, []float64{6, 8}}, {nil, []float64{-1, 0}}} {
		with := map[string]any{"party": s.parties[i], "round": 1, "broadcast": broadcast}
		if k.weight != nil {
			with["weight"] = k.weight
		}
		_, masked := c.call("party.submit", with, floatBlob(k.vector))
		s.receive(i, masked[0])
	}
	s.step("server.survivors", "")
	s.step("server.certificate", "")
	sum, mean := c.call("server.sum", map[string]any{"server": s.server, "broadcast": broadcast})
	got, err := floats[float64](mean[0])
	if err != nil {
		t.Fatal(err)
	}
	// 3·(1, 2) + 8·(3, 4) + 1·(−1, 0), over 12.
	for k, w := range []float64{26.0 / 12, 38.0 / 12} {
		if math.Abs(got[k]-w) > 1e-5 {
			t.Errorf("the mean is %v, coordinate %d should be %v", got, k, w)
		}
	}
	if sum["weight"] != 12.0 {
		t.Errorf("the weights are %v", sum["weight"])
	}
}

// What only the service or a simulation does is refused where a program settles a job, and so are
// sessions that a job does not have.
func TestJobSettleRefuses(t *testing.T) {
	c := start(t)
	const curious = "sum.adversary = \"curious\"\n"
	settled, seeds := c.settleJob(3, vectorJob+curious)
	for more, path := range map[string]string{
		curious + "privacy = { clip = 1.0, clip_quantile = 0.5 }": "privacy.clip_quantile",
		"sum.protocol = \"oneshot\"":                              "sum.committee",
	} {
		with := map[string]any{"roster": settled["roster"]}
		if a := c.try("job.settle", with, []byte(vectorJob+more)); a.Error == nil ||
			a.Error.Kind != "config" || a.Error.Field != path {
			t.Errorf("%s: %+v", more, a.Error)
		}
	}
	trains := strings.Replace(vectorJob, "model.length = 2",
		`model = { name = "logistic", features = 2, classes = 2 }`, 1)
	const instant = "privacy = { noise = \"skellam\", epsilon = 9.0, clip = 1.0, " +
		"submit_after = \"1s\" }"
	const measured = "metrics.share = 0.1\nprivacy.clip = 1.0\n"
	for _, text := range []string{trains + curious, vectorJob + curious + instant,
		vectorJob + curious + measured} {
		result, _ := c.call("job.settle", map[string]any{"roster": settled["roster"]}, []byte(text))
		with := map[string]any{"settled": result["settled"], "number": 1}
		for call, blobs := range map[string][][]byte{"party.new": seeds[:1], "server.new": nil} {
			if a := c.try(call, with, blobs...); a.Error == nil || a.Error.Kind != "config" {
				t.Errorf("%s: %+v", call, a.Error)
			}
		}
	}
}
