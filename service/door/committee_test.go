package door_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/keyexchange"
	"github.com/hushsum/hushsum/service/door"
)

// withCommittee makes a committee's text, and the identities of its members.
func withCommittee(t *testing.T, members int) (text []byte, identities []ed25519.PrivateKey) {
	t.Helper()
	var entries []keyexchange.Entry
	for k := range members {
		key, err := keyexchange.GenerateIdentity(nil)
		if err != nil {
			t.Fatal(err)
		}
		identities = append(identities, key)
		entries = append(entries, keyexchange.Entry{Name: fmt.Sprint("m", k),
			Key: key.Public().(ed25519.PublicKey)})
	}
	roster, err := keyexchange.NewRoster(entries)
	if err == nil {
		text, err = roster.MarshalText()
	}
	if err != nil {
		t.Fatal(err)
	}
	return text, identities
}

// Members have resources of their own, and no party's; parties have none of theirs. What all must
// know all may read.
func TestCommitteeRoles(t *testing.T) {
	committee, members := withCommittee(t, 4)
	s := newSiteWith(t, door.Options{}, strings.Replace(declared, "drop_out = 0.2 }",
		"drop_out = 0.2 }\nsum = { protocol = \"oneshot\", committee = \"c\" }", 1), committee)
	base := "/v1/federations/" + s.fed.ID
	for _, c := range []struct {
		method, path       string
		byParty, byMember  int
		ofParty, forMember string
	}{
		{"GET", base, 200, 200, "", ""},
		{"GET", base + "/roster", 200, 200, "", ""},
		{"GET", base + "/committee", 200, 200, "", ""},
		{"GET", base + "/model", 200, 403, "", "stranger"},
		{"GET", base + "/next?wait=0", 204, 403, "", "stranger"},
		{"GET", base + "/next?offer=x", 400, 403, "query", "stranger"},
		{"GET", base + "/committee/next?wait=0", 403, 204, "stranger", ""},
		{"POST", base + "/messages", 409, 403, "due", "stranger"},
		{"POST", base + "/committee/messages", 403, 422, "stranger", "message"},
	} {
		var body []byte
		if c.method == "POST" {
			body = []byte("no message")
		}
		status, kind, text := send(t, s.request(t, c.method, c.path, body, s.identities[1]))
		if status != c.byParty || kind != c.ofParty {
			t.Errorf("%s %s of a party: %d %s %s", c.method, c.path, status, kind, text)
		}
		status, kind, text = send(t, s.request(t, c.method, c.path, body, members[1]))
		if status == 200 && c.byMember == 204 { // the runner has something for it already
			status = 204
		}
		if status != c.byMember || kind != c.forMember {
			t.Errorf("%s %s of a member: %d %s %s", c.method, c.path, status, kind, text)
		}
		if status, kind, _ := send(t, s.request(t, c.method, c.path, body, s.stranger)); status != 403 ||
			kind != "stranger" {
			t.Errorf("%s %s of a stranger: %d %s", c.method, c.path, status, kind)
		}
	}
	_, _, text := send(t, s.request(t, "GET", base+"/committee", nil, members[0]))
	if !bytes.Equal([]byte(text), committee) {
		t.Errorf("another committee: %s", text)
	}
}

// A federation without a committee has no such resource.
func TestNoCommittee(t *testing.T) {
	s := newSite(t, door.Options{})
	base := "/v1/federations/" + s.fed.ID
	status, kind, _ := send(t, s.request(t, "GET", base+"/committee", nil, s.identities[0]))
	if status != 404 || kind != "route" {
		t.Errorf("%d %s", status, kind)
	}
	path := base + "/committee/next?wait=0"
	if status, kind, _ := send(t, s.request(t, "GET", path, nil, s.identities[0])); status != 403 {
		t.Errorf("%d %s", status, kind)
	}
}
