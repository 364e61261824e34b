package realdata

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files of the data sets are those of docs/data.sha256, which docs/testing.md names.
func TestDigests(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.Open(filepath.Join(root, "docs", "data.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	page, err := os.ReadFile(filepath.Join(root, "docs/testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for lines := bufio.NewScanner(list); lines.Scan(); {
		want, name, ok := strings.Cut(lines.Text(), "  ")
		folder, file, _ := strings.Cut(name, "/")
		if !ok || len(want) != 64 || !strings.Contains(string(page), "`"+folder+"`") ||
			!strings.Contains(string(page), "`"+file+"`") {
			t.Errorf("%q is no line of a digest, or docs/testing.md does not name it", lines.Text())
		}
		listed++
		t.Run(folder, func(t *testing.T) {
			in, err := os.Open(filepath.Join(Dir(t, folder), file))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			digest := sha256.New()
			if _, err := io.Copy(digest, in); err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(digest.Sum(nil)); got != want {
				t.Errorf("%s has the digest %s, not %s", name, got, want)
			}
		})
	}
	if listed != 14 {
		t.Errorf("%d files are listed", listed)
	}
}
