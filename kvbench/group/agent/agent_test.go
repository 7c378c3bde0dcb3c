package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seen is what an agent of these tests says of itself.
type seen struct {
	Orders  Orders
	Args    []string
	Env     []string
	Command string // as everybody on its host sees it
	There   bool   // its program has a file
}

// TestMain makes this binary an agent where it was started as one.
func TestMain(m *testing.M) {
	orders, conn, err := Take()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	if orders == nil {
		os.Exit(m.Run())
	}
	s := seen{Orders: *orders, Args: os.Args[1:], Env: os.Environ()}
	text, _ := os.ReadFile("/proc/self/cmdline")
	s.Command = string(text)
	path, _ := os.Readlink(program)
	_, err = os.Stat(path)
	s.There = err == nil
	fmt.Println("printed") // which is not said
	_ = json.NewEncoder(conn).Encode(s)
	_, _ = io.Copy(io.Discard, conn) // until the coordinator ends
}

// answer is what the process at the other end says of itself.
func answer(t *testing.T, conn net.Conn) (s seen) {
	t.Helper()
	require.NoError(t, json.NewDecoder(conn).Decode(&s))
	return s
}

// TestStart: a child knows what it is to do, and ends with its coordinator.
func TestStart(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer log.Close()
	o := Orders{Rank: 3, Ranks: 4, LocalRanks: 4, Job: "j", Base: "/b", Stamp: "s"}
	p, conn, err := Start(o, log)
	require.NoError(t, err)
	s := answer(t, conn)
	assert.Equal(t, []any{o, os.Args[1:]}, []any{s.Orders, s.Args})
	assert.NotContains(t, strings.Join(s.Env, "\n"), Variable)
	require.NoError(t, conn.Close())
	<-p.ended
	assert.Regexp(t, `^rank 3 \(pid \d+\)$`, p.Name())
	how, _ := p.Ended(time.Minute)
	assert.Equal(t, "exit status 0", how)
}

// shell is one that reaches this host: it runs the command that follows the name of a host.
func shell(t *testing.T, binary string) (s Shell, log *os.File, temp string) {
	t.Helper()
	temp = t.TempDir()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	return Shell{[]string{"env", "-i", "PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp, "sh", "-c",
		`eval "$1"`}, binary}, log, temp
}

// TestDial: a program is copied to another host, or is there, and gets arguments and the variables
// of a run over its standard input alone.
func TestDial(t *testing.T) {
	const secret = "Dz7secret"
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("KVBENCH_SEED", "a b\n'c'")
	t.Setenv("ELSE_WHERE", "stays here")
	here, err := os.Executable()
	require.NoError(t, err)
	odd := filepath.Join(t.TempDir(), "it's one")
	require.NoError(t, os.Symlink(here, odd))
	for _, binary := range []string{"", odd} {
		s, log, temp := shell(t, binary)
		o := Orders{Rank: 1, Ranks: 2, LocalRanks: 1, Job: "j", Base: "/b", Stamp: "s"}
		p, conn, err := s.Dial("far", o, log)
		require.NoError(t, err)
		got := answer(t, conn)
		assert.Equal(t, []any{o, os.Args[1:], binary != ""},
			[]any{got.Orders, got.Args, got.There})
		assert.Contains(t, got.Env, "AWS_SECRET_ACCESS_KEY="+secret)
		assert.Contains(t, got.Env, "KVBENCH_SEED=a b\n'c'")
		assert.NotContains(t, strings.Join(got.Env, "\n"), "ELSE_WHERE")
		assert.NotContains(t, strings.Join(p.cmd.Args, " ")+got.Command, secret)
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		assert.Empty(t, left, "the copy is removed while it runs")
		require.NoError(t, conn.Close())
		<-p.ended
		how, _ := p.Ended(time.Minute)
		assert.Equal(t, "env: exit status 0, see log", how, "its words are the rank's")
		text, err := os.ReadFile(log.Name())
		require.NoError(t, err)
		assert.Equal(t, "printed\n", string(text))
	}
}

// greedy is a head -c that reads more than it is asked for, as BusyBox's does.
const greedy = `#!/usr/bin/perl
binmode STDIN; binmode STDOUT;
for (my $n = $ARGV[1]; $n > 0; $n -= length $b) {
	read(STDIN, $b, $n < 65536 ? $n : 65536) or exit 1;
	print $b;
}
`

// TestDialOfAHostThatReadsAhead: what the program is to do is not lost to a command before it.
func TestDialOfAHostThatReadsAhead(t *testing.T) {
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skipf("not run: %v", err)
	}
	head := filepath.Join(t.TempDir(), "head")
	require.NoError(t, os.WriteFile(head, []byte(greedy), 0o755))
	s, log, _ := shell(t, "")
	s.Command[2] = "PATH=" + filepath.Dir(head) + ":" + os.Getenv("PATH")
	o := Orders{Rank: 1, Ranks: 2, LocalRanks: 1, Job: "j", Base: "/b", Stamp: "s"}
	p, conn, err := s.Dial("far", o, log)
	require.NoError(t, err)
	assert.Equal(t, o, answer(t, conn).Orders)
	require.NoError(t, conn.Close())
	<-p.ended
}

// TestDialOfNoUse: what keeps a program from running on a host is said in the words of that host.
func TestDialOfNoUse(t *testing.T) {
	uname := filepath.Join(t.TempDir(), "uname")
	require.NoError(t, os.WriteFile(uname, []byte("#!/bin/sh\necho Plan9\n"), 0o755))
	for _, c := range []struct {
		binary, path, want string
	}{
		{"/nowhere/kvbench.test", os.Getenv("PATH"), "No such file or directory"},
		{"", filepath.Dir(uname) + ":" + os.Getenv("PATH"), "this host is Plan9 Plan9, the " +
			"program is for Linux .*: make dist builds others, -remote-binary names one"},
	} {
		s, log, temp := shell(t, c.binary)
		s.Command[2] = "PATH=" + c.path
		p, conn, err := s.Dial("far", Orders{Rank: 7}, log)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		<-p.ended
		how, ended := p.Ended(time.Minute)
		require.True(t, ended)
		assert.Regexp(t, `^env: exit status \d+; .*`+c.want, how)
		assert.Equal(t, "rank 7 on far", p.Name())
		left, err := os.ReadDir(temp)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}

// FuzzSetup: whatever comes first, nothing but variables of this suite and the orders comes of it.
func FuzzSetup(f *testing.F) {
	f.Add([]byte(`{"orders":{"rank":1},"args":["-x"],"env":["AWS_A=1","PATH=/","KVBENCH_AGENT=x"]}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := readSetup(bytes.NewReader(append(line, '\n')))
		if err != nil {
			return
		}
		for _, v := range s.Env {
			name, _, is := strings.Cut(v, "=")
			if !is || name == Variable || !strings.HasPrefix(name, "AWS_") &&
				!strings.HasPrefix(name, "S3_") && !strings.HasPrefix(name, "KVBENCH_") {
				t.Fatalf("%q", v)
			}
		}
	})
}

// A connection that ends while the program is copied leaves nothing of it: the shell on the other
// side reads a part, and dies of telling that it has it, as nobody listens.
func TestACopyThatIsCutLeavesNothing(t *testing.T) {
	kernel, err := exec.Command("uname", "-m").Output()
	require.NoError(t, err)
	script := fmt.Sprintf(copying, 1<<20, strings.TrimSpace(string(kernel)))
	dir := t.TempDir()
	ours, theirs, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, ours.Close())
	defer theirs.Close()
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stdin, cmd.Stdout = strings.NewReader("a part of it"), theirs
	require.Error(t, cmd.Run())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}
