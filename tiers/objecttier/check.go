package objecttier

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"kvbench/tiers/objecttier/store"
)

// checkBytes is the size of the checked object: several pieces, and no multiple of a block.
const checkBytes = 100_003

// check writes an object through each endpoint, reads it through all endpoints that have the same
// objects, and deletes it. It returns an error if the bucket keeps versions, or if the store returns
// other bytes, as some stores do with some settings of -s3-payload.
func (t *Tier) check(ctx context.Context) error {
	versioned, err := t.client.Versioned(ctx)
	switch {
	case err != nil:
		t.warn("the store does not say whether %s keeps versions, in which deleted objects would "+
			"stay and cost: %v", t.cfg.Store.Bucket, err)
	case versioned:
		return fmt.Errorf("the bucket %s keeps versions: what the run deletes would stay and "+
			"cost; name one without in -cache-dir", t.cfg.Store.Bucket)
	}
	data := make([]byte, checkBytes)
	_, _ = rand.Read(data) // random, so that a proxy's copy of an older object differs
	// A failure does not cancel the other checks: a cancelled PUT could be executed after its deletion.
	var checks errgroup.Group
	for i := range t.Endpoints() {
		checks.Go(func() error {
			key := fmt.Sprintf("%s.kvbench-check-%d", t.own, i)
			at, err := t.checkEndpoint(ctx, i, key, data)
			cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
			defer cancel()
			left := t.client.At(i).Delete(cctx, key)
			switch answer, ok := errors.AsType[*store.Error](err); {
			case err == nil && left == nil:
				return nil
			case ok && answer.Status == 0:
				return fmt.Errorf("the endpoint %s does not answer: %w", at, err)
			}
			return fmt.Errorf("the store at %s cannot be relied on: %w", at, errors.Join(err, left))
		})
	}
	return checks.Wait()
}

// checkEndpoint checks endpoint i. If it fails, at is the URL of the endpoint that caused the error.
func (t *Tier) checkEndpoint(ctx context.Context, i int, key string, data []byte) (at string,
	err error) {
	all := t.Endpoints()
	if err := write(ctx, t.client.At(i), key, data); err != nil {
		return all[i].URL, err
	}
	for k, other := range all {
		if k != i && t.cfg.Store.Balance.Pinned() {
			continue
		}
		got, err := read(ctx, t.client.At(k), key, checkBytes)
		switch {
		case k != i && errors.Is(err, store.ErrNoKey):
			return all[i].URL, fmt.Errorf("what was written through it is not at %s: they are "+
				"different stores; with -s3-balance pin-key or pin-rank each object stays with one",
				other.URL)
		case err != nil:
			return other.URL, err
		case !bytes.Equal(got, data):
			return other.URL, errors.New("it gave back other bytes than it was given: try " +
				"another -s3-payload")
		}
	}
	return all[i].URL, nil
}

// multipart reports whether the run uses multipart uploads. Engines write whole objects: then
// MultipartAbove is the largest PUT of S3.
func (t *Tier) multipart() bool { return t.cfg.MultipartAbove < 5<<30 }
