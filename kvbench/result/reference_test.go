package result

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// rules are the merge tags in the words of the reference.
var rules = map[string]string{"sum": "added", "max": "largest", "min": "smallest",
	"same": "where all agree", "list": "joined", "drop": "absent", "any": "of those that have it",
	"-": "derived", "": ""}

// TestReference compares the reference of results with the units of the benchmark line, and with the
// structures and their comments. With -update it writes it.
func TestReference(t *testing.T) {
	types := commented(t)
	var b strings.Builder
	b.WriteString("# The numbers of a result\n\nWritten by `go test ./kvbench/result -run Reference " +
		"-update` from the units and structures of [result](result) and their comments.\n" +
		"[Units](#units) are on the benchmark line, the other tables are the keys of the JSON file.\n\n" +
		"## Units\n\n" + unitTable() + "\n## Keys\n\n" +
		"*Of several ranks* says what becomes of the ranks' values in the result of all. Keys that end " +
		"in `_ns` hold nanoseconds, in `_s` seconds, in `_bytes` bytes. Null is unknown, and never 0.\n")
	met := map[reflect.Type]bool{}
	var section func(of reflect.Type)
	section = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Map || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if met[of] || !strings.HasPrefix(kind(of), "[") {
			return
		}
		met[of] = true
		spec := types[of.Name()]
		require.NotNil(t, spec, of.Name())
		b.WriteString("\n## " + of.Name() + "\n\n" + text(spec.doc) + "\n\n" +
			"| key | type | of several ranks | meaning |\n|---|---|---|---|\n")
		rows(&b, of, types)
		for field := range of.Fields() {
			if !field.Anonymous { // its keys are here
				section(field.Type)
			}
		}
	}
	section(reflect.TypeFor[Result]())
	golden.Check(t, "../../RESULT.md", b.String())
}

// unitTable is the values of the benchmark line. Units of one meaning stand in one row.
func unitTable() string {
	var b strings.Builder
	b.WriteString("| unit | meaning |\n|---|---|\n")
	for i, u := range Lines {
		if u.Doc == "" {
			continue
		}
		b.WriteString("| `" + u.Name + "`")
		for k := i + 1; k < len(Lines) && Lines[k].Doc == ""; k++ {
			b.WriteString(", `" + Lines[k].Name + "`")
		}
		b.WriteString(" | " + u.Doc + " |\n")
	}
	return b.String()
}

// rows are the keys of a structure, and of those that are embedded in it.
func rows(b *strings.Builder, of reflect.Type, types map[string]*documented) {
	for field := range of.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous {
			rows(b, field.Type, types)
			continue
		}
		rule, keys, _ := strings.Cut(field.Tag.Get("merge"), "=")
		if words := rules[rule]; rule == "key" {
			rule = "merged by " + strings.ToLower(keys)
		} else {
			rule = words
		}
		b.WriteString("| `" + key + "` | " + kind(field.Type) + " | " + rule + " | " +
			text(types[of.Name()].fields[field.Name]) + " |\n")
	}
}

// kind is a type as JSON has it.
func kind(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return kind(of.Elem()) + " or null"
	case reflect.Slice:
		return "list of " + kind(of.Elem())
	case reflect.Map:
		return "object of " + kind(of.Elem())
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "truth"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		if of.PkgPath() == "kvbench/kvbench/result" || of == reflect.TypeFor[Limits]() {
			return "[" + of.Name() + "](#" + strings.ToLower(of.Name()) + ")"
		}
		return of.String()
	}
	return "number"
}

// documented is a structure with its comments.
type documented struct {
	doc    string
	fields map[string]string
}

// commented are the structures of this package, and the limits of package host, by their names.
func commented(t *testing.T) map[string]*documented {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	types := map[string]*documented{}
	for _, name := range append(files, "../../tracing/host/limits.go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			spec := gen.Specs[0].(*ast.TypeSpec)
			of, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			d := &documented{doc: gen.Doc.Text(), fields: map[string]string{}}
			for _, field := range of.Fields.List {
				for _, name := range field.Names {
					d.fields[name.Name] = field.Doc.Text() + field.Comment.Text()
				}
			}
			types[spec.Name.Name] = d
		}
	}
	return types
}

// text is a comment as a cell of a table.
func text(comment string) string {
	return strings.NewReplacer("\n\n", "<br>", "\n", " ", "|", `\|`).Replace(
		strings.TrimSpace(comment))
}
