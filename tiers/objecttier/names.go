package objecttier

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// Format is whose way of naming objects is used: some stores place objects by their names, and
// some have limits per beginning of a name.
type Format string

// The formats. The engines' end in the SHA-256 of key and generation in the place of their hash of
// tokens, which has as many digits.
const (
	Own     Format = "own"     // as the file tier: <2 hex>/<30 hex>-<16 hex of the generation>
	LMCache Format = "lmcache" // <model>@<kv rank>@0@<64 hex>
	VLLM    Format = "vllm"    // <model>_<12 hex>_r0/<3 hex>/<2 hex>_g0/<64 hex>.bin
	Files   Format = "files"   // names that mean something, see Config.Folder
)

// Names is how the objects of a run are called, below its prefix. It is in the marker, so that the
// next run finds exactly those.
type Names struct {
	Format Format `json:"keys"`
	Model  string `json:"model"` // in the engines' formats
	Rank   int    `json:"kv_rank"`
	Ranks  int    `json:"kv_ranks"` // tensor parallelism
}

// Name is that of an object below the run's prefix.
func (n Names) Name(o tiers.Object) string {
	if n.Format == Own {
		fan, name := workdir.Name(o)
		return fan + "/" + name
	}
	// A key of an engine is the hash of all tokens before it, so that it is spread as this one is.
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d", o.Key, o.Gen)
	sum := hex.EncodeToString(h.Sum(nil))
	if n.Format == LMCache {
		return n.head() + sum
	}
	return fmt.Sprintf("%s%s/%s_g0/%s.bin", n.head(), sum[:3], sum[3:5], sum)
}

// head is what stands before the digits in the engines' formats.
func (n Names) head() string {
	if n.Format == LMCache {
		// World size, rank, local world size and local rank, a byte each.
		return fmt.Sprintf("%s@%02x%02x%02x%02x@0@", n.Model, n.Ranks, n.Rank, n.Ranks, n.Rank)
	}
	// The engine hashes its configuration; of that the model is what this suite has.
	sum := sha256.Sum256([]byte(n.Model))
	return fmt.Sprintf("%s_%s_r0/", strings.ReplaceAll(n.Model, "/", "_"),
		hex.EncodeToString(sum[:])[:12])
}

// Exactly these: a single character more or less, or in capitals, is somebody else's.
var (
	ownName   = regexp.MustCompile(`^[0-9a-f]{2}/[0-9a-f]{30}-[0-9a-f]{16}$`)
	proofName = regexp.MustCompile(`^\.kvbench-proof-[0-9a-f]{16}-[0-9]{1,3}$`)
	hash      = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Ours says whether a name below the prefix is one that Name gives, or that of a proof: exactly,
// because what it says yes to is deleted.
func (n Names) Ours(name string) bool {
	if proofName.MatchString(name) {
		return true
	}
	switch n.Format {
	case Own:
		return ownName.MatchString(name)
	case Files: // which its folder alone knows
		return false
	}
	rest, found := strings.CutPrefix(name, n.head())
	if !found {
		return false
	}
	if n.Format == LMCache {
		return hash.MatchString(rest)
	}
	// <3 hex>/<2 hex>_g0/<64 hex>.bin, and the first digits are those of the hash.
	const before = len("abc/de_g0/")
	if len(rest) != before+64+len(".bin") {
		return false
	}
	sum := rest[before : before+64]
	return hash.MatchString(sum) && rest == fmt.Sprintf("%s/%s_g0/%s.bin", sum[:3], sum[3:5], sum)
}

// validate checks what a marker says, or a configuration: a model's name becomes part of a pattern
// by which objects are deleted.
func (n Names) validate() error {
	switch {
	case n.Format != Own && n.Format != LMCache && n.Format != VLLM && n.Format != Files:
		return fmt.Errorf("names of format %q: there are %s, %s, %s and %s", n.Format, Own,
			LMCache, VLLM, Files)
	case n.Format == Own || n.Format == Files:
		return nil
	case n.Model == "" || strings.ContainsFunc(n.Model, func(r rune) bool {
		return r < ' ' || r == '@' || r == 0x7f
	}):
		return fmt.Errorf("names of format %s need a model's name without control characters and "+
			"@, not %q", n.Format, n.Model)
	case n.Ranks < 1 || n.Rank < 0 || n.Rank >= n.Ranks || bits.Len(uint(n.Ranks)) > 8:
		return fmt.Errorf("names of format %s: rank %d of %d does not fit a byte", n.Format, n.Rank,
			n.Ranks)
	}
	return nil
}
