package sidecar

import (
	"strings"
	"testing"
)

// A claim that was answered is said again, is within a budget that it implies and in no other, and
// is refused once it is changed.
func TestClaimCalls(t *testing.T) {
	c := start(t)
	type with = map[string]any
	spent, _ := c.call("account.epsilon", with{"mechanism": "gaussian", "noise_multiplier": 10,
		"adversary": "server"})
	const words = "epsilon 0.3407 (at least 0.3406) at delta 1e-05 for each party, against a server " +
		"that is curious; assumes sums"
	if spent["words"] != words {
		t.Errorf("%q, want %q", spent["words"], words)
	}
	if again, _ := c.call("claim.words", with{"claim": spent["claim"]}); again["words"] != words {
		t.Errorf("%q, want %q", again["words"], words)
	}
	ledger, _ := c.call("ledger.new", with{"adversary": "server", "epsilon": 1.0, "delta": 1e-5})
	kept, _ := c.call("ledger.spent", with{"ledger": ledger["ledger"], "client": "a"})
	budget, _ := kept["budget"].(with)
	const said = "epsilon 1 at delta 1e-05 for each party, against a server that is curious; " +
		"assumes sums"
	if again, _ := c.call("claim.words", with{"budget": budget}); again["words"] != said {
		t.Errorf("%q, want %q", again["words"], said)
	}
	c.call("claim.within", with{"claim": spent["claim"], "budget": budget})
	for field, want := range map[string]struct {
		to   any
		kind string
	}{"epsilon": {0.1, "budget"}, "server": {"cheating", "statement"}, "assumes": {[]string{},
		"statement"}, "unit": {"record", "statement"}, "colluders": {"many", "request"}} {
		other := with{}
		for name, x := range budget {
			other[name] = x
		}
		other[field] = want.to
		a := c.try("claim.within", with{"claim": spent["claim"], "budget": other})
		if a.Error == nil || a.Error.Kind != want.kind {
			t.Errorf("another %s: %+v, want %s", field, a.Error, want.kind)
		}
	}
	claim, _ := spent["claim"].(with)
	claim["at_least"] = 9
	if a := c.try("claim.words", with{"claim": claim}); a.Error == nil ||
		!strings.Contains(a.Error.Reason, "9 to 0.340") {
		t.Errorf("%+v", a.Error)
	}
}
