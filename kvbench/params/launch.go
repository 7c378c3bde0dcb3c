package params

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"kvbench/kvbench/group"
)

// launched adds the layer of the launcher of this process.
func (r *resolver) launched() {
	from := r.in.Agent
	if from == nil {
		from = group.FindLauncher(r.in.Env)
	}
	if from == nil {
		return
	}
	r.v.Launcher = from
	for name, value := range map[string]group.Value{"rank": from.Rank, "ranks": from.Size,
		"local-ranks": from.Local} {
		if value.Given() {
			r.add(FromLauncher, value.Variable, name, value.Text)
		}
	}
}

// place sets rank, ranks and local-ranks if neither the user nor a launcher has set them. The launcher's
// numbers complete the numbers that the user gives.
func (r *resolver) place() {
	v, from := r.v, r.v.Launcher
	if v.Ranks == automatic {
		// Without the number of ranks each of four clients would take all of the free space.
		if from != nil && !from.Size.Given() && v.Origin("rank").kind == FromLauncher {
			r.bad = append(r.bad, fmt.Sprintf("-ranks: must be given with %s, which says that this is rank "+
				"%s (%s) and not of how many: give -ranks or KVBENCH_RANKS", from.Launcher, from.Rank.Text,
				from.Rank.Variable))
			v.refused["ranks"] = true // what follows from it would only confuse
		}
		v.Ranks = 1
	}
	// With -rank given something else starts the others.
	v.starts = from == nil && v.Rank == automatic && v.Ranks > 1
	// Ranks that a user starts one by one are independent unless an address is given.
	v.meets = v.Ranks > 1 && !v.starts && r.in.Agent == nil && v.Rendezvous != "none" &&
		(from != nil || v.Rendezvous != "auto")
	v.Rank = max(v.Rank, 0)
	// Unknown: all here is the careful guess, it divides the free space by the most. Ranks that
	// meet will know, and are checked then.
	if v.LocalRanks == automatic || v.LocalRanks > v.Ranks && !v.Changed("local-ranks") {
		v.LocalRanks = v.Ranks
		if v.guessed = v.meets; v.guessed {
			v.LocalRanks = 1
		}
		if v.Origin("ranks").kind == FromLauncher {
			v.given["local-ranks"] = v.given["ranks"]
		}
	}
}

// CheckFilesystems returns an error if the parameters need a filesystem that all ranks share.
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

// Starts reports whether this process is rank 0 and starts the other ranks.
func (v *Values) Starts() bool { return v.starts }

// Meets reports whether this process is one of several ranks that a launcher or a user has started,
// and that meet.
func (v *Values) Meets() bool { return v.meets }

// AllHere reports whether the launcher or the user says that all ranks are on this host.
func (v *Values) AllHere() bool {
	return v.LocalRanks == v.Ranks && (v.Changed("local-ranks") ||
		v.Launcher != nil && v.Launcher.Local.Given())
}

// parseAddress parses the address at which ranks meet.
func parseAddress(text string) (string, error) {
	if text == "auto" || text == "none" {
		return text, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil { // an IPv6 address without a port has colons of its own
		host, port = strings.Trim(text, "[]"), group.Port
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || net.ParseIP(host) == nil && !hostName.MatchString(host) {
		return "", errors.New("auto, none, HOST or HOST:PORT")
	}
	return net.JoinHostPort(host, port), nil
}

// hostName is what may stand in /etc/hosts or in DNS.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$`)

// Alone reports whether this is the only client of its run and no launcher started it, which would
// wait for it, or kill it, when it does not end soon.
func (v *Values) Alone() bool { return v.Ranks == 1 && v.Launcher == nil && !v.starts }
