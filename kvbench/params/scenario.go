package params

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/units"
)

// Scenario is several benchmarks with their parameters, from a YAML file.
type Scenario struct {
	About  string
	InTurn bool // trial 1 of every line, then trial 2; else all trials of a line together
	Jobs   []*Job
}

// Job is a part of a scenario: benchmarks with the same parameters.
type Job struct {
	Name  string // an element of the lines' names, "" for none
	Bench string // a pattern, as that of -bench
	Where string // the file and line of the pattern, or the flag

	values map[string][]setting // with those of the scenario
}

// point adds the name of the job to the name of a point of its sweep.
func (j *Job) point(name string) string {
	if j == nil || j.Name == "" {
		return name
	}
	return strings.Trim("job="+j.Name+"/"+name, "/")
}

// Scenario reads the scenarios that a flag or a variable names, and joins their jobs. It returns nil without
// one.
func (s *Set) Scenario(in Inputs) (*Scenario, Violations) {
	r := s.resolver(in, nil)
	r.decide(find("scenario"))
	if r.v.Scenario == "" {
		return nil, r.bad
	}
	all := &Scenario{}
	for i, name := range strings.Split(r.v.Scenario, ",") {
		one, bad := readScenario(in, name)
		r.bad = append(r.bad, bad...)
		if one == nil || len(one.Jobs) == 0 {
			continue
		}
		if i == 0 {
			all.About, all.InTurn = one.About, one.InTurn
		} else {
			all.About = ""
		}
		all.Jobs = append(all.Jobs, one.Jobs...)
		first, trials := all.Jobs[0].values["count"], one.Jobs[0].values["count"]
		if in.Count == "" && !slices.EqualFunc(first, trials, func(a, b setting) bool { return a.text == b.text }) {
			r.bad = append(r.bad, fmt.Sprintf("-scenario: must have one number of trials, and %s has another "+
				"one than the first: give -count", name))
		}
	}
	return all, r.bad
}

// readScenario reads a built-in scenario or a file.
func readScenario(in Inputs, name string) (*Scenario, Violations) {
	c := &configFile{path: "scenario " + name, kind: FromScenario, builtIn: true}
	text, known := builtIn(in.Scenarios)[name]
	if !known {
		var err error
		c.path, c.builtIn = absolute(in.Base, name), false
		if text, err = os.ReadFile(c.path); err != nil {
			names := slices.Sorted(maps.Keys(builtIn(in.Scenarios)))
			return nil, Violations{fmt.Sprintf("-scenario: %v%s (built in are %s)", err,
				units.Suggestion(name, names), strings.Join(names, ", "))}
		}
	}
	return c.scenario(text), c.bad
}

// builtIn returns the texts of the built-in scenarios by their names.
func builtIn(files embed.FS) map[string][]byte {
	texts := map[string][]byte{}
	paths, _ := fs.Glob(files, "*/*.yaml")
	for _, file := range paths {
		texts[strings.TrimSuffix(filepath.Base(file), ".yaml")], _ = files.ReadFile(file)
	}
	return texts
}

// scenarioRows are the built-in scenarios and what each is about.
func scenarioRows(files embed.FS) (rows [][]string) {
	texts := builtIn(files)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		rows = append(rows, []string{name, (&configFile{}).scenario(texts[name]).About})
	}
	return rows
}

// scenario reads a file. It returns the valid part.
func (c *configFile) scenario(text []byte) *Scenario {
	s := &Scenario{}
	c.values = map[string][]setting{}
	c.parse(text, func(root *yaml.Node) {
		c.mapping(root, "", map[string]func(entry){
			"about": c.word(&s.About),
			"order": func(e entry) {
				order := ""
				c.word(&order)(e)
				if s.InTurn = order == "in turn"; !s.InTurn && order != "one after the other" {
					c.refuse(e.line, "order must be in turn or one after the other, given %q", order)
				}
			},
			"trials": c.setting("count"), "benchtime": c.setting("benchtime"),
			"parameters": c.parameters,
			"jobs": func(e entry) {
				if e.value.Kind != yaml.SequenceNode {
					c.refuse(e.line, "jobs must be a list, each with a bench")
				}
				for _, n := range e.value.Content {
					s.Jobs = append(s.Jobs, c.job(follow(n)))
				}
			}})
	})
	if len(s.Jobs) == 0 && len(c.bad) == 0 {
		c.refuse(1, "a scenario must have jobs, such as\n  jobs:\n    - bench: StorageCeiling")
	}
	for _, j := range s.Jobs {
		values := maps.Clone(c.values)
		maps.Copy(values, j.values)
		j.values = values
	}
	return s
}

// jobName is an element of a benchmark's name. A number after a hyphen at its end would be one of processors.
var jobName = regexp.MustCompile(`^([A-Za-z0-9_]|-[0-9]*[A-Za-z_])*$`)

func (c *configFile) job(n *yaml.Node) *Job {
	j := &Job{Where: c.at(n.Line) + ": bench", values: map[string][]setting{}}
	own := &configFile{path: c.path, kind: c.kind, builtIn: c.builtIn, values: j.values}
	own.mapping(n, "jobs", map[string]func(entry){
		"name": own.word(&j.Name), "bench": own.word(&j.Bench), "benchtime": own.setting("benchtime"),
		"sweep": own.setting("sweep"), "parameters": own.parameters})
	if !jobName.MatchString(j.Name) {
		own.refuse(n.Line, "name must be of letters, digits, - and _, and not end in -NUMBER, given %q", j.Name)
	}
	if j.Bench == "" && len(own.bad) == 0 {
		own.refuse(n.Line, "a job must have a bench, such as bench: StorageCeiling")
	}
	for _, p := range table {
		for _, s := range j.values[p.name] {
			if p.has(whole) {
				own.bad = append(own.bad, fmt.Sprintf("%s: %s is for the whole run: it may stand in the "+
					"parameters of the scenario, and in none of a job", s.origin, p.name))
			}
		}
	}
	c.bad = append(c.bad, own.bad...)
	return j
}

// mapping reads a mapping whose keys are known. Path is its name, "" for the file.
func (c *configFile) mapping(n *yaml.Node, path string, known map[string]func(entry)) {
	for _, e := range c.entries(n, path) {
		if read := known[e.key]; read != nil {
			read(e)
			continue
		}
		list := slices.Sorted(maps.Keys(known))
		hint := units.Suggestion(e.key, list)
		if p := find(e.key); p != nil && p.inFile() {
			hint = ": write it under parameters"
		}
		c.refuse(e.line, "unknown key %q%s (keys here: %s)", e.key, hint, strings.Join(list, ", "))
	}
}

// word returns a function that reads a text.
func (c *configFile) word(to *string) func(entry) {
	return func(e entry) {
		for _, s := range c.texts(e, find("scenario"), e.key) {
			*to = strings.Join(strings.Fields(s.text), " ")
		}
	}
}

// setting returns a function that reads the value of a parameter.
func (c *configFile) setting(name string) func(entry) {
	return func(e entry) { c.values[name] = c.texts(e, find(name), e.key) }
}

func (c *configFile) parameters(e entry) { c.section(e.value, sectionParameters) }
