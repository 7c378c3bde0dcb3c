package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "s3test:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	s := settings{AccessKey: cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "key"),
		SecretKey: cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "secret")}
	flags := flag.NewFlagSet("s3test", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.Dir, "dir", "", "`directory` of the buckets (a temporary one in /dev/shm)")
	flags.StringVar(&s.Bucket, "bucket", "bench", "the bucket; it is made")
	flags.StringVar(&s.Listen, "listen", "127.0.0.1:9000",
		"`host:port` of the first endpoint; the others take the ports behind it")
	flags.StringVar(&s.Region, "region", "us-east-1", "what requests have to be signed for")
	flags.StringVar(&s.Domain, "domain", "", "`name` below which buckets are hosts (virtual style)")
	flags.StringVar(&s.Cert, "cert", "", "PEM `file` of the certificate, for https")
	flags.StringVar(&s.Key, "key", "", "PEM `file` of its key")
	flags.StringVar(&s.Log, "log", "", "`file` to which requests are logged, in the format of S3")
	endpoints := flags.Int("endpoints", 1, "how many processes show the directory")
	lifeline := flags.Bool("until-eof", false, "end, too, when standard input does")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() > 0 || *endpoints < 1:
		return errors.New("no arguments but flags, and at least one endpoint")
	}
	if s.Dir == "" {
		dir, err := os.MkdirTemp("/dev/shm", "s3test-")
		if err != nil {
			return fmt.Errorf("no memory to keep objects in, give -dir: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		s.Dir = dir
	}
	if *lifeline { // whose other end is held by who started this, and closed when that dies
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	// Nothing but addresses goes to standard output: who starts this reads it, and the first line
	// says that requests are served.
	scheme := "http"
	if s.Cert != "" {
		scheme = "https"
	}
	if *endpoints == 1 {
		return gateway(ctx, s, func() { fmt.Fprintf(stdout, "%s://%s\n", scheme, s.Listen) })
	}
	return several(ctx, s, *endpoints, args, stdout, stderr)
}

// several starts an endpoint after the other, each a process that ends with this one, and waits.
// When one of them ends, so do all: what is measured then would not be what was asked for.
func several(ctx context.Context, s settings, n int, args []string,
	stdout, stderr io.Writer) error {
	host, text, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil || port == 0 {
		return fmt.Errorf("-listen %s: several endpoints count up from a port", s.Listen)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	ended := make(chan error, n)
	for i := range n {
		listen := net.JoinHostPort(host, strconv.Itoa(port+i))
		cmd := exec.CommandContext(ctx, self, append(args, "-endpoints", "1", "-until-eof", "-dir",
			s.Dir, "-listen", listen)...)
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+s.AccessKey,
			"AWS_SECRET_ACCESS_KEY="+s.SecretKey)
		cmd.Stderr = stderr
		// The pipe closes with this process, also when that is killed.
		lifeline, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		// Ctrl-C in a terminal reaches all processes of it; this one tells the others itself.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = lifeline.Close
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		fmt.Fprint(stdout, line)
		all.Go(func() { ended <- cmd.Wait() })
		if err != nil {
			return fmt.Errorf("the endpoint at %s did not start", listen)
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("an endpoint ended: %v", err)
	}
}
