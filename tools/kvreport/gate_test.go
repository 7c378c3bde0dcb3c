package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// runsGate runs the command.
func runsGate(args ...string) (code int, stdout, stderr string) {
	return call("", append([]string{"gate"}, args...)...)
}

// lines are what a benchmark prints in n trials: values around a centre, the same in every run of
// the test.
func lines(name, unit string, centre float64, n int) string {
	var b strings.Builder
	for i := range n {
		v := centre * (1 + 0.01*float64((i*7)%5-2) + 0.001*float64(i))
		fmt.Fprintf(&b, "Benchmark%s-2\t1\t%.0f ns/op\t%.0f %s\t%.0f read-p95-ns\n", name, 1e15/v,
			v, unit, 4e15/v)
	}
	return b.String()
}

const header = "kvbench-format: 2\ndivision: quick\nseed: 42\nUnit read-B/s better=higher\nUnit " +
	"write-B/s better=higher\nUnit read-p95-ns better=lower\npkg: kvbench/benchmarks\n"

// file writes benchmark output into a temporary directory.
func file(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.txt")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(parts, "")), 0o644))
	return path
}

func TestGateOutputs(t *testing.T) {
	old := file(t, header, lines("MaxStorageStress", "read-B/s", 1e9, 6),
		lines("PrefillOnly", "write-B/s", 2e9, 6),
		lines("Tier/tier=storage/op=read", "read-B/s", 3e9, 6),
		lines("LargeModel", "read-B/s", 1e9, 6), lines("Synthetic", "read-B/s", 1e9, 3))
	new := file(t, header, lines("MaxStorageStress", "read-B/s", 0.9e9, 6),
		lines("PrefillOnly", "write-B/s", 2.4e9, 6),
		lines("Tier/tier=storage/op=read", "read-B/s", 2.99e9, 6),
		lines("Synthetic", "read-B/s", 1e9, 3), lines("MultiTurn", "read-B/s", 1e9, 6))
	for _, format := range []string{"text", "markdown", "github", "junit"} {
		code, out, errs := runsGate("-old", old, "-new", new, "-format", format, "-max-regress",
			"read-p95-ns=15%")
		assert.Equal(t, 1, code)
		assert.Empty(t, errs)
		golden.Check(t, "gate/"+format+".golden", out)
	}
	code, out, _ := runsGate("-old", old, "-new", old, "-all", "-allow-few")
	assert.Zero(t, code)
	golden.Check(t, "gate/all.golden", out)
}

func TestGateFindsLossesInBothDirections(t *testing.T) {
	old, new := file(t, header, lines("B", "read-B/s", 1e9, 6)),
		file(t, header, lines("B", "read-B/s", 0.9e9, 6))
	code, out, _ := runsGate("-old", old, "-new", new)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "WORSE: the typical pair of trials lost 10% (at least 8.11%), at most "+
		"5% is allowed")
	code, out, _ = runsGate("-old", new, "-new", old)
	assert.Zero(t, code, "more bandwidth is no loss")
	assert.Contains(t, out, "better")
	code, _, _ = runsGate("-old", old, "-new", new, "-max-regress", "20%")
	assert.Zero(t, code, "within a default of 20 %")
	code, _, _ = runsGate("-old", old, "-new", new, "-max-regress", "read-B/s=20%")
	assert.Zero(t, code)
	code, out, _ = runsGate("-old", old, "-new", new, "-max-regress", "read-B/s=20%",
		"-max-regress", "read-p95-ns")
	assert.Equal(t, 1, code, "the latency is gated once it is named")
	assert.Contains(t, out, "read-p95-ns")
}

// A percentile is on the line of a trial that has enough operations for it, and comes and goes with
// them: that is no loss and no pass.
func TestGateOfAPercentileThatComesAndGoes(t *testing.T) {
	all := lines("B", "read-B/s", 1e9, 6)
	p95 := regexp.MustCompile(`\t\d+ read-p95-ns`)
	some := strings.Replace(all, p95.FindString(all), "", 1)
	none := p95.ReplaceAllString(all, "")
	for _, c := range []struct{ old, new, says string }{
		{all, some, "NOT ENOUGH SAMPLES: 6 against 5 of 6 and 6 trials have enough operations"},
		{some, all, "NOT ENOUGH SAMPLES: 5 against 6 of 6 and 6 trials have enough operations"},
		{all, none, "NOT ENOUGH SAMPLES: 6 against 0 of 6 and 6 trials have enough operations"},
		{none + lines("C", "read-B/s", 1e9, 6), all + lines("C", "read-B/s", 1e9, 6),
			"NOT ENOUGH SAMPLES: 0 against 6 of 6 and 6 trials have enough operations"},
	} {
		args := []string{"-old", file(t, header, c.old), "-new", file(t, header, c.new),
			"-max-regress", "read-p95-ns"}
		code, out, errs := runsGate(args...)
		assert.Equal(t, Undecided, code, errs)
		assert.Contains(t, out, c.says)
		code, _, _ = runsGate(append(args, "-allow-few")...)
		assert.Zero(t, code)
	}
	code, _, errs := runsGate("-old", file(t, header, none), "-new", file(t, header, none),
		"-max-regress", "read-p95-ns")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "a trial has a percentile with enough operations alone")
}

func TestGateNeedsSamples(t *testing.T) {
	old, new := file(t, header, lines("B", "read-B/s", 1e9, 3)),
		file(t, header, lines("B", "read-B/s", 0.5e9, 3))
	code, out, _ := runsGate("-old", old, "-new", new)
	assert.Equal(t, Undecided, code, "the three trials of the closed division are never gated")
	assert.Contains(t, out, "NOT ENOUGH SAMPLES: 3 against 3 can never be below p = 0.05; run "+
		"with -count 4")
	assert.Contains(t, out, "gate CANNOT TELL: 1 with too few samples\n")
	code, out, _ = runsGate("-old", old, "-new", new, "-allow-few")
	assert.Zero(t, code)
	assert.Contains(t, out, "gate passed: 1 with too few samples: nothing could be shown with so "+
		"few trials\n", "no test was made, so none is named")

	t.Run("a family too large for its samples says how many it needs", func(t *testing.T) {
		var a, b []string
		for i := range 30 {
			a = append(a, lines(fmt.Sprintf("B%d", i), "read-B/s", 1e9, 5))
			b = append(b, lines(fmt.Sprintf("B%d", i), "read-B/s", 0.5e9, 5))
		}
		code, out, _ := runsGate("-old", file(t, append([]string{header}, a...)...), "-new",
			file(t, append([]string{header}, b...)...))
		assert.Equal(t, Undecided, code)
		assert.Contains(t, out, "5 against 5 give p 0.004 at best, too much for 30 metrics "+
			"together; run with -count 6 for these 30 metrics")
	})
}

func TestGateMissing(t *testing.T) {
	old := file(t, header, lines("A", "read-B/s", 1e9, 6), lines("B", "read-B/s", 1e9, 6))
	new := file(t, header, lines("A", "read-B/s", 1e9, 6))
	code, out, _ := runsGate("-old", old, "-new", new)
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "MISSING in new")
	code, _, _ = runsGate("-old", old, "-new", new, "-allow-missing")
	assert.Zero(t, code)
	code, out, _ = runsGate("-old", new, "-new", old)
	assert.Zero(t, code, "a new benchmark is none that is missing")
	assert.Contains(t, out, "B: only in new")
	code, out, _ = runsGate("-old", new, "-new", file(t, header, lines("A", "write-B/s", 1e9, 6)))
	assert.Equal(t, 1, code, "the metric is gone")
	assert.Contains(t, out, "MISSING in new")
	odd := file(t, header, lines("A", "read-B/s", 1e9, 6), "BenchmarkC 1 +Inf x/op 5 y/op\n")
	code, out, _ = runsGate("-old", odd, "-new", new)
	assert.Equal(t, 1, code, "a benchmark is gone whose first metric was no number")
	assert.Contains(t, out, "MISSING in new")
}

func TestGateComparesMachinesWithDifferentCores(t *testing.T) {
	old := lines("A", "read-B/s", 1e9, 6)
	code, out, _ := runsGate("-old", file(t, header, old), "-new",
		file(t, header, strings.ReplaceAll(old, "-2\t", "-64\t")))
	assert.Zero(t, code)
	assert.NotContains(t, out, "MISSING")
	both := file(t, header, old, strings.ReplaceAll(old, "-2\t", "-64\t"))
	code, out, _ = runsGate("-old", both, "-new", both)
	assert.Zero(t, code)
	assert.Contains(t, out, "A-64", "runs of -cpu 2,64 are two benchmarks")
}

func TestGateSaysThatItComparesPredictions(t *testing.T) {
	model := "simulated: true\nsimulate-device: read=2GiB/s,write=1GiB/s\n"
	sim := file(t, header, model, lines("A", "read-B/s", 1e9, 6))
	code, out, _ := runsGate("-old", sim, "-new", sim)
	assert.Zero(t, code)
	assert.Contains(t, out, "A: simulated on a device model on both sides: this compares "+
		"predictions, not measurements")
	code, _, errs := runsGate("-old", sim, "-new", file(t, header, lines("A", "read-B/s", 1e9, 6)),
		"-ignore", "simulate-device")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "simulated differs (on a device model against no in A)")
	code, _, errs = runsGate("-old", sim, "-new", sim, "-ignore", "simulated")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "simulated cannot be ignored")
}

func TestGateRefusesWhatCannotBeCompared(t *testing.T) {
	body := lines("MaxStorageStress", "read-B/s", 1e9, 6)
	old := file(t, header, body)
	for _, c := range []struct{ what, header, want string }{
		{"division", strings.Replace(header, "quick", "open", 1),
			"division differs (quick against open in MaxStorageStress)"},
		{"I/O mode", header + "io: buffered\n", "io differs (direct against buffered"},
		{"decode reads", header + "decode-reads: once\n",
			"decode-reads differs (batched against once"},
		{"write device", strings.Replace(header, "quick", "closed", 1),
			"write-device differs (transfer+flush against flush"},
		{"virtual time", header + "simulated: true\n",
			"simulated differs (no against on infinitely fast storage in MaxStorageStress): such " +
				"numbers mean different things"},
		{"format", strings.Replace(header, "format: 2", "format: 1", 1),
			"unsupported result schema: schema 1 is of an older kvbench"},
		{"another parameter", header + "num-users: 9\n",
			"num-users differs (8 against 9 in MaxStorageStress): measure both sides alike, or " +
				"give -ignore num-users"},
	} {
		t.Run(c.what, func(t *testing.T) {
			code, out, errs := runsGate("-old", old, "-new", file(t, c.header, body))
			assert.Equal(t, 2, code)
			assert.Empty(t, out)
			assert.Contains(t, errs, c.want)
		})
	}
	code, _, _ := runsGate("-old", old, "-new", file(t, header+"num-users: 9\n", body), "-ignore",
		"num-users")
	assert.Zero(t, code)
	code, _, errs := runsGate("-old", old, "-new", old, "-ignore", "io")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "cannot be ignored")
	code, out, _ := runsGate("-old", file(t, header, body, "io: buffered\n", body), "-new", old)
	assert.Equal(t, 1, code, "one side alone can be mixed")
	assert.Contains(t, out, "MaxStorageStress [io=buffered]")
	assert.Contains(t, out, "MISSING in new")
	code, _, _ = runsGate("-old", file(t, header+"num-users: 8\n", body), "-new", old)
	assert.Zero(t, code, "giving the default is no difference")
}

// turns are what a benchmark prints in n trials of a side that takes turns, two to a turn, on a
// machine whose speed halves from turn to turn.
func turns(name string, centre, spread float64, n int) string {
	var b strings.Builder
	for i := range n {
		v := centre / math.Exp2(float64(i/2)) * (1 + spread*float64((i*7)%5-2))
		fmt.Fprintf(&b, "turn: %d\nBenchmark%s-2 1 %.0f read-B/s\n", 1+i/2, name, v)
	}
	return b.String()
}

func TestGateComparesWithinTurns(t *testing.T) {
	old := file(t, header, turns("A", 1e9, 0.01, 6))
	code, out, _ := runsGate("-old", old, "-new", file(t, header, turns("A", 0.85e9, 0.01, 6)))
	assert.Equal(t, No, code)
	assert.Contains(t, out, "rank test within turns")
	assert.NotContains(t, out, "did not take turns")
	once := strings.NewReplacer("turn: 1\n", "", "turn: 2\n", "", "turn: 3\n", "")
	code, out, _ = runsGate("-old", file(t, once.Replace(header+turns("A", 1e9, 0.01, 6))), "-new",
		file(t, once.Replace(header+turns("A", 0.85e9, 0.01, 6))))
	assert.Equal(t, Undecided, code, "a machine that halves its speed hides a loss")
	assert.Contains(t, out, "BLIND: sees ")
	assert.Contains(t, out, "did not take turns")
}

func TestGateIsBlind(t *testing.T) {
	old := file(t, header, lines("A", "read-B/s", 1e9, 6))
	wide := file(t, header, turns("A", 1e9, 0.05, 6))
	code, out, _ := runsGate("-old", wide, "-new", wide)
	assert.Equal(t, Undecided, code)
	assert.Regexp(t, `BLIND: sees \d+\.\d%, 5% is the limit`, out)
	assert.Regexp(t, `blind: -count \d+ or so would do`, out)
	assert.Contains(t, out, "gate CANNOT TELL: 1 blind")
	code, out, _ = runsGate("-old", wide, "-new", wide, "-allow-blind")
	assert.Equal(t, Done, code)
	assert.Contains(t, out, "gate passed: 1 blind")
	code, _, _ = runsGate("-old", wide, "-new", wide, "-max-regress", "60%")
	assert.Equal(t, Done, code, "what is allowed is more than what is seen")
	same := file(t, header, strings.Repeat("BenchmarkA-2 1 1073741824 read-B/s\n", 5),
		"BenchmarkA-2 1 1071644672 read-B/s\n")
	code, out, _ = runsGate("-old", same, "-new", same)
	assert.Equal(t, Undecided, code)
	assert.Contains(t, out, "most trials gave the same number: the window or a limit decided it")
	code, _, _ = runsGate("-old", old, "-new", old)
	assert.Equal(t, Done, code)
}

// A candidate that crashes now and then is not as good as one that does not.
func TestGateOfTrialsThatFailed(t *testing.T) {
	all := lines("A", "read-B/s", 1e9, 6)
	five := lines("A", "read-B/s", 1e9, 5)
	old := file(t, header, all)
	code, out, _ := runsGate("-old", old, "-new", file(t, header, five))
	assert.Equal(t, Done, code, "nobody says how many there were to be")
	assert.Contains(t, out, "6+5")
	code, out, _ = runsGate("-old", old, "-new", file(t, header, five), "-count", "6")
	assert.Equal(t, No, code)
	assert.Regexp(t, `A +trials +6 of 6 +5 of 6 .*FAILED: new: 1 left nothing behind`, out)
	assert.Regexp(t, `A +read-B/s .* 6\+5 .*ok`, out, "the others are compared")
	code, _, _ = runsGate("-old", old, "-new", file(t, header, five), "-count", "6",
		"-allow-failed")
	assert.Equal(t, Done, code)
	code, out, _ = runsGate("-old", file(t, header, five), "-new", old, "-count", "6")
	assert.Equal(t, Undecided, code, "of the old side those are left that went well")
	assert.Contains(t, out, "gate CANNOT TELL: 1 with failed or missing trials, 1 ok")
	_, out, _ = runsGate("-old", file(t, header, five), "-new", file(t, header, five), "-count", "6")
	assert.Contains(t, out, "FAILED: old: 1 left nothing behind; new: 1 left nothing behind")
}

// Text that came without its result files tells less than they do: what was not compared is named,
// in every form for people.
func TestGateWithoutResultFiles(t *testing.T) {
	side := func() string {
		return file(t, header, strings.ReplaceAll(lines("A", "read-B/s", 1e9, 6), "\n",
			"\n--- BENCH: BenchmarkA\n    run.go:1: result: /gone/r.json\n"))
	}
	old, new := side(), side()
	const note = "6 trials of new have no readable result file (%s:8: result " +
		"/gone/r.json: no such file or directory): their filesystem, cache-dirs, ranks, workers, " +
		"io-used are unknown and were not compared"
	for _, format := range []string{"text", "markdown", "github", "junit"} {
		code, out, errs := runsGate("-old", old, "-new", new, "-format", format)
		assert.Equal(t, Done, code)
		assert.Contains(t, errs, "kvreport gate: "+fmt.Sprintf(note, new)+"\n")
		assert.Contains(t, errs, "6 trials of old have no readable result file")
		assert.Contains(t, out, fmt.Sprintf(note, new), format)
	}
	_, out, errs := runsGate("-old", file(t, lines("A", "read-B/s", 1e9, 6)), "-new", file(t,
		lines("A", "read-B/s", 1e9, 6)))
	assert.NotContains(t, out+errs, "result file", "text of other programs has none")
}

// Divisions have other defaults of dozens of parameters: a name has the first, and more only where
// these are the same of two rows.
func TestNamesOfRowsAreShort(t *testing.T) {
	in := func(settings ...string) string {
		text := header
		for _, s := range settings {
			text += strings.ReplaceAll(s, ", ", "\n") + "\n" + lines("Synthetic", "read-B/s", 1e9, 6)
		}
		return file(t, text)
	}
	const five = "chunk-size: %[1]dMiB, model: m%[1]d, num-users: %[1]d, seed: %[1]d, workers: %d"
	one, two, three := fmt.Sprintf(five, 1, 1), fmt.Sprintf(five, 2, 2), fmt.Sprintf(five, 2, 3)
	for says, in := range map[string]string{
		`(?m)^Synthetic \[chunk-size=1MiB model=m1 num-users=1\] `:                  in(one, two),
		`(?m)^Synthetic \[chunk-size=2MiB model=m2 num-users=2 seed=2 workers=3\] `: in(one, two, three),
		`Synthetic stands in 2 rows: its trials differ in chunk-size, model, num-users, and 2 more; ` +
			`-ignore chunk-size,model,num-users,seed,workers makes them one`: in(one, two),
	} {
		_, out, errs := runsGate("-old", in, "-new", in)
		assert.Regexp(t, says, out, errs)
	}
}

func TestIgnoredSettingsExist(t *testing.T) {
	in := file(t, header, lines("A", "read-B/s", 1e9, 6))
	for name, says := range map[string]string{
		"filesytem": `-ignore: "filesytem" is no setting that is compared, did you mean "filesystem"?`,
		"num-user":  `did you mean "num-users"?`, "workers,nonsense": `-ignore: "nonsense" is no setting`,
		"cache-dir": `did you mean "cache-dirs"?`, "io": "io cannot be ignored",
		"filesystem,cache-dirs,ranks,workers,storage-capacity-gb,trace-files,num-users": "",
	} {
		for _, args := range [][]string{{"gate", "-old", in, "-new", in},
			{"html", in, "-o", filepath.Join(t.TempDir(), "x.html")}} {
			code, _, errs := call("", append(args, "-ignore", name)...)
			if says == "" {
				assert.Equal(t, Done, code, errs)
				continue
			}
			assert.Equal(t, Usage, code, name)
			assert.Contains(t, errs, says)
		}
	}
}

func TestGateUsage(t *testing.T) {
	good := file(t, header, lines("A", "read-B/s", 1e9, 6), "BenchmarkA-2 1 5 widgets\n")
	empty := file(t, "")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"-old and -new are both needed", nil},
		{"-old and -new are both needed", []string{"-old", good}},
		{"unexpected", []string{"-old", good, "-new", good, "x"}},
		{"-format", []string{"-old", good, "-new", good, "-format", "html"}},
		{"-count", []string{"-old", good, "-new", good, "-count", "-1"}},
		{"-alpha", []string{"-old", good, "-new", good, "-alpha", "5"}},
		{"no percentage", []string{"-old", good, "-new", good, "-max-regress", "read-B/s=5"}},
		{"no percentage", []string{"-old", good, "-new", good, "-max-regress", "read-B/s=-5%"}},
		{"no benchmark of the old side has this metric; there are ns/op read-B/s read-p95-ns " +
			"widgets", []string{"-old", good, "-new", good, "-max-regress", "reed-B/s=5%"}},
		{"whether more or less of it is better is not known",
			[]string{"-old", good, "-new", good, "-max-regress", "widgets"}},
		{"bench.txt:1: it is empty", []string{"-old", good, "-new", empty}},
		{"bench.txt: no benchmark result in it", []string{"-old", good, "-new", file(t, header)}},
		{"no such file", []string{"-old", good, "-new", good + ".not"}},
		{"only one of -old and -new", []string{"-old", "-", "-new", "-"}},
	} {
		code, out, errs := runsGate(c.args...)
		assert.Equal(t, 2, code, c.args)
		assert.Empty(t, out)
		assert.Contains(t, errs, c.want)
		assert.Equal(t, 1, strings.Count(errs, "\n"), "one line: %s", errs)
	}
}

// BenchmarkGate judges 100,000 result lines against themselves, as a series of nightly runs has
// them.
func BenchmarkGate(b *testing.B) {
	var lines strings.Builder
	lines.WriteString(header)
	for i := range 100_000 {
		v := 1e9 + float64((i*7919)%1000)*1e4
		fmt.Fprintf(&lines, "BenchmarkTier/tier=storage/op=read/size=%d-2\t1\t%.0f ns/op\t9.123 "+
			"req/s\t1234 tok/s\t%.0f read-B/s\t%.0f write-B/s\t1234567 read-p50-ns\t2345678 "+
			"read-p95-ns\t3456789 read-p99-ns\t0.98 hit-ratio\t0.3 cpu-ns/B\n",
			i%200, 1e15/v, v, v/2)
	}
	path := filepath.Join(b.TempDir(), "bench.txt")
	require.NoError(b, os.WriteFile(path, []byte(lines.String()), 0o644))
	b.ReportAllocs()
	for b.Loop() {
		code, _, errs := runsGate("-old", path, "-new", path)
		require.Zero(b, code, errs)
	}
}

// The share that a cache saved of the first token may be below 0: less of it is worse there, too. A
// break-even that is not on the line any more lies outside of what was measured, and is no success.
func TestGateOfTheFirstToken(t *testing.T) {
	side := func(saved float64, more string) string {
		text := "Unit ttft-saved-ratio better=higher\nUnit break-even-tokens better=lower\n" +
			"Unit removals/s better=higher\n"
		for i := range 8 {
			text += fmt.Sprintf("BenchmarkA 1 1000 ns/op %.3f ttft-saved-ratio %d removals/s%s\n",
				saved+float64(i)/1000, int(1000*(3+saved))+i, more)
		}
		return file(t, text)
	}
	better, worse := side(-0.2, " 500 break-even-tokens"), side(-0.4, "")
	gate := func(old, new, metric string) (int, string) {
		code, out, errs := runsGate("-old", old, "-new", new, "-max-regress", metric+"=5%")
		return code, out + errs
	}
	for metric, says := range map[string]string{"ttft-saved-ratio": "trials lost 102%",
		"removals/s": "trials lost 7.", "break-even-tokens": "MISSING"} {
		code, text := gate(better, worse, metric)
		assert.Equal(t, No, code, metric)
		assert.Contains(t, text, says, metric)
		if says != "MISSING" {
			code, text = gate(worse, better, metric)
			assert.Equal(t, Done, code, metric)
			assert.Contains(t, text, "1 better", metric)
		}
	}
	_, text := gate(worse, better, "break-even-tokens")
	assert.Contains(t, text, "no benchmark of the old side has this metric")
}
