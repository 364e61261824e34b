package training

import (
	"strings"
	"testing"

	"github.com/hushsum/hushsum/aggregation"
)

// Every kind has one name, and none is missing.
func TestRules(t *testing.T) {
	clients := make(map[ClientKind]bool)
	for name, kind := range ClientRules {
		if clients[kind] || !strings.EqualFold(kind.String(), name) {
			t.Errorf("%s is %v", name, kind)
		}
		clients[kind] = true
	}
	for kind := FedAvg; kind <= FedGA; kind++ {
		if !clients[kind] {
			t.Errorf("%v has no name", kind)
		}
	}
	servers := make(map[aggregation.Rule]bool)
	for name, rule := range ServerRules {
		if servers[rule] {
			t.Errorf("%s is %v", name, rule)
		}
		servers[rule] = true
	}
	kinds := make(map[aggregation.MaskKind]bool)
	for _, kind := range masks {
		kinds[kind] = true
	}
	if len(servers) != 5 || len(kinds) != 3 || masks["none"] != aggregation.NoMask {
		t.Errorf("%v, %v", servers, kinds)
	}
}
