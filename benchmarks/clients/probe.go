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

// markText is what stands in a mark of a name: random bytes, and what proves that they are a
// mark's. A file of somebody else has it neither by chance nor by mistake.
func markText(name string, random []byte) string {
	nonce := hex.EncodeToString(random)
	sum := sha256.Sum256([]byte(name + " " + nonce))
	return nonce + hex.EncodeToString(sum[:markBytes])
}

// isMark tells whether a file is one that this program has made, whose content proves it.
func isMark(path string) bool {
	// What a mark cannot be is not even opened: a link leads elsewhere, a pipe waits.
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != 4*markBytes {
		return false
	}
	text, err := readMark(path)
	if err != nil || len(text) != 4*markBytes {
		return false
	}
	random, err := hex.DecodeString(string(text[:2*markBytes]))
	return err == nil && string(text) == markText(filepath.Base(path), random)
}

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
	// A job that is started again has the name that it had when it was killed.
	path := m.path(m.rank)
	if isMark(path) {
		_ = os.Remove(path)
	}
	// Names repeat when a directory is copied, or a snapshot of it is mounted; this does not.
	random := make([]byte, markBytes)
	_, _ = rand.Read(random) // never fails
	content := markText(filepath.Base(path), random)
	err := appear(path, content)
	if errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s is there, and nothing proves that this program has made it: "+
			"remove it if it is nobody's: %w", path, err)
	}
	m.mark = err == nil
	return content, err
}

// write makes a file, and what is to stand in it. Who is killed in between leaves an empty one.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	// Other hosts see what is on the server, not what waits here to be sent there.
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// reclaim removes what killed runs have left, and nothing else.
func (m *marks) reclaim() {
	entries, _ := os.ReadDir(m.dir)
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(m.dir, e.Name())
		if err == nil && markForm.MatchString(e.Name()) && isMark(path) &&
			time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(path)
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
	return io.ReadAll(io.LimitReader(f, 4*markBytes+1))
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
