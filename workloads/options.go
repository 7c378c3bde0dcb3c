package workloads

import "time"

// Option is one of the three workloads of MLPerf Storage v3.0. All of them run without generation sleeps and without a
// gpu tier.
type Option struct {
	Number              int
	Name                string
	Model               string // key of a built-in model
	Users               int
	Window              time.Duration
	GPUGiB, CPUGiB      float64
	MaxConcurrentAllocs int
}

// Options returns the MLPerf options in order. The slice is the caller's.
func Options() []Option {
	return []Option{
		{Number: 1, Name: "Max Storage Stress", Model: "llama3.1-8b", Users: 200, Window: 300 * time.Second, MaxConcurrentAllocs: 16},
		{Number: 2, Name: "Storage Throughput", Model: "llama3.1-8b", Users: 100, Window: 300 * time.Second, CPUGiB: 4, MaxConcurrentAllocs: 16},
		{Number: 3, Name: "Large Model", Model: "llama3.1-70b-instruct", Users: 70, Window: 300 * time.Second, MaxConcurrentAllocs: 4},
	}
}
