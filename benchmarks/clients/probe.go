package clients

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/params"
)

// marks is the prober of a rank: a small file in the directory in which it is going to work.
type marks struct {
	dir  string
	job  string // of all ranks, as a part of a file's name
	rank int

	// A run that ends while a mark is being made waits for it, or it would stay.
	mu   sync.Mutex
	made []string // directories, the innermost first
	mark bool     // the mark was made, and not removed
}

var _ coordinate.Prober = (*marks)(nil)

// markForm is the name of a mark: the job's, so that runs do not see each other's, and the rank.
var markForm = regexp.MustCompile(`^\.kvbench-probe-[0-9a-f]{16}-[0-9]+$`)

// marksIn are those of a rank in a directory, nil without one: objects have no filesystem.
func marksIn(dir string, h *wire.Hello) coordinate.Prober {
	if dir == "" {
		return nil
	}
	// A launcher's name of a job may hold anything.
	sum := sha256.Sum256([]byte(h.Job))
	return &marks{dir: dir, job: hex.EncodeToString(sum[:8]), rank: h.Rank}
}

func (m *marks) path(rank int) string {
	return filepath.Join(m.dir, ".kvbench-probe-"+m.job+"-"+strconv.Itoa(rank))
}

// markBytes are random, so that nobody sees a mark whom it does not reach.
const markBytes = 16

// markText is what stands in a mark, or in one whose writer was killed before it had written.
var markText = regexp.MustCompile(`^(?:[0-9a-f]{32})?$`)

// staleAfter is when a mark is of a run that was killed: it lives for seconds.
const staleAfter = 24 * time.Hour

// Make implements coordinate.Prober.
func (m *marks) Make() (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for dir := m.dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		m.made = append(m.made, dir)
	}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return "", err
	}
	m.reclaim()
	// Names repeat when a directory is copied, or a snapshot of it is mounted; this does not.
	random := make([]byte, markBytes)
	_, _ = rand.Read(random) // never fails
	content := hex.EncodeToString(random)
	// A job that is started again has the name that it had when it was killed. What a mark cannot
	// be is nobody's to remove, to write into, or through, as a link of that name would have it.
	if old, err := os.Lstat(m.path(m.rank)); err == nil && old.Mode().IsRegular() {
		if text, err := readMark(m.path(m.rank)); err == nil && markText.Match(text) &&
			old.Size() == int64(len(text)) {
			_ = os.Remove(m.path(m.rank))
		}
	}
	f, err := os.OpenFile(m.path(m.rank), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return "", err
	}
	m.mark = true
	_, err = f.WriteString(content)
	// Other hosts see what is on the server, not what waits here to be sent there.
	return content, errors.Join(err, f.Sync(), f.Close())
}

// reclaim removes what killed runs have left, and nothing else.
func (m *marks) reclaim() {
	entries, _ := os.ReadDir(m.dir)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && markForm.MatchString(e.Name()) && info.Mode().IsRegular() &&
			info.Size() <= 2*markBytes && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(filepath.Join(m.dir, e.Name()))
		}
	}
}

// Look implements coordinate.Prober. Each mark is asked for by its name: what a directory lists a
// network filesystem may know from before the mark was made.
func (m *marks) Look(ranks []int) (seen []wire.Mark, err error) {
	for _, rank := range ranks {
		text, err := readMark(m.path(rank))
		if errors.Is(err, os.ErrNotExist) {
			continue // what another host has made lies elsewhere
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the mark of rank %d: %w", rank, err)
		}
		seen = append(seen, wire.Mark{Rank: rank, Content: string(text)})
	}
	return seen, nil
}

// readMark reads as much as a mark can have, whatever lies there.
func readMark(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2*markBytes))
}

// Remove implements coordinate.Prober. Directories stay that others use by now, and a file that
// was there before the mark: whose it is nobody knows.
func (m *marks) Remove() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mark {
		_ = os.Remove(m.path(m.rank))
	}
	m.mark = false
	for _, dir := range m.made {
		_ = os.Remove(dir)
	}
	m.made = nil
}

// Share tells the plans with how many ranks they share their filesystem: the free space is theirs
// together. The error says what cannot be run by ranks that do not share one.
func (c *Clients) Share(plans []*params.Values) error {
	if c == nil || c.sharing.Filesystems == 0 {
		return nil
	}
	for _, v := range plans {
		v.FilesystemRanks, v.Filesystems = c.sharing.Ranks, c.sharing.Filesystems
		// At another point of a sweep nobody has looked: that all share it takes the least of it.
		if v.CacheDir() != plans[0].CacheDir() {
			v.FilesystemRanks, v.Filesystems = v.Ranks, 0
		}
		if err := v.CheckFilesystems(); err != nil {
			return err
		}
	}
	return nil
}

// filesystems are the ranks that share each, by their lowest ranks; none on objects.
func (c *Clients) filesystems() (list [][]int) {
	for rank, s := range c.leader.Sharing() {
		if s.Filesystem > 0 {
			list = slices.Grow(list, s.Filesystems)[:s.Filesystems]
			list[s.Filesystem-1] = append(list[s.Filesystem-1], rank)
		}
	}
	return list
}
