package benchmarks

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbench/kvbench/result"
)

// metricsServer serves the progress of a run as OpenMetrics, for Prometheus and Grafana, until the run
// ends.
//
// The engine takes a snapshot about once a second, also for the live line. A scrape returns the latest
// snapshot, so it costs the load nothing. Counters count the measured windows, as results do, and
// continue from trial to trial. Warm-up, filling and removal are stages and not counted. After a trial
// its counters have the values of its result.
//
// Any goroutine may call the methods. Methods of a nil *metricsServer do nothing.
type metricsServer struct {
	listener net.Listener
	http     *http.Server

	mu     sync.Mutex
	series map[origin]*series
}

// listenMetrics opens the endpoint at an address such as 127.0.0.1:9464. Port 0 picks any free port.
// The caller checks that the address is allowed.
func listenMetrics(address string) (*metricsServer, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-metrics-listen %s: %w; give another port, or 0 for any that is "+
			"free", address, err)
	}
	s := &metricsServer{listener: l, series: map[origin]*series{}}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.handler(result.Version()))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/metrics", http.StatusFound)
	})
	// The timeouts close the connection of a client that never finishes its request.
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = s.http.Serve(l) }() // until Close
	return s, nil
}

// handler returns a handler that answers in OpenMetrics, or in Prometheus' text format if the client
// does not accept OpenMetrics.
func (s *metricsServer) handler(version string) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(s, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kvbench_build_info", Help: "The version of kvbench.",
		ConstLabels: prometheus.Labels{"version": version}}, func() float64 { return 1 }))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// url returns the URL of the metrics.
func (s *metricsServer) url() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// close closes the endpoint and its connections.
func (s *metricsServer) close() error {
	if s == nil {
		return nil
	}
	return s.http.Close()
}
