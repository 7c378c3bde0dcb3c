package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// ErrSchema is wrapped by Read for a file of a schema that this version does not know.
var ErrSchema = errors.New("unsupported result schema")

// WriteJSON writes the result to path by way of a temporary file in the same directory, synced and
// renamed, so that path holds a whole result or is untouched, whatever happens. The directory must
// exist.
func (r *Result) WriteJSON(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode result for %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	if err := renameio.WriteFile(path, append(data, '\n'), 0o644, renameio.WithTempDir(dir),
		renameio.WithStaticPermissions(0o644)); err != nil {
		return fmt.Errorf("write result %s: %w; choose a writable -results-dir", path, err)
	}
	// That makes the rename durable. Filesystems that cannot sync a directory have no such step to
	// offer.
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
	return nil
}

// Read reads a result file of schema 1.x. Unknown keys are ignored; another major version, or none,
// is refused with an error wrapping ErrSchema.
func Read(path string) (*Result, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	r, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read result %s: %w", path, err)
	}
	return r, nil
}

// Parse is Read for what was read already.
func Parse(data []byte) (*Result, error) {
	var head struct {
		SchemaVersion string `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if major, _, _ := strings.Cut(head.SchemaVersion, "."); major != "1" {
		return nil, fmt.Errorf("%w %q, this version reads 1.x", ErrSchema, head.SchemaVersion)
	}
	r := &Result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	return r, nil
}
