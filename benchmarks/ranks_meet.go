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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/environment"
	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
	"kvbench/tracing/host"
)

// obey makes this process the rank that its coordinator has started, as if a launcher had. It writes
// none of the testing package's files, which have one name for all ranks: rank 0 writes them.
func obey(m *group.Meeting, in *params.Inputs) {
	for _, name := range []string{"cpuprofile", "memprofile", "blockprofile", "mutexprofile",
		"trace", "coverprofile", "testlogfile"} {
		_ = flag.Set(testPrefix+name, "") // the testing package has them all
	}
	value := func(n int) group.Value {
		return group.Value{Text: strconv.Itoa(n), Variable: group.Variable}
	}
	in.Base, in.Stamp = m.Base, m.Stamp
	in.Agent = &group.Launched{Launcher: m.Launcher, Rank: value(m.Rank), Size: value(m.Ranks),
		Local: value(m.Ranks)}
}

// meetingOf is the meeting of ranks that a launcher or the user has started. The error is about
// -rendezvous.
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
		// A launcher without a name for the job has started all of them itself.
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

// decline sends the coordinator why this rank cannot take part, so that it does not wait for it. If rank 0 is not
// there within patience, it has most likely found the same mistake.
func decline(m *group.Meeting, why error) {
	if m.Rank == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	h := hello(m, nil, nil)
	h.Refused = why.Error()
	_, _ = group.Dial(ctx, m.Address, m.Started, h, group.MemberConfig{Clock: group.System{}})
}

// hello identifies this process to the others. Plans are what it is going to run, none where it
// cannot; dirs are the directories in which it is going to work.
func hello(m *group.Meeting, plans []*params.Values, dirs []string) group.Hello {
	h := group.Hello{Job: m.Job, Rank: m.Rank, Ranks: m.Ranks, PID: os.Getpid(), Build: build(),
		Parameters: decisive(plans)}
	h.Host, _ = os.Hostname()
	h.Boot, h.TimeNS = group.WhoseClock()
	for _, dir := range dirs {
		h.Filesystems = append(h.Filesystems, group.Filesystem(host.IdentityOf(dir)))
	}
	return h
}

// dirs are those of files that other ranks may see.
func (c *clients) dirs() []string {
	if v := c.s.points[0]; !v.Simulated() && !v.OnObjects() {
		return cacheDirs(v)
	}
	return nil
}

// decisive are the parameters that decide what is measured, over all selected benchmarks: of each
// its values in the order of the plans.
func decisive(plans []*params.Values) map[string]string {
	values := map[string][]string{}
	add := func(name, value string) {
		if !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, v := range plans {
		// These are no rows of the parameter table.
		add("bench", strings.TrimSuffix(v.Bench.Name+"/"+v.Point, "/"))
		add("benchtime", v.Text("benchtime"))
		add("count", strconv.Itoa(v.Count))
		for _, p := range v.Parameters() {
			if params.Comparable(p.Name) {
				add(p.Name, v.Text(p.Name))
			}
		}
	}
	joined := map[string]string{}
	for name, list := range values {
		joined[name] = strings.Join(list, ",")
	}
	return joined
}

// build identifies this binary by the linker's build id, which depends on its source, or by the
// version where there is none.
func build() string {
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return environment.Version()
	}
	defer f.Close()
	id := ""
	if s := f.Section(".note.go.buildid"); s != nil {
		note, _ := s.Data()
		id = hex.EncodeToString(note)
	}
	return cmp.Or(id[max(0, len(id)-24):], environment.Version())
}

// missing are a directory and those above it that do not exist, the innermost first.
func missing(dir string) (list []string) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !os.IsNotExist(err) {
			return list
		}
		list = append(list, at)
	}
}

// share sets in the plans how many ranks are on this host, where it was a guess, and how many
// directories of all ranks share the filesystem of each of theirs: the free space is theirs
// together. The error is what ranks cannot run that do not share a filesystem, or are so many here.
// feasible checks the plans again of which more is known now.
func (c *clients) share(plans []*params.Values, feasible func(*params.Values) params.Violations,
) error {
	var wrong params.Violations
	for _, v := range plans {
		if sharing := c.gathered.Sharing; len(sharing) > 0 {
			v.Filesystems, v.FilesystemShares = sharing[0].Filesystems, nil
			for _, s := range sharing {
				v.FilesystemShares = append(v.FilesystemShares, s.Directories)
			}
			// The filesystems of another point of a sweep are not known: each takes as little as if
			// all ranks shared them.
			if !slices.Equal(v.CacheDirs, plans[0].CacheDirs) {
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

// stampForm is the form of a run's stamp, which becomes the name of a directory.
var stampForm = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9]+$`)

// adopt makes the default results directory of this rank that of the run: where both are on one
// filesystem there is one, and elsewhere it has the same name. It opens the file into which this rank
// prints, nil for a rank that the coordinator has started, which has one.
func (c *clients) adopt() (log *os.File, err error) {
	if stampForm.MatchString(c.gathered.Stamp) {
		for _, v := range c.s.points {
			if !v.Typed("results-dir") { // a given one may differ between hosts
				v.ResultsDir = filepath.Join(filepath.Dir(v.ResultsDir), c.gathered.Stamp)
			}
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
