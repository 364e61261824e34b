package collusion

import (
	"errors"
	"math"
	"testing"

	"github.com/hushsum/hushsum/attacks"
)

// The colluders piece together exactly what went into the sum: with the honest
// party's own terms and choices nothing but its input is left.
func TestColluders(t *testing.T) {
	const parties, length = 4, 50
	for _, equal := range []bool{false, true} {
		p, err := runPublished(parties, length, equal, attacks.Options{}.Rand(1))
		if err != nil {
			t.Fatal(err)
		}
		views, err := p.colluders()
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range views {
			if len(v.among) != (parties-1)*(parties-2) {
				t.Fatalf("coordinate %d: %d offers among colluders", k, len(v.among))
			}
			left := p.leftOver(t, v, k, equal)
			if math.Abs(left-p.inputs[k]) > 1e-9 {
				t.Fatalf("equal %v, coordinate %d: %v is left, the input is %v",
					equal, k, left, p.inputs[k])
			}
		}
	}
	p, err := runPublished(3, 1, false, attacks.Options{}.Rand(2))
	if err != nil {
		t.Fatal(err)
	}
	p.parties[2].View().Received[1][0][0]++ // a difference that party 1 did not send
	if _, err := p.colluders(); !errors.Is(err, errViews) {
		t.Errorf("views that do not fit: %v", err)
	}
}

// leftOver subtracts from the sum all noise on coordinate k, with what party 0 and the
// server know.
func (p *publishedRun) leftOver(t *testing.T, v *noiseView, k int, equal bool) float64 {
	honest, swaps := p.parties[0].View(), p.server.Swaps()
	left := v.masked - v.own - inLambda(honest.Own[k])
	for i, sent := range v.among {
		left -= sent[v.amongBits[i]]
	}
	for i, sent := range v.toHonest {
		left -= sent[honest.Choices[i+1][k]^swaps[i+1][0][k]]
		if equal && sent[0] != sent[1] {
			t.Fatalf("coordinate %d: the candidates are not equal", k)
		}
	}
	for i, bit := range v.fromHonestBits {
		terms := honest.Terms[i+1]
		difference := inLambda(terms[0][k] - terms[1][k])
		if math.Abs(v.fromHonest[i]) != math.Abs(difference) {
			t.Fatalf("coordinate %d: a wrong difference", k)
		}
		left -= inLambda(terms[bit^swaps[0][i+1][k]][k])
	}
	return left
}
