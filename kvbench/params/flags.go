package params

import (
	"flag"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
)

// EnvPrefix begins the environment name of every parameter.
const EnvPrefix = "KVBENCH_"

// EnvName is the environment variable of a parameter: cache-dir is KVBENCH_CACHE_DIR.
func EnvName(parameter string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(parameter, "-", "_"))
}

// Set has the texts of the flags on the command line. Resolve parses them, so that the flag package does
// not stop at the first bad flag.
type Set struct {
	given map[string][]string
}

// Register defines the flags on fs. Call it before fs is parsed.
func Register(fs *flag.FlagSet) *Set {
	s := &Set{given: make(map[string][]string)}
	for _, p := range table {
		// Any text is taken: what it means depends on the division, which another flag, the
		// environment or the file may set. Of a repeated flag the last counts, as everywhere in Go,
		// and of lists all.
		take := func(text string) error {
			if !p.has(many) {
				s.given[p.name] = nil
			}
			s.given[p.name] = append(s.given[p.name], text)
			return nil
		}
		switch {
		case p.has(goFlag):
		// -precondition stands for -precondition=true, -help-parameters for all of them.
		case p.has(action), p.kind.base == reflect.Bool:
			fs.BoolFunc(p.name, p.usage(), take)
		default:
			fs.Func(p.name, p.usage(), take)
		}
	}
	return s
}

const helpFlag = "help-parameters"

// HelpRequested reports whether -help-parameters was given, and what has to be in the names that it
// prints, "" for all of them. It is called before anything is resolved: help is printed in spite of
// what is wrong.
func (s *Set) HelpRequested() (filter string, requested bool) {
	filter = strings.Join(s.given[helpFlag], "")
	if whole, err := strconv.ParseBool(filter); err == nil {
		return "", whole
	}
	return filter, filter != ""
}

// Requested reports whether a flag was given that prints something instead of a run: version or plan.
func (s *Set) Requested(action string) bool {
	wanted, err := strconv.ParseBool(strings.Join(s.given[action], ""))
	return err == nil && wanted
}

// Typed lists the flags that were typed, in the order of the table.
func (s *Set) Typed() (names []string) {
	for _, p := range table {
		if len(s.given[p.name]) > 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// UnknownEnvironment returns a violation for each variable with EnvPrefix that belongs to no parameter.
// If such a variable were ignored, a run with defaults would look configured. environ has the format of
// os.Environ. An empty variable counts as not set.
func UnknownEnvironment(environ []string) (bad Violations) {
	var known []string
	for _, p := range table {
		if !p.has(goFlag, action) {
			known = append(known, EnvName(p.name))
		}
	}
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, EnvPrefix) || text == "" || slices.Contains(known, name) {
			continue
		}
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, EnvPrefix)), "_", "-")
		hint := units.Suggestion(name, known)
		if find(flag) != nil { // Go's own, and what ends at once
			hint = ", but a flag: -" + flag
		} else if other := Instead[flag]; other != "" {
			hint = ": " + other
		}
		bad = append(bad, name+" (environment) is no parameter"+hint)
	}
	return bad
}

// Instead names what replaces the flags of the Python benchmark that are none here.
var Instead = map[string]string{
	"duration":        "it is -benchtime here, such as -benchtime 60s",
	"output":          "it is -results-dir here, a directory",
	"xlsx-output":     "it is go tool kvreport xlsx here",
	"log-level":       "there is no log here; -summary long prints all numbers",
	"use-burst-trace": "it is -bench BurstGPT with -burst-trace-path here",
}
