package benchmarks

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/hex"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tracing/host"
)

// obey configures this process as a rank that its coordinator has started, as if a launcher had started
// it. It disables the testing package's output files, which have the same names for all ranks: only
// rank 0 writes them.
func obey(m *group.Meeting, in *params.Inputs) {
	for _, name := range []string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile",
		"trace", "coverprofile", "testlogfile"} {
		_ = flag.Set(testPrefix+name, "") // the testing package defines all these flags
	}
	value := func(n int) group.Value {
		return group.Value{Text: strconv.Itoa(n), Variable: group.MeetingVariable}
	}
	in.Base, in.Stamp = m.Base, m.Stamp
	in.Agent = &group.Launched{Launcher: m.Launcher, Rank: value(m.Rank), Size: value(m.Ranks),
		Local: value(m.Ranks)}
}

// meetingOf returns the address, the job and the rank for ranks that a launcher or the user has
// started. The error is about -rendezvous.
func meetingOf(v *params.Values) (*group.Meeting, error) {
	m := &group.Meeting{Launcher: "by hand", Rank: v.Rank, Ranks: v.Ranks}
	first := ""
	if l := v.Launcher; l != nil {
		m.Launcher, m.Job, first = l.Launcher, l.Job, l.First
	}
	switch {
	case v.Rendezvous != "auto":
		m.Address = v.Rendezvous
	case v.AllHere():
		// If the launcher has no job name, it started all ranks of this host itself: its PID identifies
		// the job.
		m.Job = cmp.Or(m.Job, fmt.Sprintf("%s of process %d", m.Launcher, os.Getppid()))
		m.Address = group.LocalAddress(m.Job)
	case first != "":
		m.Address = net.JoinHostPort(first, group.Port)
	default:
		return nil, fmt.Errorf("-rendezvous: must be given with %s, which does not say on which "+
			"host rank 0 is: HOST[:PORT], or none for ranks that do not meet", m.Launcher)
	}
	m.Job = cmp.Or(m.Job, m.Address)
	return m, nil
}

// decline sends the coordinator the reason for which this rank cannot take part, so that the
// coordinator does not wait for it. It waits at most patience for rank 0: a missing rank 0 has most
// likely found the same mistake.
func decline(m *group.Meeting, why error) {
	if m.Rank == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	h := hello(m, nil, nil)
	h.Refused = why.Error()
	_, _ = group.Dial(ctx, m.Address, m.Started, h, group.MemberConfig{})
}

// hello returns what identifies this process to the other ranks. plans are the points that it is going
// to run, nil if it cannot run. dirs are its cache directories.
func hello(m *group.Meeting, plans []*params.Values, dirs []string) group.Hello {
	h := group.Hello{Job: m.Job, Rank: m.Rank, Ranks: m.Ranks, PID: os.Getpid(), Build: build(),
		Parameters: decisive(plans)}
	h.Host, _ = os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // Linux
	h.Boot = strings.TrimSpace(string(boot))
	for _, dir := range dirs {
		h.Filesystems = append(h.Filesystems, host.IdentityOf(dir))
	}
	return h
}

// sharedDirs returns the cache directories, which other ranks may share: those of the first point that has
// some. It returns nil for object stores and simulations.
func sharedDirs(plans []*params.Values) []string {
	for _, v := range plans {
		if dirs := cacheDirs(v); len(dirs) > 0 && !v.Simulated() && !v.OnObjects() {
			return dirs
		}
	}
	return nil
}

// decisive returns the parameters that decide what is measured, over all selected benchmarks. The text
// of a parameter has its distinct values in the order of the plans, separated by commas.
func decisive(plans []*params.Values) map[string]string {
	values := map[string][]string{}
	add := func(name, value string) {
		if !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, v := range plans {
		// The parameter table does not have these three.
		add("bench", strings.TrimSuffix(v.Bench.Name+"/"+v.Point, "/"))
		add("benchtime", v.Text("benchtime"))
		add("count", strconv.Itoa(v.Count))
		effective := v.Effective()
		for _, p := range v.Parameters() {
			if params.Comparable(p.Name) {
				add(p.Name, cmp.Or(effective[p.Name], v.Text(p.Name)))
			}
		}
	}
	joined := map[string]string{}
	for name, list := range values {
		joined[name] = strings.Join(list, ",")
	}
	return joined
}

// build returns the last 24 hex digits of the linker's build ID, which depends on the source. Without a
// build ID it returns the version.
func build() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return result.Version()
	}
	defer f.Close()
	id := ""
	if s := f.Section(".note.go.buildid"); s != nil {
		note, _ := s.Data()
		id = hex.EncodeToString(note)
	}
	return cmp.Or(id[max(0, len(id)-24):], result.Version())
}

// missing returns dir and its parents that do not exist, innermost first.
func missing(dir string) (list []string) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !os.IsNotExist(err) {
			return list
		}
		list = append(list, at)
	}
}

// share sets in the plans how many ranks are on this host, if that was a guess, and how many
// directories of all ranks share the filesystem of each directory, because they share its free space.
// The error lists parameters that do not work with ranks on different filesystems, or with that many
// ranks on this host. share calls feasible again for plans whose number of local ranks has changed.
func (c *clients) share(plans []*params.Values, feasible func(*params.Values) params.Violations,
) error {
	var wrong params.Violations
	for _, v := range plans {
		if shares := c.gathered.Shares; len(shares) > 0 {
			v.Filesystems, v.FilesystemShares = c.gathered.Filesystems, shares
			// The filesystems are unknown for a point of the sweep with other directories. Assume that
			// all ranks share one filesystem, the smallest possible share.
			if !slices.Equal(cacheDirs(v), sharedDirs(plans)) {
				dirs := max(1, len(v.CacheDirs))
				v.Filesystems, v.FilesystemShares = 0, slices.Repeat([]int{v.Ranks * dirs}, dirs)
			}
			if err := v.CheckFilesystems(); err != nil {
				return err
			}
		}
		if news, bad := v.Meet(c.gathered.Local); news {
			wrong = wrong.Merge(bad).Merge(feasible(v))
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// adopt gives the default results directory of this rank the name that the coordinator's has. On one
// filesystem all ranks then have one directory. adopt also opens the log file of this rank. log is nil
// for a rank that the coordinator started, because the coordinator opened its log.
func (c *clients) adopt() (log *os.File, err error) {
	for _, v := range c.s.points {
		if !v.Changed("results-dir") { // the user's -results-dir may differ between hosts
			v.ResultsDir = filepath.Join(filepath.Dir(v.ResultsDir), filepath.Base(c.gathered.Stamp))
		}
	}
	if c.Started {
		return nil, nil
	}
	dir := c.s.points[0].ResultsDir
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("making the results directory: %w", err)
	}
	return os.Create(logPath(dir, c.Rank))
}

func logPath(resultsDir string, rank int) string {
	return filepath.Join(resultsDir, "rank_"+strconv.Itoa(rank)+".log")
}
