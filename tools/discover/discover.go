package discover

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// Describe looks at this machine and at a directory of it.
func Describe(dir string) (Hardware, error) {
	m := thisMachine()
	dir, err := m.absolute(dir)
	if err != nil {
		return Hardware{}, err
	}
	return m.hardware(dir), nil
}

// WriteJSON writes it for machines.
func (h Hardware) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(h)
}

// ReadFile reads what discover -json wrote on another machine.
func ReadFile(path string) (Hardware, error) {
	var h Hardware
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	// A later minor version only adds keys.
	if h.SchemaVersion == "" || h.SchemaVersion[0] != SchemaVersion[0] {
		return h, fmt.Errorf("%s: schema_version %q, this version reads 1.x as kvreport discover "+
			"-json writes it", path, h.SchemaVersion)
	}
	return h, nil
}
