package store

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"
	"github.com/stretchr/testify/assert"

	"kvbench/tiers/objecttier/credentials"
)

// The library's signer is the witness: stores of all makers take what it signs.
func TestSignaturesAreThoseOfTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which both read the same clock
		for _, token := range []string{"", "a/session+token=="} {
			keys := credentials.Credentials{ID: "AKIDEXAMPLE",
				Secret: credentials.NewSecret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
				Token:  credentials.NewSecret(token)}
			s := &headerSigner{keys: keys, region: "eu-west-3"}
			for range 3 { // days, each with a key of its own
				for _, path := range []string{"/kv/rank_0/ab/0123-1", "/", "/kv/a b+c%d~é/ü$&,:=@"} {
					for _, h := range []http.Header{{}, {"Range": {"bytes=0-9"}},
						{"If-Match": {"\"two  spaces\t\" "}, "Content-Type": {"application/octet-stream"}}} {
						r := &http.Request{Method: "PUT", Host: "10.0.0.5:9000", Header: h,
							URL: &url.URL{Scheme: "http", Host: "10.0.0.5:9000", Path: path}}
						h["X-Amz-Content-Sha256"] = []string{unsignedPayload}
						theirs := signer.SignV4(*r.Clone(t.Context()), keys.ID,
							keys.Secret.Reveal(), token, s.region)
						encoded := s3utils.EncodePath(path)
						assert.Equal(t, encoded == path, plain(path), path)
						s.sign(r, encoded, time.Now())
						assert.Equal(t, theirs.Header, r.Header, path)
					}
				}
				time.Sleep(24 * time.Hour)
			}
		}
	})
}
