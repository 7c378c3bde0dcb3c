package dedup

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes it for machines.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes it for people.
func (r Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "files             %d, %s in %d blocks of 4 KiB, %d of them all zero\n", r.Files,
		size(float64(r.Bytes)), r.Blocks, r.ZeroBlocks)
	// Exact as long as every distinct block was kept.
	if r.SampledOneIn == 1 {
		fmt.Fprintf(w, "duplicate blocks  %.0f (%.2f %%)\n", r.DuplicateBlocks,
			100*r.DuplicateShare)
	} else {
		fmt.Fprintf(w, "duplicate blocks  about %.0f (%.2f ± %.2f %%, estimated from one "+
			"distinct block in %d)\n", r.DuplicateBlocks, 100*r.DuplicateShare,
			100*r.PlusMinusShare, r.SampledOneIn)
	}
	fmt.Fprintf(w, "deduplicated      %s\n", size(float64(r.Bytes)*(1-r.DuplicateShare)))
	_, err := fmt.Fprintf(w, "zstd -1           %s, ratio %.2f\n", size(float64(r.ZstdBytes)),
		r.ZstdRatio)
	return err
}

// size is for people.
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
