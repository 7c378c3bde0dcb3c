package params

import (
	_ "embed"
	"flag"
	"slices"
	"strings"
)

//go:embed parameters.txt
var parametersText string

// parameter is one row of the table: everything there is to know about a parameter. A new one is a
// line of parameters.txt, a field of Values and what binds the two in table; README's table, -help
// and the environment name follow.
type parameter struct {
	name  string
	def   map[Division]string
	is    []string
	heard []hearing // who hears it, nil = everybody
	help  string
	group string     // its heading in -help-parameters
	value flag.Value // its kind, limits and field; see kinds.go

	given   setting // what is in force, as it was written, and where it came from
	refused bool    // it is a default, because what was given is wrong
}

// What sets a parameter apart from the others, as parameters.txt says it.
//
// A parameter that is not a place decides what a run measures, and so stands in the lines by which
// benchstat keeps outputs apart, and in what the gate compares.
const (
	free    = "free"    // may be set in the closed division
	place   = "place"   // where a run happens or what it shows, never what it measures
	unswept = "unswept" // cannot be swept
	goFlag  = "goFlag"  // the testing package's: neither our flag nor in environment and file
	action  = "action"  // does something instead of a run
	many    = "many"    // what a layer gives it more than once counts all, as a list by comma

	profileKey = "profileKey" // a key of the YAML file beside its parameters
	idle       = "idle"       // and one without effect, for the reason that is its help
)

// listed are the lines of parameters.txt. Defaults are read as typed texts are, so that none is a
// value that nobody could give.
var listed = func() (list []parameter) {
	group := ""
	for line := range strings.Lines(parametersText) {
		if title, is := strings.CutPrefix(line, "## "); is {
			group = strings.TrimSpace(title)
		}
		columns := strings.Split(strings.TrimSpace(line), " |")
		if len(columns) == 1 {
			continue // blank, or a comment
		}
		def := make(map[Division]string)
		texts := strings.Split(strings.TrimSpace(columns[1]), " ")
		for i, d := range divisions {
			def[d] = texts[min(i, len(texts)-1)]
		}
		list = append(list, parameter{name: columns[0], def: def,
			is: strings.Fields(columns[2]), heard: hearings(columns[3]),
			help: strings.TrimSpace(columns[4]), group: group})
	}
	return list
}()

// has tells whether one of these sets the parameter apart.
func (p *parameter) has(traits ...string) bool {
	return slices.ContainsFunc(p.is, func(t string) bool { return slices.Contains(traits, t) })
}

// uniform tells whether all divisions have the same default.
func (p *parameter) uniform() bool {
	return p.def[Quick] == p.def[Open] && p.def[Open] == p.def[Closed]
}

// show is the value as a person reads it; what an empty one means is told.
func (p *parameter) show(text string) string {
	switch {
	// which has no default to show but a new one per run
	case text != "" || p.name == "results-dir":
		return text
	case p.name == "cache-dir":
		return "temporary"
	}
	return "–"
}

// inFile tells whether a parameter may stand in the section parameters.
func (p *parameter) inFile() bool { return !p.has(goFlag, action) && p.name != "config" }

// row finds a parameter, nil when there is none of that name.
func row(list []parameter, name string) *parameter {
	for i := range list {
		if list[i].name == name {
			return &list[i]
		}
	}
	return nil
}

func names(list []parameter) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}
