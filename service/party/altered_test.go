package party

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/hushsum/hushsum/internal/strict/altered"
	"github.com/hushsum/hushsum/service/exchange"
)

// A refusal of the server and the metrics of a training command are read as they are declared, and
// in no other way.
func TestAltered(t *testing.T) {
	altered.Refused(t, []byte(`{"loss": 0.5, "accuracy": 1}`), func(text []byte) error {
		_, _, err := metricsOf(text)
		return err
	})
	problem, err := json.Marshal(exchange.Problem{Type: exchange.ProblemPrefix + "stale",
		Title: "stale", Status: 409, Detail: "an older round"})
	if err != nil {
		t.Fatal(err)
	}
	altered.Refused(t, problem, func(text []byte) error {
		if r := refusalOf(&http.Response{StatusCode: 409}, text); r.Kind != "stale" {
			return errors.New("it has no kind")
		}
		return nil
	})
}
