package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
)

// The commands in the documents have to work: these tests check them against the existing flags,
// benchmarks, commands and make targets, and every link against the files.

const moduleRoot = "../.."

// pages returns the text of each README.md of the module, and of the measurements, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	return documents(t, "/README.md", "/*/README.md", "/benchmarks/measurements/*.md")
}

// documents returns the files that match patterns.
func documents(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(moduleRoot + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			texts[path] = string(text)
		}
	}
	return texts
}

func TestTheFirstPageIsShort(t *testing.T) {
	assert.LessOrEqual(t, len(pages(t)[moduleRoot+"/README.md"]), 9_000)
}

// goFlags are the flags of go test and of test binaries that the documents use.
var goFlags = map[string]bool{"run": true, "bench": true, "benchtime": true, "count": true,
	"cpu": true, "skip": true,
	"json": false, "v": false, "short": false, "race": false, "artifacts": false, "outputdir": true,
	"timeout": true, "c": false}

// benchmarkFlags returns whether each flag of the benchmarks takes a value.
func benchmarkFlags() map[string]bool {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	params.Register(fs)
	known := map[string]bool{"help-parameters": false}
	fs.VisitAll(func(f *flag.Flag) {
		b, ok := f.Value.(interface{ IsBoolFlag() bool })
		known[f.Name] = !ok || !b.IsBoolFlag()
	})
	for name, value := range goFlags {
		known[name], known["test."+name] = value, value
	}
	return known
}

func TestCommandsInTheDocuments(t *testing.T) {
	makefile, err := os.ReadFile(moduleRoot + "/Makefile")
	require.NoError(t, err)
	flags := benchmarkFlags()
	seen := map[string]int{}
	for path, text := range pages(t) {
		for _, words := range shellCommands(text) {
			line := path + ": " + strings.Join(words, " ")
			switch {
			case starts(words, "go", "test", "./benchmarks"), starts(words, "kvbench.test"):
				seen["benchmarks"]++
				checkBenchmarks(t, line, words[slices.IndexFunc(words, func(w string) bool {
					return w == "./benchmarks" || w == "kvbench.test"
				})+1:], flags)
			case starts(words, "go", "tool", "kvreport"):
				seen["kvreport"]++
				checkKvreport(t, line, words[3:])
			case starts(words, "make") && len(words) > 1:
				seen["make"]++
				assert.Regexp(t, `(?m)^`+words[1]+`:`, string(makefile), line)
			case words[0] == "testdata/device-model.sh" || words[0] == "testdata/readme-sample.sh":
				assert.FileExists(t, filepath.Join(moduleRoot, words[0]), line)
			}
		}
	}
	for _, kind := range []string{"benchmarks", "kvreport", "make"} {
		assert.Greater(t, seen[kind], 3, "hardly any command of %s was found: the search is broken",
			kind)
	}
}

func checkBenchmarks(t *testing.T, line string, args []string, known map[string]bool) {
	t.Helper()
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !assert.True(t, strings.HasPrefix(args[i], "-"), "%s: the stray word %q", line,
			args[i]) {
			return
		}
		takes, ok := known[name]
		assert.True(t, ok, "%s: there is no flag -%s", line, name)
		if takes && !given && assert.Less(t, i+1, len(args), "%s: -%s needs a value", line, name) {
			i++
			value = args[i]
		}
		if strings.TrimPrefix(name, "test.") == "bench" && value != "…" {
			assert.True(t, selects(value), "%s: no benchmark matches %s", line, value)
		}
	}
}

// selects reports whether each alternative of a -bench pattern names a benchmark.
func selects(pattern string) bool {
	for _, alternative := range strings.Split(strings.Trim(pattern, "^$()"), "|") {
		first, _, _ := strings.Cut(alternative, "/")
		re, err := regexp.Compile(strings.TrimPrefix(strings.Trim(first, "^$()"), "Benchmark"))
		if err != nil || !slices.ContainsFunc(params.Benchmarks(),
			func(b params.Bench) bool { return re.MatchString(b.Name) }) {
			return false
		}
	}
	return true
}

// checkKvreport lets the command parse the arguments with an unknown flag after them: only that one
// may be an error, which comes before anything is read or written.
func checkKvreport(t *testing.T, line string, args []string) {
	t.Helper()
	if args[0] == "COMMAND" || args[0] == "help" {
		return
	}
	_, _, errs := call("", append(args, "-behind-the-last")...)
	assert.Contains(t, errs, "unknown flag -behind-the-last", line)
}

// shellCommands returns the words of each command in the indented and fenced blocks of a page,
// without prompts, comments, redirections and further commands of a pipe.
func shellCommands(text string) [][]string {
	var commands [][]string
	fenced := false
	var joined string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced && !strings.HasPrefix(line, "    ") {
			continue
		}
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if rest, more := strings.CutSuffix(line, `\`); more {
			joined += rest
			continue
		}
		commands = append(commands, splitShell(joined+line)...)
		joined = ""
	}
	return commands
}

// shellWord is a word of a line of shell, a comment, or what separates commands and redirections.
var shellWord = regexp.MustCompile(`#.*|(?:'[^']*'|"[^"]*"|\$?\([^)]*\)|[^\s'"()|;&>])+|[|;&>]`)

// splitShell cuts a line of shell into commands and words. Redirections go; $(…) and quoted text
// are one word.
func splitShell(line string) (all [][]string) {
	var words []string
	redirected := false
	for _, word := range append(shellWord.FindAllString(line, -1), ";") {
		switch {
		case word[0] == '#':
		case strings.Contains("|;&", word):
			if len(words) > 0 {
				all = append(all, words)
			}
			words, redirected = nil, false
		case word == ">":
			redirected = true
		case !redirected:
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(word))
		}
	}
	return all
}

func starts(words []string, with ...string) bool {
	return len(words) >= len(with) && slices.Equal(words[:len(with)], with)
}

// Every `-flag` that a page names in the text is one of the benchmarks', of go test or of kvreport.
func TestFlagsInTheDocuments(t *testing.T) {
	known := benchmarkFlags()
	var texts strings.Builder
	for _, c := range commands {
		_, text, _ := call("", "help", c.Name)
		texts.WriteString(text)
	}
	// of go build; the Python benchmark's, which the text says; of tests with text scripts
	known["tags"], known["duration"], known["rewrite"] = true, true, true
	known["x"] = true // of mpirun
	inline := regexp.MustCompile("`(-[a-z][a-z.-]*)[ =`]")
	found := 0
	for path, text := range pages(t) {
		for _, m := range inline.FindAllStringSubmatch(text, -1) {
			found++
			name := strings.TrimPrefix(m[1], "-")
			_, ok := known[name]
			if ok { // the search below is slow
				continue
			}
			kvreport := regexp.MustCompile(`(^|[^a-z-])` + regexp.QuoteMeta(m[1]) +
				`($|[^a-z-])`).MatchString(texts.String())
			assert.True(t, kvreport || strings.HasSuffix(name, "."),
				"%s names %s, which no command has", path, m[1])
		}
	}
	assert.Greater(t, found, 100, "hardly any flag was found: the search is broken")
}

func TestLinksInTheDocuments(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	texts := documents(t, "/README.md", "/*/*.md", "/benchmarks/measurements/*.md")
	headings := map[string][]string{} // of the pages that links name
	for path, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
				_, err := os.Stat(target)
				assert.NoError(t, err, "a dead link in %s", path)
			}
			if m[2] != "" {
				if headings[target] == nil {
					headings[target] = anchors(texts[target])
				}
				assert.Contains(t, headings[target], m[2][1:], "a dead link in %s to %s",
					path, target)
			}
		}
	}
}

// anchors are the names that the headings of a page get: small letters, blanks as hyphens, no
// punctuation.
func anchors(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		names = append(names, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1]))
	}
	return names
}
