package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server answers GET /metrics.
type Server struct {
	listener net.Listener
	http     *http.Server

	mu     sync.Mutex
	build  string // the version
	series []*series
}

// Listen opens the endpoint at an address such as 127.0.0.1:9464; port 0 is any that is free. Where
// it may listen the caller has decided.
func Listen(address, version string) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("-metrics-listen %s: %w; give another port, or 0 for any that is "+
			"free", address, err)
	}
	s := &Server{listener: l, build: version}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.answer)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/metrics", http.StatusFound)
	})
	// A client that never finishes its request must not hold the process.
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go func() { _ = s.http.Serve(l) }() // until Close
	return s, nil
}

// URL is where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Close ends the endpoint; scrapes under way have a second.
func (s *Server) Close() error {
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

// The two formats. Prometheus asks for the first, and takes both.
const (
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
)

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	// The lock is held while the text is made, not while a slow client takes it: snapshots wait
	// for it.
	s.mu.Lock()
	text := s.text(open)
	s.mu.Unlock()
	w.Header().Set("Content-Type", plainText)
	if open {
		w.Header().Set("Content-Type", openMetrics)
	}
	_, _ = w.Write(text) // to a client that may be gone
}
