package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bench is a command that counts its runs in a file of both sides, and prints one trial: of a speed
// that the number of the run makes a little different.
func bench(dir, side string, speed int, more string) string {
	return fmt.Sprintf(`n=$(wc -l < %[1]s/runs); n=$((n + 1)); echo %[2]s >> %[1]s/runs; `+
		`echo "a line of a log $n" >&2; %[4]s printf 'Unit read-B/s better=higher\nBenchmarkA 1 `+
		`%%d read-B/s\n' $((%[3]d + n %% 5))`, dir, side, speed, more)
}

func TestTurns(t *testing.T) {
	dir := t.TempDir()
	runs, out := filepath.Join(dir, "runs"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(runs, nil, 0o644))
	code, stdout, errs := call("", "turns", "-count", "5", "-out", out,
		"-old", bench(dir, "old", 1000, ""), "-new", bench(dir, "new", 800, ""))
	require.Equal(t, Done, code, errs)
	assert.Empty(t, stdout)
	order, err := os.ReadFile(runs)
	require.NoError(t, err)
	assert.Equal(t, "old new new old new old old new old new",
		strings.Join(strings.Fields(string(order)), " "))
	said := strings.Split(strings.TrimSpace(errs), "\n")
	assert.Len(t, said, 10, "a line for each run")
	assert.Regexp(t, `^kvreport turns: 6 of 10 \(turn 2, old\): 1 result in `, said[5])
	assert.NotContains(t, errs, "a line of a log")
	log, err := os.ReadFile(filepath.Join(out, "new.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "=== 5 of 10 (turn 2, new)\na line of a log 5\n")
	gate := []string{"gate", "-old", filepath.Join(out, "old.txt"), "-new",
		filepath.Join(out, "new.txt"), "-count", "5"}
	code, stdout, errs = call("", gate...)
	assert.Equal(t, No, code, errs)
	assert.Contains(t, stdout, "rank test within turns")
	assert.Contains(t, stdout, "5+5")
	code, _, errs = call("", "turns", "-count", "5", "-out", out, "-old", "true", "-new", "true")
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "old.txt is there already")
}

// A run that fails loses itself alone, and the gate knows that there was one.
func TestTurnsOfARunThatFails(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "runs"), nil, 0o644))
	fails := `if [ $n = 7 ]; then echo 'error       the drive is gone' >&2; echo a table >&2; exit 5; fi;`
	code, _, errs := call("", "turns", "-count", "6", "-out", out,
		"-old", bench(dir, "old", 1000, fails), "-new", bench(dir, "new", 1000, fails))
	assert.Equal(t, No, code)
	assert.Regexp(t, `7 of 12 \(turn 2, old\): FAILED after .* with 0 results: exit status 5: the `+
		`drive is gone; see `+out+`/old.log`, errs)
	assert.Contains(t, errs, "12 of 12")
	code, stdout, _ := call("", "gate", "-old", filepath.Join(out, "old.txt"), "-new",
		filepath.Join(out, "new.txt"), "-count", "6")
	assert.Equal(t, Undecided, code)
	assert.Regexp(t, `A +trials +5 of 6 +6 of 6 .*FAILED: old: 1 left nothing behind`, stdout)
	assert.Regexp(t, `A +read-B/s .* 5\+6 .* ok`, stdout)
}

func TestTurnsSayEarlyThatTheyAreTooFew(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	require.NoError(t, os.WriteFile(runs, nil, 0o644))
	code, _, errs := call("", "turns", "-count", "3", "-out", filepath.Join(dir, "a"), "-old",
		bench(dir, "old", 1000, ""), "-new", bench(dir, "new", 1000, ""))
	assert.Equal(t, Undecided, code)
	assert.Contains(t, errs, "not enough samples: 3 runs of each side can show nothing; run with "+
		"-count 4")
	data, err := os.ReadFile(runs)
	require.NoError(t, err)
	assert.Empty(t, data, "nothing was run")
	two := ` printf 'BenchmarkB 1 5 ns/op\n';`
	code, _, errs = call("", "turns", "-count", "4", "-out", filepath.Join(dir, "b"), "-old",
		bench(dir, "old", 1000, two), "-new", bench(dir, "new", 1000, two))
	assert.Equal(t, Undecided, code)
	assert.Contains(t, errs, "run with -count 5 for these 2 metrics")
	data, err = os.ReadFile(runs)
	require.NoError(t, err)
	assert.Equal(t, "old\n", string(data), "how many there are is known after the first run")
}

func TestTurnsUsage(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"-old, -new and -out are all needed": {"-old", "true"},
		"unexpected \"x\"":                   {"-old", "true", "-new", "true", "-out", dir, "x"},
		"-count: must be":                    {"-old", "true", "-new", "true", "-out", dir, "-count", "0"},
		"-alpha: must be":                    {"-old", "true", "-new", "true", "-out", dir, "-alpha", "2"},
		"the first run of the old side printed no result": {"-old", "false", "-new", "true", "-out",
			filepath.Join(dir, "out")},
	} {
		code, _, errs := call("", append([]string{"turns"}, args...)...)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, want)
	}
}
