package workdir

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// treeName is the directory below which files lie that are called as an engine calls them.
const treeName = "engine"

// treeFile matches the paths of files below treeName, as each layout names its own: nothing else
// there is deleted.
var treeFile = func() *regexp.Regexp {
	var names []string
	for _, l := range tiers.EngineLayouts {
		names = append(names, l.FilePattern)
	}
	return regexp.MustCompile(`^(?:` + strings.Join(names, "|") + `)$`)
}()

// Tree returns the descriptor of the directory for files that are called as an engine calls them,
// and its path. It is made when it is first needed, and stays the Dir's. Directories in it are made
// with TreeMode, which marks them as the suite's; names that a Dir does not know are never removed,
// see KnowsTree.
func (d *Dir) Tree() (fd int, path string, err error) {
	fd, err = d.Fan(treeName)
	return fd, d.path + "/" + treeName, err
}

// TreeMode is the mode of directories in the tree.
const TreeMode = ownedMode

// KnowsTree says whether a file of that path in the tree is removed with the run.
func KnowsTree(path string) bool { return treeFile.MatchString(path) }

// sweepTree calls do with each file of the suite in a directory of the tree, and after all of them
// removes the directories below that are empty, if it is to.
func sweepTree(dir int, below string, remove bool, do func(dir int, name string, size int64) error,
) error {
	names, err := readNames(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", below, err)
	}
	for _, name := range names {
		path := name
		if below != "" {
			path = below + "/" + name
		}
		var s unix.Stat_t
		if unix.Fstatat(dir, name, &s, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		switch kind := s.Mode & unix.S_IFMT; {
		case kind == unix.S_IFREG && treeFile.MatchString(path):
			err = do(dir, name, s.Size)
		case kind == unix.S_IFDIR:
			err = sweepBelow(dir, name, path, remove, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepBelow is sweepTree for a directory in it.
func sweepBelow(dir int, name, path string, remove bool,
	do func(dir int, name string, size int64) error) error {
	fd, err := OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	err = sweepTree(fd, path, remove, do)
	if sticky, _ := stickyDir(fd, false); err == nil && sticky && remove {
		_ = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // fails where somebody's files are in it
	}
	unix.Close(fd)
	return err
}

// engineTree calls do with each of the suite's files below treeName, if there are any.
func engineTree(dir int, path string, remove bool,
	do func(dir int, name string, size int64) error) error {
	fd, err := OpenAt(dir, treeName, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fail("open", path+"/"+treeName, err)
	}
	defer unix.Close(fd)
	sticky, err := stickyDir(fd, false)
	if err == nil && sticky { // else a user's
		err = sweepTree(fd, "", remove, do)
	}
	if err != nil {
		return fail("in", path+"/"+treeName, err)
	}
	if remove && sticky {
		_ = unix.Unlinkat(dir, treeName, unix.AT_REMOVEDIR)
	}
	return nil
}

// stopped is a function that says when a context has ended, and why.
func stopped(ctx context.Context) func() error {
	return func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
}
