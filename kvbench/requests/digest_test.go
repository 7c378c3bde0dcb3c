package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/buffer"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

const (
	digestUsers = 200
	digestTurns = 50
	// goldenDigest is the digest of the first 50 turns of each of the 200 users of option 1. It may
	// change only with an intended change of the load, which makes every earlier result another
	// load's.
	goldenDigest = "38f8dc604ff43896f8197ef930045050"
)

// digest sums the users' requests, independent of the order between users.
type digest struct {
	users []userDigest
	open  int // users whose turns are not all there
	over  func()
}

type userDigest struct {
	seq int64
	sum hash.Hash
}

func newDigest(over func()) *digest {
	d := &digest{open: digestUsers, over: over, users: make([]userDigest, digestUsers)}
	for i := range d.users {
		d.users[i].sum = sha256.New()
	}
	return d
}

// see is a runConfig.OnDispatch.
func (d *digest) see(r *workloads.Request, plan []workloads.Op) {
	u := &d.users[r.User]
	if r.Seq != u.seq {
		panic(fmt.Sprintf("user %d: request %d comes after %d", r.User, r.Seq, u.seq-1))
	}
	u.seq++
	if r.Seq >= digestTurns {
		return
	}
	for _, op := range plan {
		fmt.Fprintf(u.sum, "%d/%d %s %s %s %d x%d\n", r.Conversation, r.Turn, op.Kind, op.Purpose,
			op.Key, op.Bytes, op.Times)
	}
	if u.seq < digestTurns {
		return
	}
	if d.open--; d.open == 0 {
		d.over()
	}
}

func (d *digest) String() string {
	all := sha256.New()
	for i := range d.users {
		fmt.Fprintf(all, "%d %x\n", i, d.users[i].sum.Sum(nil))
	}
	return hex.EncodeToString(all.Sum(nil)[:16])
}

var errSeenAll = errors.New("all turns were seen")

// digestOf runs the load of option 1 on null tiers until every user has had its
// turns.
func digestOf(t *testing.T, workers int, change func(*users.Config)) string {
	t.Helper()
	mdl, err := model.Find("llama3.1-8b", nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	d := newDigest(func() { cancel(errSeenAll) })
	cfg := testConfig(plenty(), population(digestUsers, change), workers).lasting(time.Hour)
	cfg.Planner = workloads.Planner{Sizer: model.NewSizer(mdl, 1, model.TPMLPerf), Batched: true}
	cfg.OnDispatch = d.see
	// nil where the last request ends the load before we can
	if _, err = runLoad(ctx, cfg); err != nil {
		require.ErrorIs(t, err, errSeenAll)
	}
	require.Zero(t, d.open, "users without all of their turns")
	return d.String()
}

// rush sends all requests at once, so that the workers are never idle. Every user
// has its turn; without an end the urgent ones would starve the others.
func rush(u *users.Config) {
	u.Rate, u.ConstantRate, u.MaxRequests = 1e9, true, digestUsers*digestTurns
}

func TestTheSameSeedMakesTheSameRequests(t *testing.T) {
	if buffer.RaceEnabled {
		t.Skip("TestNoScheduleHangsUnderOverload has as many workers and fewer requests")
	}
	overtaking := func(u *users.Config) { rush(u); u.Overtaking = true }
	assert.Equal(t, goldenDigest, digestOf(t, 5, overtaking),
		"few workers, and turns that may overtake")
	synctest.Test(t, func(t *testing.T) {
		think := func(u *users.Config) {
			for i := range u.Users { // the slowest would make this long
				u.Users[i].Think = 0.5
			}
		}
		assert.Equal(t, goldenDigest, digestOf(t, digestUsers, think), "users that think")
	})
}

// The digest of a result is that of its requests and hits, and of nothing else.
func TestTheDigestOfAResultIsOfRequestsAndHits(t *testing.T) {
	run := func(seed uint64, room int64) (digest string) {
		src := population(20, func(u *users.Config) { u.Seed, u.MaxRequests = seed, 200 })
		synctest.Test(t, func(t *testing.T) {
			cfg := testConfig(storage(tiertest.NewNull(), room), src, 1).finite()
			digest = mustRun(t, cfg).Digest
		})
		return digest
	}
	const room = 1 << 50
	base := run(42, room)
	assert.Len(t, base, 16)
	assert.Equal(t, base, run(42, room))
	assert.NotEqual(t, base, run(43, room), "other requests")
	assert.NotEqual(t, base, run(42, 30_000*unit), "other hits")
}
