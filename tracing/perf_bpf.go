//go:build linux && (amd64 || arm64)

package tracing

import (
	"fmt"
	"os"
	"path/filepath"

	"kvbench/tracing/bpf"
)

// tracefs is where the kernel describes its tracepoints, by preference.
var tracefs = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// perfFields mirrors struct fields of bpf/perf.h.
type perfFields struct{ Dev, Sector, NrSector, RWBS uint32 }

// perfKernel describes the running kernel for perf tracepoints: which events there are, and where their fields lie.
func perfKernel() (kernelFacts, error) {
	values := map[string]any{}
	for variable, event := range map[string]string{
		bpf.TraceVarRequestFields:  "block_rq_issue",
		bpf.TraceVarCompleteFields: "block_rq_complete",
		bpf.TraceVarRequeueFields:  "block_rq_requeue",
	} {
		format, err := eventFormat(event)
		if err != nil {
			return kernelFacts{}, err
		}
		at, err := fieldOffsets(format, "dev", "sector", "nr_sector", "rwbs")
		if err != nil {
			return kernelFacts{}, fmt.Errorf("%s: %w", event, err)
		}
		values[variable] = perfFields{at[0], at[1], at[2], at[3]}
	}
	_, start := eventFormat("block_io_start")
	_, merge := eventFormat("block_rq_merge")
	return kernelFacts{haveStart: start == nil, noMerge: merge != nil, fields: values}, nil
}

func eventFormat(event string) (string, error) {
	var first error
	for _, root := range tracefs {
		text, err := os.ReadFile(filepath.Join(root, "events/block", event, "format"))
		if err == nil {
			return string(text), nil
		}
		if first == nil {
			first = fmt.Errorf("describe the tracepoint %s: %w", event, err)
		}
	}
	return "", first
}
