package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

// TestScripts runs the scripts of testdata/scripts. Rewrite them with -rewrite.
//
//	result [file=NAME] [more]   the result of the commands below: an empty one, a file's, or the one
//	                            so far with more in it
//	section NAME [derive] [lines=(A,B)]  a section as text, or some of its lines without the table,
//	                            also after Derive
//	cells NAME                  the last cell of each row, and whether the line has a knee
//	log, summary, line, fio     what these functions write; of a job the lines with sizes
//	warnings                    those of this trial twice, and of a trial without any
//	quote                       what may be quoted of trials, each a line: name, status, verdict, rate of
//	                            reads or removals, more of the result
//	scenarios                   the table of named jobs, of the same lines
//
// Lines of the input are keys of the result (golden.Changed), in this command alone but for result.
func TestScripts(t *testing.T) {
	sections := map[string]func(*result.Result) Section{"checkpoints": checkpoints, "knee": knee,
		"plain": plain, "block": blockIO, "verdict": verdict, "tiers": tiers, "roots": roots,
		"prompts": prompts, "time": requestTime, "tokens": firstTokens, "kernel": kernel,
		"endpoints": endpoints, "validation": validation, "settings": settings, "harness": harness,
		"stalls": stalls, "policy": policy, "clients": clients, "simulation": simulation,
		"failures": failures, "cards": cards}
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		base := []byte("{}")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			switch d.Cmd {
			case "quote":
				return Quote(scriptTrials(t, base, d.Input)).Alone()
			case "scenarios":
				text, rest := Scenarios(scriptTrials(t, base, d.Input))
				return fmt.Sprintf("%s%d others\n", text, len(rest))
			case "result":
				file := ""
				if d.MaybeScanArgs(t, "file", &file); file != "" {
					var err error
					base, err = os.ReadFile(file)
					require.NoError(t, err)
				} else if !d.HasArg("more") {
					base = []byte("{}")
				}
				base = golden.Changed(t, base, d.Input)
				return ""
			}
			r := &result.Result{}
			require.NoError(t, json.Unmarshal(golden.Changed(t, base, d.Input), r))
			if d.HasArg("derive") {
				r.Derive()
			}
			switch d.Cmd {
			case "section":
				s := sections[d.CmdArgs[0].Key](r)
				if d.HasArg("lines") {
					var from, to int
					d.ScanArgs(t, "lines", &from, &to)
					s = Section{Lines: s.Lines[min(from, len(s.Lines)):min(to+1, len(s.Lines))]}
				}
				out.WriteString(s.String())
			case "cells":
				for _, row := range knee(r).Rows {
					fmt.Fprintf(&out, "%q ", row[len(row)-1])
				}
				for _, m := range r.Metrics() {
					out.WriteString(map[bool]string{true: "with a metric"}[m.Unit == "knee-bytes"])
				}
			case "log":
				out.WriteString(strings.Join(LogLines(r), "\n"))
			case "summary":
				text, err := Summary(r)
				require.NoError(t, err)
				out.WriteString(text)
			case "line":
				out.WriteString(TrialLine(r, 20))
			case "recording":
				out.WriteString(strings.Join(Recording(r), "\n"))
			case "warnings":
				out.WriteString(strings.Join(Warnings([]*result.Result{r, {}, r}), "\n"))
			case "fio":
				job, err := FioJob(r)
				if err != nil {
					return err.Error() + "\n"
				}
				for line := range strings.Lines(job) {
					if strings.Contains(line, "split=") || strings.Contains(line, "depth=") || strings.Contains(line, "rwmix") ||
						strings.Contains(line, "no block") || strings.Contains(line, "network") {
						out.WriteString(line)
					}
				}
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return cmp.Or(strings.TrimSuffix(out.String(), "\n"), "nothing") + "\n"
		})
	})
}

func scriptTrials(t *testing.T, base []byte, input string) (all []*result.Result) {
	for line := range strings.Lines(input) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 5)
		rate := "tiers: [{level: storage, read: {bytes: 1GiB, bytes_per_s: " + words[3] + "}}]"
		if strings.Contains(line, "op=delete") {
			rate = "removal: {bytes_per_s: " + words[3] + "}"
		}
		keys := append([]string{"name: " + words[0], "status: " + words[1],
			"harness.verdict.kind: " + words[2], rate}, strings.Split(strings.Join(words[4:], ""), "; ")...)
		r := &result.Result{}
		require.NoError(t, json.Unmarshal(golden.Changed(t, base, strings.Join(keys, "\n")), r))
		all = append(all, r)
	}
	return all
}
