package params

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/units"
	"kvbench/workloads/model"
)

// configFile has the texts of each parameter or key of a YAML file, with their lines. Resolve decides
// about them together with all other layers.
//
// The decoder resolves aliases and <<, and refuses keys that are there twice. Keys are compared
// with the known ones here: the decoder would name the first unknown field without the nearest
// known one, and could not tell the line that set a value, which results record.
type configFile struct {
	path string
	kind OriginKind
	// builtIn: the file is part of this program, where its lines tell a user nothing.
	builtIn bool
	values  map[string][]setting // one of each but for sweeps
	models  []model.Model
	bad     Violations
}

// readConfig reads and checks the file at path. The field bad has all problems. The other fields have
// the valid part of the file, so that other checks can continue.
func readConfig(path string) *configFile {
	text, err := os.ReadFile(path)
	if err != nil {
		return &configFile{bad: Violations{"-config: " + err.Error()}}
	}
	return parseConfig(path, text)
}

// parseConfig checks the text of a YAML file; path is for messages only.
func parseConfig(path string, text []byte) *configFile {
	c := &configFile{path: path, kind: FromFile, values: make(map[string][]setting)}
	c.parse(text, func(root *yaml.Node) { c.section(root, "") })
	return c
}

// parse calls walk with the root of a document, if it has one.
func (c *configFile) parse(text []byte, walk func(root *yaml.Node)) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if len(doc.Content) == 1 {
			walk(doc.Content[0])
		}
		// yaml.Unmarshal would ignore what follows the first document.
		if err = dec.Decode(&more); err == nil {
			c.refuse(more.Line, "a second document: put everything into one")
		}
	}
	if err != nil && err != io.EOF { // empty, or comments only
		c.yamlError(1, err) // yaml leaves out the number of the first line
	}
}

func (c *configFile) at(line int) string {
	if c.builtIn {
		return c.path
	}
	return fmt.Sprintf("%s:%d", c.path, line)
}

func (c *configFile) refuse(line int, format string, args ...any) {
	c.bad = append(c.bad, c.at(line)+": "+fmt.Sprintf(format, args...))
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// zeroBased begins the errors of yaml's parser, which counts lines from 0; its scanner and its
// decoder count them from 1 (yaml.v3 3.0.1, parser.fail and parserc.go).
var zeroBased = regexp.MustCompile(`^did not find expected (<|node content|'-'|key$|',' or)`)

// yamlError rewrites yaml's "yaml: line 3: …" to the form of all other messages; what has no line
// gets the given one.
func (c *configFile) yamlError(line int, err error) {
	texts := []string{err.Error()}
	if several := (*yaml.TypeError)(nil); errors.As(err, &several) {
		texts = several.Errors
	}
	for _, text := range texts {
		m := yamlLine.FindStringSubmatch(text)
		what, at := text[len(m[0]):], line
		if n, err := strconv.Atoi(m[1]); err == nil {
			if at = n; zeroBased.MatchString(what) {
				at++
			}
		}
		c.bad = append(c.bad, c.at(at)+": "+what)
	}
}

// Sections with keys of their own making.
const (
	sectionParameters = "parameters"
	sectionModels     = "model_configs"
)

// fileKeys are the dotted names of all keys that may stand in a file.
var fileKeys = func() map[string]*parameter {
	byPath := make(map[string]*parameter)
	for _, p := range slices.Concat(table, keys, modelKeys) {
		switch {
		case p.key():
			byPath[p.name] = p
		case p.inFile():
			byPath[sectionParameters+"."+p.name] = p
		}
	}
	return byPath
}()

// section walks a mapping. Path is its dotted name, with a star for a model's own name.
func (c *configFile) section(n *yaml.Node, path string) {
	for _, e := range c.entries(n, path) {
		full := strings.TrimPrefix(path+"."+e.key, ".")
		p := fileKeys[full]
		switch {
		case path == sectionModels:
			c.model(e)
		// decode.batch_size is not batch_size in decode. An empty key would be the section that it
		// stands in; with itself as its value the walk would not end.
		case e.key == "" || strings.Contains(e.key, "."):
			c.unknown(e, path)
		case p != nil:
			c.values[p.name] = append(c.values[p.name], c.texts(e, p, full)...)
		case len(children(full)) > 0:
			c.section(e.value, full)
		default:
			c.unknown(e, path)
		}
	}
}

// children returns the keys that a section may have. "" is the top of the file.
func children(section string) (names []string) {
	for full := range fileKeys {
		rest, below := strings.CutPrefix("."+full, strings.TrimSuffix("."+section, ".")+".")
		if name, _, _ := strings.Cut(rest, "."); below && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return slices.Sorted(slices.Values(names))
}

// unknown reports a key that section does not have. If it were ignored, a misspelt key would start a run
// with defaults that looks configured.
func (c *configFile) unknown(e entry, section string) {
	where := "in section " + section
	if section == "" {
		where = "at the top of the file"
	}
	best, _ := units.Nearest(e.key, children(section))
	hint := fmt.Sprintf("nearest known key: %q", best)
	flag := find(strings.ReplaceAll(e.key, "_", "-")) // the Python benchmark's files have underscores
	switch {
	case section == sectionParameters && Instead[e.key] != "":
		hint = Instead[e.key]
	case section == sectionParameters && flag != nil && !flag.inFile():
		hint = "it is the flag -" + flag.name
	case section == "" && flag != nil && flag.inFile():
		hint = fmt.Sprintf("it is %q in section %s", flag.name, sectionParameters)
	}
	c.refuse(e.line, "unknown key %q %s; %s", e.key, where, hint)
}

// texts are what a key is given, as it is recorded: a scalar as written, a list in one line. Of
// sweeps each is a text of its own.
func (c *configFile) texts(e entry, p *parameter, full string) (list []setting) {
	textual := p.kind.base == reflect.String // would take a list for text
	// Parameters are spelled as flags are, in quotes or without. Where the Python benchmark has a
	// number, text keeps its quotes, with which no kind of number takes it.
	written := func(n *yaml.Node) string {
		switch n = follow(n); {
		case n.Kind != yaml.ScalarNode:
			return "[…]" // which no item of a list can be
		case p.key() && !textual && n.Tag == "!!str":
			return strconv.Quote(n.Value)
		}
		return n.Value
	}
	var items []string
	for _, item := range e.value.Content {
		items = append(items, written(item))
	}
	switch sequence := e.value.Kind == yaml.SequenceNode; {
	case e.value.Kind == yaml.ScalarNode && e.value.Tag != "!!null":
		items = []string{written(e.value)}
	case sequence && p.has(many):
		items = []string{strings.Join(items, ",")}
	case sequence && !textual:
		items = []string{"[" + strings.Join(items, ", ") + "]"}
	default:
		c.refuse(e.line, "%s must be one value (text, a number, true or false)", full)
		return nil
	}
	for _, text := range items {
		list = append(list, setting{text, Origin{c.kind, c.at(e.line)}})
	}
	return list
}

// model reads one of model_configs: a model to add, or to redefine. Its keys are the Python
// benchmark's; what may be left out is filled as there.
func (c *configFile) model(e entry) {
	section := sectionModels + "." + e.key
	m := model.Model{Key: e.key, Name: e.key}
	own := &configFile{path: c.path, kind: c.kind, values: make(map[string][]setting)}
	own.section(e.value, sectionModels+".*")
	for _, p := range modelKeys {
		for _, s := range own.values[p.name] {
			if err := p.set(&m, "", s.text); err != nil {
				own.bad = append(own.bad, violation(p.name, s, err.Error()))
			}
		}
	}
	for _, text := range own.bad {
		c.bad = append(c.bad, strings.ReplaceAll(text, sectionModels+".*", section))
	}
	// The model is checked as a whole when each of its keys was right.
	if len(own.bad) > 0 {
		return
	}
	m.Complete()
	if err := m.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			c.refuse(e.line, "%s: %s", section,
				strings.TrimPrefix(line, fmt.Sprintf("model %q: ", m.Key)))
		}
		return
	}
	c.models = append(c.models, m)
}

// entry is one key of a mapping and its value, aliases followed.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// entries lists a mapping in the order of its lines, with the keys that << brings in, which have the lines
// of their values. An empty value counts as an empty mapping, as it stays when every key of a section is
// commented out.
func (c *configFile) entries(n *yaml.Node, path string) (list []entry) {
	if n = follow(n); n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		what := "section " + path
		if path == "" { // there is nothing else to say of a file that is a list
			what = "the file"
		}
		c.refuse(n.Line, "%s must be a mapping of keys to values", what)
		return nil
	}
	var values map[string]yaml.Node
	if err := n.Decode(&values); err != nil {
		c.yamlError(n.Line, err)
		return nil
	}
	lines := make(map[string]int)
	for i := 0; i < len(n.Content); i += 2 {
		lines[n.Content[i].Value] = n.Content[i].Line
	}
	for key, value := range values {
		list = append(list, entry{key, cmp.Or(lines[key], value.Line), follow(&value)})
	}
	slices.SortFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.key, b.key))
	})
	return list
}

// follow returns the node to which an alias refers.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}
