package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Variable is the environment's that makes a process an agent.
const Variable = "KVBENCH_AGENT"

// Orders are what an agent is to do.
type Orders struct {
	Rank       int    `json:"rank"`
	Ranks      int    `json:"ranks"`
	LocalRanks int    `json:"local_ranks"`
	Job        string `json:"job"`
	Base       string `json:"base"`  // the directory in which the command was typed
	Stamp      string `json:"stamp"` // of the default results directory
}

// socket is the descriptor of a child's end: the first behind the standard ones.
const socket = 3

// Take is the orders of this process and the connection over which more come; nil where it is no
// agent.
func Take() (*Orders, net.Conn, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return nil, nil, nil
	}
	if err := os.Unsetenv(Variable); err != nil {
		return nil, nil, err
	}
	if text == standardIO || text == standardIO+"+remove" {
		return takeRemote(text != standardIO)
	}
	o := &Orders{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, nil, fmt.Errorf("%s: must be what a coordinator says, given %q: %w", Variable,
			text, err)
	}
	f := os.NewFile(socket, "coordinator")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is for processes that a coordinator has started: %w",
			Variable, err)
	}
	return o, conn, nil
}

// Process is a child that was started: a rank, or the shell that reaches one.
type Process struct {
	what  string // a rank, as people call it
	cmd   *exec.Cmd
	log   string        // where a shell says why it ended, "" of a rank itself
	heard atomic.Bool   // the rank behind the shell, whose words the log has from then on
	ended chan struct{} // closed when it has
}

// pair is a pair of sockets, of which no other child that is started meanwhile may inherit an end.
func pair() (ours net.Conn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("a pair of sockets: %w", err)
	}
	near, far := os.NewFile(uintptr(ends[0]), ""), os.NewFile(uintptr(ends[1]), "")
	defer near.Close()
	if ours, err = net.FileConn(near); err != nil {
		return nil, nil, errors.Join(err, far.Close())
	}
	return ours, far, nil
}

// Pair is a connection whose both ends are in this process. It is buffered as one between two is.
func Pair() (a, b net.Conn, err error) {
	a, far, err := pair()
	if err != nil {
		return nil, nil, err
	}
	defer far.Close()
	if b, err = net.FileConn(far); err != nil {
		return nil, nil, errors.Join(err, a.Close())
	}
	return a, b, nil
}

// Start starts this binary with the orders and the arguments of this process. What it prints goes
// to log, which stays the caller's.
func Start(o Orders, log *os.File) (*Process, net.Conn, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("starting rank %d: which program this is: %w", o.Rank, err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	conn, theirs, err := pair()
	if err != nil {
		return nil, nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	defer theirs.Close()
	p := &Process{what: fmt.Sprint("rank ", o.Rank), ended: make(chan struct{})}
	p.cmd = exec.Command(binary, os.Args[1:]...)
	p.cmd.Env = append(os.Environ(), Variable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = log, log, []*os.File{theirs}
	if err := p.cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	go p.wait()
	return p, conn, nil
}

func (p *Process) wait() {
	_ = p.cmd.Wait() // its state says more
	close(p.ended)
}

// Name is how messages name it.
func (p *Process) Name() string {
	if p.log != "" { // whose process here is but the way to it
		return p.what
	}
	return fmt.Sprintf("%s (pid %d)", p.what, p.cmd.Process.Pid)
}

// Ended says how it ended, such as "signal: killed", if it does so within that time.
func (p *Process) Ended(within time.Duration) (how string, ended bool) {
	select {
	case <-p.ended:
		how = cmp.Or(p.cmd.ProcessState.String(), "exit status 0")
		if p.log != "" {
			// Of a rank that was lost later the log has what it has printed, which is no reason;
			// whoever wants to know more reads all of it.
			said := ", see " + filepath.Base(p.log)
			if !p.heard.Load() {
				said = lastWords(p.log)
			}
			how = fmt.Sprintf("%s: %s%s", filepath.Base(p.cmd.Path), how, said)
		}
		return how, true
	case <-time.After(within):
		return "", false
	}
}

// Stopped says that it does not go on by itself, where the system tells that.
func (p *Process) Stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return false
	}
	// Of pid, name and state the name may have anything in it, and stands in brackets: proc(5).
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't')
}

// Said is what the shell that reaches a rank has said last, "" where it is silent, or the rank
// behind it was heard: then the log is the rank's.
func (p *Process) Said() string {
	if p.log == "" || p.heard.Load() {
		return ""
	}
	if said := lastWords(p.log); said != "" {
		return p.what + said
	}
	return ""
}

// lastWords are the last lines that a shell has left in its log: they say more than its exit code.
func lastWords(path string) (said string) {
	const lines, most = 3, 4 << 10
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		_, _ = f.Seek(max(0, info.Size()-most), io.SeekStart)
	}
	text, _ := io.ReadAll(io.LimitReader(f, most))
	list := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range list[max(0, len(list)-lines):] {
		said += "; " + strings.TrimSpace(line)
	}
	return said
}

// Kill ends it, also when it is stopped.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
