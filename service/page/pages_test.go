package page_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// Without JavaScript: log in, look, pause by a button.
func TestPlainPage(t *testing.T) {
	s, server, tokens := newPage(t, false)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	post := func(path string, form url.Values) (int, string) {
		answer, err := client.PostForm(server.URL+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	if status, _ := post("/login", url.Values{"token": {"no"}}); status != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", status)
	}
	if status, body := post("/login", url.Values{"token": {tokens[1]}}); status != 200 ||
		!strings.Contains(body, "study") {
		t.Fatalf("%d %s", status, body)
	}
	_, body := post("/federations/"+s.status.ID+"/pause", nil)
	for _, want := range []string{"paused", "7</b> of 20",
		"has spent <b>epsilon 3.2000 at delta 1e-05",
		"for each record of a party, against a server that cheats with any 2 parties",
		">40 %</progress>", `<td class="number">35 %</td>`,
		"1 here, 1 late, 1 gone, 1 never",
		"&lt;script&gt;alert", "no sum", "The model has 4 shared numbers",
		"Waits for <b>1</b> of the committee: notary.", "Resume", "<svg"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a party's name is not escaped")
	}
	outside := regexp.MustCompile(`(src|href|action)="([^"]*)"`)
	for _, m := range outside.FindAllStringSubmatch(body, -1) {
		if !strings.HasPrefix(m[2], "/") || strings.HasPrefix(m[2], "//") {
			t.Errorf("an asset from elsewhere: %s", m[0])
		}
	}
}

// What cannot be undone takes the name of what it is of; a button does what can.
func TestConfirm(t *testing.T) {
	s, server, tokens := newPage(t, false)
	send := func(path, name string) (int, string) {
		r, err := http.NewRequest("POST", server.URL+"/federations/"+s.status.ID+path,
			strings.NewReader(url.Values{"name": {name}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "Bearer "+tokens[1])
		r.Header.Set("Accept", "text/html")
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	s.status.Parties[1].Name = "south/1"
	for _, c := range []struct {
		path, name string
		status     int
	}{
		{"/parties/south%2F1/exclude", "", 422}, {"/parties/south%2F1/exclude", "study", 422},
		{"/parties/south%2F1/exclude", "south/1", 303}, {"/parties/south%2F1/readmit", "", 303},
		{"/end", "", 422}, {"/end", "Study", 422}, {"/end", "study", 303},
	} {
		status, body := send(c.path, c.name)
		if status != c.status || status == 422 && !strings.Contains(body, "Nothing was done") {
			t.Errorf("%s of %q: %d %s", c.path, c.name, status, body)
		}
	}
	if got := strings.Join(s.done, ", "); got != "exclude south/1, readmit south/1, end" {
		t.Errorf("orders %q", got)
	}
}

// The node's page has what it takes to see which node is missed.
func TestNodePage(t *testing.T) {
	_, server, tokens := newPage(t, false)
	_, body, _ := call(t, "GET", server.URL+"/node", tokens[0], "", "")
	for _, want := range []string{"node node-1", "Not ready: node: nobody leads study",
		"led by node-2; 3 nodes, of which any 2 decide", "node-2, node-3 (away)", "</svg> behind",
		"</svg> failing", "</svg> well", "12.3 MB", "leads 1 of 2 federations"} {
		if !strings.Contains(body, want) {
			t.Errorf("the node's page lacks %q", want)
		}
	}
}

// The report has who, how much, against whom, by which plan, and the digests of all of it.
func TestReport(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.status.History[6].Digest = strings.Repeat("ef", 32)
	_, body, _ := call(t, "GET", server.URL+"/federations/"+s.status.ID+"/report", tokens[0], "", "")
	known, _ := s.Known("")
	roster := known.Federation.Settled.Roster()
	digest := roster.Digest()
	for _, want := range []string{"7 of 20 rounds were begun", "1 of them had no sum",
		"Sums had 9 parties; none is taken of fewer than 7",
		"<b>epsilon 3.2000 at delta 1e-05 " +
			"for each record of a party, against a server that cheats with any 2 parties" + "</b>",
		"no party spends more than epsilon 8 at delta 1e-05",
		"The model has 4 shared numbers", fmt.Sprintf("<code>%x</code>", []byte(roster.Key(1))),
		"<td>here earlier</td>", "<td>never here</td>", "paused", "by ann", s.status.ID,
		hex.EncodeToString(digest[:]), strings.Repeat("ef", 32), "data-protection officer: name"} {
		if !strings.Contains(body, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if strings.Contains(body, "<td>begun</td>") {
		t.Error("the report has events that nobody ordered")
	}
}
