package objecttier

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/store"
)

// proofSize is that of the object of a proof: several pieces, and no multiple of anything.
const proofSize = 100_003

// prove asks each endpoint for everything that the run will: to put an object and to give back its
// bytes, whole and in part, to tell of it, to make one of parts, to list and to delete. A store
// that gives back other bytes is refused: there are such, for some ways to send a body. Endpoints
// that are not pinned have to show each other's objects.
func (t *Tier) prove(ctx context.Context) error {
	// Suspended is fine: nothing that is deleted from then on leaves a version with bytes.
	status, err := t.client.Versioning(ctx)
	switch {
	case err != nil:
		t.warn(fmt.Sprintf("the store does not say whether %s keeps versions, in which deleted "+
			"objects would stay and cost: %v", t.cfg.Store.Bucket, err))
	case status == "Enabled":
		return fmt.Errorf("the bucket %s keeps versions: what the run deletes would stay and "+
			"cost; name one without in -cache-dir", t.cfg.Store.Bucket)
	}
	// The name is the run's, so that one that was killed is told from one that goes on, and exactly
	// of a form that the next start reclaims.
	sum := sha256.Sum256([]byte(t.cfg.Nonce))
	name := fmt.Sprintf("%s.kvbench-proof-%s-", t.base, hex.EncodeToString(sum[:8]))
	data := proofData(t.cfg.Nonce, t.proofBytes())
	all := t.cfg.Store.Endpoints.All()
	errs := make([]error, len(all))
	prove := func(i int) error {
		p := &proof{t: t, ctx: ctx, key: fmt.Sprint(name, i), data: data, at: all[i],
			client: t.client.At(i)}
		err := p.run()
		// Also after a failure: what a proof makes goes with it. What else fails then says no more.
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()
		left := p.client.Delete(cctx, p.key)
		switch answer, ok := errors.AsType[*store.Error](err); {
		case err == nil:
			return left
		case ok && answer.Status == 0:
			return fmt.Errorf("the endpoint %s does not answer: %w", p.at.URL, err)
		}
		return fmt.Errorf("the store at %s cannot be relied on: %w", p.at.URL, err)
	}
	// One that fails does not cut off the others: of a PUT that is given up half-way nobody knows
	// whether it is carried out behind the deletion that follows.
	var proofs sync.WaitGroup
	for i := range all {
		proofs.Go(func() { errs[i] = prove(i) })
	}
	proofs.Wait()
	for _, err := range errs { // what is wrong is mostly wrong with all: once is enough
		if err != nil {
			return err
		}
	}
	return nil
}

// proofBytes is the most that a proof sends: two parts where there will be parts.
func (t *Tier) proofBytes() int {
	if t.multipart() {
		return smallestPart + 1000
	}
	return proofSize
}

// multipart says whether the run will make uploads; engines write whole objects, and say so by the
// largest that S3 takes in one PUT.
func (t *Tier) multipart() bool { return t.cfg.MultipartAbove < 5<<30 }

// proofData is different for each run, so that an old object, or what a proxy has kept of one,
// cannot pass for it.
func proofData(nonce string, n int) []byte {
	data := make([]byte, 0, n+sha256.Size)
	for i := 0; len(data) < n; i++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", nonce, i))
		data = append(data, sum[:]...)
	}
	return data[:n]
}

// proof is what one endpoint is asked.
type proof struct {
	t      *Tier
	ctx    context.Context
	client *store.Client
	at     *endpoint.Endpoint // who is to blame for what fails: in the end it may be another one
	key    string
	data   []byte
}

// run asks for one thing after the other, in the order in which a run would: what is told first is
// what it would have met first.
func (p *proof) run() error {
	data := p.data[:proofSize]
	if _, _, err := p.client.Put(p.ctx, p.key, int64(len(data)), p.body(data),
		store.Condition{}); err != nil {
		return err
	}
	if err := p.compare(p.client, data, 0, len(data)); err != nil {
		return err
	}
	if err := p.compare(p.client, data, 4097, 50_000); err != nil {
		return err
	}
	info, err := p.client.Head(p.ctx, p.key)
	if err == nil && info.Size != int64(len(data)) {
		err = fmt.Errorf("HEAD says %d bytes of an object of %d", info.Size, len(data))
	}
	if err != nil {
		return err
	}
	if err := p.others(data); err != nil {
		return err
	}
	// Parts last: they make the same object again, larger, and what is compared is the last one.
	if p.t.multipart() {
		if err := p.parts(); err != nil {
			return err
		}
	}
	listed := false
	err = p.client.List(p.ctx, p.key, func(i store.Info) bool {
		listed = listed || i.Key == p.key
		return true
	})
	if err == nil && !listed {
		err = errors.New("a list does not show an object that was just written")
	}
	if err != nil {
		return err
	}
	if err := p.client.Delete(p.ctx, p.key); err != nil {
		return err
	}
	if _, err := p.client.Head(p.ctx, p.key); !errors.Is(err, store.ErrNoKey) {
		return fmt.Errorf("an object that was deleted is still there (%v)", err)
	}
	return nil
}

func (p *proof) body(data []byte) store.Body {
	return func() io.ReadSeeker { return bytes.NewReader(data) }
}

// compare reads a range of the object through a client, and compares it: in pieces of another size
// than those it was sent in.
func (p *proof) compare(client *store.Client, data []byte, off, n int) error {
	got := make([]byte, 0, n)
	_, err := client.Get(p.ctx, p.key, store.Range{Off: int64(off), N: int64(n),
		Of: int64(len(data))}, make([]byte, 32<<10), func(b []byte, _ int64) error {
		got = append(got, b...)
		return nil
	})
	if err != nil {
		return err
	}
	if !bytes.Equal(got, data[off:off+n]) {
		i := 0
		for i < len(got) && got[i] == data[off+i] {
			i++
		}
		return fmt.Errorf("it gave back other bytes than it was given, from byte %d of %d on: try "+
			"another -s3-payload", off+i, len(data))
	}
	return nil
}

// others reads the object through the other endpoints, where a request may go to any.
func (p *proof) others(data []byte) error {
	all := p.t.cfg.Store.Endpoints.All()
	if len(all) == 1 || p.t.cfg.Store.Endpoints.Pinned() {
		return nil
	}
	// All pairs: what is copied from one to another later shows in one direction alone.
	for i, e := range all {
		if e == p.at {
			continue
		}
		err := p.compare(p.t.client.At(i), data, 0, len(data))
		if errors.Is(err, store.ErrNoKey) {
			return fmt.Errorf("what was written through it is not at %s: they are different "+
				"stores; with -s3-balance pin-key or pin-rank each object stays with one", e.URL)
		}
		if _, itself := errors.AsType[*store.Error](err); itself {
			p.at = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parts makes the object again, of two parts.
func (p *proof) parts() error {
	id, _, err := p.client.Create(p.ctx, p.key)
	if err != nil {
		return err
	}
	var parts []store.Part
	for i, off := range []int{0, smallestPart} {
		b := p.data[off:min(off+smallestPart, len(p.data))]
		part, _, err := p.client.PutPart(p.ctx, p.key, id, i+1, int64(len(b)), p.body(b))
		if err != nil {
			return errors.Join(err, p.client.Abort(p.ctx, p.key, id))
		}
		parts = append(parts, part)
	}
	if _, err := p.client.Complete(p.ctx, p.key, id, int64(len(p.data)), parts); err != nil {
		return errors.Join(err, p.client.Abort(p.ctx, p.key, id))
	}
	return p.compare(p.client, p.data, 0, len(p.data))
}
