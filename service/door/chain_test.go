package door_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/runner"
	"github.com/hushsum/hushsum/service/signature"
)

// A party gets the lines of the chain, which end with the head that the door tells, and so does
// whoever asks from a later entry on. A question with that head is answered, and one with a head
// that nobody has signed is refused, as are lines and queries that make no sense.
func TestChain(t *testing.T) {
	s := newSite(t, door.Options{})
	path := "/v1/federations/" + s.fed.ID + "/chain"
	who := s.identities[0]
	answer, err := http.DefaultClient.Do(s.request(t, "GET", path+"?from=0", nil, who))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	note, err := exchange.ParseHead(answer.Header)
	if err != nil {
		t.Fatal(err)
	}
	head, err := chain.OpenHead(note, s.fed.ID, s.fed.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := chain.Union(s.fed.ID, s.fed.Key, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if is, err := c.Head(); err != nil || *is != *head {
		t.Errorf("%+v, %v, want %+v", is, err, head)
	}
	_, _, later := send(t, s.request(t, "GET", path+"?from=1", nil, who))
	if !strings.HasSuffix(b.String(), later) || len(later) == 0 || len(later) >= b.Len() {
		t.Errorf("from entry 1 on: %q", later)
	}

	next := "/v1/federations/" + s.fed.ID + "/next?number=" // of questions that do not wait
	asked := time.Now().UnixNano()
	asks := func(head string) (int, string) {
		asked++
		r := s.request(t, "GET", next+strconv.FormatInt(asked, 10)+"&wait=0", nil, who)
		if head != "" {
			r.Header.Set("Hushsum-Head", head)
		}
		status, kind, _ := send(t, r)
		return status, kind
	}
	text := base64.StdEncoding.EncodeToString(note)
	forged := bytes.Clone(note)
	forged[len(forged)-9] ^= 1
	for head, want := range map[string]string{"": "", text: "", "x": "head", text[1:]: "head",
		base64.StdEncoding.EncodeToString(forged): "head"} {
		if status, kind := asks(head); kind != want {
			t.Errorf("a head %.20q: %d %s, want %q", head, status, kind, want)
		}
	}

	for query, want := range map[string]string{"": "query", "?from=x": "query", "?from=-1": "query",
		"?from=0&from=1": "query", "?from=0&to=1": "query"} {
		if _, kind, _ := send(t, s.request(t, "GET", path+query, nil, who)); kind != want {
			t.Errorf("%q: %s, want %s", query, kind, want)
		}
	}
	given := func(g exchange.Given) []byte {
		b, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"its own":   {given(exchange.Given{Head: note, Lines: c.Lines(1)}), ""},
		"no lines":  {given(exchange.Given{Head: note}), "head"},
		"no head":   {given(exchange.Given{Lines: c.Lines(1)}), "head"},
		"forged":    {given(exchange.Given{Head: forged, Lines: c.Lines(1)}), "head"},
		"other":     {given(exchange.Given{Head: note, Lines: c.Lines(0)[:1]}), "head"},
		"no JSON":   {[]byte("{"), "head"},
		"more":      {[]byte(`{"head":"","lines":[],"more":1}`), "head"},
		"oversized": {make([]byte, 2*exchange.MostLines+1), "oversized"},
	} {
		if status, kind, _ := send(t, s.request(t, "POST", path, c.body, who)); kind != c.want {
			t.Errorf("%s: %d %s, want %q", name, status, kind, c.want)
		}
	}
	body := given(exchange.Given{Head: note, Lines: c.Lines(1)})
	r := s.request(t, "POST", path, body, nil)
	if err := signature.Sign(r, append(body, ' '), who, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, kind, _ := send(t, r); kind != "digest" {
		t.Errorf("other bytes than were signed: %s", kind)
	}
	if _, kind, _ := send(t, s.request(t, "POST", path, body, s.stranger)); kind != "stranger" {
		t.Errorf("a stranger: %s", kind)
	}
	if s.run.Hear(context.Background(), runner.Peer{}, note) != nil {
		t.Error("the runner no longer leads")
	}
}
