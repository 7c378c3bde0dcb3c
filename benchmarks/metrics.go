package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbench/kvbench/environment"
)

// metricsServer shows the progress of a run as OpenMetrics, for Prometheus and Grafana, for as long as
// the run.
//
// The engine takes a snapshot about once a second, as it does for the live line; a scrape prints the
// latest, so that it costs the load nothing, and without an endpoint none is taken. Counters count what
// results count, the measured windows, and go on from trial to trial: warm-up, filling and removal are
// stages, and not counted. When a trial is over its counters are those of its result.
//
// Its methods may be called from any goroutine; those of the nil metricsServer do nothing.
type metricsServer struct {
	listener net.Listener
	http     *http.Server

	mu     sync.Mutex
	series []*series
}

// listenMetrics opens the endpoint at an address such as 127.0.0.1:9464; port 0 is any that is free. The
// caller decides where it may listen.
func listenMetrics(address string) (*metricsServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-metrics-listen %s: %w; give another port, or 0 for any that is "+
			"free", address, err)
	}
	s := &metricsServer{listener: l}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.handler(environment.Version()))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/metrics", http.StatusFound)
	})
	// A client that never finishes its request must not hold the process.
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = s.http.Serve(l) }() // until Close
	return s, nil
}

// handler answers in OpenMetrics, or in Prometheus' text format if a client does not accept that.
func (s *metricsServer) handler(version string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kvbench_build_info", Help: "The version of kvbench.",
		ConstLabels: prometheus.Labels{"version": version}}, func() float64 { return 1 }))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// url is where the metrics are.
func (s *metricsServer) url() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// close ends the endpoint; scrapes in flight have a second.
func (s *metricsServer) close() error {
	if s == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return err
}
