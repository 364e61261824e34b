package asking

import (
	"context"
	"crypto"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hushsum/hushsum"
	"github.com/hushsum/hushsum/job"
	"github.com/hushsum/hushsum/link"
	"github.com/hushsum/hushsum/oneshot"
	"github.com/hushsum/hushsum/oneshot/crook"
	"github.com/hushsum/hushsum/query"
)

// liar adds to what its party sends.
type liar struct {
	hushsum.Dialer
	sums *oneshot.Config
	key  crypto.Signer
	by   int64
}

func (d *liar) Dial(ctx context.Context) (hushsum.Link, error) {
	conn, err := d.Dialer.Dial(ctx)
	return &lyingLink{conn, d}, err
}

type lyingLink struct {
	hushsum.Link
	liar *liar
}

func (l *lyingLink) Send(ctx context.Context, frame []byte) error {
	if frame[0] == link.KindMessage {
		// Anything but a submission has another length, and goes as it is.
		if bad, err := crook.Shift(l.liar.sums, l.liar.key, frame[1:], []int64{l.liar.by}); err == nil {
			frame = link.NewFrame(link.KindMessage, bad)
		}
	}
	return l.Link.Send(ctx, frame)
}

// A party whose vector is a hundred times as long as it may be, in a job with queries and proofs,
// is refused and named, and answers are of the others; without proofs its lie decides the answer,
// which is 30 in truth and can be from 0 to 60. Chance, by the rotation of vectors, decides which
// of both it is.
func TestLyingParty(t *testing.T) {
	const cheat, rows = 2, 10
	for _, bounded := range []bool{true, false} {
		set := []string{"sum.protocol=oneshot", "parties.drop_out=0.2", "parties.colluders=1",
			"privacy.noise=discrete-gaussian", "privacy.epsilon=50"}
		if bounded {
			set = append(set, "sum.bounded=true")
		}
		j, err := job.Parse("a.toml", []byte(text), set...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(j, j.Names())
		if err != nil {
			t.Fatal(err)
		}
		mechanism := w.settled.Mechanism()
		sums := w.settled.Oneshot()
		w.dial = func(party int, d hushsum.Dialer) hushsum.Dialer {
			if party != cheat {
				return d
			}
			return &liar{d, sums, w.parties[cheat], int64(100 * mechanism.Vector.Sensitivity.L2)}
		}
		own, _, err := query.NewSchema(j).Read("rows", strings.NewReader("age\n"+
			strings.Repeat("70\n20\n", 6*rows/2)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(context.Background(), own.Deal(6, 1)); err != nil {
			t.Fatal(err)
		}
		c := w.Answers[0].Cells[0]
		t.Logf("bounded %v: %d in the sum, %v refused, %+v", bounded, w.Present, w.refused, c)
		if bounded {
			if w.Present != 5 || !slices.Equal(w.refused, []string{"party-3"}) || c.Value > 40 {
				t.Errorf("%d parties are in the sum, %v were refused, %+v", w.Present, w.refused, c)
			}
			continue
		}
		if w.Present != 6 || len(w.refused) > 0 || math.Abs(c.Value-30) < 15 {
			t.Errorf("without proofs: %d parties, %v refused, %+v", w.Present, w.refused, c)
		}
	}
}
