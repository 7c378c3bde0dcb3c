package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	mostLines        = 600 // of a file
	fewestLines      = 60
	mostPackageLines = 2000 // of a package without its tests
	mostFiles        = 15
	mostColumns      = 100
	tab              = "    "
	commentShare     = 0.15 // of the lines that are not blank
)

// largeBecause begins, in a doc.go, the reason why a package is larger than others may be.
const largeBecause = "This package is large because"

func TestFilesHaveTheRightSize(t *testing.T) {
	wrong := map[string]string{}
	for _, s := range sources(t) {
		n := len(s.lines())
		switch {
		case n > mostLines:
			wrong[s.path] = fmt.Sprintf("%d lines, at most %d: it holds more than one concept", n,
				mostLines)
		case n < fewestLines && !s.isTest() && !mayBeSmall(s):
			wrong[s.path] = fmt.Sprintf("%d lines, at least %d but for doc.go and what one "+
				"platform needs: it is part of another concept", n, fewestLines)
		}
	}
	judge(t, "size", wrong)
}

// mayBeSmall: doc.go, what one platform needs, and main, a shell around what does the work.
func mayBeSmall(s *source) bool {
	return strings.HasSuffix(s.path, "/doc.go") || platform.MatchString(s.path) ||
		strings.HasPrefix(s.text, "//go:build ") ||
		s.tree.Name.Name == "main"
}

var platform = regexp.MustCompile(`_(linux|darwin|unix|other|amd64|arm64)\.go$`)

func TestPackagesAreSmallOrSayWhy(t *testing.T) {
	wrong := map[string]string{}
	for dir, files := range packages(t) {
		lines, reason := 0, false
		for _, s := range files {
			lines += len(s.lines())
			reason = reason || strings.Contains(flat(s.tree.Doc), largeBecause)
		}
		if large := lines > mostPackageLines || len(files) > mostFiles; large != reason {
			wrong[dir] = fmt.Sprintf("%d lines in %d files, at most %d in %d, unless doc.go says "+
				"%q, and only then",
				lines, len(files), mostPackageLines, mostFiles, largeBecause)
		}
	}
	judge(t, "package", wrong)
}

func TestLinesFitAHundredColumns(t *testing.T) {
	wrong := map[string]string{}
	for _, s := range sources(t) {
		var wide []string
		texts := s.texts()
		for i, line := range s.lines() {
			line = strings.ReplaceAll(line, "\t", tab)
			if texts[i+1] {
				continue
			}
			if s.isTest() { // an expected message stays in one piece, to be searched for
				line = literal.ReplaceAllString(line, `""`)
			}
			if utf8.RuneCountInString(line) > mostColumns && !strings.Contains(line, "://") &&
				!strings.HasPrefix(line, "//go:") {
				wide = append(wide, fmt.Sprint(i+1))
			}
		}
		if len(wide) > 0 {
			wrong[s.path] = fmt.Sprintf("wider than %d columns (a tab is %d): %d lines: %s",
				mostColumns, len(tab), len(wide), strings.Join(wide, ", "))
		}
	}
	judge(t, "columns", wrong)
}

// literal is a text in a line of Go.
var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\x60[^\x60]*\x60`)

func TestEveryPackageHasAMap(t *testing.T) {
	wrong := map[string]string{}
	for dir, files := range packages(t) {
		i := slices.IndexFunc(files,
			func(s *source) bool { return strings.HasSuffix(s.path, "/doc.go") })
		switch {
		case i < 0:
			wrong[dir] = "no doc.go: one sentence, a map of its files in reading order, rules " +
				"for goroutines and ownership"
		case files[i].tree.Doc == nil:
			wrong[dir] = "doc.go has no package comment"
		}
	}
	judge(t, "doc", wrong)
}

func TestCommentsSayWhy(t *testing.T) {
	wrong := map[string]string{}
	for dir, files := range packages(t) {
		code, comments := 0, 0
		for _, s := range files {
			comment := map[int]bool{}
			for _, group := range s.tree.Comments {
				for n := s.line(group.Pos()); n <= s.line(group.End()); n++ {
					comment[n] = true
				}
			}
			for i, line := range s.lines() {
				switch line = strings.TrimSpace(line); {
				case line == "":
				case comment[i+1] && (strings.HasPrefix(line, "//") ||
					strings.HasPrefix(line, "/*") || !strings.Contains(line, "//")):
					comments++
				default:
					code++
				}
			}
		}
		if share := float64(comments) / float64(code+comments); share < commentShare {
			wrong[dir] = fmt.Sprintf("%.1f %% of its lines are comments, at least %.0f %%: say "+
				"why, with numbers or a link", 100*share, 100*commentShare)
		}
	}
	judge(t, "comments", wrong)
}

// oldWords are this house's own words of old, and what the field says. They are looked for in names
// and comments; flags and keys of results keep theirs.
var oldWords = map[string]string{
	"heal": "recover", "healed": "recovered", "healing": "recovery", "stranded": "lost in flight",
	"sinking": "being demoted", "crew": "worker pool", "lane": "stream, direction",
	"lanes":  "streams, directions",
	"parked": "waiting", "doomed": "evicted", "forgo": "release the plan",
	"crowded": "oversubscribed",
	"books":   "request counts", "prod": "wake", "poke": "wake", "blind": "unobserved", "hire": "start",
}

func TestWordsAreTheFields(t *testing.T) {
	wrong := map[string]string{}
	for _, s := range sources(t) {
		if s.dir() == "tools/lint" {
			continue
		}
		found := map[string]bool{}
		look := func(text string) {
			for _, word := range words(text) {
				// A gate that could not have found a loss is blind, for users, too.
				if better, old := oldWords[word]; old && !(word == "blind" && isGate(s)) {
					found[word+" ("+better+")"] = true
				}
			}
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				look(id.Name)
			}
			return true
		})
		for _, group := range s.tree.Comments {
			look(group.Text())
		}
		if len(found) > 0 {
			list := []string{}
			for w := range found {
				list = append(list, w)
			}
			slices.Sort(list)
			wrong[s.path] = "words of old: " + strings.Join(list, ", ")
		}
	}
	judge(t, "word", wrong)
}

func isGate(s *source) bool {
	return s.dir() == "tools/gate" || strings.HasPrefix(s.path, "tools/kvreport/gate")
}

// words takes names and sentences apart: openLanes is open and lanes.
func words(text string) []string {
	var b strings.Builder
	var last rune
	for _, r := range text {
		if unicode.IsUpper(r) && unicode.IsLower(last) || !unicode.IsLetter(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) })
}

// flat is a comment in one line.
func flat(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// realTime are calls that wait for the machine or measure it. In a bubble of testing/synctest they
// are virtual.
var realTime = map[string][]string{
	"time":  {"Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer", "Since"},
	"clock": {"Wall", "NewWall"},
}

// mayTakeTime are tests of real processes, devices and clocks; make test does not run them, but for
// the last.
var mayTakeTime = regexp.MustCompile(`^benchmarks/e2e/|_privileged[a-z_]*_test\.go$|^tiers/clock/`)

func TestUnitTestsKnowNoRealTime(t *testing.T) {
	wrong := map[string]string{}
	for _, s := range sources(t) {
		if !s.isTest() || mayTakeTime.MatchString(s.path) {
			continue
		}
		var found []string
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Benchmark") {
				return false // measures
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			pkg, name := called(call)
			if pkg == "synctest" && name == "Test" {
				return false
			}
			if slices.Contains(realTime[pkg], name) {
				found = append(found, fmt.Sprintf("%s.%s in line %d", pkg, name,
					s.line(call.Pos())))
			}
			return true
		})
		if len(found) > 0 {
			wrong[s.path] = "real time in a unit test: " + strings.Join(found, ", ") +
				"; use testing/synctest, a virtual clock or an event, or move it to " +
				"benchmarks/e2e or *_privileged_test.go"
		}
	}
	judge(t, "time", wrong)
}

func called(call *ast.CallExpr) (pkg, name string) {
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		if x, ok := sel.X.(*ast.Ident); ok {
			return x.Name, sel.Sel.Name
		}
	}
	return "", ""
}
