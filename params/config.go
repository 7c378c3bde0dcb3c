package params

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/workloads"
)

// configFile is what a YAML file says, with the lines on which it says it.
type configFile struct {
	path       string
	parameters map[string]setting // section parameters, except sweep
	sweeps     []setting
	keys       []configKey // profile keys that act, in the order of the file
	models     []workloads.Model
	notes      []Note
	bad        Violations
	merges     int // mappings that << brought in so far
}

// configKey is a profile key, ready to be applied.
type configKey struct {
	key    *yamlKey
	value  keyValue
	text   string
	origin Origin
}

// maxConfigBytes bounds what is read of a file that claims to be a configuration; real ones have a few KiB.
const maxConfigBytes = 4 << 20

// readConfig reads and checks the file at path. Problems are in bad, all of them.
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
	c := &configFile{path: path}
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		err = inner.Err // the path is in the message already
	}
	c.bad = Violations{{Name: "-config", Text: fmt.Sprintf("-config: cannot read %s: %v", path, err)}}
	return c
}

// parseConfig checks the text of a YAML file; path is for messages only.
func parseConfig(path string, text []byte) *configFile {
	c := &configFile{path: path, parameters: make(map[string]setting)}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return c // empty, or comments only
	case err != nil:
		c.syntax(err)
		return c
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		c.badAt(&more, "a second document: put everything into one")
	} else if !errors.Is(err, io.EOF) {
		c.syntax(err)
	}
	if len(doc.Content) == 1 {
		c.section(doc.Content[0], "")
	}
	return c
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax rewrites yaml's "yaml: line 3: …" to the form of all other messages.
func (c *configFile) syntax(err error) {
	text := err.Error()
	where := c.path + ":1: " // yaml leaves out the number of the first line
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if m[1] != "" {
			where = c.path + ":" + m[1] + ": "
		}
		text = text[len(m[0]):]
	}
	c.bad = append(c.bad, Violation{Text: where + text})
}

func (c *configFile) at(n *yaml.Node) Origin {
	return Origin{FromFile, fmt.Sprintf("%s:%d", c.path, n.Line)}
}

func (c *configFile) badAt(n *yaml.Node, format string, args ...any) {
	o := c.at(n)
	c.bad = append(c.bad, Violation{Origin: o, Text: o.Where + ": " + fmt.Sprintf(format, args...)})
}

// unknown reports a key that is not in section ("" is the top of the file).
func (c *configFile) unknown(n *yaml.Node, section string, known []string) {
	where := "at the top of the file"
	if section != "" {
		where = "in section " + section
	}
	best, _ := nearest(n.Value, known)
	if section == "" && find(n.Value) != nil && find(n.Value).inFile() {
		best = sectionParameters + ": " + n.Value // right name, wrong place
	}
	if section == sectionParameters {
		switch n.Value {
		case "duration", "benchtime":
			best = "the flag -benchtime"
		case "count", "config":
			best = "the flag -" + n.Value
		}
	}
	c.badAt(n, "unknown key %q %s; nearest known key: %q", n.Value, where, best)
}

// section walks a mapping; path is its dotted name.
func (c *configFile) section(n *yaml.Node, path string) {
	pairs, ok := c.mapping(n, path)
	if !ok {
		return
	}
	for _, p := range pairs {
		full := p.key.Value
		if path != "" {
			full = path + "." + full
		}
		key := schemaIndex[full]
		switch {
		case strings.Contains(p.key.Value, "."): // decode.batch_size must not pass for batch_size in decode
			c.unknown(p.key, path, schemaChildren[path])
		case full == sectionParameters:
			c.parameterSection(p.value)
		case full == sectionModels:
			c.modelSection(p.value)
		case key != nil:
			c.leaf(key, p.key, p.value)
		case schemaChildren[full] != nil:
			c.section(p.value, full)
		default:
			c.unknown(p.key, path, schemaChildren[path])
		}
	}
}

// leaf reads the value of a known key.
func (c *configFile) leaf(key *yamlKey, name, n *yaml.Node) {
	value, err := key.read(n)
	if err != nil {
		c.badAt(n, "%s must be %v", key.name, err)
		return
	}
	c.notes = append(c.notes, Note{Key: key.name, Line: name.Line, Acts: key.set != nil, Why: key.why})
	if key.set != nil {
		c.keys = append(c.keys, configKey{key, value, nodeText(n), c.at(n)})
	}
}

// parameterSection reads our own flags by their names.
func (c *configFile) parameterSection(n *yaml.Node) {
	pairs, ok := c.mapping(n, sectionParameters)
	if !ok {
		return
	}
	for _, pair := range pairs {
		name := pair.key.Value
		p := find(name)
		if p == nil || !p.inFile() {
			c.unknown(pair.key, sectionParameters, schemaChildren[sectionParameters])
			continue
		}
		if name == "sweep" {
			c.sweepList(pair.value)
			c.notes = append(c.notes, Note{Key: sectionParameters + "." + name, Line: pair.key.Line, Acts: true})
			continue
		}
		if pair.value.Kind != yaml.ScalarNode || pair.value.Tag == "!!null" {
			c.badAt(pair.value, "parameters.%s must be one value (text, a number, true or false)", name)
			continue
		}
		c.parameters[name] = setting{pair.value.Value, c.at(pair.value)}
		c.notes = append(c.notes, Note{Key: sectionParameters + "." + name, Line: pair.key.Line, Acts: true})
	}
}

// sweepList reads `sweep: key=a,b` or a list of such texts.
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
