package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// farHost is another host, as far as a network tells: a namespace with a name, an address and an
// sshd of its own.
type farHost struct {
	name, link, address string
	ssh                 string // that reaches it
	key                 string
	temp                string // its temporary directory
}

func command(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
}

// newFarHost starts one. There, something is done first: a shell reads it.
func newFarHost(b *bench, there string) farHost {
	t := b.t
	t.Helper()
	privtest.Root(t)
	const sshd = "/usr/sbin/sshd"
	for _, program := range []string{sshd, "ssh", "ssh-keygen", "ip", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("not run: %v", err)
		}
	}
	id := os.Getpid() % 10000
	h := farHost{name: fmt.Sprintf("kvfar%d", id), link: fmt.Sprintf("kvl%d", id),
		address: fmt.Sprintf("10.211.%d.2", id%250)}
	dir := filepath.Join(b.work, "sshd")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.MkdirAll("/run/sshd", 0o755))
	h.key, h.temp = filepath.Join(dir, "key"), filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(h.temp, 0o700))
	for _, key := range []string{"host", "key", "other"} {
		command(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
	}
	public, err := os.ReadFile(h.key + ".pub")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "authorized"), public, 0o600))
	config := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf("ListenAddress %s\nHostKey %s\n"+
		"AuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n"+
		"SetEnv TMPDIR=%s\n", h.address, filepath.Join(dir, "host"),
		filepath.Join(dir, "authorized"), h.temp)), 0o600))
	if err := exec.Command("ip", "netns", "add", h.name).Run(); err != nil {
		privtest.Need(t, fmt.Errorf("network namespaces: %w", err))
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.name).Run() })
	command(t, "ip", "link", "add", h.link, "type", "veth", "peer", "name", "eth0", "netns", h.name)
	command(t, "ip", "addr", "add", strings.TrimSuffix(h.address, "2")+"1/30", "dev", h.link)
	command(t, "ip", "link", "set", h.link, "up")
	for _, args := range []string{"addr add " + h.address + "/30 dev eth0", "link set eth0 up",
		"link set lo up"} {
		command(t, "ip", append([]string{"-n", h.name}, strings.Fields(args)...)...)
	}
	server := exec.Command("ip", "netns", "exec", h.name, "unshare", "--uts", "--mount", "sh",
		"-ec", `hostname "$1"; `+there+` exec `+sshd+` -D -f "$2"`, "sh", h.name, config)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})
	eventually(t, "sshd at "+h.address, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(h.address, "22"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	h.ssh = h.by(h.key)
	return h
}

// by is a command that uses a key, and nothing that this machine is configured for.
func (h farHost) by(key string) string {
	return "ssh -F none -i " + key + " -o BatchMode=yes -o ConnectTimeout=4 -o LogLevel=ERROR " +
		"-o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
}

// TestHosts: ranks on this host and on another one, by a real sshd.
func TestHosts(t *testing.T) {
	endToEnd(t)
	b := newClients(t)
	h := newFarHost(b, "")
	const secret = "Dz7secretQ4wJ9x"
	b.env = append(b.env, "AWS_SECRET_ACCESS_KEY="+secret, "KVBENCH_SEED=7")
	flags := func(more ...string) []string { // anew for each run: where results go changes
		return append(b.short("-ssh="+h.ssh), more...)
	}

	long := []string{"-hosts=localhost:1," + h.address + ":1", "-remote-binary=" + binary(t),
		"-test.benchtime=10m"}
	// Rank 0 here; then none here. The program is copied, and is there.
	for _, c := range []struct {
		hosts, binary string
		on            []string
	}{
		{"localhost:1," + h.address + ":2", "", []string{hostname(t), h.name, h.name}},
		{h.address, binary(t), []string{h.name}},
	} {
		o := b.ok(flags("-hosts="+c.hosts, "-remote-binary="+c.binary)...)
		lines, _ := parse(t, o.stdout)
		require.Len(t, lines, 1)
		ranks, all := b.resultsOf("option_1", 0)
		require.Len(t, ranks, len(c.on))
		require.NotNil(t, all)
		assert.Equal(t, "ssh", all.Clients.Transport)
		for rank, name := range c.on {
			assert.Equal(t, []any{name, uint64(7 + rank)},
				[]any{ranks[rank].Environment.Hostname, ranks[rank].Seed})
		}
		require.NoError(t, filepath.WalkDir(b.results, func(path string, d os.DirEntry,
			err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			assert.NotContains(t, string(text), secret, path)
			return err
		}))
		assert.NotContains(t, o.stdout+o.stderr, secret)
		copies, err := os.ReadDir(h.temp)
		require.NoError(t, err)
		assert.Empty(t, copies)
		b.results += "-next"
	}

	// While it runs nobody sees the secret; when the network dies, both sides find out.
	p := b.start(flags(long...)...)
	b.allWrite(2)
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		assert.NotContains(t, string(text), secret, path)
	}
	pids := b.at(2)
	command(t, "ip", "link", "set", h.link, "down")
	o := p.end()
	assert.Equal(t, exitFailed, o.code)
	assert.Regexp(t, `rank 1 on `+h.name+` \(pid \d+\) has not answered for 4s, in the window of `+
		`trial 0 of MaxStorageStress`, o.stdout)
	b.gone(pids)
	command(t, "ip", "link", "set", h.link, "up")
	left, err := filepath.Glob(filepath.Join(b.cache, "*/*"))
	require.NoError(t, err)
	assert.Empty(t, left, "both have removed their files")
	b.results += "-next"

	// A rank dies, and then ssh does.
	for _, whom := range []string{"rank", "ssh"} {
		p := b.start(flags(long...)...)
		b.allWrite(2)
		pids := b.at(2)
		victim := pids[1]
		if whom == "ssh" {
			found, err := exec.Command("pgrep", "-P", fmt.Sprint(p.Process.Pid)).Output()
			require.NoError(t, err)
			_, err = fmt.Sscan(string(found), &victim)
			require.NoError(t, err)
		}
		require.NoError(t, syscall.Kill(victim, syscall.SIGKILL))
		o := p.end()
		assert.Equal(t, exitFailed, o.code)
		assert.Regexp(t, `rank 1 on `+h.name+` \(pid \d+\) died: ssh: .*, in the window of`,
			o.stdout, whom)
		b.gone(pids)
		_, all := b.resultsOf("option_1", 0)
		require.NotNil(t, all)
		assert.Equal(t, result.StatusIncomplete, all.Status)
		b.results += "-next"
	}

	// What keeps ranks from being started is said in ssh's words, and nothing was made.
	require.NoError(t, os.RemoveAll(b.cache))
	for _, c := range []struct{ ssh, host, want string }{
		{h.by(filepath.Join(b.work, "sshd", "other")), h.address, "Permission denied"},
		{h.ssh, strings.TrimSuffix(h.address, "2") + "1", "Connection refused"},
		{h.ssh, "nowhere.invalid", "Could not resolve hostname"},
	} {
		if c.host != h.address && strings.HasSuffix(c.host, ".1") {
			c.host = "root@" + c.host // which else is this machine
		}
		o := b.run(flags("-hosts="+c.host, "-ssh="+c.ssh, "-remote-binary="+binary(t))...)
		assert.Equal(t, exitFailed, o.code)
		assert.Regexp(t, `^kvbench: rank 0 on `+regexp.QuoteMeta(c.host)+
			` did not come: ssh: exit status 255; .*`+c.want, o.stderr)
		assert.NoDirExists(t, b.cache)
	}
	o = b.run(flags("-hosts="+h.address, "-remote-binary=/nowhere/kvbench.test")...)
	assert.Regexp(t, `^kvbench: rank 0 on \S+ did not come: ssh: exit status 127; .*No such file`,
		o.stderr)
}

// TestSSHDiesInEveryStage: the rank behind it is named, with what became of ssh, and ends; what it
// leaves goes with the next start, and what is not the run's own stays.
func TestSSHDiesInEveryStage(t *testing.T) {
	endToEnd(t)
	const n = 2
	b := newClients(t)
	h := newFarHost(b, "")
	check := b.foreign()
	results := b.results
	for i, stage := range stagesOfRanks(n) {
		b.results = fmt.Sprint(results, i)
		stage.args = append([]string{"-hosts=localhost:1," + h.address + ":1", "-ssh=" + h.ssh,
			"-remote-binary=" + binary(t)}, stage.args...)
		p := b.reach(n, stage)
		pid := p.Process.Pid
		// Go's own child of a moment is none.
		shell := 0
		eventually(t, "ssh, "+stage.name, func() bool {
			for _, child := range childrenOf(pid) {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
				if string(name) == "ssh\n" {
					shell = child
				}
			}
			return shell != 0 || over(pid)
		})
		require.NotZero(t, shell, stage.name)
		require.NoError(t, syscall.Kill(shell, syscall.SIGKILL))
		o := p.end()
		assert.Equal(t, exitFailed, o.code, "%s\n%s", stage.name, o.stderr)
		assert.Regexp(t, `rank 1 on `+h.name+` \(pid \d+\) died: ssh: signal: killed|`+
			`rank 1 on \S+ did not come: ssh: signal: killed`, o.stdout+o.stderr, stage.name)
		eventually(t, "the end of all ranks, "+stage.name, func() bool {
			return len(inGroup(pid))+len(h.running(t)) == 0
		})
		b.nothingLeft(n)
		check()
	}
}

// running are the processes of this program on a host.
func (h farHost) running(t *testing.T) (list []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	here, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	for _, file := range files {
		// Of one that has ended nothing can be read.
		program, err := os.Readlink(file)
		there, why := os.Readlink(filepath.Join(filepath.Dir(file), "ns/net"))
		if err == nil && why == nil && there != here && program == binary(t) {
			list = append(list, file)
		}
	}
	return list
}

// TestFilesystemsOfHosts: ranks of two hosts, which do not know of each other's kernel, find out
// whether they share a filesystem, and share its free space to the byte.
func TestFilesystemsOfHosts(t *testing.T) {
	endToEnd(t)
	b := newClients(t)
	privtest.Root(t)
	// The same path on both hosts: one filesystem in common, and one of each.
	common, apart := filepath.Join(b.work, "memory"), filepath.Join(b.work, "apart")
	boot := filepath.Join(b.work, "boot")
	require.NoError(t, os.Mkdir(apart, 0o777))
	require.NoError(t, os.WriteFile(boot, []byte("0b4d2d4e-another-machine\n"), 0o644))
	for _, dir := range []string{common, apart} {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		require.NoError(t, syscall.Mount("kvbench", dir, "tmpfs", 0, "size=32g"))
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	}
	h := newFarHost(b, "mount -t tmpfs -o size=24g kvbench "+apart+"; mount --bind "+boot+
		" /proc/sys/kernel/random/boot_id;")
	const gib = int64(1) << 30
	in := func(dirs ...string) string {
		for i, dir := range dirs {
			dirs[i] = filepath.Join(dir, "cache")
		}
		return strings.Join(dirs, ",")
	}
	const room = 14 * gib * 9 / 10 // of two directories with 7 GiB each, and slack for a hash
	for _, c := range []struct {
		dirs   string
		groups []result.SharedFilesystem
		each   []int64 // capacity of each rank: all but 10 GiB, shared out
	}{
		{in(apart), []result.SharedFilesystem{{Type: "tmpfs", Ranks: []int{0}, CapacityBytes: 22 * gib},
			{Type: "tmpfs", Ranks: []int{1, 2}, CapacityBytes: 14 * gib}},
			[]int64{22 * gib, 7 * gib, 7 * gib}},
		{in(common), []result.SharedFilesystem{{Type: "tmpfs", Ranks: []int{0, 1, 2},
			CapacityBytes: 22 * gib / 3 * 3}},
			[]int64{22 * gib / 3, 22 * gib / 3, 22 * gib / 3}},
		// Each directory by itself: the second one, too, is looked at.
		{in(apart, common), []result.SharedFilesystem{
			{Type: "tmpfs", Ranks: []int{0}, Directories: []string{in(apart)},
				CapacityBytes: room / 2},
			{Type: "tmpfs", Ranks: []int{0, 1, 2}, Directories: []string{in(common)},
				CapacityBytes: room / 2 * 3},
			{Type: "tmpfs", Ranks: []int{1, 2}, Directories: []string{in(apart)},
				CapacityBytes: room / 2 * 2}},
			[]int64{room, room, room}},
	} {
		b.cache = c.dirs
		b.ok(b.short("-ssh="+h.ssh, "-remote-binary="+binary(t), "-division=open",
			"-hosts=localhost:1,"+h.address+":2", "-storage-capacity-gb=0", "-cpu-mem-gb=0")...)
		ranks, all := b.resultsOf("option_1", 0)
		require.Len(t, ranks, 3)
		require.NotNil(t, all)
		assert.Equal(t, c.groups, all.Clients.Filesystems)
		for rank, want := range c.each {
			assert.Equal(t, want, ranks[rank].StorageCapacity(), rank)
		}
		for _, dir := range []string{apart, common} {
			left, err := filepath.Glob(filepath.Join(dir, "cache", ".kvbench*"))
			require.NoError(t, err)
			assert.Empty(t, left)
		}
		b.results += "-next"
	}
}

func hostname(t testing.TB) string {
	name, err := os.Hostname()
	require.NoError(t, err)
	return name
}

// at are the processes that write into the ranks' directories, by rank, as their locks say.
func (b *bench) at(n int) map[int]int {
	b.t.Helper()
	found := map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	require.NoError(b.t, err)
	for _, path := range files {
		open, _ := os.Readlink(path)
		for rank := range n {
			if strings.HasPrefix(open, filepath.Join(b.cache, fmt.Sprintf("rank_%d", rank))+"/") {
				pid := 0
				_, err := fmt.Sscanf(path, "/proc/%d/", &pid)
				require.NoError(b.t, err)
				found[rank] = pid
			}
		}
	}
	require.Len(b.t, found, n)
	return found
}
