package harness

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// roleVariable says what a process of the harness is, which is this test's binary again, and
// folderVariable where its files are.
const (
	roleVariable   = "HUSHSUM_HARNESS_ROLE"
	folderVariable = "HUSHSUM_HARNESS_FOLDER"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "node" {
		beNode(os.Getenv(folderVariable))
		return
	}
	os.Exit(m.Run())
}

// random follows from the flag for it.
func random(t *testing.T) *rand.Rand {
	at := *seed
	if at == 0 {
		at = uint64(time.Now().UnixNano())
	}
	t.Logf("-harness.seed %d", at)
	return rand.New(rand.NewPCG(at, 54))
}
