package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hushsum/hushsum/internal/chain"
	"github.com/hushsum/hushsum/internal/receipt"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/party"
)

// Each party has a receipt of each round, which verifies without the node, and no two contradict
// each other.
func TestReceipts(t *testing.T) {
	inTurn(t)
	const rounds = 3
	s := startSmall(t, rounds, "", node.Options{})
	var all []*party.Party
	for i := range smallParties {
		all = append(all, s.run(context.Background(), i, nil, new(safeBuffer), trains))
	}
	s.group.Wait()
	s.node.Close()
	var first *receipt.Receipt
	compared := 0
	for i, p := range all {
		lines, err := os.ReadFile(filepath.Join(p.Folder, "chain"))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := chain.Union(s.fed.ID, s.fed.Key, lines)
		if err != nil {
			t.Fatal(err)
		}
		tree, _, err := kept.Tree()
		if err != nil {
			t.Fatal(err)
		}
		for round := 1; round <= rounds; round++ {
			b, err := os.ReadFile(filepath.Join(p.Folder, "receipts", fmt.Sprint(round, ".receipt")))
			if err != nil {
				t.Error(err)
				continue
			}
			r, err := receipt.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
				t.Logf("%d bytes", len(b))
			}
			shown, err := r.Verify(first.Key[:])
			if err != nil {
				t.Error(err)
			}
			if int(r.Party) != i || int(r.Round) != round || r.Count != smallParties {
				t.Errorf("%+v", r.Statement)
			}
			if e, err := receipt.Contradict(first, r, nil); e != nil {
				t.Errorf("%+v, %v", e, err)
			}
			if shown != nil && shown.Head.Size <= tree.Size() {
				if root, err := tree.Root(shown.Head.Size); err != nil || root != shown.Head.Root {
					t.Errorf("its head is not of the lines that the party keeps: %v", err)
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("no receipt was compared with a party's lines")
	}
}
