package protocol

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
)

// The vectors of testdata/configurations.json: configurations in their JSON form, which of
// them are accepted, and what follows from these.
type (
	vectorConfig struct {
		About        string          `json:"about"`
		Config       json.RawMessage `json:"config"`
		Accepted     bool            `json:"accepted"`
		RosterDigest hexBytes        `json:"roster_digest,omitempty"`
		ConfigDigest hexBytes        `json:"config_digest,omitempty"`
		MaxSkip      uint64          `json:"max_skip,omitempty"`
		MaxMessage   int             `json:"max_message,omitempty"`
		Sizes        []vectorSize    `json:"sizes,omitempty"`
	}
	vectorSize struct {
		Size         int `json:"size"`
		Scheduled    int `json:"N"`
		Degree       int `json:"h"`
		Threshold    int `json:"t"` // 0 without recovery, and so is q
		Quorum       int `json:"q"`
		MinSurvivors int `json:"m"`
	}
)

func makeConfigs(t *testing.T) []vectorConfig {
	t.Helper()
	roster := func(n int) string {
		_, r := parties(t, n)
		var list []memberJSON
		for i := range n {
			list = append(list, memberJSON{r.Name(i), hex.EncodeToString(r.Key(i))})
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return `"roster":` + string(b)
	}
	const layout = `"layout":[{"length":5,"bits":20},{"length":1,"bits":64}]`
	var out []vectorConfig
	for _, c := range []struct {
		about  string
		n      int
		fields string // with the roster and, unless it has one, the layout above
	}{
		{"all that has a default is left out", 3, ""},
		{"everything is there", 9, `"label":"Zählung – été","number":1152921504606846976,` +
			`"min_members":7,"colluders":1,"recovery":{"adversary":1,"threshold":5,"min_survivors":6,` +
			`"degree":0},"per_round":8,"seed":"` + fmt.Sprintf("%064x", 7) + `","max_skip":500,` +
			`"classical":true`},
		{"the highest number", 2, `"number":18446744073709551615`},
		{"two parties, recovery with one holder each", 2, `"recovery":{"adversary":2}`},
		{"two parties and a cheating server", 2, `"recovery":{}`},
		{"degree 1 of two parties is the complete graph", 2, `"recovery":{"adversary":2,"degree":1,` +
			`"threshold":1}`},
		{"degree 1 of three parties", 3, `"recovery":{"adversary":2,"degree":1,"threshold":1}`},
		{"cheating server, four parties", 4, `"recovery":{}`},
		{"cheating server, defaults of many sizes", 12, `"min_members":4,"recovery":{}`},
		{"curious server, defaults of many sizes", 12, `"min_members":3,"recovery":{"adversary":2}`},
		{"two colluders", 12, `"min_members":9,"colluders":2,"recovery":{}`},
		{"three colluders, a default threshold that does not hold for eight", 12,
			`"min_members":8,"colluders":3,"recovery":{}`},
		{"c = N − 2 without recovery", 5, `"colluders":3`},
		{"c = N − 1 without recovery", 5, `"colluders":4`},
		{"c = t against a curious server", 6, `"colluders":3,"recovery":{"adversary":2,"threshold":3}`},
		{"2t = h + c", 6, `"colluders":1,"recovery":{"threshold":3}`},
		{"2t = h + c + 1", 7, `"colluders":1,"recovery":{"threshold":4}`},
		{"fewer survivors than the quorum", 7, `"recovery":{"threshold":4,"min_survivors":4}`},
		{"more survivors than parties", 7, `"recovery":{"min_survivors":8}`},
		{"a sparse graph", 10, `"min_members":8,"recovery":{"adversary":2,"degree":4,"threshold":2}`},
		{"a sparse graph of odd degree", 10, `"recovery":{"adversary":2,"degree":5}`},
		{"odd degree and odd size", 11, `"recovery":{"adversary":2,"degree":5}`},
		{"odd degree, and an odd size between", 10,
			`"min_members":8,"recovery":{"adversary":2,"degree":5}`},
		{"sparse for all, complete for the fewest", 10,
			`"min_members":5,"recovery":{"adversary":2,"degree":4}`},
		{"more colluders than neighbours that collude", 12, `"min_members":10,"colluders":5,` +
			`"recovery":{"adversary":2,"degree":4,"threshold":3,"corrupt_neighbours":2}`},
		{"as many as the threshold", 12, `"min_members":10,"colluders":5,` +
			`"recovery":{"adversary":2,"degree":4,"threshold":2,"corrupt_neighbours":2}`},
		{"more than there are colluders", 12, `"min_members":10,"colluders":1,` +
			`"recovery":{"adversary":2,"degree":4,"threshold":3,"corrupt_neighbours":2}`},
		{"of a complete graph", 12, `"min_members":10,"colluders":5,` +
			`"recovery":{"adversary":2,"corrupt_neighbours":2}`},
		{"2t = h + 2 in a sparse graph", 12, `"min_members":10,"colluders":5,` +
			`"recovery":{"adversary":1,"degree":6,"threshold":4,"corrupt_neighbours":2}`},
		{"2t = h + 4 in a sparse graph", 12, `"min_members":10,"colluders":5,` +
			`"recovery":{"adversary":1,"degree":6,"threshold":5,"corrupt_neighbours":2}`},
		{"a sparse graph and a cheating server", 10, `"recovery":{"degree":4}`},
		{"degree N − 1 is the complete graph", 6, `"recovery":{"degree":5}`},
		{"the same without a degree", 6, `"recovery":{}`},
		{"degree N", 6, `"recovery":{"degree":6}`},
		{"a sparse graph each round", 10, `"per_round":8,"recovery":{"adversary":1,"degree":4}`},
		{"the whole roster per round", 6, `"per_round":6`},
		{"one party per round", 6, `"per_round":1`},
		{"the least MaxSkip for a schedule", 6, `"per_round":2,"max_skip":42`},
		{"less than it", 6, `"per_round":2,"max_skip":41`},
		{"the greatest MaxSkip", 6, `"max_skip":26843545`},
		{"more than it", 6, `"max_skip":26843546`},
		{"MinMembers 1", 4, `"min_members":1`},
		{"MinMembers beyond the roster", 4, `"min_members":5`},
		{"there is no adversary 3", 4, `"recovery":{"adversary":3}`},
		{"a negative number of colluders", 4, `"colluders":-1`},
		{"a label of 256 bytes", 2, `"label":"` + fmt.Sprintf("%0256d", 0) + `"`},
		{"a label of 255 bytes", 2, `"label":"` + fmt.Sprintf("%0255d", 0) + `"`},
		{"no segments", 2, `"layout":[]`},
		{"65 bits", 2, `"layout":[{"length":1,"bits":65}]`},
		{"a segment of nothing", 2, `"layout":[{"length":0,"bits":8}]`},
		{"2^28 coordinates", 2, `"layout":[{"length":268435455,"bits":1},{"length":1,"bits":1}]`},
		{"one more", 2, `"layout":[{"length":268435456,"bits":1},{"length":1,"bits":1}]`},
		{"an empty seed", 2, `"seed":""`},
		{"a seed of 31 bytes", 2, `"seed":"` + fmt.Sprintf("%062d", 0) + `"`},
		{"a field that there is not", 2, `"threshold":2`},
	} {
		text := "{" + roster(c.n)
		if !hasLayout(c.fields) {
			text += "," + layout
		}
		if c.fields != "" {
			text += "," + c.fields
		}
		v := vectorConfig{About: c.about, Config: json.RawMessage(text + "}")}
		var config Config
		if err := json.Unmarshal(v.Config, &config); err == nil {
			own, err := config.settle()
			if err != nil {
				t.Fatal(err)
			}
			digest := own.Roster.Digest()
			v.Accepted, v.RosterDigest, v.ConfigDigest = true, digest[:], own.digest[:]
			v.MaxSkip, v.MaxMessage = own.maxSkip, own.most
			for size := own.minMembers; size <= own.parties; size++ {
				n := own.terms(size)
				v.Sizes = append(v.Sizes, vectorSize{size, n.scheduled, n.degree, n.threshold, n.quorum,
					n.minSurvivors})
			}
		}
		out = append(out, v)
	}
	return out
}

// hasLayout reports whether fields of an object have a layout.
func hasLayout(fields string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte("{"+fields+"}"), &object) == nil && object["layout"] != nil
}

// The code still makes all that testdata/configurations.json says.
func TestConfigVectors(t *testing.T) {
	configs := makeConfigs(t)
	accepted := 0
	for _, c := range configs {
		if c.Accepted {
			accepted++
		}
	}
	if accepted < 20 || len(configs)-accepted < 20 {
		t.Errorf("%d of %d configurations are accepted", accepted, len(configs))
	}
	checkGolden(t, "configurations", configs)
}
