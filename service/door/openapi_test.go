package door_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/service/door"
	"github.com/hushsum/hushsum/service/exchange"
	"github.com/hushsum/hushsum/service/internal/openapi"
)

// The document describes the handlers that there are and no others, and of refusals those
// of the table, which the documentation has too.
func TestOpenAPI(t *testing.T) {
	document := openapi.Read(t, door.OpenAPI())
	document.Check(t, door.Routes, exchange.Refusals())
	document.Fields(t, "Problem", exchange.Problem{})
	document.Fields(t, "Listed", exchange.Listed{})
	document.Fields(t, "Description", exchange.Description{})
	document.Job(t, "Description", "text")
	text, err := os.ReadFile(filepath.FromSlash("../../docs/service-join.md"))
	if err != nil {
		t.Fatal(err)
	}
	openapi.Compare(t, openapi.Table(t, string(text), "## Refusals"), exchange.Refusals())
	s := newSite(t, door.Options{})
	status, _, body := send(t, s.request(t, "GET", "/v1/openapi.json", nil, nil))
	if status != 200 || body != string(door.OpenAPI()) {
		t.Errorf("it serves another document: %d", status)
	}
}
