package benchmarks

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/store"
)

// bucketConfig returns the configuration of the bucket that is the storage tier. It returns nil if the
// tier is a directory. Endpoints, keys and certificates come from the parameters, the environment and
// files. bucketConfig sends no request to the store. The error lists all mistakes in them.
func bucketConfig(v *params.Values) (*kvbench.Bucket, error) {
	name, prefix := v.Bucket()
	if name == "" {
		return nil, nil
	}
	s := &v.S3
	at, err := store.FindEndpoints(v.S3.Endpoint, v.S3.Region, os.Getenv)
	errs := []error{err}
	var keys *credentials.Credentials
	if !s.Anonymous {
		keys, err = store.FindCredentials()
		errs = append(errs, err)
	}
	roots, err := certificates(s.CAFile)
	errs = append(errs, err)
	return &kvbench.Bucket{
		Config: objecttier.Config{
			Store: store.Config{
				Bucket: name, URLs: at.URLs, Balance: store.Balance(s.Balance), Credentials: keys,
				Region:     s.Region,
				Addressing: store.Addressing(s.Addressing), Payload: store.Payload(s.Payload),
				Retries: s.Retries, Timeout: s.Timeout, ConnectTimeout: s.ConnectTimeout,
				RootCAs: roots, SkipVerify: s.SkipVerify,
				// The connections per endpoint suffice for all requests in flight. Plain I/O after a
				// window tries up to four times as many requests as the load, and 256 if it runs alone.
				Connections: max(4*v.WorkerCount()*v.Depth(), 256) + 8,
			},
			Prefix: prefix,
			// Only the first tensor parallel rank is simulated.
			Names: objecttier.Names{Format: objecttier.Format(s.Keys), Model: v.EngineName(),
				Ranks: v.TensorParallel},
			MultipartAbove: s.MultipartAbove, PartSize: s.PartSize, RangeSize: s.RangeSize,
			Requests:    s.Requests,
			AlwaysRange: s.Keys == string(objecttier.VLLM), // vLLM always sends a Range header
		},
		From: at.From, Lookup: s.Lookup == "head",
	}, errors.Join(errs...)
}

// certificates returns the system's certificates with the certificates of the file. Without a path it
// returns nil, which means the system's certificates.
func certificates(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("-s3-ca-file: must be a file that can be read: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("-s3-ca-file: must be a file of certificates in PEM, given %s",
			path)
	}
	return pool, nil
}

// bucket adds the warnings of a run on an object store.
func (w *warnings) bucket(v *params.Values) {
	if !v.OnObjects() || v.Simulated() {
		return
	}
	w.add(v.S3.SkipVerify, "-s3-skip-verify: certificates are not checked, so that another server may be "+
		"the store")
	at, err := store.FindEndpoints(v.S3.Endpoint, v.S3.Region, os.Getenv)
	w.add(err == nil && len(at.Ignored) > 0, "endpoints are those of %s: %s is set, too, and ignored",
		at.From, strings.Join(at.Ignored, ", "))
	// kvbench uses no proxy: otherwise the run would measure the proxy.
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		w.add(cmp.Or(os.Getenv(name), os.Getenv(strings.ToLower(name))) != "",
			"%s is set, and not used: requests go to the store directly", name)
	}
}
