package curve

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/traces"
)

// ConvertOptions are the flags of kvreport convert, which writes block traces of any known format as
// Mooncake's JSON lines.
type ConvertOptions struct {
	parameters
	tokens int // per block, 0 = as recorded
}

// NewConvertOptions adds the flags to a flag set.
func NewConvertOptions(fs *flag.FlagSet) *ConvertOptions {
	o := &ConvertOptions{parameters: newParameters(fs)}
	fs.IntVar(&o.tokens, "block-tokens", 0, "")
	return o
}

// Check finds the files and every mistake in the options, before anything is written. All mistakes come
// in one error that unwraps to them.
func (o *ConvertOptions) Check(paths []string) (cfg traces.Config, err error) {
	if o.tokens < 0 || o.tokens > workloads.MaxTokens {
		err = fmt.Errorf("-block-tokens: must be 0 (as recorded) to %d, given %d", workloads.MaxTokens,
			o.tokens)
	}
	_, cfg, problems := o.resolve(paths, "convert sessions -o sessions.jsonl")
	return cfg, errors.Join(err, problems)
}

// Run writes the rows of the traces to w, in the order and at the times of a replay. Ids of blocks are
// unique in the output. Sessions become requests at their recorded times, because the format has no
// field for a session. It returns a summary with one line per item. It reads row by row; memory grows
// only with the distinct blocks.
func (o *ConvertOptions) Run(cfg traces.Config, w io.Writer) (summary []string, err error) {
	rows, err := traces.Open(formats.Blocks, cfg)
	if err != nil {
		return nil, err
	}
	out := formats.NewMooncakeWriter(w, o.tokens)
	written, short, sizes := int64(0), int64(0), map[int]bool{}
	err = rows.Each(func(row *formats.Row, at time.Duration) error {
		ok, err := out.Write(row, at)
		switch {
		case err != nil:
		case !ok:
			short++
		default:
			written++
			sizes[max(o.tokens, row.BlockTokens)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	// Each row is in one of the counts, so the counts add up to the rows.
	r := rows.Report()
	summary = append(summary, fmt.Sprintf("%s of %s read: %s written, %s malformed, %s before "+
		"-trace-start, %s without a whole block", units.Plural(r.Rows, "row"),
		units.Plural(len(cfg.Paths), "file"), units.Count.Text(written),
		units.Count.Text(r.Malformed), units.Count.Text(r.Skipped),
		units.Count.Text(short)))
	if r.Sessions > 0 {
		summary = append(summary, fmt.Sprintf("%s of agents, up to %s live at a time (-num-users)",
			units.Plural(r.Sessions, "session"), units.Count.Text(int64(r.Live))))
	}
	if r.Unordered > 0 {
		summary = append(summary, fmt.Sprintf("%s earlier than a row before them, at whose time they are "+
			"written", units.Plural(r.Unordered, "row")))
	}
	summary = append(summary, r.Notes...)
	for _, bad := range r.First {
		summary = append(summary, bad.Error())
	}
	if more := r.Malformed + r.Unordered - int64(len(r.First)); more > 0 {
		summary = append(summary, fmt.Sprintf("and %s more", units.Count.Text(more)))
	}
	// A reader that assumes 512 tokens per block finds invalid rows, or computes a cache size that is
	// several times too large.
	var other []string
	for size := range sizes {
		if size != 512 {
			other = append(other, fmt.Sprint(size))
		}
	}
	if len(other) > 0 {
		summary = append(summary, fmt.Sprintf("blocks have %s tokens, as block_size in each row says: "+
			"other readers have to support that, or join them with -block-tokens 512",
			strings.Join(other, " or ")))
	}
	return summary, nil
}
