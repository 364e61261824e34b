package record_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/record"
)

// A node of three whose copy of what names the newest state has lost a bit, anywhere, and that is
// started again with the others: whichever node is asked, the state is the newest. Its own file is
// not asked.
func TestFlipCluster(t *testing.T) {
	suite.OnlyLong(t) // a cluster takes seconds, and ports that were free a moment ago
	var peers, folders []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peers, folders = append(peers, l.Addr().String()), append(folders, t.TempDir())
		_ = l.Close()
	}
	between := routes(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	start := func() (nodes []*record.Embedded, all []*record.Records) {
		t.Helper()
		for i, name := range []string{"a", "b", "c"} {
			e, err := record.StartEmbedded(ctx, record.EmbeddedOptions{Folder: folders[i], Name: name,
				Listen: peers[i], Peers: peers, TLS: between})
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, e)
		}
		for _, e := range nodes {
			for {
				r, err := record.Open(ctx, e.JS, 3, record.NewKeys(flipKey))
				if err == nil {
					all = append(all, r)
					break
				}
				if ctx.Err() != nil {
					t.Fatal(err)
				}
			}
		}
		return nodes, all
	}
	stop := func(nodes []*record.Embedded) {
		var group sync.WaitGroup
		for _, e := range nodes {
			group.Go(e.Close)
		}
		group.Wait()
	}
	nodes, all := start()
	h, err := declared(t, all[0]).Claim(ctx, id, "a")
	for i := range flipDecisions {
		if err == nil {
			err = h.Decide(ctx, fmt.Append(nil, "decision ", i))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	stop(nodes)
	files := filepath.Join("jetstream", "$G", "streams", "HUSHSUM-DECIDED", "msgs", "*.blk")
	for trial := range 3 {
		blocks, err := filepath.Glob(filepath.Join(folders[trial%3], files))
		if err != nil || len(blocks) == 0 {
			t.Fatalf("%v, %v", blocks, err)
		}
		name := blocks[len(blocks)-1]
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndex(b, []byte(`"number":`)) + trial // within the newest entry
		b[at] ^= 4
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		nodes, all := start()
		want := fmt.Sprint("decision ", flipDecisions-1)
		for k := range 12 {
			if b, err := all[k%3].State(ctx, id); string(b) != want || err != nil {
				t.Errorf("trial %d, node %d: %q, %v", trial, k%3, b, err)
			}
		}
		stop(nodes)
	}
}
