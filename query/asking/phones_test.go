package asking

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/query"
)

const phones = `name = "phones"
parties = { count = 10000 }
privacy = { noise = "discrete-gaussian", epsilon = 1.0 }
sum = { protocol = "oneshot" }
column = [{ name = "minutes", type = "number", range = [0.0, 1000.0] }]
query = [{ name = "minutes", kind = "histogram", column = "minutes", bins = 1000 }]
`

// 1,000 parties, or 10,000 with -longest, answer a histogram of 1,000 bins in one round, with one
// message each, in this process. The intervals of at least 93 % of the bins hold the truth: where
// it is near 0 they end there, and hold it more often than in 95 %.
func TestPhones(t *testing.T) {
	suite.OnlyLong(t)
	parties := 1000
	if suite.Longest() {
		parties = 10_000
	}
	j, err := job.Parse("phones.toml", []byte(phones), fmt.Sprint("parties.count=", parties))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	truth := make([]float64, 1000)
	var text strings.Builder
	text.WriteString("minutes\n")
	for range parties {
		minutes := 1000 * random.Float64() * random.Float64()
		truth[int(minutes)]++
		fmt.Fprintln(&text, minutes)
	}
	rows, _, err := query.NewSchema(j).Read("rows", strings.NewReader(text.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(j, j.Names())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(context.Background(), rows.Deal(parties, 1)); err != nil {
		t.Fatal(err)
	}
	figures, err := w.settled.Oneshot().Parameters()
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for i, c := range w.Answers[0].Cells {
		if c.Low <= truth[i] && truth[i] <= c.High {
			held++
		}
	}
	t.Logf("%d of %d parties in the sum, %d bytes up from each; %.1f %% of the intervals hold the "+
		"truth", w.Present, w.Parties, figures.Up, float64(held)/10)
	if w.Present != parties || held < 930 {
		t.Errorf("%d parties are in the sum, %d of 1,000 intervals hold the truth", w.Present, held)
	}
}
