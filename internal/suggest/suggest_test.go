package suggest

import "testing"

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"same", "same", 0}, {"kitten", "sitting", 3},
		{"mnsit", "mnist", 1}, {"ca", "abc", 3}, {"skelam", "skellam", 1}, {"öde", "ode", 1},
	} {
		if got, back := changes(c.a, c.b), changes(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("%q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"simulate", "account", "calibrate", "experiment", "attack", "per-round",
		"rounds"}
	for typed, want := range map[string]string{
		"simulat": "simulate", "SIMULATE": "simulate", "acount": "account", "sim": "simulate",
		"atack": "attack",
		"round": "rounds", "perround": "per-round", "frobnicate": "", "x": "", "": "", "it": "",
	} {
		if got := Nearest(typed, known); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}
