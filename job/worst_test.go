package job

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
)

// Parties read the text of a server before they consent to its job: no text takes much memory or
// time.
func TestWorstFiles(t *testing.T) {
	deep := strings.Repeat("a.", 12)
	long := strings.ReplaceAll(deep, "a", strings.Repeat("k", 190))
	// Without mistakes, so that rules of several fields are tried.
	const head = "name = \"x\"\nparties.rows = 9\n" +
		"privacy = { noise = \"discrete-gaussian\", epsilon = 1.0 }\n"
	const rounds = "name = \"x\"\nrounds = 1\n[parties]\ncount = 3\n"
	const condition = "[[query]]\nname=\"q%d\"\nkind=\"mean\"\ncolumn=\"c9\"\nwhere=\""
	repeated := suite.Repeated
	// Within the bounds of names and values, and so shorter.
	shorter := func(of int, file func(n int) []byte) func(n int) []byte {
		return func(n int) []byte { return file(n / of) }
	}
	suite.WorstFiles(t, suite.Worst{Name: "job", Most: MaxFile, Room: 32 << 20,
		Parse: func(b []byte) error {
			_, err := Parse("job.toml", b)
			return err
		},
		Files: map[string]func(n int) []byte{
			"dots":          repeated("", "a.", "a = 1"),
			"keys":          repeated("", "a%d = 1\n", ""),
			"tables":        repeated("", "[[query]]\n", ""),
			"inline tables": repeated("query = [", "{},", "]"),
			"groups":        shorter(4, repeated("parties.group = [", "{},", "]")),
			"parties":       shorter(4, repeated(`{"world": {`+"\n"+`"party": [`, "{},", "{}]}}")),
			"texts":         repeated(`about = "`, `\u0001`, `"`),
			"values":        shorter(6, repeated("seed = [", "0,", "]")),
			"JSON values":   shorter(6, repeated("{\"seed\":\n[", "0,", "0]}")),
			"dotted":        shorter(5, repeated("", "[[b]]\n"+deep+"a = 1\n", "")),
			"long names":    repeated("", "[[b]]\n"+long+"a=1\n", ""),
			"names": repeated(rounds,
				"[[world.party]]\nname = \"h%d\"\n", ""),
			"groups and parties": func(n int) []byte {
				groups := repeated(rounds, "[[parties.group]]\nname = \"g%d\"\n", "")
				return append(groups(n/2), repeated("", "[[world.party]]\nname = \"h%d-1\"\n", "")(n/2)...)
			},
			"links": repeated(rounds, "[[world.link]]\nbetween = [\"g%d\", \"x\"]\n", ""),
			"conditions": func(n int) []byte {
				where := strings.Repeat("c900>0 and ", 40) + "c1>0"
				columns := repeated(head, "[[column]]\nname=\"c%d\"\ntype=\"number\"\nrange=[0,1]\n", "")
				return append(columns(min(n/2, 48_000)),
					repeated("", condition+where+"\"\n", "")(min(n/2, 490_000))...)
			},
		}})
}
