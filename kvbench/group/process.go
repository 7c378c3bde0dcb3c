package group

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Variable is the name of the environment variable through which the coordinator passes a Meeting
// (as JSON) to a rank that it starts. Only processes of the same user can read its value.
const Variable = "KVBENCH_AGENT"

// Meeting is what a rank needs to connect to rank 0 of its run.
type Meeting struct {
	Address  string `json:"address"`  // HOST:PORT of rank 0
	Job      string `json:"job"`      // identifies the run
	Launcher string `json:"launcher"` // that starts the ranks
	Rank     int    `json:"rank"`     // of this process
	Ranks    int    `json:"ranks"`
	// Started is true if rank 0 started this process and listens. Then Base is the working
	// directory of the user's command, and Stamp is the timestamp in the name of the default
	// results directory.
	Started bool   `json:"started"`
	Base    string `json:"base"`
	Stamp   string `json:"stamp"`
}

// TakeMeeting returns the Meeting from the environment and removes the variable. It returns nil if
// no coordinator started this process.
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
	ended     chan struct{} // closed when the process ends
	how       string        // how it ended, such as "signal: killed"
}

// StartRank starts this binary with the arguments of this process as rank m.Rank. Its stdout and
// stderr go to log. The caller closes log.
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
		_ = cmd.Wait() // ProcessState says more
		p.how = cmp.Or(cmd.ProcessState.String(), "exit status 0")
		close(p.ended)
	}()
	return p, nil
}

// Ended waits for the end of the process, at most within. It returns how the process ended, such as
// "exit status 1".
func (p *Process) Ended(within time.Duration) (how string, ended bool) {
	select {
	case <-p.ended:
		return p.how, true
	case <-time.After(within):
		return "", false
	}
}

// Kill sends SIGKILL, which also ends a stopped process.
func (p *Process) Kill() {
	if p.process != nil {
		_ = p.process.Kill()
	}
}
