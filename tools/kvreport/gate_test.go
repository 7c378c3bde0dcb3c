package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tools/golden"
)

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

// A trial's line has a percentile only with enough operations. A line without it is no loss and no
// pass.
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

// The saved share of the time to the first token may be below 0: less of it is worse there, too. A
// break-even that is missing on the line lies outside of the measured lengths, and is no success.
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
	for metric, says := range map[string]string{"ttft-saved-ratio": "trials lost 102 %",
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
