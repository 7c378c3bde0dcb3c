package discover

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"kvbench/tools/command"
)

const name = "discover"

// Command is kvreport discover.
var Command = command.Command{
	Name:  name,
	Args:  "[DIR] [-json]",
	Short: "this machine: CPU, memory, GPUs, block devices, a directory; recommended parameters",
	Long: `
Describes the machine as the kernel shows it: processors and NUMA nodes, memory that this process may use, GPUs (through
NVML where this build has it), every block device with the limits of its queue, its PCIe link and its NVMe controller, the
filesystem of DIR (default: the current directory), and what block-layer tracing would find. Then it recommends parameters
for a run whose cache directory is DIR, each with its reason. It loads nothing, writes nothing and measures nothing.

-json prints the same for machines; kvreport submission fills its system description from it (-discover FILE).`,
	Example: `
go tool kvreport discover /mnt/nvme
go tool kvreport discover /mnt/nvme -json > $(hostname).json
go tool kvreport discover -json | jq -r '.recommended[].what'`,
	Run: run,
}

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	return thisMachine().run(args, stdout, stderr)
}

func (m machine) run(args []string, stdout, stderr io.Writer) int {
	fs := command.Flags(name)
	asJSON := fs.Bool("json", false, "")
	dirs, err := command.Parse(fs, args)
	if err == nil && len(dirs) > 1 {
		err = fmt.Errorf("one directory at most, given %d", len(dirs))
	}
	dir := "."
	if len(dirs) > 0 {
		dir = dirs[0]
	}
	if err == nil {
		dir, err = m.absolute(dir)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	h := m.hardware(dir)
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(h)
	} else {
		err = h.WriteText(stdout)
	}
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}

// ReadFile reads what discover -json wrote on another machine.
func ReadFile(path string) (Hardware, error) {
	var h Hardware
	data, err := os.ReadFile(path)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("%s: %w", path, err)
	}
	if h.SchemaVersion == "" || h.SchemaVersion[0] != SchemaVersion[0] {
		return h, fmt.Errorf("%s: schema_version %q, this version reads 1.x as kvreport discover "+
			"-json writes it", path, h.SchemaVersion)
	}
	return h, nil
}
