package params

import (
	_ "embed"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/tiers/evict"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

//go:embed parameters.txt
var parametersText string

//go:embed keys.txt
var keysText string

// parameter is a line of parameters.txt, or a key of the YAML file in keys.txt. A new one is a line
// and the field of Values that it sets.
type parameter struct {
	name    string // of the flag; a key's is dotted
	kind    kind
	def     map[Division]string
	field   string // dotted, "" for none
	traits  []string
	applies []clause // to which benchmarks, all where it is empty
	scope   string   // applies, as it is printed
	help    string
	group   string // its heading in -help-parameters
}

// Traits. A parameter that is not a place decides what a run measures: it stands in the configuration
// lines by which benchstat keeps outputs apart, and the gate compares it.
const (
	free    = "free"    // may be set in the closed division
	place   = "place"   // where a run happens or what it shows, never what it measures
	unswept = "unswept" // cannot be swept
	whole   = "whole"   // of the whole run: cannot be swept, and no job of a scenario has its own
	goFlag  = "goFlag"  // the testing package's: neither our flag nor in environment and file
	action  = "action"  // does something instead of a run
	many    = "many"    // if a layer gives it more than once, the texts are one list by comma
	idle    = "idle"    // a key without effect, for the reason that is its help
	sized   = "sized"   // auto is what fits this machine, and auto/N one N-th of it: see Machine

	// The closed division leaves it to the submitter with checkpoints: how requests come to the
	// storage, and which files are read where (MLPerf Storage rules, "Checkpointing").
	submitter = "submitter"
)

// The parameters, the other keys of the YAML file, and the keys of one model in it.
var (
	table     = read(parametersText)
	keys      = slices.DeleteFunc(read(keysText), (*parameter).ofModel)
	modelKeys = slices.DeleteFunc(read(keysText), func(p *parameter) bool { return !p.ofModel() })
)

// registered replaces words in braces by the names of what is registered in other packages.
var registered = strings.NewReplacer(append(layoutTexts(),
	"{trace formats}", strings.Join(formats.BlockFormats(), ", "),
	"{evict}", strings.Join(evict.Names(), " "),
	"{evict,}", strings.Join(evict.Names(), ", "),
	"{evict or}", orList(evict.Names()),
)...)

// orList joins names with commas, and the last one with or.
func orList(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// read reads the lines of a table.
func read(text string) (list []*parameter) {
	group := ""
	for line := range strings.Lines(registered.Replace(text)) {
		if title, heading := strings.CutPrefix(line, "## "); heading {
			group = strings.TrimSpace(title)
		}
		columns := strings.Split(line, " |")
		if len(columns) == 1 {
			continue // blank, or a comment
		}
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		p := &parameter{name: columns[0], kind: kindOf(columns[1]), field: columns[3],
			traits: strings.Fields(columns[4]), applies: clauses(columns[5]), scope: columns[5],
			help: columns[6], group: group, def: make(map[Division]string)}
		texts := strings.Split(columns[2], " ")
		for i, d := range divisions {
			p.def[d] = texts[min(i, len(texts)-1)]
		}
		if p.name == "profile" {
			p.help += ". " + profilesHelp()
		}
		list = append(list, p)
	}
	return list
}

// byName are the parameters and the other keys.
var byName = func() map[string]*parameter {
	m := make(map[string]*parameter)
	for _, p := range slices.Concat(table, keys) {
		m[p.name] = p
	}
	return m
}()

// find returns the parameter of a name, nil when there is none.
func find(name string) *parameter {
	if p := byName[name]; p != nil && !p.key() {
		return p
	}
	return nil
}

func names(list []*parameter) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

// has reports whether one of these sets the parameter apart.
func (p *parameter) has(traits ...string) bool {
	return slices.ContainsFunc(p.traits, func(t string) bool { return slices.Contains(traits, t) })
}

// key reports whether this is a key of the YAML file other than a parameter.
func (p *parameter) key() bool { return strings.Contains(p.name, ".") }

// ofModel reports whether this is a key of one model.
func (p *parameter) ofModel() bool { return strings.HasPrefix(p.name, sectionModels+".*.") }

// inFile reports whether a parameter may stand in the section parameters.
func (p *parameter) inFile() bool {
	return !p.has(goFlag, action) && p.name != "config" && p.name != "scenario"
}

// label is the name in messages: a flag has a dash.
func (p *parameter) label() string {
	if p.key() {
		return p.name
	}
	return "-" + p.name
}

// at is the field below root, or the zero Value where the parameter has none.
func (p *parameter) at(root any) reflect.Value {
	if p.field == "" {
		return reflect.Value{}
	}
	at := reflect.ValueOf(root).Elem()
	for name := range strings.SplitSeq(p.field, ".") {
		if i, err := strconv.Atoi(name); err == nil {
			at = at.Index(i)
		} else {
			at = at.FieldByName(name)
		}
	}
	return at
}

// set reads a text into the field; relative paths mean the directory base. The error completes the
// sentence "must be …", and the field stays as it was.
func (p *parameter) set(root any, base, text string) error {
	x, err := p.kind.parse(text)
	if at := p.at(root); err == nil && at.IsValid() {
		assign(at, base, x)
	}
	return err
}

func assign(to reflect.Value, base string, x any) {
	switch x := x.(type) {
	case []any:
		if to.Kind() == reflect.Slice {
			to.Set(reflect.MakeSlice(to.Type(), len(x), len(x)))
		}
		for i := range x {
			assign(to.Index(i), base, x[i])
		}
	case path:
		to.SetString(absolute(base, string(x)))
	default:
		to.Set(reflect.ValueOf(x).Convert(to.Type()))
	}
}

// absolute is a path that was given in the directory base; empty is none.
func absolute(base, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// text is the canonical spelling of the field's value.
func (p *parameter) text(root any) string {
	at := p.at(root)
	if !at.IsValid() {
		return ""
	}
	return p.kind.format(at.Interface())
}

// show is a value as people read it; an empty one has a word.
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

// uniform reports whether all divisions have the same default.
func (p *parameter) uniform() bool {
	return p.def[Quick] == p.def[Open] && p.def[Open] == p.def[Closed]
}

// generationModes are the words of -generation-mode, in the order of GenerationTimes.
var generationModes = []string{"none", "fast", "realistic"}

// newValues are empty values with the users of the Python benchmark, which are MLPerf's.
func newValues(base string) *Values {
	v := &Values{base: base, Profile: users.Default(), given: make(map[string]setting),
		refused: make(map[string]bool), changed: make(map[string]bool),
		AutoscalerUsers: [2]int{1, 100000},
		GenerationTimes: [3]time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond}}
	v.Limits.Users, v.Limits.Window = math.MaxInt, math.MaxInt64
	v.Limits.GPUBytes, v.Limits.CPUBytes = math.MaxInt64, math.MaxInt64
	return v
}
