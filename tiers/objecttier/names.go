package objecttier

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// Format is a format of keys. The format can change the speed: some stores place objects by key, and
// some have limits per prefix.
type Format string

// The formats. An engine's key ends in a hash of tokens. Here it ends in a SHA-256 of key and
// generation with as many digits.
const (
	Own     Format = "own"     // as the file tier: <2 hex>/<30 hex>-<16 hex of the generation>
	LMCache Format = "lmcache" // <model>@<kv rank>@0@<64 hex>
	VLLM    Format = "vllm"    // <model>_<12 hex>_r0/<3 hex>/<2 hex>_g0/<64 hex>.bin
	Files   Format = "files"   // the names of Config.Folder
)

// Names makes the keys of a run's objects below its prefix.
type Names struct {
	Format Format `json:"keys"`
	Model  string `json:"model,omitempty"` // in the engines' formats
	Rank   int    `json:"kv_rank"`
	Ranks  int    `json:"kv_ranks"` // tensor parallelism
}

// Name returns the key of an object below the run's prefix.
func (n Names) Name(o tiers.Object) string {
	if n.Format == Own {
		fan, name := workdir.Name(o)
		return fan + "/" + name
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d", o.Key, o.Gen)
	sum := hex.EncodeToString(h.Sum(nil))
	if n.Format == LMCache {
		// The four bytes are world size, rank, local world size and local rank.
		return fmt.Sprintf("%s@%02x%02x%02x%02x@0@%s", n.Model, n.Ranks, n.Rank, n.Ranks, n.Rank,
			sum)
	}
	// vLLM hashes its whole configuration. The suite only has the model.
	model := sha256.Sum256([]byte(n.Model))
	return fmt.Sprintf("%s_%s_r0/%s/%s_g0/%s.bin", strings.ReplaceAll(n.Model, "/", "_"),
		hex.EncodeToString(model[:])[:12], sum[:3], sum[3:5], sum)
}
