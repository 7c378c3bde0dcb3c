package params

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/group/launchers"
	"kvbench/kvbench/group/rendezvous"
)

// launched takes over what the launcher of this process says of it, by the names of the parameters.
// Without one nobody says anything.
func (r *resolver) launched() {
	var from launchers.Place
	if r.in.Agent != nil {
		from = *r.in.Agent
	} else if place, found := launchers.Find(r.in.env); found {
		from = place
	} else {
		return
	}
	r.v.Launcher = &from
	r.says = map[string]setting{}
	for name, value := range map[string]launchers.Value{"rank": from.Rank, "ranks": from.Size,
		"local-ranks": from.Local} {
		if value.Given() && !(name == "rank" && from.Problem != "") {
			r.says[name] = setting{value.Text, Origin{FromLauncher, value.Variable}}
		}
	}
}

// unsized says that the launcher tells which rank this is and not of how many: four clients that
// each think to be alone would each take all of the free space.
func unsized(from *launchers.Place) string {
	if from.SizeVariable == "" {
		return fmt.Sprintf("-ranks: must be given with %s, which says that this is rank %s (%s) "+
			"and not of how many: give -ranks or KVBENCH_RANKS", from.Family, from.Rank.Text,
			from.Rank.Variable)
	}
	return fmt.Sprintf("%s: must be set when %s is: give -rank and -ranks, or start under %s",
		from.SizeVariable, from.Rank.Variable, from.Family)
}

// place decides rank, ranks and local-ranks where neither a person nor a launcher did. Somebody may
// give only some of the three; the launcher's numbers fill the others.
func (r *resolver) place() {
	v, from := r.v, r.v.Launcher
	// With -rank given the launcher's variables are not needed.
	if from != nil && v.Rank == automatic && from.Problem != "" {
		r.bad = append(r.bad, from.Problem)
	}
	if v.Ranks == automatic {
		if from != nil && !from.Size.Given() && from.Rank.Given() && v.Rank != automatic &&
			v.Origin("rank").Kind == FromLauncher {
			r.bad = append(r.bad, unsized(from))
			v.row("ranks").refused = true // what follows from it would only confuse
		}
		v.Ranks = max(1, v.onHosts())
	}
	// Who gives -rank, too, starts the others in some other way.
	v.starts = from == nil && v.Rank == automatic && (v.Ranks > 1 || v.Hosts != "")
	r.places()
	r.want(!v.starts || v.Ranks <= mostStarted, "ranks",
		fmt.Sprintf("at most %d where this run starts them", mostStarted))
	r.want(!v.starts || !v.Typed("local-ranks"), "local-ranks",
		"absent where this run starts the ranks: -ranks, or -hosts h:n, says how many are on a "+
			"host")
	r.want(v.Ranks > 1 || !v.Typed("rank-failure"), "rank-failure",
		"absent with one client: -ranks starts several")
	// Nobody says of ranks that a person has started one by one that they belong together.
	v.meets = v.Ranks > 1 && !v.starts && r.in.Agent == nil && v.Rendezvous != "none" &&
		(from != nil || v.Rendezvous != "auto")
	r.want(!v.starts || !v.Typed("rendezvous"), "rendezvous",
		"absent with -ranks alone, which starts all of them")
	for _, name := range []string{"rendezvous", "rendezvous-timeout"} {
		r.want(v.Ranks > 1 || v.starts || from != nil || !v.Typed(name) ||
			v.row("ranks").refused, name,
			"absent with one client: give -rank and -ranks, or start under a launcher")
	}
	v.Rank = max(v.Rank, 0)
	// Unknown: all here is the careful guess, it divides the free space by the most. Ranks that
	// meet will know, and are checked then.
	if v.LocalRanks == automatic || v.LocalRanks > v.Ranks && !v.Origin("local-ranks").byUser() {
		v.LocalRanks = v.Ranks
		if v.guessed = v.meets; v.guessed {
			v.LocalRanks = 1
		}
		// Where this run starts them on hosts it is rank 0, which is on the first.
		if list := v.Started(); v.starts && len(list) > 0 {
			v.LocalRanks = list[0].Ranks
		}
		if from := v.Origin("ranks"); from.Kind == FromLauncher {
			v.row("local-ranks").given.origin = from
		}
	}
	r.want(v.Rank < v.Ranks || v.row("ranks").refused, "rank",
		fmt.Sprintf("below -ranks (%d)", v.Ranks))
	r.want(v.LocalRanks <= v.Ranks, "local-ranks", fmt.Sprintf("at most -ranks (%d)", v.Ranks))
}

// places judges where ranks are started. What a rank that was started finds in its arguments is its
// coordinator's.
func (r *resolver) places() {
	v := r.v
	if r.in.Agent != nil {
		return
	}
	for _, name := range []string{"hosts", "ssh", "remote-binary"} {
		r.want(v.starts || !v.Typed(name) || v.row("ranks").refused, name,
			"absent with -rank or under a launcher, which starts the ranks")
		r.want(!v.starts || v.Hosts != "" || !v.Typed(name), name, "absent without -hosts")
	}
	if !v.starts || v.Hosts == "" {
		return
	}
	n := v.onHosts()
	r.want(!strings.Contains(v.Hosts, ":") || n >= v.Ranks, "hosts",
		fmt.Sprintf("hosts for -ranks (%d), given are %d in all", v.Ranks, n))
	r.want(strings.Contains(v.Hosts, ":") || n <= v.Ranks, "hosts",
		fmt.Sprintf("at most -ranks (%d) hosts", v.Ranks))
	r.want(len(v.Shell()) > 0, "ssh", "a command such as ssh")
}

// Shell is the command that reaches other hosts, by its words.
func (v *Values) Shell() []string {
	return strings.Fields(cmp.Or(v.SSH, "ssh -o BatchMode=yes -o ConnectTimeout=4"))
}

// HostRanks is how many ranks are started on a host.
type HostRanks struct {
	Host  string
	Ranks int
}

// onHosts is how many ranks the hosts are for, 0 without any.
func (v *Values) onHosts() (n int) {
	for _, h := range parseHosts(v.Hosts) {
		n += max(1, h.Ranks)
	}
	return n
}

// Started is where which number of ranks is started, in the order of the ranks: nil if all are
// started on this host.
func (v *Values) Started() []HostRanks {
	list := parseHosts(v.Hosts)
	left, even := v.Ranks, !strings.Contains(v.Hosts, ":")
	for i := range list {
		if n := len(list) - i; even { // the remainder goes to the first ones
			list[i].Ranks = (left + n - 1) / n
		}
		list[i].Ranks = min(list[i].Ranks, left)
		left -= list[i].Ranks
	}
	return slices.DeleteFunc(list, func(h HostRanks) bool { return h.Ranks == 0 })
}

// target is what a shell takes for a host. It never begins with a dash, which would be an option.
var target = regexp.MustCompile(`^(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?` +
	`([A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?)(?::([0-9]+))?$`)

// parseHosts reads h[:n],…; n is 0 where it is not said.
func parseHosts(text string) (list []HostRanks) {
	for part := range strings.SplitSeq(text, ",") {
		if name, n, _ := strings.Cut(part, ":"); name != "" {
			ranks, _ := strconv.Atoi(n)
			list = append(list, HostRanks{name, ranks})
		}
	}
	return list
}

// hosts is a list of them, all with a number of ranks or all without.
func hosts(to *string) kind[string] {
	const rule = "h1,h2,… or h1:n1,h2:n2,… with names of hosts and numbers of ranks from 1 to 1024"
	return text(to, func(text string) (string, error) {
		if text == "" {
			return "", nil
		}
		numbered := 0
		list := strings.Split(text, ",")
		for _, part := range list {
			m := target.FindStringSubmatch(part)
			if m == nil {
				return "", errors.New(rule)
			}
			if m[2] != "" {
				n, err := strconv.Atoi(m[2])
				if err != nil || n < 1 || n > mostStarted {
					return "", errors.New(rule)
				}
				numbered++
			}
		}
		if numbered != 0 && numbered != len(list) {
			return "", errors.New(rule)
		}
		return text, nil
	})
}

// mostStarted is how many ranks a run starts at most.
const mostStarted = 1024

// CheckFilesystems says what ranks cannot run together that do not share a filesystem.
func (v *Values) CheckFilesystems() error {
	if !v.Bench.Checkpoints() || v.Filesystems < 2 {
		return nil
	}
	// MLPerf's checkpoints are read by other hosts than have written them.
	if v.Division == Closed {
		return fmt.Errorf("-cache-dir: must be one directory for all ranks with %s in the closed "+
			"division, given %s, which lies on %d filesystems that they do not share",
			v.Bench.Name, v.CacheDir(), v.Filesystems)
	}
	if v.Checkpoint.Shift != 0 { // or that by the accelerators of a host
		return fmt.Errorf("-checkpoint-shift: must be 0 where ranks work on %d filesystems, whose "+
			"files the others cannot read, given %s", v.Filesystems, v.Text("checkpoint-shift"))
	}
	return nil
}

// Starts tells whether this process starts the other ranks, of which it is rank 0.
func (v *Values) Starts() bool { return v.starts }

// together says that all clients of the run have one of them that coordinates them.
func (r *resolver) together() bool { return r.v.starts || r.v.meets || r.in.Agent != nil }

// Meets tells whether this process is one of several ranks that a launcher or a person has started,
// and that meet.
func (v *Values) Meets() bool { return v.meets }

// AllHere tells whether a launcher or a person says that all ranks are on this host.
func (v *Values) AllHere() bool {
	return v.LocalRanks == v.Ranks && (v.Typed("local-ranks") ||
		v.Launcher != nil && v.Launcher.Local.Given())
}

// meeting is where ranks meet.
func meeting(to *string, base string) kind[string] {
	const rule = "auto, none, HOST, HOST:PORT or dir:PATH"
	return text(to, func(text string) (string, error) {
		if text == "auto" || text == "none" {
			return text, nil
		}
		if dir, is := strings.CutPrefix(text, "dir:"); is {
			if dir == "" {
				return "", errors.New(rule)
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(base, dir)
			}
			return "dir:" + dir, nil
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil { // an IPv6 address without a port has colons of its own
			host, port = strings.Trim(text, "[]"), rendezvous.Port
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || net.ParseIP(host) == nil && !hostName.MatchString(host) {
			return "", errors.New(rule)
		}
		return net.JoinHostPort(host, port), nil
	})
}

// hostName is what may stand in /etc/hosts or in DNS.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$`)

// Alone says that this is the only client of its run and that no launcher started it, which would
// wait for it, or kill it, when it does not end soon.
func (v *Values) Alone() bool { return v.Ranks == 1 && v.Launcher == nil && !v.starts }
