package node_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/federation"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/page"
	"github.com/hushsum/hushsum/service/runner"
)

var manyFederations = flag.Int("many", 500, "federations of TestManyForgotten")

// Hundreds of federations that ended and were forgotten leave no stream of their own, no metric and
// no leader, and a node starts on them at once.
func TestManyForgotten(t *testing.T) {
	suite.OnlyLong(t)
	many := *manyFederations
	ctx := context.Background()
	config := plainNode(t.TempDir())
	config.Admin, config.Open = "127.0.0.1:0", true
	n, err := node.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	text, roster, _ := fourParties(t)
	var ids []string
	for k := range many {
		named := bytes.Replace(text, []byte(`name = "`), fmt.Appendf(nil, `name = "%d-`, k), 1)
		f, err := n.Create(ctx, federation.Files{Text: named, Roster: roster})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, f.ID)
	}
	figures := func() (streams, metrics int) {
		t.Helper()
		health := n.Health(ctx)
		if health.Record == nil {
			t.Fatal(health.Unread)
		}
		streams = len(health.Record.Streams)
		answer, err := http.Get(n.Page + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(answer.Body); err != nil {
			t.Fatal(err)
		}
		return streams, strings.Count(b.String(), `federation="`)
	}
	restart := func() time.Duration {
		t.Helper()
		n.Close()
		began := time.Now()
		var err error
		if n, err = node.Start(ctx, config); err != nil {
			t.Fatal(err)
		}
		for len(n.Listing(ctx)) < many || n.Door.Ready() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		return time.Since(began)
	}
	for _, id := range ids {
		awaitStatus(ctx, t, n, id, func(s *runner.Status) bool { return s.Leader != "" })
		if _, err := n.Do(ctx, id, page.Order{What: "end", Who: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	ended := restart()
	streams, metrics := figures()
	began := time.Now()
	for _, id := range ids {
		awaitStatus(ctx, t, n, id, func(s *runner.Status) bool { return s.State == "ended" })
		if _, err := n.Do(ctx, id, page.Order{What: page.Forget, Who: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	forgetting := time.Since(began)
	restarted := restart()
	defer func() { n.Close() }()
	after, left := figures()
	t.Logf("%d federations: %d streams, %d samples, a start in %v; forgotten in %v: %d streams, "+
		"%d samples, a start in %v", many, streams, metrics, ended.Round(time.Millisecond),
		forgetting.Round(time.Millisecond), after, left, restarted.Round(time.Millisecond))
	if streams != many+3 || after != 3 || left != 0 || metrics == 0 {
		t.Errorf("%d streams and %d samples become %d and %d", streams, metrics, after, left)
	}
}
