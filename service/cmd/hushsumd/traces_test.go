package main

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Spans are sent where the environment names a collector, as it says, and nowhere else.
func TestTracesSent(t *testing.T) {
	var mutex sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		b, err := io.ReadAll(body)
		request := new(collector.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(b, request)
		}
		if err != nil {
			t.Error(err)
		}
		mutex.Lock()
		defer mutex.Unlock()
		for _, of := range request.ResourceSpans {
			name := ""
			for _, a := range of.Resource.Attributes {
				if a.Key == "service.name" {
					name = a.Value.GetStringValue()
				}
			}
			for _, scope := range of.ScopeSpans {
				for _, span := range scope.Spans {
					got = append(got, strings.Join([]string{r.URL.Path, r.Header.Get("Authorization"), name,
						span.Name}, " "))
				}
			}
		}
	}))
	defer server.Close()
	log := slog.New(slog.DiscardHandler)
	ctx := context.Background()
	send := func() error {
		p, end, err := traces(ctx, log)
		if err != nil {
			return err
		}
		if p != nil {
			_, span := p.Tracer("test").Start(ctx, "round",
				trace.WithAttributes(attribute.Int("hushsum.round", 7)))
			span.End()
		}
		end()
		return nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME"} {
		t.Setenv(name, "")
	}
	if err := send(); err != nil || len(got) > 0 {
		t.Errorf("without a collector: %v, %v", got, err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=secret")
	if err := send(); err != nil {
		t.Error(err)
	}
	t.Setenv("OTEL_SERVICE_NAME", "sums")
	if err := send(); err != nil {
		t.Error(err)
	}
	want := "/v1/traces secret hushsumd round,/v1/traces secret sums round"
	if is := strings.Join(got, ","); is != want {
		t.Errorf("the collector has %q, want %q", is, want)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if err := send(); err == nil || !strings.Contains(err.Error(), "http/protobuf") {
		t.Errorf("by another protocol: %v", err)
	}
}
