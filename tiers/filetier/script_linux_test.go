package filetier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/tiertest"
)

// TestLayouts runs the scripts of testdata/layouts: operations on objects, the I/O engine's requests for
// them, and the files on the disk. -rewrite updates them.
//
//	tier slots bytes=16384 [buffered]   a layout, with extents of up to 64 KiB
//	write a=16384 b=5000                neighbours
//	read a b                            neighbours
//	remove a b
//	open a b; close                     a reader that stays
//	create a=100; commit; abort         a writer that stays
func TestLayouts(t *testing.T) {
	datadriven.Walk(t, "testdata/layouts", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.Reset()
			if err := s.run(d); err != nil {
				fmt.Fprintln(s, "error:", s.withoutPlace(err.Error()))
			}
			return s.String() + s.disk()
		})
	})
}

// script is one tier and the text of its requests.
type script struct {
	strings.Builder // of the command
	t               *testing.T
	tier            *filetier.Tier
	dir             string
	names           []string // paths of files, in the order of their first use
	objects         map[string]tiers.Object
	gen             uint64
	reader          tiers.Reader
	writer          tiers.Writer
}

func (s *script) run(d *datadriven.TestData) (err error) {
	switch ctx := s.t.Context(); d.Cmd {
	case "tier":
		s.open(d)
	case "write":
		for objs := s.make(d); len(objs) > 0; {
			w, err := s.tier.Create(ctx, objs...)
			if err != nil {
				return err
			}
			s.move(w, w, objs)
			if err := w.Commit(ctx); err != nil {
				return err
			}
			objs = objs[w.Len():]
		}
	case "read":
		for objs := s.known(d); len(objs) > 0; {
			r, err := s.tier.Open(ctx, objs...)
			if err != nil {
				return err
			}
			s.move(r, r, objs)
			if err := r.Close(); err != nil {
				return err
			}
			objs = objs[r.Len():]
		}
	case "remove":
		return s.tier.Remove(ctx, s.known(d)...)
	case "open":
		s.reader, err = s.tier.Open(ctx, s.known(d)...)
	case "close":
		return s.reader.Close()
	case "create":
		objs := s.make(d)
		if s.writer, err = s.tier.Create(ctx, objs...); err == nil {
			s.move(s.writer, s.writer, objs)
		}
	case "commit":
		return s.writer.Commit(ctx)
	case "abort":
		return s.writer.Abort()
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
	return err
}

// open makes a tier whose requests are recorded.
func (s *script) open(d *datadriven.TestData) {
	dir := tiertest.Dir(s.t)
	engine := tiertest.NewEngine(tiertest.Psync(s.t))
	cfg := filetier.Config{Dir: dir, Engine: engine, Direct: true, Capacity: 256 << 10}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "buffered":
			cfg.Direct = false
		case "bytes":
			arg.Scan(s.t, 0, &cfg.Layout.Bytes)
		case "places":
			arg.Scan(s.t, 0, &cfg.Layout.Places)
		default:
			if cfg.Layout.Kind = arg.Key; arg.Key == "files" {
				cfg.Layout.Kind = tiers.LayoutFiles
			}
		}
	}
	*s = script{t: s.t, dir: dir.Path(), objects: map[string]tiers.Object{}}
	s.tier = tiertest.Files(s.t, cfg)
	engine.See(func(op *ioengine.Op) {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", op.FD))
		require.NoError(s.t, err)
		fmt.Fprintf(s, "%s %s", op.Kind, s.name(path))
		if op.N > 0 {
			fmt.Fprintf(s, " [%d, %d)", op.Off, op.Off+int64(op.N))
		}
		fmt.Fprintln(s)
	})
}

// make returns the objects of a command like "write a=100 b=200".
func (s *script) make(d *datadriven.TestData) (objs []tiers.Object) {
	for _, arg := range d.CmdArgs {
		size, err := strconv.ParseInt(arg.Vals[0], 10, 64)
		require.NoError(s.t, err)
		s.gen++
		s.objects[arg.Key] = tiers.Object{Key: arg.Key, Gen: s.gen, Size: size}
		objs = append(objs, s.objects[arg.Key])
	}
	return objs
}

// known returns objects by name, those made before and others.
func (s *script) known(d *datadriven.TestData) (objs []tiers.Object) {
	for _, arg := range d.CmdArgs {
		o, ok := s.objects[arg.Key]
		if !ok {
			o = tiers.Object{Key: arg.Key, Size: 1}
		}
		objs = append(objs, o)
	}
	return objs
}

// move makes one request for all of an extent.
func (s *script) move(to tiers.Submitter, x tiers.Extent, objs []tiers.Object) {
	last := x.Len() - 1
	_, err := request(s.t, to, 0, x.Start(last)+objs[last].Size)
	require.NoError(s.t, err)
}

// name is a short name for a file.
func (s *script) name(path string) string {
	i := slices.Index(s.names, path)
	if i < 0 {
		i = len(s.names)
		s.names = append(s.names, path)
	}
	return fmt.Sprint("file", i+1)
}

// disk lists the files after a command.
func (s *script) disk() string {
	var b strings.Builder
	held, waste := s.tier.Footprint()
	fmt.Fprintf(&b, "= %d bytes held, %d wasted", held, waste)
	files, err := filepath.Glob(s.dir + "/??/*")
	require.NoError(s.t, err)
	sizes := map[string]int64{}
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(s.t, err)
		s.name(f)
		sizes[f] = info.Size()
	}
	for i, f := range s.names {
		if size, ok := sizes[f]; ok {
			fmt.Fprintf(&b, "; file%d %d", i+1, size)
		}
	}
	return b.String() + "\n"
}

// withoutPlace makes an error message the same everywhere.
func (s *script) withoutPlace(text string) string {
	for i, f := range s.names {
		text = strings.ReplaceAll(text, f, fmt.Sprint("file", i+1))
	}
	return strings.ReplaceAll(text, s.dir, "DIR")
}
