//go:build cgo && linux

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProgramsStartWithoutTheDriver: builds with cgo start where no driver is loaded, unless all functions are bound at
// start. The last -z counts, so the Makefile's flag prevails over a linker's default.
func TestProgramsStartWithoutTheDriver(t *testing.T) {
	if testing.Short() {
		t.Skip("links four programs")
	}
	for _, program := range []string{"cc", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the builds of this test need a C compiler and make: ", err)
		}
	}
	ask := exec.Command("make", "-C", "../..", "-s", "--no-print-directory", "-f", "Makefile", "-f", "-", "flags")
	ask.Env = append(os.Environ(), "MAKEFLAGS=")
	ask.Stdin = strings.NewReader("flags:; @echo \"$$GOFLAGS\"\n")
	flags, err := ask.CombinedOutput()
	require.NoError(t, err, "%s", flags)
	lazy := strings.TrimSpace(string(flags))
	require.Contains(t, lazy, "-Wl,-z,lazy")
	now := strings.ReplaceAll(lazy, "-z,lazy", "-z,now")
	const fails = "undefined symbol: nvml"
	for name, c := range map[string]struct{ flags, env, prints string }{
		"make":        {flags: strings.ReplaceAll(lazy, "-z,lazy", "-z,now,-z,lazy"), prints: "NVML"},
		"linker":      {flags: now, prints: fails},
		"environment": {flags: lazy, env: "LD_BIND_NOW=1", prints: fails},
		"nonvml":      {flags: now + " -tags=nonvml", env: "LD_BIND_NOW=1", prints: "nvidia-smi"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "cards")
			build := exec.Command("go", "build", "-o", program, "./testdata/cards")
			build.Env = append(os.Environ(), "GOFLAGS="+c.flags)
			// Like this test's own: the build cache has the packages.
			info, _ := debug.ReadBuildInfo()
			if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
				build.Args = slices.Insert(build.Args, 2, "-race")
			}
			out, err := build.CombinedOutput()
			require.NoError(t, err, "%s", out)
			start := exec.Command(program)
			start.Env = append(os.Environ(), c.env)
			out, err = start.CombinedOutput()
			assert.Equal(t, c.prints == fails, err != nil, "%s", out)
			assert.Contains(t, string(out), c.prints)
		})
	}
}
