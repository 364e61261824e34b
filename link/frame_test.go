package link

import (
	"errors"
	"strings"
	"testing"
)

// A hello is read as strictly as a job: a key that comes twice, in another case, or that nobody
// knows is refused by name.
func TestMisuseHello(t *testing.T) {
	for _, key := range []string{"LEAST", "least", "plan", "Job"} {
		var h Hello
		body := []byte(`{"roster":"","digest":"","sessions":[],"least":1,"` + key + `":1}`)
		err := ParseJSON(body, &h)
		if !errors.Is(err, ErrFrame) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
