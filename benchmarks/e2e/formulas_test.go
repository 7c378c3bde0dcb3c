package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The language of testdata/identities.txt and testdata/views.txt, which the head of the first explains.

// formula is one row of these files: an identity, or a name with its value.
type formula struct {
	row, name string
	is        ast.Expr
	when      ast.Expr // nil: always
}

// formulas are the rows by section.
var formulas = sync.OnceValue(func() map[string][]formula {
	all, section := map[string][]formula{}, ""
	parse := func(text string) ast.Expr {
		e, err := parser.ParseExpr(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", text, err))
		}
		return e
	}
	for row := range strings.Lines(identitiesText + "\n" + viewsText) {
		row = strings.TrimRight(row, "\n")
		switch {
		case row == "" || row[0] == '#':
		case row[0] != '\t':
			section = row
		default:
			f := formula{row: section + ": " + row[1:]}
			text, when, limited := strings.Cut(row[1:], " if ")
			if limited {
				f.when = parse(when)
			}
			if name, value, named := strings.Cut(text, " = "); named {
				if rest, also := strings.CutPrefix(text, "= "); also { // a column "= capacity (GiB)"
					name, value, _ = strings.Cut(rest, " = ")
					name = "= " + name
				}
				f.name, text = name, value
			}
			f.is = parse(text)
			all[section] = append(all[section], f)
		}
	}
	return all
})

// field is a key of RESULT.md.
type field struct{ typ, ranks string }

// reference are the keys of RESULT.md by section.
var reference = sync.OnceValue(func() map[string]map[string]field {
	text, err := os.ReadFile(moduleRoot + "/kvbench/RESULT.md")
	if err != nil {
		panic(err)
	}
	all, section := map[string]map[string]field{}, ""
	link := regexp.MustCompile(`\[(\w+)\]\(#\w+\)`)
	for row := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(row, "## "); ok {
			section = strings.TrimSpace(name)
			all[section] = map[string]field{}
		}
		if c := strings.Split(row, "|"); len(c) > 4 && section != "Units" {
			all[section][strings.Trim(c[1], " `")] = field{link.ReplaceAllString(strings.TrimSpace(c[2]), "$1"),
				strings.TrimSpace(c[3])}
		}
	}
	return all
})

// scope is a structure of a result, with the structure around it. several is a list or an object of structures or values.
type scope struct {
	section string
	object  map[string]any
	outer   *scope
	key     string
	values  map[string]any // by key, made when they are needed
}

type several struct {
	list  []any
	named map[string]any
}

// value gives JSON the type that RESULT.md says: a number, text, truth, *scope, several, or nil for unknown.
func (s *scope) value(v any, typ, key string) any {
	known, nullable := strings.CutSuffix(typ, " or null")
	elem, list := strings.CutPrefix(known, "list of ")
	of, object := strings.CutPrefix(known, "object of ")
	switch {
	case list:
		all, _ := v.([]any)
		var out several
		for _, x := range all {
			out.list = append(out.list, s.value(x, elem, key))
		}
		return out
	case object:
		all, _ := v.(map[string]any)
		out := several{named: map[string]any{}}
		for _, k := range slices.Sorted(maps.Keys(all)) {
			out.named[k] = s.value(all[k], of, k)
			out.list = append(out.list, out.named[k])
		}
		return out
	case reference()[known] != nil:
		inner, there := v.(map[string]any)
		if !there && nullable {
			return nil
		}
		return &scope{section: known, object: inner, outer: s, key: key}
	case v == nil && !nullable:
		return map[string]any{"number": 0.0, "text": "", "truth": false}[known]
	}
	return v
}

// of is the value of a key of the structure.
func (s *scope) of(key string) any {
	f, ok := reference()[s.section][key]
	if !ok {
		panic("RESULT.md has no key " + key + " in " + s.section)
	}
	v, made := s.values[key]
	if !made {
		if s.values == nil {
			s.values = map[string]any{}
		}
		v = s.value(s.object[key], f.typ, key)
		s.values[key] = v
	}
	return v
}

// lookup finds a name in the structure, in those around it, or among the terms.
func (s *scope) lookup(name string) any {
	root := s
	for at := s; at != nil; at = at.outer {
		if _, ok := reference()[at.section][name]; ok {
			return at.of(name)
		}
		root = at
	}
	for _, f := range formulas()["terms"] {
		if f.name == name {
			return root.eval(f.is)
		}
	}
	panic("RESULT.md has no key " + name + " in " + s.section + " or around it")
}

// eval computes an expression: a value as that of value, nil if it needs an unknown number.
func (s *scope) eval(e ast.Expr) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.eval(e.X)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strings.Trim(e.Value, `"`)
		}
		x, _ := strconv.ParseFloat(e.Value, 64)
		return x
	case *ast.Ident:
		switch e.Name {
		case "nil":
			return nil
		case "true", "false":
			return e.Name == "true"
		}
		return s.lookup(e.Name)
	case *ast.SelectorExpr:
		switch of := s.eval(e.X).(type) {
		case *scope:
			return of.of(e.Sel.Name)
		case several:
			return of.named[e.Sel.Name]
		}
		return nil
	case *ast.UnaryExpr:
		switch x := s.eval(e.X).(type) {
		case bool:
			return !x
		case float64:
			return -x
		}
		return nil
	case *ast.CallExpr:
		return s.call(e.Fun.(*ast.Ident).Name, e.Args)
	case *ast.BinaryExpr:
		return s.binary(e)
	}
	panic(fmt.Sprintf("not in this language: %T", e))
}

func (s *scope) binary(e *ast.BinaryExpr) any {
	a, b := s.eval(e.X), s.eval(e.Y)
	if id, ok := e.Y.(*ast.Ident); ok && id.Name == "nil" {
		return (a == nil) == (e.Op == token.EQL)
	}
	p, isTruth := a.(bool)
	q, alsoTruth := b.(bool)
	switch {
	case e.Op == token.LAND && (isTruth && !p || alsoTruth && !q):
		return false
	case e.Op == token.LOR && (p || q):
		return true
	case a == nil || b == nil:
		return nil
	case e.Op == token.LAND:
		return p && q
	case e.Op == token.LOR:
		return p || q
	}
	x, isNumber := a.(float64)
	y, alsoNumber := b.(float64)
	if text, ok := a.(string); ok && e.Op == token.ADD {
		return text + b.(string)
	}
	if !isNumber || !alsoNumber {
		return (a == b) == (e.Op == token.EQL)
	}
	switch e.Op {
	case token.ADD:
		return x + y
	case token.SUB:
		return x - y
	case token.MUL:
		return x * y
	case token.QUO:
		if y == 0 {
			return nil
		}
		return x / y
	case token.EQL:
		return near(x, y, 1e-12)
	case token.NEQ:
		return !near(x, y, 1e-12)
	case token.LSS:
		return x < y
	case token.LEQ:
		return x <= y
	case token.GTR:
		return x > y
	case token.GEQ:
		return x >= y
	}
	panic("not in this language: " + e.Op.String())
}

func near(a, b, share float64) bool {
	return math.Abs(a-b) <= share*max(math.Abs(a), math.Abs(b))
}

// call computes a function that the head of identities.txt explains.
func (s *scope) call(name string, args []ast.Expr) any {
	root := s
	for root.outer != nil {
		root = root.outer
	}
	switch name {
	case "key":
		return s.key
	case "either":
		if c, ok := s.eval(args[0]).(bool); ok && c {
			return s.eval(args[1])
		} else if ok {
			return s.eval(args[2])
		}
		return nil
	case "sum", "mean", "least", "greatest", "first", "count", "total":
		of, known := s.eval(args[0]).(several)
		list := of.list
		switch {
		case !known:
			return nil
		case len(args) > 1:
			return aggregate(name, each(list, args[1:]))
		case name == "count":
			return float64(len(list))
		case name != "first":
			return aggregate(name, list)
		case len(list) == 0:
			return nil
		}
		return list[0]
	}
	var values []any
	for _, a := range args {
		values = append(values, s.eval(a))
	}
	switch name {
	case "known":
		for _, v := range values {
			if v != nil {
				return v
			}
		}
		return nil
	case "ordered":
		last, n := math.Inf(-1), 0
		for _, v := range values {
			if x, ok := v.(float64); ok {
				if x < last && !near(x, last, 1e-12) {
					return false
				}
				last, n = x, n+1
			}
		}
		if n < 2 {
			return nil
		}
		return true
	case "near":
		if values[0] == nil || values[1] == nil {
			return nil
		}
		return near(values[0].(float64), values[1].(float64), values[2].(float64))
	case "enough":
		n, p := s.of("count").(float64), values[1].(float64)
		return (values[0] != nil) == (n*min(p, 1-p) >= 10*(1-1e-9))
	case "tier":
		for _, t := range root.lookup("tiers").(several).list {
			if t.(*scope).lookup("level") == values[0] {
				return t
			}
		}
		return nil
	case "param":
		for _, p := range root.lookup("parameters").(several).list {
			if p.(*scope).lookup("name") == values[0] {
				return asValue(fmt.Sprint(p.(*scope).object["value"]))
			}
		}
		return nil
	case "samples", "values":
		h, there := root.lookup("histograms").(several).named[values[0].(string)].(*scope)
		if !there {
			return 0.0
		}
		return h.lookup(map[string]string{"samples": "count", "values": "sum"}[name])
	case "same":
		d, _ := values[0].(*scope)
		h, _ := root.lookup("histograms").(several).named[values[1].(string)].(*scope)
		return sameDistribution(d, h)
	}
	panic("no function " + name)
}

// each computes args[0] for each structure of a list, without those for which args[1] is true, unless it is true for all.
func each(list []any, args []ast.Expr) (values []any) {
	var left []any
	for _, v := range list {
		of := v.(*scope)
		if len(args) > 1 && of.eval(args[1]) == true {
			left = append(left, of.eval(args[0]))
			continue
		}
		values = append(values, of.eval(args[0]))
	}
	if values == nil {
		return left
	}
	return values
}

func aggregate(how string, list []any) any {
	var x []float64
	for _, v := range list {
		if n, ok := v.(float64); ok {
			x = append(x, n)
		}
	}
	sum := 0.0
	for _, n := range x {
		sum += n
	}
	switch {
	case how == "sum" || how == "total":
		return sum
	case len(x) == 0 || len(x) < len(list):
		return nil
	case how == "least":
		return slices.Min(x)
	case how == "greatest":
		return slices.Max(x)
	}
	return sum / float64(len(x))
}

// percentiles of a distribution, as shares.
var percentiles = map[string]float64{"p5": 5, "p50": 50, "p95": 95, "p99": 99, "p999": 99.9, "p9999": 99.99}

// sameDistribution reports whether the numbers of a distribution are those of its histogram, decoded. Without values there is no
// histogram and no number.
func sameDistribution(d, h *scope) any {
	if d == nil {
		return nil
	}
	n := d.of("count").(float64)
	if h == nil || n == 0 {
		return n == 0 && d.lookup("mean") == nil && d.lookup("max") == nil
	}
	low, high := h.of("min").(float64), h.of("max").(float64)
	decoded, err := hdrhistogram.Decode([]byte(h.of("data").(string)))
	same := err == nil && float64(decoded.TotalCount()) == n && n == h.lookup("count") &&
		near(d.of("mean").(float64), h.of("sum").(float64)/n, 1e-12) &&
		d.lookup("min") == low && d.lookup("max") == high
	for key, p := range percentiles {
		if v, known := d.of(key).(float64); known && same {
			same = v == min(max(float64(decoded.ValueAtPercentile(p)), low), high)
		}
	}
	return same
}
