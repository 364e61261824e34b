package page_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/runner"
)

// exposed are metrics as they are read: values by name and labels, and types by name.
type exposed struct {
	values map[string]float64
	types  map[string]string
}

var (
	sampleLine = regexp.MustCompile(`^(hushsum_[a-z_]+)(\{[a-z]+="(?:[^"\\]|\\.)*"` +
		`(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? ([0-9.e+-]+|\+Inf)$`)
	headLine = regexp.MustCompile(`^# (HELP|TYPE) (hushsum_[a-z_]+) (.+)$`)
)

// readMetrics reads the text form of Prometheus, as strictly as its own parsers: each metric has
// HELP, then TYPE, then all its samples, once.
func readMetrics(t *testing.T, text string) exposed {
	t.Helper()
	out := exposed{make(map[string]float64), make(map[string]string)}
	helped, now := map[string]bool{}, ""
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if m := headLine.FindStringSubmatch(l); m != nil {
			if m[1] == "HELP" {
				if helped[m[2]] {
					t.Errorf("twice: %s", l)
				}
				helped[m[2]], now = true, m[2]
			} else if now != m[2] || out.types[m[2]] != "" {
				t.Errorf("not after its help: %s", l)
			} else {
				out.types[m[2]] = m[3]
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(l)
		if m == nil {
			t.Errorf("no metric: %q", l)
			continue
		}
		name := m[1]
		if out.types[now] == "histogram" {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		if name != now || out.types[now] == "" {
			t.Errorf("not under its name: %s", l)
		}
		if _, twice := out.values[m[1]+m[2]]; twice {
			t.Errorf("twice: %s", l)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Error(err)
		}
		out.values[m[1]+m[2]] = value
	}
	return out
}

// Metrics can be read by Prometheus, and say what a leader says; no label has a party.
func TestMetrics(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.status.Name = `a "study" of \ names`
	s.status.Steps = []runner.StepTimes{{Step: "submitting", Seconds: 12.5,
		Within: []uint64{0, 1, 1, 2, 3, 3, 3, 3, 3, 3, 4}}}
	_, body, _ := call(t, "GET", server.URL+"/metrics", tokens[0], "", "")
	got := readMetrics(t, body)
	federation := `federation="a \"study\" of \\ names"`
	for series, want := range map[string]float64{
		"ready": 1, "record_ready": 1, "disk_free_bytes": 3 << 30, "open_files": 40,
		"certificate_end_seconds": 1800000000,
		"door_connections_limit":  400, "has_leader{": 1,
		"figures_age_seconds{": 0, "rounds_begun_total{": 7, "rounds_lost_total{": 1,
		"rounds_planned{": 20, "epsilon_spent{": 3.2, "epsilon_budget{": 8, "paused{": 0, "ended{": 0,
		"decisions_total{": 41, "parties_least{": 7,
		`parties{,state="never"`: 1, `members{,state="here"`: 2,
		`step_seconds_bucket{,step="submitting",le="0.3"`:  1,
		`step_seconds_bucket{,step="submitting",le="+Inf"`: 4,
		`step_seconds_count{,step="submitting"`:            4,
		`step_seconds_sum{,step="submitting"`:              12.5,
	} {
		name, labels, labelled := strings.Cut(series, "{")
		if name = "hushsum_" + name; labelled {
			name += "{" + federation + labels + "}"
		}
		if value, found := got.values[name]; !found || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	for of, want := range map[string]float64{"known": 12, "strangers": 3} {
		if value := got.values[`hushsum_door_connections{of="`+of+`"}`]; value != want {
			t.Errorf("%v connections of %s, want %v", value, of, want)
		}
	}
	if last := got.values["hushsum_last_sum_seconds{"+federation+"}"]; last <
		float64(time.Now().Add(-time.Hour).Unix()) {
		t.Errorf("the last sum was at %v", last)
	}
	if strings.Contains(body, "north") || strings.Contains(body, "notary") {
		t.Errorf("a party's name: %s", body)
	}
}

// Where no leader answers, metrics and pages have what was recorded and how old it is; where
// nothing is known they have no figure, and not 0.
func TestFiguresWithoutLeader(t *testing.T) {
	s, server, tokens := newPage(t, false)
	at := time.Now().Add(-time.Hour)
	s.status.State, s.status.Leader, s.status.Recorded = runner.Leaderless, "", &at
	_, body, _ := call(t, "GET", server.URL+"/metrics", tokens[0], "", "")
	got := readMetrics(t, body).values
	if got[`hushsum_has_leader{federation="study"}`] != 0 ||
		got[`hushsum_epsilon_spent{federation="study"}`] != 3.2 ||
		got[`hushsum_figures_age_seconds{federation="study"}`] < 3600 {
		t.Errorf("without a leader: %s", body)
	}
	_, body, _ = call(t, "GET", server.URL+"/federations/"+s.status.ID, tokens[1], "", "")
	for _, words := range []string{"without a leader", "recorded at", "1h0m",
		"has spent <b>epsilon 3.2000 at"} {
		if !strings.Contains(body, words) {
			t.Errorf("the page does not say %q", words)
		}
	}
	if strings.Contains(body, "No budget") || strings.Contains(body, "led by") ||
		strings.Contains(body, "<button>") {
		t.Errorf("the page of a federation without a leader: %s", body)
	}
	_, body, _ = call(t, "GET", server.URL+"/", tokens[0], "", "")
	if !strings.Contains(body, "figures of 1h0m") || strings.Contains(body, "no budget") {
		t.Errorf("the first page: %s", body)
	}
	s.status.Recorded, s.status.Spent, s.status.Round = nil, nil, 0
	_, body, _ = call(t, "GET", server.URL+"/metrics", tokens[0], "", "")
	if strings.Contains(body, "epsilon_spent") || strings.Contains(body, "rounds_begun") {
		t.Errorf("nothing is known: %s", body)
	}
}

// People get refusals as pages, programs as problem details.
func TestProblemsForPeople(t *testing.T) {
	s, server, tokens := newPage(t, false)
	for path, status := range map[string]int{
		"/federations/none": 404, "/nothing": 404, "/federations/" + s.status.ID + "/erase": 404,
		"/v1/federations/none": 404,
	} {
		method := "GET"
		if strings.HasSuffix(path, "erase") {
			method = "POST"
		}
		for _, accept := range []string{"text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "*/*"} {
			r, err := http.NewRequest(method, server.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			r.AddCookie(&http.Cookie{Name: "hushsum-token", Value: tokens[1]})
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			page := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html")
			want := strings.HasPrefix(accept, "text/html") && !strings.HasPrefix(path, "/v1/")
			if answer.StatusCode != status || page != want {
				t.Errorf("%s with Accept %.9s: %d, a page: %v", path, accept, answer.StatusCode, page)
			}
		}
	}
}
