package page_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/page"
)

// Who decides is said in words.
func TestSay(t *testing.T) {
	for want, n := range map[string]page.Nodes{
		"the record is on another NATS, whose own servers decide": {},
		"1 of 1 nodes are up, 1 decide: none of them may fail":    {Members: 1, Quorum: 1},
		"3 of 3 nodes are up, 2 decide: 1 may fail":               {Members: 3, Quorum: 2, Missing: 1},
		"1 of 3 nodes are up, 2 decide: nothing is decided":       {Members: 3, Quorum: 2, Missing: -1},
		"5 of 5 nodes are up, 3 decide: 2 may fail":               {Members: 5, Quorum: 3, Missing: 2},
		"2 of 3 nodes are up, 2 decide: none of them may fail; 4 streams of the record lack a whole " +
			"copy": {Members: 3, Quorum: 2, Copying: 4},
		"3 of 3 nodes are up, 2 decide: 1 may fail; 4 streams of the record are being copied": {
			Members: 3, Quorum: 2, Missing: 1, Copying: 4},
	} {
		if got := n.Say(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Programs get nodes and keys as they are, with the number that a removal has to name; what fails
// is said; and who removed what is in the log.
func TestNodesAndKeys(t *testing.T) {
	s := newShown()
	tokens, fresh, err := page.OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	server := httptest.NewServer(page.New(page.Options{Federations: s, Tokens: tokens,
		Log: slog.New(slog.NewTextHandler(&log, nil)), Counts: new(door.Counts)}))
	defer server.Close()
	ask := func(method, path, match string) (int, string, string) {
		t.Helper()
		status, body, h := call(t, method, server.URL+"/v1/"+path, fresh[1], match, "")
		return status, body, h.Get("ETag")
	}
	var nodes page.Nodes
	status, body, tag := ask("GET", "nodes", "")
	if err := json.Unmarshal([]byte(body), &nodes); status != 200 || tag != `"4"` || err != nil ||
		len(nodes.Nodes) != 1 || nodes.Nodes[0].Name != "node-1" || nodes.Revision != 4 {
		t.Errorf("%d, tag %s: %s, %v", status, tag, body, err)
	}
	for _, force := range []string{"", "?force=1", "?force=false"} {
		if status, body, _ := ask("POST", "nodes/node-1/remove"+force, `"4"`); status != 409 ||
			strings.Contains(log.String(), "a node was removed") {
			t.Errorf("%q: %d %s; %s", force, status, body, log.String())
		}
	}
	status, body, tag = ask("POST", "nodes/node-1/remove?force=true", tag)
	if err := json.Unmarshal([]byte(body), &nodes); status != 200 || tag != `"4"` || err != nil ||
		!strings.Contains(log.String(), `msg="a node was removed" node=node-1`) {
		t.Errorf("%d, tag %s: %s, %v; %s", status, tag, body, err, log.String())
	}
	for _, x := range [][2]string{{"GET", "keys"}, {"POST", "keys/rewrite"}} {
		var keys []page.Key
		status, body, _ := ask(x[0], x[1], "")
		want := page.Key{Name: "0123456789abcdef", Seals: true, Objects: 3}
		if err := json.Unmarshal([]byte(body), &keys); status != 200 || err != nil || len(keys) != 1 ||
			keys[0] != want {
			t.Errorf("%s: %d %s, %v", x, status, body, err)
		}
	}
	s.fails = errors.New("it is broken")
	for _, x := range [][2]string{{"GET", "keys"}, {"POST", "keys/rewrite"}, {"GET", "nodes"}} {
		if status, body, _ := ask(x[0], x[1], ""); status < 400 {
			t.Errorf("%s, which fails: %d %s", x, status, body)
		}
	}
	if n := strings.Count(log.String(), "was sealed under the newest key"); n != 1 {
		t.Errorf("%d lines of a key: %s", n, log.String())
	}
}

// The form that asks for a name goes to where its order is taken.
func TestConfirmation(t *testing.T) {
	s, server, tokens := newPage(t, false)
	s.status.Parties[1].Name = "south/1"
	at := "/federations/" + s.status.ID
	for path, words := range map[string][]string{
		at + "/end": {`action="` + at + `/end"`, "End study"},
		at + "/parties/south%2F1/exclude": {`action="` + at + `/parties/south%2F1/exclude"`,
			"Leave south/1 out"},
	} {
		_, body, _ := call(t, "GET", server.URL+path, tokens[1], "", "")
		for _, want := range words {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %q: %s", path, want, body)
			}
		}
	}
	for _, method := range []string{"GET", "POST"} {
		status, body, h := call(t, method, server.URL+"/federations/none/end", tokens[1], "", "")
		if kind := kindOf(t, status, h, body); status != 404 || kind != "unknown" {
			t.Errorf("%s of a federation that there is not: %d %s", method, status, kind)
		}
	}
}

// Names of operators have a length and letters that can be printed.
func TestOperatorNames(t *testing.T) {
	key := strings.Repeat("ab", 32)
	for name, good := range map[string]bool{strings.Repeat("n", 60): true,
		strings.Repeat("n", 61): false, "ann\x7f": false, "ann\x01": false, "änn": false, "a~!": true} {
		file := filepath.Join(t.TempDir(), "operators.txt")
		writeFile(t, file, fmt.Sprintf("read %s %s\n", name, key))
		if _, err := page.OpenOperators(file, nil); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
