package node_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hushsum/hushsum/internal/suite"
	"github.com/hushsum/hushsum/service/node"
	"github.com/hushsum/hushsum/service/runner"
)

// A proxy that ends TLS can read and copy signed questions. It sends each again while later ones
// are open: the copies are refused, and make no session form and no round fail.
func TestCopiedQuestions(t *testing.T) {
	inTurn(t)
	rounds := 15
	if suite.Long() {
		rounds = 40
	}
	s := startSmall(t, rounds, "", node.Options{})
	defer s.node.Close()
	target, err := url.Parse(s.node.Address)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var copies []*http.Request
	answers := make(map[string]int)
	through := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if strings.HasSuffix(r.In.URL.Path, "/next") {
			mutex.Lock()
			defer mutex.Unlock()
			one := r.Out.Clone(context.WithoutCancel(r.Out.Context()))
			one.RequestURI = ""
			copies = append(copies, one)
		}
	}})
	defer through.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.node.Address = through.URL
	for i := range smallParties {
		s.run(ctx, i, nil, new(safeBuffer), trains)
	}
	client := &http.Client{Timeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			mutex.Lock()
			old := slices.Clone(copies)
			mutex.Unlock()
			for _, r := range old[:max(0, len(old)-2*smallParties)] {
				answer, err := client.Do(r)
				if err != nil || ctx.Err() != nil {
					break
				}
				kind := answer.Status
				_ = answer.Body.Close()
				mutex.Lock()
				answers[kind]++
				mutex.Unlock()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	status := s.await("the end", func(s *runner.Status) bool { return s.State == "ended" })
	cancel()
	<-done
	s.group.Wait()
	sessions := strings.Count(s.log.String(), "a session forms")
	if sessions != 1 || status.Lost != 0 || status.Round != rounds {
		t.Errorf("%d sessions, %d of %d rounds, %d lost", sessions, status.Round, rounds, status.Lost)
	}
	t.Logf("answers to copies: %v", answers)
	if answers["409 Conflict"] == 0 || answers["200 OK"] > 0 {
		t.Errorf("copies are answered %v", answers)
	}
}
