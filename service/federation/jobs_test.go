package federation_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/service/federation"
)

// The example on the page of the service is the federation of testdata/jobs/study.toml, but for
// drop_out: none of the eight of a round may be missing there.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../docs/service-begin.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```toml\n")
	example, _, _ = strings.Cut(example, "```")
	example = strings.NewReplacer("drop_out = 0.2 ", "#", "[sum]", "[sum]\nrecovery = true").
		Replace(example)
	is, err := federation.New(federation.Files{Text: []byte(example), Roster: rosterOf(t, 10)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "jobs", "study.toml"))
	if err != nil {
		t.Fatal(err)
	}
	study, err := federation.New(federation.Files{Text: text, Roster: rosterOf(t, 10)})
	if err != nil || is.ID != study.ID || !reflect.DeepEqual(is.Job.Time, study.Job.Time) {
		t.Errorf("another federation: %v\n%+v", err, is.Job)
	}
}
