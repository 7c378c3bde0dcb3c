package coordinate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// Variable is the environment variable that makes a process a rank of the coordinator that has
// started it. Only processes of the same user can read it.
const Variable = "KVBENCH_AGENT"

// Orders are its value: what a started rank has to know.
type Orders struct {
	Rank    int    `json:"rank"`
	Ranks   int    `json:"ranks"`
	Job     string `json:"job"`
	Address string `json:"address"` // HOST:PORT of the coordinator
	Base    string `json:"base"`    // the directory in which the command was typed
	Stamp   string `json:"stamp"`   // of the default results directory
}

// TakeOrders returns the orders of this process, nil if no coordinator has started it, and removes
// them from the environment.
func TakeOrders() (*Orders, error) {
	text := os.Getenv(Variable)
	if text == "" {
		return nil, nil
	}
	if err := os.Unsetenv(Variable); err != nil {
		return nil, err
	}
	o := &Orders{}
	if err := json.Unmarshal([]byte(text), o); err != nil {
		return nil, fmt.Errorf("%s: must be what a coordinator sets, given %q: %w", Variable, text,
			err)
	}
	return o, nil
}

// Process is a rank that this process has started.
type Process struct {
	rank, pid int
	process   *os.Process
	ended     chan struct{} // closed at its end
	how       string        // it ended, such as "signal: killed"
}

// StartRank starts this binary with the orders and the arguments of this process. The output goes
// to log, which stays the caller's.
func StartRank(o Orders, log *os.File) (*Process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, os.Args[1:]...)
	cmd.Env = append(os.Environ(), Variable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting rank %d: %w", o.Rank, err)
	}
	p := &Process{rank: o.Rank, pid: cmd.Process.Pid, process: cmd.Process,
		ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its state says more than the error
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
