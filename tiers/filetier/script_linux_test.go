package filetier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// TestScripts runs the scripts of testdata: operations on objects, and what the layout makes of them. In
// layouts are the suite's own layouts, with the requests to the I/O engine and the sizes of files; in
// calls are engines' layouts, with their system calls. Hashes and numbers in file names are shortened.
// -rewrite updates them.
//
//	tier slots bytes=16384 [buffered]             an own layout, with extents of up to 64 KiB
//	tier vllm-fs bytes=8192 [direct] [layers=4] [pools]   an engine's layout, of objects of that size
//	write a=16384 b=5000                          neighbours
//	read a b                                      neighbours
//	store a b, load a b                           one after the other
//	look-up a b
//	remove a b
//	open a b; close                               a reader that stays
//	create a=100; commit; abort                   a writer that stays
func TestScripts(t *testing.T) {
	tiertest.OneThread(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.Reset()
			if err := s.run(d); err != nil {
				fmt.Fprintln(s, "error:", s.withoutPlace(err.Error()))
			}
			s.disk()
			return s.String()
		})
	})
}

// script is one tier and the text of its requests or calls.
type script struct {
	strings.Builder // of the command
	t               *testing.T
	tier            *filetier.Tier
	imitates        bool
	dir             string
	names           []string // paths of files of own layouts, in the order of their first use
	objects         map[string]tiers.Object
	bytes           int64 // size of objects without one
	gen             uint64
	reader          tiers.Reader
	writer          tiers.Writer
}

func (s *script) run(d *datadriven.TestData) (err error) {
	if d.Cmd == "tier" {
		s.open(d)
		return nil
	}
	ctx := s.t.Context()
	var objs []tiers.Object
	for _, arg := range d.CmdArgs {
		objs = append(objs, s.object(arg))
	}
	together := len(objs)
	switch d.Cmd {
	case "store", "load":
		together = 1
		fallthrough
	case "write", "read":
		for len(objs) > 0 && err == nil {
			var n int
			n, err = s.move(d.Cmd == "store" || d.Cmd == "write", objs[:min(together, len(objs))])
			objs = objs[n:]
		}
	case "look-up":
		n, err := s.tier.Lookup(ctx, objs...)
		fmt.Fprintf(s, "%d of the first are there\n", n)
		return err
	case "remove":
		return s.tier.Remove(ctx, objs...)
	case "open":
		s.reader, err = s.tier.Open(ctx, objs...)
	case "close":
		return s.reader.Close()
	case "create":
		if s.writer, err = s.tier.Create(ctx, objs...); err == nil {
			s.transfer(s.writer, s.writer, objs, true)
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

// object returns a new object for "a=100", else the one of that name.
func (s *script) object(arg datadriven.CmdArg) tiers.Object {
	if len(arg.Vals) > 0 {
		size, err := strconv.ParseInt(arg.Vals[0], 10, 64)
		require.NoError(s.t, err)
		s.gen++
		s.objects[arg.Key] = tiers.Object{Key: arg.Key, Gen: s.gen, Size: size}
	}
	if o, known := s.objects[arg.Key]; known {
		return o
	}
	return tiers.Object{Key: arg.Key, Gen: 1, Size: s.bytes}
}

// move writes or reads the first of some objects, and those that move with it. It returns their number.
func (s *script) move(write bool, objs []tiers.Object) (n int, err error) {
	if write {
		w, err := s.tier.Create(s.t.Context(), objs...)
		if err != nil {
			return 0, err
		}
		s.transfer(w, w, objs, true)
		return w.Len(), w.Commit(s.t.Context())
	}
	r, err := s.tier.Open(s.t.Context(), objs...)
	if err != nil {
		return 0, err
	}
	s.transfer(r, r, objs, false)
	return r.Len(), r.Close()
}

// transfer makes one request for all of an extent.
func (s *script) transfer(to tiers.Submitter, x tiers.Extent, objs []tiers.Object, write bool) {
	if s.imitates { // and check the content
		require.NoError(s.t, move(s.t, to, objs[0], write))
		return
	}
	last := x.Len() - 1
	_, err := request(s.t, to, 0, x.Start(last)+objs[last].Size)
	require.NoError(s.t, err)
}

// open makes a tier whose requests and calls are recorded.
func (s *script) open(d *datadriven.TestData) {
	engine := tiertest.NewEngine(tiertest.Psync(s.t))
	cfg := filetier.Config{Dir: tiertest.Dir(s.t), Engine: engine, Capacity: 256 << 10,
		Layout:    tiers.Layout{Kind: d.CmdArgs[0].Key},
		Imitation: filetier.Imitation{Model: "org/model", Layers: 2}}
	if cfg.Layout.Kind == "files" {
		cfg.Layout.Kind = tiers.LayoutFiles
	}
	spec, _ := cfg.Layout.Spec()
	*s = script{t: s.t, dir: cfg.Dir.Path(), objects: map[string]tiers.Object{}, bytes: 1,
		imitates: spec.Tokens > 0}
	cfg.Direct = !s.imitates
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "direct", "buffered":
			cfg.Direct = arg.Key == "direct"
		case "pools":
			cfg.SidePools = true
		case "bytes":
			arg.Scan(s.t, 0, &cfg.Layout.Bytes)
		case "places":
			arg.Scan(s.t, 0, &cfg.Layout.Places)
		case "layers":
			arg.Scan(s.t, 0, &cfg.Layers)
		default:
			d.Fatalf(s.t, "unknown argument %s", arg)
		}
	}
	if s.imitates {
		s.dir, s.bytes, cfg.Capacity = s.dir+"/engine", cfg.Layout.Bytes, 64<<10
		cfg.Note = func(call string) { fmt.Fprintln(s, short(call)) }
		engine.See(func(op *ioengine.Op) { fmt.Fprintln(s, moved(op)) })
	}
	s.tier = tiertest.Files(s.t, cfg)
	if !s.imitates {
		engine.See(s.see)
	}
}

// see adds a request of an own layout.
func (s *script) see(op *ioengine.Op) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", op.FD))
	require.NoError(s.t, err)
	fmt.Fprintf(s, "%s %s", op.Kind, s.name(path))
	if op.N > 0 {
		fmt.Fprintf(s, " [%d, %d)", op.Off, op.Off+int64(op.N))
	}
	fmt.Fprintln(s)
}

// moved formats the call of a read or write of an engine.
func moved(op *ioengine.Op) string {
	call := op.Kind.String()
	switch {
	case op.Vec != nil:
		var sizes []string
		for _, p := range op.Vec {
			sizes = append(sizes, strconv.Itoa(len(p)))
		}
		return fmt.Sprintf("p%sv [%s] at %d", call, strings.Join(sizes, " "), op.Off)
	case op.AtPosition:
		return fmt.Sprintf("%s %d", call, op.N)
	}
	return fmt.Sprintf("p%s64 %d at %d", call, op.N, op.Off)
}

var (
	hashes  = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{32}`)
	numbers = regexp.MustCompile(`_[0-9]+\.tmp|tmp\.[0-9]+|[0-9]{15,}|cache-[0-9a-f]{6}`)
	fan     = regexp.MustCompile(`_r0/[0-9a-f]{3}(/[0-9a-f]{2}_g0)?`)
)

// short removes from a call the parts that differ between runs, and hashes of keys.
func short(call string) string {
	call = hashes.ReplaceAllStringFunc(call, func(h string) string {
		return "<" + strconv.Itoa(len(h)) + " hex>"
	})
	call = fan.ReplaceAllStringFunc(call, func(p string) string {
		if strings.HasSuffix(p, "_g0") {
			return "_r0/hhh/hh_g0"
		}
		return "_r0/hhh"
	})
	return numbers.ReplaceAllStringFunc(call, func(n string) string {
		return regexp.MustCompile(`[0-9a-f]{6,}|[0-9]+`).ReplaceAllString(n, "<n>")
	})
}

// name is a short name for a file of an own layout.
func (s *script) name(path string) string {
	i := slices.Index(s.names, path)
	if i < 0 {
		i = len(s.names)
		s.names = append(s.names, path)
	}
	return fmt.Sprint("file", i+1)
}

// disk lists the files after a command, by name and size.
func (s *script) disk() {
	held, waste := s.tier.Footprint()
	fmt.Fprintf(s, "= %d bytes held, %d wasted", held, waste)
	sizes := map[string]int64{}
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.dir, path)
		own, _ := filepath.Match("??/*", rel)
		if err != nil || e.IsDir() || !s.imitates && !own {
			return err
		}
		info, err := e.Info()
		if s.imitates {
			fmt.Fprintf(s, "\n  %s %d", short(rel), info.Size())
		} else {
			s.name(path)
			sizes[path] = info.Size()
		}
		return err
	}))
	for i, f := range s.names {
		if size, ok := sizes[f]; ok {
			fmt.Fprintf(s, "; file%d %d", i+1, size)
		}
	}
	fmt.Fprintln(s)
}

// withoutPlace makes an error message the same everywhere.
func (s *script) withoutPlace(text string) string {
	for i, f := range s.names {
		text = strings.ReplaceAll(text, f, fmt.Sprint("file", i+1))
	}
	return strings.ReplaceAll(text, s.dir, "DIR")
}
