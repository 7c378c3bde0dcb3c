package store

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// page is the number of keys that one request lists or deletes at most: the limit of S3.
const page = 1000

// List calls yield with the key of each object that begins with prefix, until it returns false.
// With folders it stops at the next slash: yield gets the folders, with that slash, and the objects
// next to them. A page that fails is repeated behind the last key. Where keys are pinned it lists
// one endpoint after the other.
func (c *Client) List(ctx context.Context, prefix string, folders bool,
	yield func(key string) bool) error {
	return c.each(func(c *Client) error {
		after := ""
		return c.simple(ctx, List, prefix, func(a *attempt, core *minio.Core) error {
			lctx, stop := context.WithCancel(a.ctx) // ends the library's paging with the loop
			defer stop()
			for o := range core.ListObjectsIter(lctx, c.cfg.Bucket, minio.ListObjectsOptions{
				Prefix: prefix, Recursive: !folders, StartAfter: after, MaxKeys: page}) {
				if o.Err != nil {
					return o.Err
				}
				a.moved(0)
				if after = o.Key; !yield(o.Key) {
					return nil
				}
			}
			return a.notPage()
		})
	})
}

// Upload is one that was neither completed nor aborted.
type Upload struct{ Key, ID string }

// Uploads lists the uploads whose keys begin with a prefix: none where the store cannot list them.
func (c *Client) Uploads(ctx context.Context, prefix string) (all []Upload, err error) {
	err = c.each(func(c *Client) error {
		for got := (minio.ListMultipartUploadsResult{}); ; {
			last := got
			err := c.simple(ctx, List, prefix, func(a *attempt, core *minio.Core) (err error) {
				got, err = core.ListMultipartUploads(a.ctx, c.cfg.Bucket, prefix,
					last.NextKeyMarker, last.NextUploadIDMarker, "", page)
				return err
			})
			for _, u := range got.Uploads {
				all = append(all, Upload{Key: u.Key, ID: u.UploadID})
			}
			// A store that returns the same markers again would not end.
			if err != nil || !got.IsTruncated || got.NextKeyMarker == last.NextKeyMarker &&
				got.NextUploadIDMarker == last.NextUploadIDMarker {
				return err
			}
		}
	})
	if errors.Is(err, ErrNotServed) {
		err = nil
	}
	return all, err
}

// each calls f with a client for each endpoint where these list different objects, else with c.
func (c *Client) each(f func(c *Client) error) (err error) {
	if !c.cfg.Endpoints.Scattered() {
		return f(c)
	}
	for i := range c.cores {
		one := c.At(i)
		one.cfg.Observer = c.cfg.Observer
		err = errors.Join(err, f(one))
	}
	return err
}

// deleters is the number of concurrent batch deletions: stores are slow at them, and some lock.
const deleters = 4

// DeleteAll deletes objects, a thousand in a request, and calls gone with each deleted key, from
// several goroutines. Where the store does not serve such requests it deletes them one by one. It
// continues after a failure, and returns the first.
func (c *Client) DeleteAll(ctx context.Context, keys []string, gone func(key string)) error {
	// A request goes to one endpoint, so keys that are pinned to others need requests of their own.
	homes := make([][]string, len(c.cores))
	for _, k := range keys {
		home := c.cfg.Endpoints.Home(k)
		homes[home] = append(homes[home], k)
	}
	var batches errgroup.Group
	batches.SetLimit(deleters)
	for _, keys := range homes {
		for batch := range slices.Chunk(keys, page) {
			batches.Go(func() error { return c.deleteBatch(ctx, batch, gone) })
		}
	}
	return batches.Wait()
}

// deleteBatch deletes up to a thousand objects. An attempt names only the keys that the attempts
// before it have not deleted: some stores do not report missing keys.
func (c *Client) deleteBatch(ctx context.Context, keys []string, gone func(string)) (err error) {
	left := make(map[string]bool, len(keys))
	for _, k := range keys {
		left[k] = true
	}
	if len(keys) > 1 {
		err = c.simple(ctx, DeleteBatch, keys[0], func(a *attempt, core *minio.Core) (err error) {
			objects := make(chan minio.ObjectInfo, len(left))
			for k := range left {
				objects <- minio.ObjectInfo{Key: k}
			}
			close(objects)
			for result := range core.RemoveObjectsWithResult(a.ctx, c.cfg.Bucket, objects,
				minio.RemoveObjectsOptions{}) {
				if result.Err == nil && left[result.ObjectName] {
					delete(left, result.ObjectName)
					gone(result.ObjectName)
				} else if err == nil {
					err = result.Err
				}
			}
			if err == nil && len(left) > 0 {
				err = &unexpected{text: "the store does not report all keys as deleted"}
			}
			return err
		})
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Is(ErrNotServed) && e.Status != http.StatusBadRequest &&
			e.Status != http.StatusOK {
			return err
		}
		err = nil
	}
	for k := range left {
		if failed := c.Delete(ctx, k); failed == nil {
			gone(k)
		} else if err = errors.Join(err, failed); ctx.Err() != nil {
			break
		}
	}
	return err
}
