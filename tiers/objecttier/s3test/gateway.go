package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// settings are what an endpoint is started with; all but Listen are the same for all of them.
// Log is one file: endpoints that share it would overwrite each other's lines.
type settings struct {
	Dir, Bucket, Listen, Region, Domain string
	Cert, Key, Log                      string
	AccessKey, SecretKey                string
}

// gateway serves one endpoint until ctx ends; ready is called when it takes connections. Only one
// can run in a process: versitygw keeps settings in variables of its packages, and its backend
// changes the working directory, which is why all paths are made absolute.
func gateway(ctx context.Context, s settings, ready func()) error {
	var err error
	for _, path := range []*string{&s.Dir, &s.Cert, &s.Key, &s.Log} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	// A bucket is a directory. Another endpoint may have made it.
	if err := os.MkdirAll(filepath.Join(s.Dir, s.Bucket), 0o755); err != nil {
		return err
	}
	if err := (meta.XattrMeta{}).Test(s.Dir); err != nil {
		return fmt.Errorf("%s: versitygw needs a filesystem with user extended attributes (ext4, "+
			"xfs, tmpfs since Linux 6.6): %w", s.Dir, err)
	}
	// What the library prints is for people; standard output has the addresses alone.
	os.Stdout = os.Stderr
	be, err := posix.New(s.Dir, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if reachable(ctx, s.Listen) {
			ready()
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- embedgw.RunVersityGW(ctx, be, config(s)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// Its orderly end waits 10 s for clients that keep connections, and there is nothing to put
		// in order: what was acknowledged is in the filesystem.
		return nil
	}
}

func config(s settings) *embedgw.Config {
	return &embedgw.Config{
		// Without this it says on standard output that nobody configured anything.
		IAMService: auth.NewIAMServiceSingle(auth.Account{Access: s.AccessKey,
			Secret: s.SecretKey, Role: auth.RoleAdmin}),
		RootUserAccess: s.AccessKey,
		RootUserSecret: s.SecretKey,
		Region:         s.Region,
		Ports:          []string{s.Listen},
		// Room for the widest test: 320 requests in flight, and those that are being closed.
		MaxConnections:    4096,
		MaxRequests:       4096,
		MultipartMaxParts: 10_000, // as on S3; 0 would refuse all uploads
		CertFile:          s.Cert,
		KeyFile:           s.Key,
		// Without it each request costs a connection.
		KeepAlive:     true,
		VirtualDomain: s.Domain,
		AccessLog:     s.Log,
		Quiet:         true,
	}
}

// reachable waits until somebody takes connections at an address.
func reachable(ctx context.Context, address string) bool {
	for ctx.Err() == nil {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}
