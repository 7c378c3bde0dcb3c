package group

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Variable is the environment variable that makes a process a rank of the coordinator that has
// started it: a Meeting. Only processes of the same user can read it.
const Variable = "KVBENCH_AGENT"

// Meeting is how the ranks of a run come together.
type Meeting struct {
	Address  string `json:"address"`  // HOST:PORT of rank 0
	Job      string `json:"job"`      // by which the ranks of one run know each other
	Launcher string `json:"launcher"` // that starts them
	Rank     int    `json:"rank"`     // of this process
	Ranks    int    `json:"ranks"`
	// Started: rank 0 has started this rank, and listens. Base is then the directory in which the
	// command was typed, and Stamp that of the default results directory.
	Started bool   `json:"started"`
	Base    string `json:"base"`
	Stamp   string `json:"stamp"`
}

// TakeMeeting returns the meeting of this process, nil if no coordinator has started it, and removes
// it from the environment.
func TakeMeeting() (*Meeting, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return nil, nil
	}
	if err := os.Unsetenv(Variable); err != nil {
		return nil, err
	}
	m := &Meeting{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("%s: must be what a coordinator sets, given %q: %w", Variable, text,
			err)
	}
	return m, nil
}

// Process is a rank that this process has started.
type Process struct {
	rank, pid int
	process   *os.Process
	ended     chan struct{} // closed at its end
	how       string        // it ended, such as "signal: killed"
}

// StartRank starts this binary as a rank with the arguments of this process. The output goes to log,
// which stays the caller's.
func StartRank(m Meeting, log *os.File) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", m.Rank, err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, os.Args[1:]...)
	cmd.Env = append(os.Environ(), Variable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", m.Rank, err)
	}
	p := &Process{rank: m.Rank, pid: cmd.Process.Pid, process: cmd.Process,
		ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its state has more than the error
		p.how = cmp.Or(cmd.ProcessState.String(), "exit status 0")
		close(p.ended)
	}()
	return p, nil
}

// Ended reports how the process ended, if it does so within a time.
func (p *Process) Ended(within time.Duration) (how string, ended bool) {
	select {
	case <-p.ended:
		return p.how, true
	case <-time.After(within):
		return "", false
	}
}

// Kill ends the process, also when it is stopped.
func (p *Process) Kill() {
	if p.process != nil {
		_ = p.process.Kill()
	}
}
