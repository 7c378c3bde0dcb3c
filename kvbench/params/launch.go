package params

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
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
		v.Ranks = 1
	}
	// Who gives -rank, too, starts the others in some other way.
	v.starts = from == nil && v.Rank == automatic && v.Ranks > 1
	r.want(!v.starts || v.Ranks <= mostStarted, "ranks",
		fmt.Sprintf("at most %d where this run starts them", mostStarted))
	r.want(!v.starts || !v.Typed("local-ranks"), "local-ranks",
		"absent with -ranks alone, which starts all of them on this host")
	r.want(v.Ranks > 1 || !v.Typed("rank-failure"), "rank-failure",
		"absent with one client: -ranks starts several")
	// Nobody says of ranks that a person has started one by one that they belong together.
	v.meets = v.Ranks > 1 && !v.starts && r.in.Agent == nil && v.Rendezvous != "none" &&
		(from != nil || v.Rendezvous != "auto")
	r.want(!v.starts || !v.Typed("rendezvous"), "rendezvous",
		"absent with -ranks alone, which starts all of them on this host")
	for _, name := range []string{"rendezvous", "rendezvous-timeout"} {
		r.want(v.Ranks > 1 || from != nil || !v.Typed(name) || v.row("ranks").refused, name,
			"absent with one client: give -rank and -ranks, or start under a launcher")
	}
	v.Rank = max(v.Rank, 0)
	// Unknown: all here is the careful guess, it divides the free space by the most.
	if v.LocalRanks == automatic || v.LocalRanks > v.Ranks && !v.Origin("local-ranks").byUser() {
		v.LocalRanks = v.Ranks
		if from := v.Origin("ranks"); from.Kind == FromLauncher {
			v.row("local-ranks").given.origin = from
		}
	}
	r.want(v.Rank < v.Ranks || v.row("ranks").refused, "rank",
		fmt.Sprintf("below -ranks (%d)", v.Ranks))
	r.want(v.LocalRanks <= v.Ranks, "local-ranks", fmt.Sprintf("at most -ranks (%d)", v.Ranks))
}

// mostStarted is how many ranks a run starts at most.
const mostStarted = 1024

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
func (v *Values) Alone() bool { return v.Ranks == 1 && v.Launcher == nil }
