package objecttier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/workdir"
)

// write puts an object of 100 bytes.
func write(t *testing.T, tier *objecttier.Tier, key string) tiers.Object {
	t.Helper()
	o := tiers.Object{Key: key, Gen: 1, Size: 100}
	require.NoError(t, put(t.Context(), tier, o, nil))
	return o
}

// begin opens a tier. The test must end it.
func begin(t *testing.T, c objecttier.Config) *objecttier.Tier {
	t.Helper()
	tier, err := objecttier.Open(t.Context(), c)
	require.NoError(t, err)
	return tier
}

// The end of a run removes also what requests have left that the run no longer knows, and nothing else:
// not the objects and uploads of a killed run, which the next run does not see either.
func TestTheEndRemovesWhatIsBelowTheOwnPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 2)
		c.Rank = 0
		client, err := store.New(c.Store)
		require.NoError(t, err)
		defer client.Close()
		killed := begin(t, c)
		o := write(t, killed, "k")
		assert.Regexp(t, `^s3://bucket/a/b/rank_0/[0-9a-f]{16}$`, killed.Run())
		_, err = client.Create(t.Context(), "a/b/rank_0/upload")
		require.NoError(t, err)
		require.NoError(t, killed.Close())
		before := keys(d)

		tier := begin(t, c)
		require.Len(t, tier.Warnings(), 2)
		assert.ErrorIs(t, check(t.Context(), tier, o, nil), tiers.ErrNotFound)
		write(t, tier, "k")
		own := strings.TrimPrefix(tier.Run(), "s3://bucket/") + "/"
		require.NoError(t, d.SetObject("bucket", own+"late", "of a request that was given up"))
		_, err = client.Create(t.Context(), own+"upload")
		require.NoError(t, err)
		require.NoError(t, tier.Clear(t.Context(), ignore))
		require.NoError(t, tier.Close())
		assert.Equal(t, before, keys(d))
		assert.Equal(t, []string{"a/b/rank_0/upload"}, d.Uploads("bucket"))
	})
}

func TestKeptObjectsHaveAManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Keep = true
		tier := begin(t, c)
		write(t, tier, "k")
		require.NoError(t, tier.Clear(t.Context(), ignore))
		require.NoError(t, tier.Close())
		require.Len(t, keys(d), 2)
		text, err := d.Object("bucket", strings.TrimPrefix(tier.Run(), "s3://bucket/")+"/manifest.json")
		require.NoError(t, err)
		assert.Regexp(t, `^\{"kvbench_run":"[0-9a-f]{16}","nonce":"test","rank":\d+,.*"keys":"own"`,
			string(text))
	})
}

// A part in flight may reach the store after the abort, so the end of the run repeats the abort.
func TestClearRepeatsAborts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		tier := begin(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Op: s3test.PutPart, Nth: 2,
			Fault: s3test.Fault{Kind: s3test.Hang, At: 100}}))
		o := tiers.Object{Key: "k", Gen: 1, Size: 200_000}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := put(ctx, tier, o, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ended := time.Now()
		require.NoError(t, tier.Clear(t.Context(), ignore))
		assert.GreaterOrEqual(t, time.Since(ended), 500*time.Millisecond)
		aborts := slices.DeleteFunc(d.Log(), func(e s3test.Entry) bool { return e.Op != s3test.Abort })
		assert.Len(t, aborts, 2)
		require.NoError(t, tier.Close())
	})
}

// A read that ends after Clear does not panic.
func TestALateReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := inBubble(t, 1)
		tier := begin(t, c)
		o := write(t, tier, "k")
		assert.NoError(t, tier.Get(t.Context(), &tiers.Call{}, []tiers.Object{o},
			slowly{wait: func() { assert.NoError(t, tier.Clear(t.Context(), ignore)) }}))
		require.NoError(t, tier.Close())
	})
}

// The check of a store refuses stores that a run cannot use, with advice in the error.
func TestTheCheck(t *testing.T) {
	fault := func(op s3test.Op, f s3test.Fault) s3test.Rule { return s3test.Rule{Op: op, Fault: f} }
	for want, c := range map[string]s3test.Config{
		"it gave back other bytes than it was given": {Rules: []s3test.Rule{
			fault(s3test.Put, s3test.Fault{Kind: s3test.Flip, At: 777})}},
		"the answer is 200 with 100002 bytes instead of 200 with 100003 bytes": {Rules: []s3test.Rule{
			fault(s3test.Get, s3test.Fault{Kind: s3test.WrongLength})}},
		"may not make this request in the bucket bucket": {Rules: []s3test.Rule{
			fault(s3test.Delete, status(403, "AccessDenied"))}},
		"check AWS_ACCESS_KEY_ID": {AccessKey: "other"},
		"keeps versions":          {Versioning: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.Buckets, c.InMemory = []string{"bucket"}, true
			d := s3test.Start(t, c, 1)
			_, err := objecttier.Open(t.Context(), config(t, d))
			assert.ErrorContains(t, err, want)
			if want != "may not make this request in the bucket bucket" {
				assert.Empty(t, keys(d), want)
			}
		})
	}
}

// Endpoints that do not show the same objects are refused as different stores.
func TestEndpointsHaveToShowTheSame(t *testing.T) {
	a := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 1)
	b := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 1)
	for _, balance := range []store.Balance{store.RoundRobin, store.PinKey} {
		c := config(t, a)
		c.Store.URLs, c.Store.Balance = append(a.URLs(), b.URLs()...), balance
		tier, err := objecttier.Open(t.Context(), c)
		if balance == store.RoundRobin {
			assert.ErrorContains(t, err, "they are different stores; with -s3-balance pin-key")
			assert.Empty(t, append(keys(a), keys(b)...), "a start that is refused leaves nothing")
			continue
		}
		require.NoError(t, err)
		for i := range 50 {
			o := write(t, tier, fmt.Sprint("k", i))
			require.NoError(t, check(t.Context(), tier, o, nil))
		}
		assert.Greater(t, len(keys(a)), 10)
		assert.Greater(t, len(keys(b)), 10)
		require.NoError(t, tier.Clear(t.Context(), ignore))
		require.NoError(t, tier.Close())
		assert.Empty(t, append(keys(a), keys(b)...))
	}
}

// The error names the endpoint that does not answer.
func TestADeadEndpointIsNamed(t *testing.T) {
	for dead := range 2 {
		synctest.Test(t, func(t *testing.T) {
			d, c := inBubble(t, 2)
			d.Endpoints()[dead].Kill()
			_, err := objecttier.Open(t.Context(), c)
			assert.ErrorContains(t, err, "the endpoint "+d.URLs()[dead]+" does not answer")
			assert.NotContains(t, err.Error(), d.URLs()[1-dead])
			assert.Empty(t, keys(d))
		})
	}
}

// numbered are a folder's names that consist of the object's key.
type numbered struct{ workdir.Names }

func (numbered) Of(o tiers.Object) (dir, file string) { return "step", o.Key }

// folder makes the folder of a run that writes, or that reads the objects of runs with the same
// contents.
func folder(c objecttier.Config, contents string, reads bool) objecttier.Config {
	text, _ := json.Marshal(contents)
	c.Names = objecttier.Names{Format: objecttier.Files}
	c.Folder = &workdir.Folder{Name: "ckpt", Files: numbered{}, Contents: text}
	if reads {
		c.Folder.Check = func(found json.RawMessage) error {
			if string(found) != string(text) {
				return fmt.Errorf("there is %s", found)
			}
			return nil
		}
	}
	return c
}

// TestFolders: a run reads the objects that an earlier run has kept. It removes them only if the same
// process wrote them.
func TestFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		_, err := objecttier.Open(t.Context(), folder(c, "mine", true))
		assert.ErrorContains(t, err, "in s3://bucket/a/b/ckpt: there is")
		writes := begin(t, folder(c, "", false))
		o := write(t, writes, "file")
		require.NoError(t, writes.SetContents(json.RawMessage(`"mine"`)))
		writes.Stay()
		require.NoError(t, writes.Clear(t.Context(), ignore))
		require.NoError(t, writes.Close())
		kept := keys(d)
		assert.Regexp(t, regexp.MustCompile(`^a/b/ckpt/[0-9a-f]{16}/manifest.json`), kept[0])
		assert.Regexp(t, regexp.MustCompile(`^a/b/ckpt/[0-9a-f]{16}/step/file`), kept[1])
		_, err = objecttier.Open(t.Context(), folder(c, "other", true))
		assert.ErrorContains(t, err, `there is "mine"`)

		read := func() {
			t.Helper()
			tier := begin(t, folder(c, "mine", true))
			require.NoError(t, tier.Adopt(t.Context(), o))
			assert.NoError(t, check(t.Context(), tier, o, nil))
			assert.JSONEq(t, `"mine"`, string(tier.Contents()))
			missing := tier.Adopt(t.Context(), tiers.Object{Key: "none", Size: 1})
			assert.ErrorIs(t, missing, tiers.ErrNotFound)
			require.NoError(t, tier.Clear(t.Context(), ignore))
			require.NoError(t, tier.Close())
		}
		text, err := d.Object("bucket", kept[0])
		require.NoError(t, err)
		other := regexp.MustCompile(`"process":"\w+"`).ReplaceAllString(string(text), `"process":"x"`)
		require.NoError(t, d.SetObject("bucket", kept[0], other))
		read()
		assert.Equal(t, kept, keys(d), "another process has written them")
		// A newer run of this process is chosen first, and is removed after reading.
		newer := begin(t, folder(c, "mine", false))
		write(t, newer, "file")
		newer.Stay()
		require.NoError(t, newer.Clear(t.Context(), ignore))
		require.NoError(t, newer.Close())
		assert.Len(t, keys(d), 4)
		read()
		assert.Equal(t, kept, keys(d))
	})
}

// The processes of one run write below one prefix. The one that began the run removes all objects.
func TestAJoinedFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		join := folder(c, "mine", false)
		join.Join = true
		_, err := objecttier.Open(t.Context(), join)
		assert.ErrorContains(t, err, "does not show what another process of this run has just written")
		first := begin(t, folder(c, "mine", false))
		second := begin(t, join)
		assert.True(t, second.Joined())
		assert.Equal(t, first.Run(), second.Run())
		write(t, first, "a")
		write(t, second, "b")
		require.NoError(t, second.Clear(t.Context(), ignore))
		assert.Len(t, keys(d), 3, "the manifest and both objects")
		require.NoError(t, first.Clear(t.Context(), ignore))
		assert.Empty(t, keys(d))
		require.NoError(t, errors.Join(first.Close(), second.Close()))
	})
}
