package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// lastSpans is how long a node that ends waits for a collector.
const lastSpans = 3 * time.Second

// traces returns the provider that takes the spans of rounds, nil unless the environment names a
// collector, and a function that sends the last of them. OpenTelemetry's variables configure both.
func traces(ctx context.Context, log *slog.Logger) (trace.TracerProvider, func(), error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" &&
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return nil, func() {}, nil
	}
	for _, name := range []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
	} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, nil, fmt.Errorf("%s=%s: use http/protobuf", name, p)
		}
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	own := resource.NewSchemaless(attribute.String("service.name", "hushsumd"))
	named, err := resource.New(ctx, resource.WithHost(), resource.WithFromEnv())
	if err == nil {
		own, err = resource.Merge(own, named)
	}
	if err != nil {
		return nil, nil, err
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("spans were not sent", "error", err.Error())
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(own))
	return provider, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			log.Warn("the last spans were not sent", "error", err.Error())
		}
	}, nil
}
