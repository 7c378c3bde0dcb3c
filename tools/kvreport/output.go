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

// spare refuses an output that would replace an input, under any name: it follows links and
// patterns. A forgotten argument must not cost a measurement, because the last input would then be
// taken for the output. Other files, such as an old page, are replaced.
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
	// Directories and texts among the inputs name result files.
	data, _ := os.ReadFile(path) // writing reports the error
	if _, err := load.Parse(path, data); err == nil {
		return fmt.Errorf("-o %s holds a benchmark result, which would be lost; give another name",
			path)
	}
	return nil
}

// writeFile writes a temporary file in the same directory, syncs and renames it, so that path holds
// the whole output or is untouched, whatever happens. A user who reads the replaced report keeps
// reading the old one.
func writeFile(path string, write func(io.Writer) error) error {
	switch info, err := os.Stat(path); {
	case err != nil: // a new file, or an error that the attempt reports
	case info.IsDir():
		return fmt.Errorf("write %s: it is a directory; name a file", path)
	case !info.Mode().IsRegular(): // a device or a pipe is opened, and never replaced
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return errors.Join(write(f), f.Close())
	}
	// In the same directory, because a rename does not cross filesystems.
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o644))
	// The name of the temporary file would be misleading.
	if opened, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("directory %s: %w", filepath.Dir(path), opened.Err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Cleanup()
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil { // most often an error of the input
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
