package objecttier

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/store"
)

// manifestName is the object that describes a run, so that a later run can read its objects.
const manifestName = "manifest.json"

// manifest is the content of manifest.json.
type manifest struct {
	Run     string    `json:"kvbench_run"`
	Nonce   string    `json:"nonce"` // the nonce of the objects' content
	Rank    int       `json:"rank"`
	Started time.Time `json:"started"`
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Process string    `json:"process"` // the processID of the process that wrote the run
	Names
	Contents json.RawMessage `json:"contents,omitempty"` // facts of the folder that a reader needs
}

// processID identifies this process.
var processID = rand.Text()

func newManifest(cfg Config, run string) manifest {
	host, _ := os.Hostname()
	m := manifest{Run: run, Nonce: cfg.Nonce, Rank: cfg.Rank, Started: time.Now().UTC(),
		PID: os.Getpid(), Host: host, Process: processID, Names: cfg.Names}
	if cfg.Folder != nil {
		m.Contents = cfg.Folder.Contents
	}
	return m
}

// mine reports whether this process wrote the run. A process removes only its own runs.
func (m manifest) mine() bool { return m.Process == processID }

// writeManifest writes the manifest of this run.
func (t *Tier) writeManifest(ctx context.Context) error {
	t.mu.Lock()
	text, err := json.Marshal(t.mark)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return write(ctx, t.client, t.base+manifestName, text)
}

// write creates an object with a text.
func write(ctx context.Context, to *store.Client, key string, text []byte) error {
	_, err := to.Put(ctx, key, int64(len(text)),
		func() io.ReadSeeker { return bytes.NewReader(text) })
	return err
}

// read returns the content of an object of a known size.
func read(ctx context.Context, from *store.Client, key string, size int64) (text []byte, err error) {
	_, err = from.Get(ctx, key, store.Range{N: size, Size: size}, make([]byte, min(size, 32<<10)),
		func(p []byte, _ int64, _ bool) error { text = append(text, p...); return nil })
	return text, err
}

// readManifest reads the manifest of a run. It returns ErrNoKey if there is none.
func (t *Tier) readManifest(ctx context.Context, run string) (m manifest, err error) {
	key := t.parent + run + "/" + manifestName
	size, err := t.client.Head(ctx, key)
	if err != nil {
		return m, err
	}
	text, err := read(ctx, t.client, key, size)
	if err != nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil || m.Run != run {
		return m, store.ErrNoKey
	}
	return m, nil
}

// choose finds the earlier run whose objects a folder reads, or the run that this process joins. Among the
// runs whose manifest fits, it prefers this process's own runs, then runs with the same nonce, then the
// newest run.
func (t *Tier) choose(ctx context.Context, runs []string) (reads bool, err error) {
	f := t.cfg.Folder
	if f == nil || f.Check == nil && !t.cfg.Join {
		return false, nil
	}
	reads = f.Check != nil
	check := func(m manifest) error {
		switch {
		case reads:
			return f.Check(m.Contents)
		case m.Nonce != t.cfg.Nonce:
			return errors.New("the store does not show what another process of this run has just " +
				"written")
		}
		return nil
	}
	var found []manifest
	for _, run := range runs {
		m, err := t.readManifest(ctx, run)
		if err == nil {
			found = append(found, m)
		} else if !errors.Is(err, store.ErrNoKey) {
			return false, err
		}
	}
	near := func(m manifest) int {
		switch {
		case m.mine():
			return 2
		case m.Nonce == t.cfg.Nonce:
			return 1
		}
		return 0
	}
	slices.SortFunc(found, func(a, b manifest) int {
		return cmp.Or(near(b)-near(a), b.Started.Compare(a.Started))
	})
	err = check(manifest{}) // the error if there is no run
	for i, m := range found {
		wrong := check(m)
		if wrong == nil {
			t.mark, t.base = m, t.parent+m.Run+"/"
			return reads, nil
		}
		if i == 0 { // the best run
			err = wrong
		}
	}
	return false, fmt.Errorf("in %s: %w", t.URL(), err)
}

// Path returns the URL of a folder's objects, for messages.
func (t *Tier) Path() string { return t.URL() }

// Joined reports whether this process has joined the run of another process.
func (t *Tier) Joined() bool { return t.cfg.Join }

// Contents returns the folder's facts in the manifest.
func (t *Tier) Contents() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mark.Contents
}

// SetContents replaces the folder's facts in the manifest.
func (t *Tier) SetContents(contents json.RawMessage) error {
	t.mu.Lock()
	t.mark.Contents = contents
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cleanup)
	defer cancel()
	return t.writeManifest(ctx)
}

// Stay keeps the objects: Clear leaves them in the bucket, as with Config.Keep.
func (t *Tier) Stay() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep = true
}

// Adopt adds an existing object of the bucket to the tier: the object with the name and exactly the size of
// o. The tier can then read and remove it. Adopt returns ErrNotFound if the object does not exist.
func (t *Tier) Adopt(ctx context.Context, o tiers.Object) error {
	size, err := t.client.Head(ctx, t.key(o))
	switch {
	case errors.Is(err, store.ErrNoKey):
		err = tiers.ErrNotFound
	case err == nil && size != o.Size:
		err = fmt.Errorf("the object has %d bytes, it should have %d", size, o.Size)
	}
	if err != nil {
		return t.fail("find", o, -1, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries[o.ID()] != nil {
		return t.fail("find", o, -1, tiers.ErrExists)
	}
	t.entries[o.ID()] = &entry{state: present, size: o.Size}
	return nil
}
