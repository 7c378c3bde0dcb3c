package store

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// page is the most keys that one request lists or deletes: the limit of S3.
const page = 1000

// List calls yield with each key that begins with prefix, until yield returns false. With folders it
// cuts keys at the next slash: yield gets the folders, including the slash, and the objects next to
// them. After a failure it lists again from the last key on. If keys are pinned, it lists one endpoint
// after the other.
func (c *Client) List(ctx context.Context, prefix string, folders bool,
	yield func(key string) bool) error {
	return c.each(func(c *Client) error {
		after := ""
		return c.simple(ctx, List, prefix, func(a *attempt, core *minio.Core) error {
			lctx, stop := context.WithCancel(a.ctx) // ends the library's paging
			defer stop()
			for o := range core.ListObjectsIter(lctx, c.cfg.Bucket, minio.ListObjectsOptions{
				Prefix: prefix, Recursive: !folders, StartAfter: after, MaxKeys: page}) {
				if o.Err != nil {
					return o.Err
				}
				a.moved(0)
				if after = o.Key; !yield(o.Key) {
					break
				}
			}
			return nil
		})
	})
}

// Upload is an upload that was neither completed nor aborted.
type Upload struct{ Key, ID string }

// Uploads lists the uploads whose keys begin with a prefix. If the store cannot list uploads, the result
// is empty.
func (c *Client) Uploads(ctx context.Context, prefix string) (all []Upload, err error) {
	err = c.each(func(c *Client) error {
		var found []Upload
		err := c.simple(ctx, List, prefix, func(a *attempt, core *minio.Core) error {
			found = nil
			for u := range core.ListIncompleteUploads(a.ctx, c.cfg.Bucket, prefix, true) {
				upload := Upload{Key: u.Key, ID: u.UploadID}
				// If a store returns the same page again, the list would never end.
				if u.Err != nil || slices.Contains(found, upload) {
					return u.Err
				}
				found = append(found, upload)
			}
			return nil
		})
		all = append(all, found...)
		return err
	})
	if errors.Is(err, ErrNotServed) {
		err = nil
	}
	return all, err
}

// each calls f with a client for each endpoint if the endpoints list different objects, else with c.
func (c *Client) each(f func(c *Client) error) (err error) {
	if !c.endpoints.scattered() {
		return f(c)
	}
	for i := range c.cores {
		one := c.At(i)
		one.cfg.Observer = c.cfg.Observer
		err = errors.Join(err, f(one))
	}
	return err
}

// deleters is the number of concurrent batch deletions. Stores execute them slowly, and some lock.
const deleters = 4

// DeleteAll deletes objects, a thousand per request. It calls gone with each deleted key, from several
// goroutines. If the store does not support such requests, it deletes the objects one by one. It
// continues after a failure, and returns the first failure.
func (c *Client) DeleteAll(ctx context.Context, keys []string, gone func(key string)) error {
	// A request goes to one endpoint, so keys pinned to different endpoints need separate requests.
	homes := make([][]string, len(c.cores))
	for _, k := range keys {
		home := c.endpoints.home(k)
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

// deleteBatch deletes up to a thousand objects. Each attempt names only the keys that earlier attempts
// have not deleted, because some stores do not report missing keys.
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
