package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// settings are the flags. Endpoint may be several by comma for the suite's client, which balances.
type settings struct {
	endpoint, bucket, op, client string
	size                         int64
	inFlight, objects            int
	warm, window                 time.Duration
}

// outcome is the line that is printed. Bytes and requests are of objects that ended within the
// window; the removals that come with writing take their time and are not counted.
type outcome struct {
	Client   string  `json:"client"`
	Op       string  `json:"op"`
	Size     int64   `json:"size"`
	InFlight int     `json:"in_flight"`
	Bytes    int64   `json:"bytes"`
	Requests int64   `json:"requests"`
	Seconds  float64 `json:"seconds"` // of the window, as it really was
	// CPUSeconds is of all threads of the process within the window, PeakRSS of its life.
	CPUSeconds float64 `json:"cpu_seconds"`
	PeakRSS    int64   `json:"peak_rss_bytes"`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 2 for flags that are wrong, 1 for what failed.
func run(args []string, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("objectloop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	names := strings.Join(slices.Sorted(maps.Keys(clients)), ", ")
	flags.StringVar(&s.endpoint, "endpoint", "http://127.0.0.1:9000", "`URL` of the store")
	flags.StringVar(&s.bucket, "bucket", "bench", "the bucket, which is there")
	flags.StringVar(&s.client, "client", "bare", names)
	flags.StringVar(&s.op, "op", "get", "put or get")
	flags.Int64Var(&s.size, "size", 8<<20, "of an object, in bytes")
	flags.IntVar(&s.inFlight, "in-flight", 16, "loops, each with an object under way")
	// Of a PUT the newest ones, of a GET all.
	flags.IntVar(&s.objects, "objects", 4, "that each loop has in the store")
	// Connections are made before the window, and memory has grown to what is needed.
	flags.DurationVar(&s.warm, "warm", time.Second, "before the window")
	flags.DurationVar(&s.window, "time", 5*time.Second, "of the window")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case clients[s.client] == nil, s.op != "put" && s.op != "get", s.size < 1, s.inFlight < 1,
		s.objects < 1:
		fmt.Fprintf(stderr, "objectloop: -client is one of %s, -op put or get, numbers are "+
			"positive\n", names)
		return 2
	}
	o, err := measure(context.Background(), s)
	if err == nil {
		err = json.NewEncoder(stdout).Encode(o)
	}
	if err != nil {
		fmt.Fprintln(stderr, "objectloop:", err)
		return 1
	}
	return 0
}

// measure fills what is to be read, lets the loops run, and opens the window when they do.
func measure(ctx context.Context, s settings) (o outcome, err error) {
	t := transport(s.inFlight)
	defer t.CloseIdleConnections()
	c, err := clients[s.client](s, t)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	// Bytes that nothing can compress, shared by all loops: making them is not what is measured,
	// and an object for each loop would be most of its memory.
	body := make([]byte, s.size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(body)
	if s.op == "get" {
		err := each(s.inFlight, func(loop int) (err error) {
			for n := 0; n < s.objects && err == nil; n++ {
				err = c.put(ctx, loop, n, body)
			}
			return err
		})
		if err != nil {
			return o, err
		}
	}
	// Loops begin before the window and end after it, so that all are at work at both its edges.
	var stop atomic.Bool
	var requests atomic.Int64
	ended := make(chan error, 1) // of all loops: one that fails ends the measurement
	go func() {
		ended <- each(s.inFlight, func(loop int) error {
			buf := make([]byte, 256<<10) // as the suite reads: larger ones bring nothing
			// All that a loop does is done once at least, however short the window is.
			for n := 0; n <= s.objects || !stop.Load(); n++ {
				moved, err := s.size, error(nil)
				switch {
				case s.op == "get":
					moved, err = c.get(ctx, loop, n%s.objects, buf)
				case n < s.objects:
					err = c.put(ctx, loop, n, body)
				default:
					err = errors.Join(c.put(ctx, loop, n, body), c.remove(ctx, loop, n-s.objects))
				}
				if err == nil && moved != s.size {
					err = fmt.Errorf("object %d of loop %d has %d bytes, not %d", n%s.objects,
						loop, moved, s.size)
				}
				if err != nil {
					return err
				}
				requests.Add(1)
			}
			return nil
		})
	}()
	select {
	case err := <-ended:
		return o, fmt.Errorf("before the window: %w", err)
	case <-time.After(s.warm):
	}
	// What is under way at an edge counts when it ends: as much is taken over as is handed on.
	begun, cpu, before := time.Now(), cpuTime(), requests.Load()
	select {
	case err := <-ended:
		return o, fmt.Errorf("in the window: %w", err)
	case <-time.After(s.window):
	}
	o = outcome{Client: s.client, Op: s.op, Size: s.size, InFlight: s.inFlight,
		Requests: requests.Load() - before,
		Seconds:  time.Since(begun).Seconds(), CPUSeconds: (cpuTime() - cpu).Seconds()}
	o.Bytes = o.Requests * s.size
	stop.Store(true)
	err = <-ended
	o.PeakRSS = peakRSS()
	return o, err
}

// each runs the loops side by side and returns the errors of all.
func each(n int, f func(loop int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// cpuTime is what the process has used so far, in user mode and in the kernel: most of a GET is the
// kernel's copying.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakRSS is in bytes; Linux tells KiB, others differ.
func peakRSS() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Maxrss << 10
}
