package params

import (
	"fmt"

	"kvbench/kvbench/group/launchers"
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

// together says that all clients of the run were started by one of them, which coordinates them.
func (r *resolver) together() bool { return r.v.starts || r.in.Agent != nil }

// Alone says that this is the only client of its run and that no launcher started it, which would
// wait for it, or kill it, when it does not end soon.
func (v *Values) Alone() bool { return v.Ranks == 1 && v.Launcher == nil }
