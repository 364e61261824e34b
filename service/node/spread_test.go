package node

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hushsum/hushsum/service/federation"
)

// From however many federations each of four nodes leads, the last of which may be unable to take
// any, they hand over until no two that are able differ by two, and then do not any more.
func TestPassTo(t *testing.T) {
	const nodes, most = 4, 5
	for start := range (most + 1) * (most + 1) * (most + 1) * (most + 1) * 2 {
		here := make([]presence, nodes)
		rest := start / 2
		for k := range here {
			here[k] = presence{Node: fmt.Sprint("n", k), Leads: rest % (most + 1)}
			rest /= most + 1
		}
		here[nodes-1].Unable = start%2 == 1
		for passes := 0; ; passes++ {
			moved := 0
			before := slices.Clone(here)
			for k := range here {
				to := passTo(here[k].Node, slices.Clone(before))
				for i := range here {
					if here[i].Node == to {
						if here[i].Unable || here[k].Leads-here[i].Leads < 2 {
							t.Fatalf("%d: %+v hands to %+v", start, here[k], here[i])
						}
						here[k].Leads--
						here[i].Leads++
						moved++
					}
				}
			}
			if moved == 0 {
				break
			}
			if moved > 1 || passes > nodes*most {
				t.Fatalf("%d: %d hand over at once, after %d", start, moved, passes)
			}
		}
		least, greatest := here[0].Leads, 0
		for _, p := range here {
			if !p.Unable {
				least = min(least, p.Leads)
			}
			greatest = max(greatest, p.Leads)
		}
		if greatest-least > 1 {
			t.Fatalf("%d ends with %+v", start, here)
		}
	}
	if to := passTo("a", nil); to != "" {
		t.Errorf("nobody is heard, and %q is to lead", to)
	}
}

// Only the node that a federation was handed to claims it, until it has let a time pass; and who
// has to take one back hands over none for a while.
func TestPassedIsLeftToOne(t *testing.T) {
	at := func(name string, since time.Duration) bool {
		n := &Node{Options: Options{Name: name, Silence: time.Hour}}
		return n.mayClaim(&entry{federation: &federation.Federation{},
			leader: lead{Node: "a", Leaving: true, For: "b"}, heard: time.Now().Add(-since)})
	}
	if !at("b", 0) || at("a", 0) || at("c", 0) || !at("a", 2*passWait) || !at("c", 2*passWait) {
		t.Error("another than the one that it was handed to may claim, or nobody may later")
	}
	n := &Node{Options: Options{Name: "a"}, passing: passing{to: "b"}}
	if n.pass() != "b" || n.pass() != "" {
		t.Error("one is to be handed over, and another number is")
	}
}
