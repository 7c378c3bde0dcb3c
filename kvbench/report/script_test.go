package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
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
//	log, summary, short, fio    what these functions write; of a job the lines with sizes
//	trials                      each line is a trial: name, status, verdict, rate of reads or removals
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
			case "trials":
				out.WriteString(strings.Join(Trials(scriptTrials(t, d.Input)), "\n") + "\n")
				return out.String()
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
				require.NoError(t, WriteSummary(&out, r))
			case "short":
				require.NoError(t, WriteShort(&out, r))
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

func scriptTrials(t *testing.T, input string) (all []*result.Result) {
	for line := range strings.Lines(input) {
		trial := golden.Value(t, line).([]any)
		rate, err := strconv.ParseFloat(fmt.Sprint(trial[3]), 64)
		require.NoError(t, err)
		r := &result.Result{Name: trial[0].(string), Status: trial[1].(string),
			Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 1 << 30,
				BytesPerSecond: &rate}}}}
		r.Harness.Verdict.Kind = trial[2].(string)
		if len(trial) > 4 {
			r.Tiers, r.Removal = nil, &result.Removal{BytesPerSecond: &rate}
		}
		all = append(all, r)
	}
	return all
}
