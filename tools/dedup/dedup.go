package dedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"kvbench/tools/command"
)

const name = "dedup"

// Command is kvreport dedup.
var Command = command.Command{
	Name:  name,
	Args:  "PATH… [-json] [-max-blocks N]",
	Short: "duplicate 4 KiB blocks and zstd ratio of existing files",
	Long: `
Reads all files at and below the paths once and tells how far a storage that deduplicates or compresses could shrink them:
the share of 4 KiB blocks that equal an earlier one, and the size after zstd level 1 as a share of the original (1.00: it
does not shrink). The suite's own entries have 0 duplicates and a ratio of 1.00; look at the files of another benchmark, or
at real KV entries, before comparing numbers of a storage that does either.

Memory is bounded. Up to -max-blocks distinct blocks (4194304, that is 16 GiB of unequal data, in about 150 MB) the count is
exact. Beyond that only blocks whose hash falls into a share of all values are kept, each still counted wherever it occurs,
and the result is an estimate with its 95 % interval. Compression is done in parts of 4 MiB. Blocks lie at multiples of
4 KiB from each file's start, and the last one is padded with zeros, as on the device. Symbolic links below a path are not
followed; a file with several names counts once.

Exit codes: 0 done, 2 something could not be read (the rest is reported).`,
	Example: `
go test ./benchmarks -run '^$' -bench PrefillOnly -cache-dir /mnt/kv -keep-files
go tool kvreport dedup /mnt/kv
go tool kvreport dedup -json /mnt/lmcache | jq .duplicate_share`,
	Run: run,
}

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags(name)
	asJSON := fs.Bool("json", false, "")
	kept := fs.Int("max-blocks", defaultKept, "")
	paths, err := command.Parse(fs, args)
	switch {
	case err != nil:
	case len(paths) == 0:
		err = errors.New("no path; name files or directories, for example: kvreport dedup /mnt/kv")
	case *kept < 1024:
		err = fmt.Errorf("-max-blocks: must be at least 1024, given %d", *kept)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	r, err := Scan(paths, *kept)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(stderr, "kvreport dedup: %s\n", p)
	}
	if r.Bytes == 0 {
		if len(r.Problems) == 0 {
			return command.Fail(stderr, name, errors.New("no data: the files are empty or there are none"))
		}
		return command.Usage
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = r.writeText(stdout)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	if len(r.Problems) > 0 {
		return command.Usage
	}
	return command.Done
}

func (r Report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "files             %d, %s in %d blocks of 4 KiB, %d of them all zero\n", r.Files, size(float64(r.Bytes)), r.Blocks, r.ZeroBlocks)
	if r.SampledOneIn == 1 {
		fmt.Fprintf(w, "duplicate blocks  %.0f (%.2f %%)\n", r.DuplicateBlocks, 100*r.DuplicateShare)
	} else {
		fmt.Fprintf(w, "duplicate blocks  about %.0f (%.2f ± %.2f %%, estimated from one distinct block in %d)\n", r.DuplicateBlocks, 100*r.DuplicateShare,
			100*r.PlusMinusShare, r.SampledOneIn)
	}
	fmt.Fprintf(w, "deduplicated      %s\n", size(float64(r.Bytes)*(1-r.DuplicateShare)))
	_, err := fmt.Fprintf(w, "zstd -1           %s, ratio %.2f\n", size(float64(r.ZstdBytes)), r.ZstdRatio)
	return err
}

func size(n float64) string {
	for _, u := range []struct {
		name  string
		bytes float64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.2f %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", n)
}
