package simulation

import "testing"

// Without time a result says what each party had of a round, the last model that was judged by then
// included; nothing of that is kept.
func TestSeen(t *testing.T) {
	x := small(t)
	x.Rounds, x.World.EvaluateEvery = 3, 2
	out, err := x.run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := range out.Rounds {
		one, seen := &out.Rounds[k], out.Seen(k)
		if one.Each != nil || len(seen) != len(x.rows) {
			t.Fatalf("round %d: %d parties, %d kept", k+1, len(seen), len(one.Each))
		}
		in, accuracy := 0, 0.0
		if k > 0 {
			accuracy = out.Rounds[max(1, k)].Accuracy()
		}
		for i, p := range seen {
			if p.Party != partyName(i) || p.Rows != x.rows[i].Len() || p.Accuracy != accuracy ||
				p.Sent != int(one.Cost.BytesUp) || p.Sent == 0 {
				t.Errorf("round %d: %+v", k+1, p)
			}
			if p.Included {
				in++
			}
		}
		if in != one.Parties {
			t.Errorf("round %d: %d of %d are in the sum", k+1, in, one.Parties)
		}
	}
}
