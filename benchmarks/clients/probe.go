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

// marks is the prober of a rank: a small file in each directory in which it is going to work.
type marks struct {
	dirs []string
	job  string // of all ranks, as a part of a file's name
	rank int

	// A run that ends while a mark is being made waits for it, or it would stay.
	mu   sync.Mutex
	made []string // directories, those inside of others first
	in   []int    // the directories that have a mark which was not removed
}

var _ coordinate.Prober = (*marks)(nil)

// markForm is the name of a mark: the job's, so that runs do not see each other's, and the rank.
var markForm = regexp.MustCompile(`^\.kvbench-probe-[0-9a-f]{16}-[0-9]+$`)

// marksIn are those of a rank in its directories, nil without any: objects have no filesystem.
func marksIn(dirs []string, h *wire.Hello) coordinate.Prober {
	if len(dirs) == 0 {
		return nil
	}
	// A launcher's name of a job may hold anything.
	sum := sha256.Sum256([]byte(h.Job))
	return &marks{dirs: dirs, job: hex.EncodeToString(sum[:8]), rank: h.Rank}
}

func (m *marks) path(dir, rank int) string {
	return filepath.Join(m.dirs[dir], ".kvbench-probe-"+m.job+"-"+strconv.Itoa(rank))
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

// Make implements coordinate.Prober. Where one of several cannot be made the others are removed by
// whoever gives up, with Remove.
func (m *marks) Make(dirs []int) (list []wire.Mark, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, dir := range dirs {
		content, err := m.make(dir)
		if err != nil {
			return nil, err
		}
		m.in = append(m.in, dir)
		list = append(list, wire.Mark{Rank: m.rank, Dir: dir, Content: content})
	}
	return list, nil
}

// make makes the mark of a directory, with mu.
func (m *marks) make(dir int) (content string, err error) {
	m.made = append(missing(m.dirs[dir]), m.made...)
	if err := os.MkdirAll(m.dirs[dir], 0o755); err != nil {
		return "", err
	}
	reclaim(m.dirs[dir])
	// A job that is started again has the name that it had when it was killed, such as one that
	// Slurm queues again.
	path := m.path(dir, m.rank)
	if isMark(path) {
		_ = os.Remove(path)
	}
	// Names repeat when a directory is copied, or a snapshot of it is mounted; this does not.
	random := make([]byte, markBytes)
	_, _ = rand.Read(random) // never fails
	content = markText(filepath.Base(path), random)
	if err = appear(path, content); errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s is there, and nothing proves that this program has made it: "+
			"remove it if it is nobody's: %w", path, os.ErrExist)
	}
	return content, err
}

// missing are a directory and those above it that do not exist, the innermost first.
func missing(dir string) (list []string) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, os.ErrNotExist) {
			return list
		}
		list = append(list, at)
	}
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

// reclaim removes what killed runs have left in a directory, and nothing else.
func reclaim(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err == nil && markForm.MatchString(e.Name()) && isMark(path) &&
			time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(path)
		}
	}
}

// Look implements coordinate.Prober. Each mark is asked for by its name: what a directory lists a
// network filesystem may know from before the mark was made.
func (m *marks) Look(ranks []int) (seen []wire.Mark, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, dir := range m.in {
		for _, rank := range ranks {
			text, err := readMark(m.path(dir, rank))
			if errors.Is(err, os.ErrNotExist) {
				continue // what another host has made lies elsewhere
			}
			if err != nil {
				return nil, fmt.Errorf("looking for the mark of rank %d: %w", rank, err)
			}
			seen = append(seen, wire.Mark{Rank: rank, Dir: dir, Content: string(text)})
		}
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
	for _, dir := range m.in {
		_ = os.Remove(m.path(dir, m.rank))
	}
	// One that is not empty stays by itself.
	for _, dir := range m.made {
		_ = os.Remove(dir)
	}
	m.in, m.made = nil, nil
}

// Share tells the plans how many ranks are on this host, where nobody had said so, and with how
// many directories of all ranks each of theirs shares its filesystem: the free space is theirs
// together. The error says what cannot be run by ranks that do not share one, or are so many here.
// Feasible is asked about the plans of which more is known than when they were checked.
func (c *Clients) Share(plans []*params.Values, feasible func(*params.Values) params.Violations,
) error {
	if c == nil {
		return nil
	}
	var all params.Violations
	for _, v := range plans {
		if err := c.share(v, plans[0]); err != nil {
			return err
		}
		if news, bad := v.Meet(c.local); news {
			all = all.Merge(bad).Merge(feasible(v))
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// share is Share of the filesystems for one of the plans.
func (c *Clients) share(v, first *params.Values) error {
	if len(c.sharing) == 0 {
		return nil
	}
	v.Filesystems, v.FilesystemShares = c.sharing[0].Filesystems, nil
	for _, s := range c.sharing {
		v.FilesystemShares = append(v.FilesystemShares, s.Directories)
	}
	// At another point of a sweep nobody has looked: that all share it takes the least of it.
	if !slices.Equal(v.CacheDirs, first.CacheDirs) {
		v.Filesystems, v.FilesystemShares = 0, nil
		for range max(1, len(v.CacheDirs)) {
			v.FilesystemShares = append(v.FilesystemShares, v.Ranks*max(1, len(v.CacheDirs)))
		}
	}
	return v.CheckFilesystems()
}

// shared is a filesystem, with the directories of the ranks on it.
type shared struct {
	ranks []int
	dirs  map[int][]int // by rank
}

// filesystems are those of all ranks, by their lowest ranks; none on objects. The leader has
// counted them in that order, from 1.
func (c *Clients) filesystems() (list []shared) {
	for rank, dirs := range c.leader.Sharing() {
		for dir, s := range dirs {
			if s.Filesystem == 0 {
				continue
			}
			// A lower one may be that of a later rank, which comes yet.
			for len(list) < s.Filesystem {
				list = append(list, shared{dirs: map[int][]int{}})
			}
			f := &list[s.Filesystem-1]
			if len(f.dirs[rank]) == 0 {
				f.ranks = append(f.ranks, rank)
			}
			f.dirs[rank] = append(f.dirs[rank], dir)
		}
	}
	return list
}
