package objecttier

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// Open starts a run in a bucket and checks the store. If the run reads the objects of an earlier run, Open
// finds the earlier run. Otherwise it warns of the objects of other runs.
func Open(ctx context.Context, cfg Config) (*Tier, error) {
	client, err := store.New(cfg.Store)
	if err != nil {
		return nil, err
	}
	t := &Tier{cfg: cfg, client: client, clock: cfg.Store.Clock, entries: map[tiers.ID]*entry{},
		keep: cfg.Keep}
	if cfg.Requests > 0 {
		t.turns = make(turns, cfg.Requests)
	}
	name := fmt.Sprintf("rank_%d", cfg.Rank)
	if cfg.Folder != nil {
		t.files, name = cfg.Folder.Files, cfg.Folder.Name
	}
	t.parent = strings.TrimPrefix(cfg.Prefix+"/"+name+"/", "/")
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	run := hex.EncodeToString(random)
	t.own = t.parent + run + "/"
	t.base, t.mark = t.own, newManifest(cfg, run)
	if err := t.begin(ctx); err != nil {
		client.Close()
		return nil, err
	}
	return t, nil
}

func (t *Tier) begin(ctx context.Context) error {
	runs, err := t.runs(ctx)
	if err != nil {
		return err
	}
	reads, err := t.choose(ctx, runs)
	if err != nil || t.cfg.Join {
		return err
	}
	if !reads {
		t.warnOfLeftovers(ctx, runs)
	}
	begun := t.clock.Now()
	if err := t.check(ctx); err != nil {
		return err
	}
	t.checked = t.clock.Now() - begun
	if t.keep && !reads {
		t.warn("the objects stay in %s", t.Run())
	}
	if t.cfg.Folder != nil && !reads {
		return t.writeManifest(ctx)
	}
	return nil
}

// runs returns the names of the runs with objects below the parent prefix.
func (t *Tier) runs(ctx context.Context) (names []string, err error) {
	err = t.client.List(ctx, t.parent, true, func(key string) bool {
		name, folder := strings.CutSuffix(strings.TrimPrefix(key, t.parent), "/")
		if folder && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return true
	})
	return names, err
}

// warnOfLeftovers warns of objects and uploads of other runs, which this run does not touch.
func (t *Tier) warnOfLeftovers(ctx context.Context, runs []string) {
	at := t.Endpoints()[0].URL
	if n := len(runs); n > 0 {
		t.warn("%s holds objects of other runs (%d), which were killed, have kept their objects, or "+
			"still run; to remove one: aws s3 rm --recursive --endpoint-url %s %s/%s/", t.URL(), n, at,
			t.URL(), runs[0])
	}
	if !t.multipart() {
		return
	}
	if uploads, _ := t.client.Uploads(ctx, t.parent); len(uploads) > 0 {
		t.warn("%s holds unfinished uploads of other runs (%d), which take space until they are "+
			"aborted, as by a lifecycle rule (AbortIncompleteMultipartUpload); to abort one: "+
			"aws s3api abort-multipart-upload --endpoint-url %s --bucket %s --key '%s' "+
			"--upload-id '%s'",
			t.URL(), len(uploads), at, t.cfg.Store.Bucket, uploads[0].Key, uploads[0].ID)
	}
}

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
