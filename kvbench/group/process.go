package group

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
)

// MeetingVariable is the name of the environment variable through which the coordinator passes a Meeting
// (as JSON) to a rank that it starts. Only processes of the same user can read its value.
const MeetingVariable = "KVBENCH_AGENT"

// Meeting is what a rank needs to connect to rank 0 of its run.
type Meeting struct {
	Address  string // HOST:PORT of rank 0
	Job      string // identifies the run
	Launcher string // the launcher that starts the ranks
	Rank     int    // the rank of this process
	Ranks    int    // the number of ranks
	// Started is true if rank 0 started this process and listens. Then Base is the working
	// directory of the user's command, and Stamp is the timestamp in the name of the default
	// results directory.
	Started     bool
	Base, Stamp string
}

// TakeMeeting returns the Meeting from the environment and removes the variable. It returns nil if
// no coordinator started this process.
func TakeMeeting() (*Meeting, error) {
	text := os.Getenv(MeetingVariable)
	if text == "" {
		return nil, nil
	}
	_ = os.Unsetenv(MeetingVariable) // fails only for an invalid name
	m := &Meeting{}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("%s: must be what a coordinator sets, given %q: %w", MeetingVariable,
			text, err)
	}
	return m, nil
}

// process is a rank that this process has started.
type process struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	refused bool          // its rank was refused, so its end is not reported; guarded by Leader.mu
}

func startRank(m Meeting, log *os.File) (*process, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, _ := json.Marshal(m) // texts and numbers always have a JSON form
	p := &process{cmd: exec.Command(binary, os.Args[1:]...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), MeetingVariable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how returns the state of the ended process
		close(p.ended)
	}()
	return p, nil
}

// how returns how the process has ended, such as "exit status 1" or "signal: killed".
func (p *process) how() string { return p.cmd.ProcessState.String() }
