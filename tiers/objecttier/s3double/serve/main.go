package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"kvbench/tiers/objecttier/s3double"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := s3double.Config{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"),
		SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), Token: os.Getenv("AWS_SESSION_TOKEN")}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	buckets := flags.String("bucket", "bench", "buckets, by comma")
	listen := flags.String("listen", "127.0.0.1", "`host` or host:port; more endpoints take the "+
		"ports behind it")
	endpoints := flags.Int("endpoints", 1, "how many addresses show the store")
	rules := flags.String("rules", "", "JSON `file` of the faults to play")
	access := flags.String("log", "", "`file` for the access log, written at the end")
	flags.StringVar(&c.Dir, "dir", "", "`directory` for bodies (a temporary one in memory)")
	flags.StringVar(&c.Region, "region", "us-east-1", "what requests have to be signed for")
	flags.StringVar(&c.Domain, "domain", "", "`name` below which buckets are hosts (virtual style)")
	flags.StringVar(&c.Versioning, "versioning", "", "Enabled or Suspended: what buckets say")
	flags.BoolVar(&c.Anonymous, "anonymous", false, "serve requests without a signature, too")
	flags.Uint64Var(&c.Seed, "seed", 0, "of the shares in rules")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0 || *endpoints < 1:
		fmt.Fprintln(stderr, "serve: no arguments but flags, and at least one endpoint")
		return 2
	}
	c.NoLog = *access == "" && *rules == "" // rules may ask for a second attempt
	c.Buckets = strings.Split(*buckets, ",")
	if err := serve(ctx, c, *listen, *endpoints, *rules, *access, stdout); err != nil {
		fmt.Fprintln(stderr, "serve:", err)
		return 1
	}
	return 0
}

// serve opens the double and writes its log when ctx ends, before the bodies go.
func serve(ctx context.Context, c s3double.Config, listen string, endpoints int,
	rules, access string, stdout io.Writer) (err error) {
	if rules != "" {
		f, err := os.Open(rules)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if c.Rules, err = s3double.ReadRules(f); err != nil {
			return fmt.Errorf("%s: %w", rules, err)
		}
	}
	d, err := s3double.Open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for i := range endpoints {
		if _, err := d.Listen(address(listen, i)); err != nil {
			return err
		}
	}
	for _, url := range d.URLs() {
		fmt.Fprintln(stdout, url)
	}
	<-ctx.Done()
	if access == "" {
		return nil
	}
	f, err := os.Create(access)
	if err != nil {
		return err
	}
	return errors.Join(d.WriteLog(f), f.Close())
}

// address is that of the i-th endpoint: the port counts up from the one that is given, if one is.
func address(listen string, i int) string {
	host, text, err := net.SplitHostPort(listen)
	port, failed := strconv.Atoi(text)
	if err != nil || failed != nil || port == 0 {
		if err != nil {
			host = listen
		}
		return net.JoinHostPort(host, "0")
	}
	return net.JoinHostPort(host, strconv.Itoa(port+i))
}
