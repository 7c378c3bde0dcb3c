package filetier_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// TestCalls runs the scripts of testdata/calls: operations on objects, and the system calls that a
// layout makes for them. Hashes and numbers in file names are shortened. -rewrite updates them.
//
//	tier vllm-fs bytes=8192 [direct] [layers=4]   objects of that size
//	store a b                                     one after the other
//	load a b
//	look-up a b
//	remove a b
//	open a; close                                 a reader that stays
//	create a; commit; abort                       a writer that stays
func TestCalls(t *testing.T) {
	datadriven.Walk(t, "testdata/calls", func(t *testing.T, path string) {
		s := &callScript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			s.Reset()
			if err := s.run(d); err != nil {
				fmt.Fprintln(s, "error:", strings.ReplaceAll(err.Error(), s.dir, "DIR"))
			}
			held, waste := s.tier.Footprint()
			fmt.Fprintf(s, "= %d bytes held, %d wasted%s\n", held, waste, s.disk())
			return s.String()
		})
	})
}

// script is one tier and the text of the calls made so far.
type callScript struct {
	strings.Builder // of the command
	t               *testing.T
	tier            *filetier.Tier
	dir             string
	bytes           int64
	reader          tiers.Reader
	writer          tiers.Writer
}

func (s *callScript) run(d *datadriven.TestData) (err error) {
	ctx := s.t.Context()
	each := func(do func(o tiers.Object) error) error {
		for _, arg := range d.CmdArgs {
			if err := do(s.object(arg.Key)); err != nil {
				return err
			}
		}
		return nil
	}
	switch d.Cmd {
	case "tier":
		s.open(d)
	case "store":
		return each(s.store)
	case "load":
		return each(s.load)
	case "look-up":
		var objs []tiers.Object
		_ = each(func(o tiers.Object) error { objs = append(objs, o); return nil })
		n, err := s.tier.Lookup(ctx, objs...)
		fmt.Fprintf(s, "%d of the first are there\n", n)
		return err
	case "remove":
		return each(func(o tiers.Object) error { return s.tier.Remove(ctx, o) })
	case "open":
		s.reader, err = s.tier.Open(ctx, s.object(d.CmdArgs[0].Key))
	case "close":
		return s.reader.Close()
	case "create":
		o := s.object(d.CmdArgs[0].Key)
		if s.writer, err = s.tier.Create(ctx, o); err == nil {
			err = s.move(s.writer, o, true)
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

func (s *callScript) object(key string) tiers.Object {
	return tiers.Object{Key: key, Gen: 1, Size: s.bytes}
}

// open makes a tier whose calls are recorded.
func (s *callScript) open(d *datadriven.TestData) {
	*s = callScript{t: s.t}
	engine := tiertest.NewEngine(tiertest.Psync(s.t))
	cfg := filetier.Config{Dir: tiertest.Dir(s.t), Engine: engine, Capacity: 64 << 10,
		Layout:    tiers.Layout{Kind: d.CmdArgs[0].Key},
		Imitation: filetier.Imitation{Model: "org/model", Layers: 2}}
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "direct":
			cfg.Direct = true
		case "bytes":
			arg.Scan(s.t, 0, &cfg.Layout.Bytes)
		case "layers":
			arg.Scan(s.t, 0, &cfg.Layers)
		default:
			d.Fatalf(s.t, "unknown argument %s", arg)
		}
	}
	s.dir, s.bytes = cfg.Dir.Path()+"/engine", cfg.Layout.Bytes
	cfg.Note = func(call string) { fmt.Fprintln(s, short(call)) }
	engine.See(func(op *ioengine.Op) { fmt.Fprintln(s, moved(op)) })
	s.tier = tiertest.Files(s.t, cfg)
}

// moved formats the call of a read or write.
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

// store writes an object with one request.
func (s *callScript) store(o tiers.Object) error { return store(s.t, s.tier, o) }

// load reads an object and compares it.
func (s *callScript) load(o tiers.Object) error { return load(s.t, s.tier, o) }

func (s *callScript) move(to tiers.Submitter, o tiers.Object, write bool) error {
	return move(s.t, to, o, write)
}

// disk lists the files after a command, by name and size.
func (s *callScript) disk() string {
	var text strings.Builder
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			info, err := e.Info()
			require.NoError(s.t, err)
			rel, _ := filepath.Rel(s.dir, path)
			fmt.Fprintf(&text, "\n  %s %d", short(rel), info.Size())
		}
		return err
	}))
	return text.String()
}
