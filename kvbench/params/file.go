package params

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/units"
	"kvbench/workloads/model"
)

// configFile is what a YAML file says, with the lines on which it says it.
//
// The file is walked as nodes rather than decoded into structs: every problem is told at once, with
// its line and the nearest known key, keys of the Python benchmark that mean nothing here are
// accepted and told, and results record the line that set a value. The decoder knows none of that.
type configFile struct {
	path       string
	parameters map[string]setting // section parameters, except sweep
	sweeps     []setting
	keys       []configKey // profile keys that act, in the order of the file
	models     []model.Model
	notes      []Note
	bad        Violations
	merges     int // mappings that << brought in so far
}

// configKey is a profile key whose value has been checked, ready to be applied.
type configKey struct {
	name   string
	value  *yaml.Node
	origin Origin
}

// Note says what one key of the YAML file did.
type Note struct {
	Key  string // dotted
	Line int
	Acts bool
	Why  string // why it has no effect
}

// maxConfigBytes bounds what is read of a file that claims to be a configuration; real ones have a
// few KiB.
const maxConfigBytes = 4 << 20

// readConfig reads and checks the file at path. Problems are in bad, all of them; what could be
// read is there nevertheless, so that other checks can go on.
func readConfig(path string) *configFile {
	f, err := os.Open(path)
	if err == nil {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
		f.Close()
		if err == nil && len(text) > maxConfigBytes {
			err = fmt.Errorf("it is larger than %d MiB", maxConfigBytes>>20)
		}
		if err == nil {
			return parseConfig(path, text)
		}
	}
	// Messages name the path once.
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err // the path is in the message already
	}
	text := fmt.Sprintf("-config: cannot read %s: %v", path, err)
	return &configFile{path: path, bad: Violations{{Name: "-config", Text: text}}}
}

// parseConfig checks the text of a YAML file; path is for messages only.
func parseConfig(path string, text []byte) *configFile {
	c := &configFile{path: path, parameters: make(map[string]setting)}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c // empty, or comments only
	case err != nil:
		c.syntax(err)
		return c
	}
	// yaml.Unmarshal would ignore what follows the first document.
	if err := dec.Decode(&more); err == nil {
		c.badAt(&more, "a second document: put everything into one")
	} else if !errors.Is(err, io.EOF) {
		c.syntax(err)
	}
	if len(doc.Content) == 1 {
		// The values go to a draft of no use, and are applied when the benchmark's have been.
		keys := append(newDraft().keys(), key{name: sectionParameters}, key{name: sectionModels})
		c.section(doc.Content[0], "", keys)
	}
	return c
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax rewrites yaml's "yaml: line 3: …" to the form of all other messages.
func (c *configFile) syntax(err error) {
	text, line := err.Error(), "1" // yaml leaves out the number of the first line
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if m[1] != "" {
			line = m[1]
		}
	}
	c.bad = append(c.bad, Violation{Text: c.path + ":" + line + ": " + text})
}

func (c *configFile) at(n *yaml.Node) Origin {
	return Origin{FromFile, fmt.Sprintf("%s:%d", c.path, n.Line)}
}

func (c *configFile) badAt(n *yaml.Node, format string, args ...any) {
	o := c.at(n)
	text := o.Where + ": " + fmt.Sprintf(format, args...)
	c.bad = append(c.bad, Violation{Origin: o, Text: text})
}

// note records that a key acts, or why it does not.
func (c *configFile) note(name string, key *yaml.Node, why string) {
	c.notes = append(c.notes, Note{Key: name, Line: key.Line, Acts: why == "", Why: why})
}

// unknown reports a key that is not in section ("" is the top of the file). A misspelt key that is
// ignored would make a run of defaults that looks configured, so none is.
func (c *configFile) unknown(n *yaml.Node, section string, known []string) {
	where := "at the top of the file"
	if section != "" {
		where = "in section " + section
	}
	best, _ := units.Nearest(n.Value, known)
	p := find(n.Value)
	switch {
	case section == "" && p != nil && p.inFile():
		best = sectionParameters + ": " + n.Value // right name, wrong place
	case section == sectionParameters && n.Value == "duration":
		best = "the flag -benchtime"
	case section == sectionParameters && p != nil:
		best = "the flag -" + n.Value
	}
	c.badAt(n, "unknown key %q %s; nearest known key: %q", n.Value, where, best)
}

// Sections with keys of their own making.
const (
	sectionParameters = "parameters"
	sectionModels     = "model_configs"
)

// section walks a mapping; path is its dotted name, keys are all that may stand in it and below.
func (c *configFile) section(n *yaml.Node, path string, keys []key) {
	for _, p := range c.mapping(n, path) {
		full := strings.TrimPrefix(path+"."+p.key.Value, ".")
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == full })
		switch {
		// decode.batch_size must not pass for batch_size in decode
		case strings.Contains(p.key.Value, "."):
			c.unknown(p.key, path, children(keys, path))
		case full == sectionParameters:
			c.parameterSection(p.value)
		case full == sectionModels:
			for _, m := range c.mapping(p.value, full) {
				c.model(m.key, m.value)
			}
		case i >= 0:
			c.leaf(&keys[i], p.key, p.value)
		case len(children(keys, full)) > 0:
			c.section(p.value, full, keys)
		default:
			c.unknown(p.key, path, children(keys, path))
		}
	}
}

// children lists what may stand in a section, "" being the top of the file.
func children(keys []key, section string) (names []string) {
	for _, k := range keys {
		rest, below := strings.CutPrefix("."+k.name, strings.TrimSuffix("."+section, ".")+".")
		if name, _, _ := strings.Cut(rest, "."); below && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// leaf reads the value of a known key. It is checked now, where its line is at hand, and applied
// when the benchmark's keys, which are weaker, have been.
func (c *configFile) leaf(k *key, name, n *yaml.Node) {
	if err := k.set(n); err != nil {
		c.badAt(n, "%s must be %v", k.name, err)
		return
	}
	c.note(k.name, name, k.why)
	if k.why == "" {
		c.keys = append(c.keys, configKey{k.name, n, c.at(n)})
	}
}

// parameterSection reads our own flags by their names. The texts are parsed with those of all other
// layers, because a path or a size is spelled the same everywhere.
func (c *configFile) parameterSection(n *yaml.Node) {
	for _, pair := range c.mapping(n, sectionParameters) {
		name := pair.key.Value
		p := find(name)
		switch {
		case p == nil || !p.inFile():
			var known []string
			for _, p := range rows {
				if p.inFile() {
					known = append(known, p.name)
				}
			}
			c.unknown(pair.key, sectionParameters, known)
			continue
		case name == "sweep":
			c.sweepList(pair.value)
		case pair.value.Kind != yaml.ScalarNode || pair.value.Tag == "!!null":
			c.badAt(pair.value, "parameters.%s must be one value (text, a number, true or false)",
				name)
			continue
		default:
			c.parameters[name] = setting{pair.value.Value, c.at(pair.value)}
		}
		c.note(sectionParameters+"."+name, pair.key, "")
	}
}

// sweepList reads `sweep: key=a,b` or a list of such texts. One text is not cut at spaces, as the
// environment's is: YAML has lists for that.
func (c *configFile) sweepList(n *yaml.Node) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		if item = follow(item); item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
			c.badAt(item, "parameters.sweep must be key=a,b,c or a list of such texts")
			continue
		}
		c.sweeps = append(c.sweeps, setting{item.Value, c.at(item)})
	}
}

// model reads one of model_configs: a model to add, or to redefine. Its keys are the Python
// benchmark's; what may be left out is filled as there.
func (c *configFile) model(name, n *yaml.Node) {
	section := sectionModels + "." + name.Value
	m := model.Model{Key: name.Value, Name: name.Value}
	problems, before := len(c.bad), len(c.keys)
	c.section(n, section, modelKeys(section, &m))
	c.keys = c.keys[:before] // they are the model's, not the profile's
	// The model is checked as a whole when each of its keys was right.
	if len(c.bad) > problems {
		return
	}
	complete(&m)
	if err := m.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			c.badAt(name, "%s: %s", section,
				strings.TrimPrefix(line, fmt.Sprintf("model %q: ", m.Key)))
		}
		return
	}
	c.models = append(c.models, m)
}

// complete fills what a file may leave out: without kv_heads every head has its own, and the
// numbers tell MHA from GQA.
func complete(m *model.Model) {
	m.Attention = model.Attention(strings.ToLower(string(m.Attention)))
	if m.Attention == model.MLA {
		return
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.Attention == "" {
		m.Attention = model.GQA
		if m.KVHeads == m.Heads {
			m.Attention = model.MHA
		}
	}
}

// pair is one key of a mapping and its value, aliases followed. The decoder would resolve aliases
// and `<<` itself, but without the lines of the keys, which messages need.
type pair struct{ key, value *yaml.Node }

// maxMerges bounds the mappings that all `<<` of a file bring in: an anchor may contain itself, or
// hundreds of others.
const maxMerges = 100

// mapping lists the pairs of a mapping, reports duplicates, and resolves `<<` as YAML 1.1 does (the
// mapping's own keys win). An empty value counts as an empty mapping, as it stays when every key of
// a section is commented out.
func (c *configFile) mapping(n *yaml.Node, path string) []pair {
	n = follow(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	// Told with the section's name: of a whole file that is a list, there is nothing else to say.
	if n.Kind != yaml.MappingNode {
		what := "section " + path
		if path == "" {
			what = "the file"
		}
		c.badAt(n, "%s must be a mapping of keys to values", what)
		return nil
	}
	var list []pair
	seen := make(map[string]int)
	own, merged := c.entries(n)
	for _, p := range own {
		switch first, twice := seen[p.key.Value]; {
		case p.key.Kind != yaml.ScalarNode:
			c.badAt(p.key, "a key must be text")
		case twice:
			c.badAt(p.key, "key %q is there twice, first in line %d", p.key.Value, first)
		default:
			seen[p.key.Value] = p.key.Line
			list = append(list, p)
		}
	}
	for _, p := range merged {
		if _, twice := seen[p.key.Value]; !twice && p.key.Kind == yaml.ScalarNode {
			seen[p.key.Value] = p.key.Line
			list = append(list, p)
		}
	}
	return list
}

// entries are a mapping's own pairs and those that its `<<` brings.
func (c *configFile) entries(n *yaml.Node) (own, merged []pair) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), follow(n.Content[i+1])
		if key.Tag == "!!merge" {
			merged = append(merged, c.merge(value)...)
		} else {
			own = append(own, pair{key, value})
		}
	}
	return own, merged
}

// merge lists the pairs that `<<` brings: of a mapping, or of a list of mappings of which earlier
// ones win.
func (c *configFile) merge(n *yaml.Node) (pairs []pair) {
	if c.merges++; c.merges >= maxMerges {
		if c.merges == maxMerges {
			c.badAt(n, "<< brings in more than %d mappings", maxMerges)
		}
		return nil
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item = follow(item); item.Kind == yaml.MappingNode {
				pairs = append(pairs, c.merge(item)...)
			} else {
				c.badAt(item, "<< must name a mapping or a list of mappings")
			}
		}
	case yaml.MappingNode:
		own, inner := c.entries(n)
		pairs = append(own, inner...)
	default:
		c.badAt(n, "<< must name a mapping or a list of mappings")
	}
	return pairs
}

// follow replaces an alias by what it stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// nodeText is a value as it is recorded: scalars as written, lists in one line.
func nodeText(n *yaml.Node) string {
	if n = follow(n); n.Kind != yaml.SequenceNode {
		return n.Value
	}
	items := make([]string, len(n.Content))
	for i, item := range n.Content {
		items[i] = follow(item).Value
	}
	return "[" + strings.Join(items, ", ") + "]"
}
