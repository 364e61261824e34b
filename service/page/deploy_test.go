package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/runner"
)

// deployed is a file of the folder deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Alarms and the board name metrics that there are, and the runbook has each alarm.
func TestDeployed(t *testing.T) {
	document, err := os.ReadFile("../../docs/service-mend.md")
	if err != nil {
		t.Fatal(err)
	}
	s, server, tokens := newPage(t, false)
	s.status.Steps = []runner.StepTimes{{Step: "signing", Within: make([]uint64, 11)}}
	_, body, _ := call(t, "GET", server.URL+"/metrics", tokens[0], "", "")
	there := map[string]bool{}
	for series := range readMetrics(t, body).values {
		name, _, _ := strings.Cut(series, "{")
		there[name] = true
	}
	alerts, board := deployed(t, "alerts.yaml"), deployed(t, "board.json")
	tests := deployed(t, "alerts_test.yaml")
	for file, text := range map[string]string{"alerts.yaml": alerts, "alerts_test.yaml": tests,
		"board.json": board, "docs/service-mend.md": string(document)} {
		names := regexp.MustCompile(`hushsum_[a-z_]+`).FindAllString(text, -1)
		for _, name := range names {
			if !there[name] && name != "hushsum_step_seconds" {
				t.Errorf("%s names %s, which is no metric", file, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
	}
	alarms := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(alerts, -1)
	for _, alarm := range alarms {
		if !strings.Contains(string(document), fmt.Sprintf("### %s\n", alarm[1])) {
			t.Errorf("the runbook does not have %s", alarm[1])
		}
		calm := regexp.MustCompile(`- \{alertname: ` + alarm[1] + `, eval_time: \w+\}`)
		if !calm.MatchString(tests) || !strings.Contains(tests, "- alertname: "+alarm[1]+"\n") {
			t.Errorf("alerts_test.yaml has no time at which %s goes off, and one at which it does not",
				alarm[1])
		}
	}
	if len(alarms) < 5 {
		t.Errorf("%d alarms", len(alarms))
	}
}

// Prometheus' own tool takes the rules and the board's queries, and sees each alarm go off when it
// should.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool, of Debian's package prometheus")
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(deployed(t, "board.json")), &board); err != nil {
		t.Fatal(err)
	}
	rules := "groups:\n  - name: board\n    rules:\n"
	queries := 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			rules += fmt.Sprintf("      - {record: q%d, expr: %q}\n", queries, q.Expr)
			queries++
		}
	}
	if queries < 10 {
		t.Errorf("the board has %d queries", queries)
	}
	file := filepath.Join(t.TempDir(), "board.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "../../deploy/alerts.yaml", file},
		{"test", "rules", "../../deploy/alerts_test.yaml"},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
