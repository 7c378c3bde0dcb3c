package store

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// metadataTimeout bounds a request to the metadata service. Without such a service, a run without keys
// is refused after this time.
const metadataTimeout = 2 * time.Second

// FindCredentials returns the keys of the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, else
// AWS_PROFILE in the AWS files, else the IAM role of the machine, container or pod. It is an error to
// have no key or only one of the two. The library would send unsigned requests then, and the user would
// only see "access denied".
func FindCredentials() (*credentials.Credentials, error) {
	names := []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	for i, name := range names {
		if os.Getenv(name) != "" && os.Getenv(names[1-i]) == "" {
			return nil, fmt.Errorf("%s is set and %s is not: both are needed", name, names[1-i])
		}
		if strings.ContainsAny(os.Getenv(name), " \t\r\n") {
			return nil, fmt.Errorf("%s has a space or a line break, which no key has", name)
		}
	}
	files := &credentials.FileAWSCredentials{}
	providers := []credentials.Provider{&credentials.EnvAWS{}, files}
	if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		providers = append(providers,
			&credentials.IAM{Client: &http.Client{Timeout: metadataTimeout}})
	}
	chain := credentials.NewChainCredentials(providers)
	keys, err := chain.GetWithContext(nil)
	if err == nil && keys.AccessKeyID != "" && keys.SecretAccessKey != "" {
		return chain, nil
	}
	err = errors.New("no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE " +
		"to a profile with keys, or give -s3-anonymous for requests that are not signed")
	if _, why := files.RetrieveWithCredContext(nil); why != nil && !errors.Is(why, fs.ErrNotExist) {
		err = fmt.Errorf("%w (the AWS files: %w)", err, why)
	}
	return nil, err
}

// Key returns the first and last characters of the key id for messages, or "" if requests are not signed.
// An id below 8 characters would be shown whole.
func (c *Config) Key() string {
	id := c.keys().AccessKeyID
	switch {
	case id == "":
		return ""
	case len(id) < 8:
		return "****"
	}
	return id[:4] + "****" + id[len(id)-4:]
}

// keys returns the keys in use. The keys of a role change.
func (c *Config) keys() (v credentials.Value) {
	if c.Credentials != nil { // nil before New
		v, _ = c.Credentials.GetWithContext(nil) // requests return an error of this call
	}
	return v
}

// redact replaces secrets in a text of the store, a proxy or the library.
func (c *Config) redact(text string) string {
	keys := c.keys()
	for _, secret := range []string{keys.SecretAccessKey, keys.SessionToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "****")
		}
	}
	return text
}
