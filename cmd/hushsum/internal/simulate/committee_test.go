package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/cmd/hushsum/internal/cli"
)

const oneMessage = `name = "one-message"
rounds = 2
model.name = "logistic"
training = { steps = 5, rate = 1.0 }
sum = { protocol = "oneshot", members = 4 }
time.step_time = "10s"
[parties]
drop_out = 0.25
[world]
data = { rows = 20 }
[[world.link]]
between = ["here", "server"]
latency = "50ms"
[[world.member]]
name = "member"
place = "here"
[[world.member]]
name = "member-2"
place = "here"
silent = true
[[world.party]]
name = "p"
place = "here"
[[world.party]]
name = "weak"
place = "here"
crash = [{ round = 2 }]
[[parties.group]]
name = "p"
count = 3
[[parties.group]]
name = "weak"
`

// One-message sums in virtual time: the table, JSON and the page say how long each step took, whom
// it waited for and how many bytes went, and sweeps run.
func TestOneMessageScenario(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one-message.toml")
	if err := os.WriteFile(file, []byte(oneMessage), 0o666); err != nil {
		t.Fatal(err)
	}
	simulate := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := called(t.Context(), &out, &errs, append([]string{"simulate", file}, args...)); code !=
			cli.ExitOK {
			t.Fatalf("%v: exit %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	if out := simulate(); !strings.Contains(out, "keys 10 s, submissions 0.") ||
		strings.Count(out, "waited for member-2") != 2 {
		t.Error(out)
	}
	rounds, members, sent, last := 0, 0, 0, 0
	for line := range strings.Lines(simulate("--json")) {
		var l struct {
			Member, Party string
			Sent          int     `json:"bytes_sent"`
			Work          float64 `json:"work_seconds"`
			Seconds       float64
			Steps         []struct {
				Step    string
				Seconds float64
			}
			Waited  []string `json:"waited_for"`
			Summary bool
			Clients int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Member != "":
			members++
			if (l.Member == "member-2") != (l.Sent == 0) || l.Work == 0 {
				t.Error(line)
			}
		case l.Party != "":
			sent += l.Sent
		case l.Summary:
			last++
			if len(l.Steps) > 0 || l.Clients == 0 {
				t.Error(line)
			}
		default:
			rounds++
			total := -l.Seconds
			for _, s := range l.Steps {
				total += s.Seconds
			}
			if len(l.Steps) != 5 || l.Steps[1].Step != "submissions" || total*total > 1e-12 ||
				len(l.Waited) != 1 || l.Waited[0] != "member-2" {
				t.Error(line)
			}
		}
	}
	if rounds != 2 || members != 8 || last != 1 || sent < 7*19_000 || sent > 7*20_000 {
		t.Errorf("%d rounds, %d lines of members, %d bytes of parties", rounds, members, sent)
	}
	simulate("--out", dir)
	page, err := os.ReadFile(filepath.Join(dir, "one-message.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Of the committee&#39;s 4 members the busiest worked",
		"<td>keys 10 s, submissions", "<td>member-2</td>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if out := simulate("--sweep", "parties=4,8 members=4,7", "--json"); strings.Count(out,
		`"parties":`) != 4 || strings.Contains(out, "error") {
		t.Error(out)
	}
}
