package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
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

// Process is a child that was started.
type Process struct {
	rank  int
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
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
	// No other child that is started meanwhile may inherit an end.
	syscall.ForkLock.RLock()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("starting rank %d: a pair of sockets: %w", o.Rank, err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), ""), os.NewFile(uintptr(ends[1]), "")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	p := &Process{rank: o.Rank, ended: make(chan struct{})}
	p.cmd = exec.Command(binary, os.Args[1:]...)
	p.cmd.Env = append(os.Environ(), Variable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = log, log, []*os.File{theirs}
	if err := p.cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	go func() {
		_ = p.cmd.Wait() // its state says more
		close(p.ended)
	}()
	return p, conn, nil
}

// Name is how messages name it.
func (p *Process) Name() string {
	return fmt.Sprintf("rank %d (pid %d)", p.rank, p.cmd.Process.Pid)
}

// Ended says how it ended, such as "signal: killed", if it does so within that time.
func (p *Process) Ended(within time.Duration) (how string, ended bool) {
	select {
	case <-p.ended:
		return cmp.Or(p.cmd.ProcessState.String(), "exit status 0"), true
	case <-time.After(within):
		return "", false
	}
}

// Kill ends it, also when it is stopped.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }
