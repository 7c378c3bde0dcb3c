package params

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// The texts stand in parameters.txt: one group shows how they are laid out.
func TestHelpTable(t *testing.T) {
	var out bytes.Buffer
	in := Inputs{Bench: bench(t, "StorageThroughput"), Env: environment("KVBENCH_CPU_MEM_GB", "4")}
	require.NoError(t, good(t, in, "-division=closed").WriteHelp(&out, "tiers:"))
	golden.Check(t, "help.golden", out.String())
	out.Reset()
	require.NoError(t, good(t, Inputs{}).WriteHelp(&out, ""))
	for _, line := range []string{"\nKnee ", "\ndivision quick\n", "\nThe run\n-division ",
		"\nEnvironment: KVBENCH_ + the name in capitals"} {
		assert.Contains(t, out.String(), line)
	}
	assert.ErrorContains(t, good(t, Inputs{}).WriteHelp(&out, "nonsense"), `has "nonsense" in its name`)
}

// On a usual screen, whatever paths are in force; and nothing of a meaning is lost on the way.
func TestHelpTableFitsAScreen(t *testing.T) {
	var out bytes.Buffer
	long := "/mnt/" + strings.Repeat("nvme", 30)
	in := Inputs{Bench: bench(t, "StorageThroughput"), Env: environment("KVBENCH_CACHE_DIR", long)}
	require.NoError(t, good(t, in, "-division=closed").WriteHelp(&out, ""))
	text := out.String()
	assert.Contains(t, text, "\n-cache-dir ")
	for line := range strings.Lines(text) {
		if !strings.Contains(line, long) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), tableWidth,
				line)
		}
	}
	letters := strings.Join(strings.Fields(text), "")
	for _, p := range table {
		if !p.has(action) {
			assert.Contains(t, letters, strings.Join(strings.Fields(p.help), ""), p.name)
		}
	}
}

func TestFlagHelpHasDefaults(t *testing.T) {
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	Register(fs)
	var out strings.Builder
	fs.SetOutput(&out)
	fs.PrintDefaults()
	assert.Contains(t, out.String(),
		"(default quick tiny-1b, open llama3.1-8b, closed llama3.1-8b)")
	assert.Nil(t, fs.Lookup("benchtime"), "Go's own flags are Go's")
}

// TestParametersPage compares benchmarks/PARAMETERS.md with the tables: what each flag means, which benchmarks
// accept it, and the keys of the YAML file that have no effect. With -update it writes the page.
func TestParametersPage(t *testing.T) {
	text := `# Parameters

Generated from the code: ` + "`go test ./kvbench/params -run ParametersPage -update`" + ` writes this page.
Three defaults stand for the divisions quick, open and closed. [README.md](README.md) explains the
order of precedence, and the groups of benchmarks in the last column.

| flag | default | meaning | applies to |
|---|---|---|---|
`
	for _, p := range table {
		if !p.has(action, goFlag) {
			text += fmt.Sprintf("| `-%s` | %s | %s | %s |\n", p.name,
				cmp.Or(p.defaults("%s, %s, %s"), "–"),
				strings.ReplaceAll(p.help, "<", `\<`), p.appliesTo()) // < opens a tag
		}
	}
	text += "\n## Keys without effect\n\nA `-config` of the Python benchmark may have these keys. They are " +
		"read and change nothing here. A run says once how many its file has.\n\n| key | why |\n|---|---|\n"
	for _, p := range keys {
		if p.has(idle) {
			text += fmt.Sprintf("| `%s` | %s |\n", p.name, p.help)
		}
	}
	golden.Check(t, "../../../benchmarks/PARAMETERS.md", text)
}
