package params

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// pair is one key of a mapping and its value, aliases followed.
type pair struct{ key, value *yaml.Node }

// maxMerges bounds the mappings that all `<<` of a file bring in: an anchor may contain itself, or hundreds of others.
const maxMerges = 100

// mapping lists the pairs of a mapping, reports duplicates, and resolves `<<` as YAML 1.1 does (the mapping's own keys win).
// An empty value counts as an empty mapping, as it stays when every key of a section is commented out.
func (c *configFile) mapping(n *yaml.Node, path string) ([]pair, bool) {
	n = follow(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, true
	}
	if n.Kind != yaml.MappingNode {
		what := "section " + path
		if path == "" {
			what = "the file"
		}
		c.badAt(n, "%s must be a mapping of keys to values", what)
		return nil, false
	}
	var own, merged []pair
	seen := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), follow(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			c.badAt(key, "a key must be text")
		case key.Tag == "!!merge":
			merged = append(merged, c.merge(value)...)
		case seen[key.Value] != nil:
			c.badAt(n.Content[i], "key %q is there twice, first in line %d", key.Value, seen[key.Value].Line)
		default:
			seen[key.Value] = key
			own = append(own, pair{key, value})
		}
	}
	for _, p := range merged {
		if seen[p.key.Value] == nil {
			seen[p.key.Value] = p.key
			own = append(own, p)
		}
	}
	return own, true
}

// merge lists the pairs that `<<` brings: of a mapping, or of a list of mappings of which earlier ones win.
func (c *configFile) merge(n *yaml.Node) []pair {
	n = follow(n)
	if c.merges++; c.merges >= maxMerges {
		if c.merges == maxMerges {
			c.badAt(n, "<< brings in more than %d mappings", maxMerges)
		}
		return nil
	}
	var pairs []pair
	switch n.Kind {
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if follow(item).Kind == yaml.MappingNode {
				pairs = append(pairs, c.merge(item)...)
			} else {
				c.badAt(item, "<< must name a mapping or a list of mappings")
			}
		}
	case yaml.MappingNode:
		var inner []pair
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := follow(n.Content[i]), follow(n.Content[i+1])
			if key.Tag == "!!merge" {
				inner = append(inner, c.merge(value)...)
			} else if key.Kind == yaml.ScalarNode {
				pairs = append(pairs, pair{key, value})
			}
		}
		pairs = append(pairs, inner...)
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

// read checks the value's type and range. The error completes "must be …".
func (k *yamlKey) read(n *yaml.Node) (keyValue, error) {
	var v keyValue
	switch k.kind {
	case keyText:
		if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
			return v, errors.New(k.wanted(n))
		}
		v.text = n.Value
		return v, nil
	case keyInt, keyNumber:
		x, err := k.number(n)
		v.numbers = []float64{x}
		return v, err
	}
	if n.Kind != yaml.SequenceNode || (k.kind != keyIntList && len(n.Content) != 2) {
		return v, errors.New(k.wanted(n))
	}
	for _, item := range n.Content {
		x, err := k.number(follow(item))
		if err != nil {
			return v, err
		}
		v.numbers = append(v.numbers, x)
	}
	if k.kind != keyIntList && v.numbers[0] > v.numbers[1] {
		return v, fmt.Errorf("[low, high] with low at most high, given %s", nodeText(n))
	}
	return v, nil
}

// number reads one number and checks the key's limits.
func (k *yamlKey) number(n *yaml.Node) (float64, error) {
	var x float64
	whole := k.kind == keyInt || k.kind == keyIntPair || k.kind == keyIntList
	switch {
	case n.Kind != yaml.ScalarNode, n.Tag != "!!int" && (whole || n.Tag != "!!float"):
		return 0, errors.New(k.wanted(n))
	case n.Decode(&x) != nil, math.IsNaN(x), math.IsInf(x, 0):
		return 0, errors.New(k.wanted(n))
	}
	if x < k.min || x > k.max {
		show := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
		if k.max >= math.MaxInt32 {
			return 0, fmt.Errorf("at least %s, given %s", show(k.min), n.Value)
		}
		return 0, fmt.Errorf("in %s…%s, given %s", show(k.min), show(k.max), n.Value)
	}
	return x, nil
}

func (k *yamlKey) wanted(n *yaml.Node) string {
	given := nodeText(n)
	switch {
	case n.Kind == yaml.MappingNode:
		given = "a mapping"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		given = "nothing"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		given = strconv.Quote(given)
	}
	return k.kind.String() + ", given " + given
}
