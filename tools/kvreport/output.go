package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// writeFile makes the file at path from what write writes: by way of a temporary file in the same
// directory, synced and renamed, so that path holds the whole output or is untouched, whatever
// happens. A report that is replaced while somebody reads it stays readable to him.
func writeFile(path string, write func(io.Writer) error) error {
	switch info, err := os.Stat(path); {
	case err != nil: // a new one, or one that the attempt will tell of
	case info.IsDir():
		return fmt.Errorf("write %s: it is a directory; name a file", path)
	case !info.Mode().IsRegular(): // a device or a pipe is written to, and never replaced
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return errors.Join(write(f), f.Close())
	}
	// Beside its place, because a rename does not cross filesystems.
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithStaticPermissions(0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Cleanup()
	w := bufio.NewWriterSize(f, 1<<16)
	if err := write(w); err != nil { // what it says is most often about its input
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
