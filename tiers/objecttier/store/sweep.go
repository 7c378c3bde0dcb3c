package store

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/minio/minio-go/v7"
)

// page is how many keys one request lists or deletes at most: what S3 allows.
const page = 1000

// List calls yield with each object whose key begins with a prefix, in the order of keys, until it
// returns false. An error in the middle is gone on behind the last key.
func (c *Client) List(ctx context.Context, prefix string, yield func(Info) bool) error {
	after, more := "", true
	r := &request{Request: Request{Op: List}, key: prefix}
	r.try = func(a *attempt, n *node) error {
		lctx, stop := context.WithCancel(a.ctx) // ends the library's paging with the loop
		defer stop()
		opts := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after,
			MaxKeys: page}
		for o := range n.ListObjectsIter(lctx, c.cfg.Bucket, opts) {
			if o.Err != nil {
				return o.Err
			}
			a.moved(0)
			after = o.Key
			// An attempt that fails later goes on behind this one, so that nobody sees it twice.
			if more = yield(Info{Key: o.Key, Size: o.Size, ETag: o.ETag,
				Modified: o.LastModified}); !more {
				return nil
			}
		}
		if a.html {
			return &unexpected{"the answer is a page"}
		}
		return nil
	}
	return c.do(ctx, r)
}

// Upload is one that was begun and neither completed nor aborted.
type Upload struct{ Key, ID string }

// Uploads lists all of them whose key begins with a prefix. ErrNotServed where the store cannot.
func (c *Client) Uploads(ctx context.Context, prefix string) (all []Upload, err error) {
	keyMarker, idMarker := "", ""
	for {
		var got minio.ListMultipartUploadsResult
		r := &request{Request: Request{Op: List}, key: prefix}
		r.try = func(a *attempt, n *node) (err error) {
			got, err = n.ListMultipartUploads(a.ctx, c.cfg.Bucket, prefix, keyMarker, idMarker,
				"", page)
			return err
		}
		if err := c.do(ctx, r); err != nil {
			return all, err
		}
		for _, u := range got.Uploads {
			all = append(all, Upload{Key: u.Key, ID: u.UploadID})
		}
		// A list that goes on where it began would never end.
		if !got.IsTruncated || got.NextKeyMarker == keyMarker &&
			got.NextUploadIDMarker == idMarker {
			return all, nil
		}
		keyMarker, idMarker = got.NextKeyMarker, got.NextUploadIDMarker
	}
}

// deleters is how many requests delete side by side: stores are slow at it, and some take a lock.
const deleters = 4

// DeleteAll deletes objects, a thousand in a request, and calls gone with each that the store says
// it has deleted, on several goroutines. Where it does not know such requests they are deleted one
// by one. Its error is the first failure; it goes on behind one.
func (c *Client) DeleteAll(ctx context.Context, keys []string, gone func(key string)) error {
	// A request goes to one endpoint: keys that are pinned to others are in other requests.
	homes := make([][]string, len(c.nodes))
	for _, k := range keys {
		home := c.cfg.Endpoints.Home(k)
		homes[home] = append(homes[home], k)
	}
	batches := make(chan []string, len(keys)/page+len(homes))
	for _, keys := range homes {
		for batch := range slices.Chunk(keys, page) {
			batches <- batch
		}
	}
	close(batches)
	errs := make([]error, deleters)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for batch := range batches {
				errs[i] = errors.Join(errs[i], c.deleteBatch(ctx, batch, gone))
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// deleteBatch deletes up to a thousand. What an attempt has deleted the next one does not name: of
// keys that are gone some stores say nothing.
func (c *Client) deleteBatch(ctx context.Context, keys []string, gone func(string)) error {
	if len(keys) == 1 {
		return c.deleteSingly(ctx, keys, gone)
	}
	// A thousand answers in one: an attempt may have deleted some of them.
	left := map[string]bool{}
	for _, k := range keys {
		left[k] = true
	}
	r := &request{Request: Request{Op: DeleteBatch}, key: keys[0]}
	r.try = func(a *attempt, n *node) (err error) {
		objects := make(chan minio.ObjectInfo, len(left))
		for k := range left {
			objects <- minio.ObjectInfo{Key: k}
		}
		close(objects)
		results := n.RemoveObjectsWithResult(a.ctx, c.cfg.Bucket, objects,
			minio.RemoveObjectsOptions{})
		for result := range results {
			switch {
			case result.Err != nil && err == nil:
				err = result.Err
			case result.Err == nil && left[result.ObjectName]:
				delete(left, result.ObjectName)
				gone(result.ObjectName)
			}
		}
		if err == nil && len(left) > 0 {
			err = &unexpected{"the store does not say what became of all keys"}
		}
		return err
	}
	err := c.do(ctx, r)
	if e, ok := errors.AsType[*Error](err); ok && (e.Is(ErrNotServed) ||
		e.Status == http.StatusBadRequest || e.Status == http.StatusOK) {
		rest := make([]string, 0, len(left))
		for k := range left {
			rest = append(rest, k)
		}
		return c.deleteSingly(ctx, rest, gone)
	}
	return err
}

// deleteSingly is for one, and for stores without batches. It goes on behind a failure.
func (c *Client) deleteSingly(ctx context.Context, keys []string, gone func(string)) (err error) {
	for _, k := range keys {
		if e := c.Delete(ctx, k); e != nil {
			err = errors.Join(err, e)
			if ctx.Err() != nil {
				return err
			}
			continue
		}
		gone(k)
	}
	return err
}
