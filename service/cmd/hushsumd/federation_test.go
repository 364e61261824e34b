package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

const created = `name = "s"
rounds = 3
parties = { roster = "roster.txt", drop_out = 0.25 }
model.length = 3
privacy.clip = 1.0
`

// What is sent of a job has no world, and that is said. The identifier comes last.
func TestCreate(t *testing.T) {
	var sent page.Declared
	id := strings.Repeat("0a", 32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = page.Declared{}
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"id": id})
	}))
	defer server.Close()
	folder := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	roster := ""
	for _, name := range []string{"a", "b", "c", "d"} {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte(name), 32)).Public().(ed25519.PublicKey)
		roster += name + " " + hex.EncodeToString(key) + "\n"
	}
	write("roster.txt", roster)
	file := write("s.toml", "")
	plain, err := job.Parse("s.toml", []byte(created))
	if err != nil {
		t.Fatal(err)
	}
	digest := plain.Digest()
	for _, c := range []struct{ text, notes string }{
		{created, ""},
		{created + "[world]\ndrop = 0.1\n",
			"[world] is for simulations and is left out: it is sent to nobody\n"},
	} {
		write("s.toml", c.text)
		code, text := says(t, "federation", "create", file, "--admin", server.URL)
		if code != 0 || !strings.HasSuffix("\n"+text, "\n"+id+"\n") || !strings.Contains(text, c.notes) ||
			(c.notes == "") != (text == id+"\n") {
			t.Errorf("%d %q, want %q", code, text, c.notes)
		}
		if string(sent.Roster) != roster || bytes.Contains(sent.Text, []byte("world")) {
			t.Errorf("it sent %s", sent.Text)
		}
		is, err := job.Parse("sent", sent.Text)
		if err != nil || is.Digest() != digest {
			t.Errorf("it sent another job: %v\n%s", err, sent.Text)
		}
		code, text = says(t, "federation", "check", file)
		if code != 0 || !strings.Contains(text, c.notes) ||
			!strings.Contains(text, "roster fingerprint") ||
			!strings.Contains(text, hex.EncodeToString(digest[:])) {
			t.Errorf("%d %s", code, text)
		}
	}
	write("s.toml", strings.Replace(created, "clip", "oddly", 1))
	sent.Text = nil
	code, text := says(t, "federation", "create", file, "--admin", server.URL)
	if code != 1 || !strings.Contains(text, "oddly") || sent.Text != nil {
		t.Errorf("%d %s", code, text)
	}
}

// The digest of the job is shown next to the identifier, where there is one.
func TestShowJob(t *testing.T) {
	for _, digest := range []string{strings.Repeat("0b", 32), ""} {
		var b bytes.Buffer
		s := &runner.Status{Name: "study", ID: strings.Repeat("0a", 32), Job: digest, State: "waiting"}
		if err := show(s, false, streams{out: &b}); err != nil ||
			strings.Contains(b.String(), s.ID+"\njob  "+digest+"\nwaiting") != (digest != "") {
			t.Errorf("%v %s", err, b.String())
		}
	}
}

// The session's number is shown, which a party that has lost its state asks for, if there is one.
func TestShowSession(t *testing.T) {
	for number, want := range map[uint64]string{2: "\nsession 2, round 1 of 3", 0: "\nround 1 of 3"} {
		var b bytes.Buffer
		s := &runner.Status{Name: "study", State: "running", Session: number, Round: 1, Rounds: 3,
			Leader: "n"}
		if err := show(s, false, streams{out: &b}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v %s", err, b.String())
		}
	}
}

// A federation in which too few parties are present says for whom it waits, and how many a sum
// takes.
func TestShowLacks(t *testing.T) {
	for state, want := range map[string]string{
		"running": "running, ready\nwaits for: c (never here), d (gone); a sum needs 3 of 4 parties, " +
			"and 2 are here\nround 1 of 3",
		"ended": "ended, ready\nround 1 of 3",
	} {
		var b bytes.Buffer
		s := &runner.Status{Name: "study", State: state, Stage: "ready", Least: 3, Round: 1, Rounds: 3,
			Leader: "n", Parties: []runner.PartyStatus{{Name: "a", State: "here"},
				{Name: "b", State: "late"}, {Name: "c", State: "never"}, {Name: "d", State: "gone"}}}
		if err := show(s, false, streams{out: &b}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v %s", err, b.String())
		}
	}
}

// The files of a second federation that continues one come with a word about the first: they have
// nothing of what it spends.
func TestAfterAnother(t *testing.T) {
	for before, want := range map[string]bool{"0a": true, "": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/after") {
				_ = json.NewEncoder(w).Encode(page.Declared{Text: []byte(created)})
				return
			}
			_ = json.NewEncoder(w).Encode([]*runner.Status{{Name: "s", ID: "0a"},
				{Name: "s-2", ID: "0b", Before: before}})
		}))
		code, text := says(t, "federation", "after", "s", t.TempDir(), "--admin", server.URL)
		if code != 0 || strings.Contains(text, "s-2 continues s already") != want {
			t.Errorf("%d %s", code, text)
		}
		server.Close()
	}
}

// A door that is taken for the page's address answers plain HTTP as Go's servers do.
func TestDoorForPage(t *testing.T) {
	door := httptest.NewTLSServer(http.NotFoundHandler())
	defer door.Close()
	code, text := says(t, "federation", "list", "--admin",
		strings.Replace(door.URL, "https", "http", 1))
	if code != 1 || !strings.Contains(text, "is it the page's address, and not the door's?") {
		t.Errorf("%d %s", code, text)
	}
}
