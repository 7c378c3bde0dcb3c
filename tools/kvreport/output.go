package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"kvbench/tools/load"
)

// spare returns an error if the output would replace an input (also through a link or a pattern) or any
// benchmark result: if the user forgets the value of -o, the flag takes an input. Other files may be
// replaced.
func (c *Call) spare(path string) error {
	out, err := os.Stat(path)
	if err != nil || !out.Mode().IsRegular() || len(c.inputs) == 0 {
		return nil
	}
	for _, in := range c.inputs {
		names, _ := filepath.Glob(in) // in may be a pattern that the shell did not expand
		for _, name := range append(names, in) {
			if info, err := os.Stat(name); err == nil && os.SameFile(info, out) {
				return fmt.Errorf("-o %s is one of the inputs; give another name", path)
			}
		}
	}
	// A directory or a text names result files that are not in inputs.
	data, _ := os.ReadFile(path) // writing reports an error
	if _, err := load.Parse(path, data); err == nil {
		return fmt.Errorf("-o %s holds a benchmark result, which would be lost; give another name",
			path)
	}
	return nil
}

// writeFile writes to a temporary file in the same directory, syncs it and renames it, so that path has
// the whole output or is unchanged.
func writeFile(path string, write func(io.Writer) error) error {
	switch info, err := os.Stat(path); {
	case err != nil: // a new file, or an error that the write reports
	case info.IsDir():
		return fmt.Errorf("write %s: it is a directory; name a file", path)
	case !info.Mode().IsRegular(): // open a device or a pipe, do not replace it
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return errors.Join(write(f), f.Close())
	}
	// In the same directory, because rename does not cross filesystems.
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o644))
	// Replace the temporary file's name in the error.
	if opened, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("directory %s: %w", filepath.Dir(path), opened.Err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Cleanup()
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil { // most often an input error
		return err
	}
	err = w.Flush()
	if err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
