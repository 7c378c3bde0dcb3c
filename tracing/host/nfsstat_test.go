package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
)

// recorded is in the form of Linux 5.15's /proc/self/mountstats: a disk, a version 4.1 mount with
// errors in the last column, one of version 3 of an older kernel, and one that hides another.
const recorded = `device /dev/vda1 mounted on / with fstype ext4
device nas:/old mounted on /mnt/kv with fstype nfs4 statvers=1.1
	bytes:	1 1 1 1 1 1 1 1
	per-op statistics
	        READ: 9 9 0 9 9 9 9 9 0
device nas:/export\040one mounted on /mnt/kv with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp
	age:	5210
	caps:	caps=0x3ffdf,wtmult=512,dtsize=32768,bsize=0,namlen=255
	nfsv4:	bm0=0xfdffbfff,bm1=0x40f9be3e,bm2=0x803,acl=0x3,sessions
	sec:	flavor=1,pseudoflavor=1
	events:	12 3 0 0 4 5 6 7 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
	bytes:	1073741824 2147483648 536870912 2147483648 805306368 2147483648 65536 0
	RPC iostats version: 1.1  p/v: 100003/4 (nfs)
	xprt:	tcp 0 0 1 0 0 3100 3100 0 3100 0 2 0 0
	per-op statistics
	        NULL: 1 1 0 44 24 0 0 0 0
	        READ: 768 770 1 147456 805404672 12 1536 1550 0
	       WRITE: 2048 2048 0 2147991552 344064 4096 10240 14400 3
	      COMMIT: 16 16 0 2880 1664 0 320 322 0
	        OPEN: 5 5 0 1400 1900 0 4 4 0

device old:/v3 mounted on /mnt/v3 with fstype nfs statvers=1.0
	opts:	rw,vers=3,rsize=32768,wsize=32768
	bytes:	0 0 0 0 4096 0 1 0
	per-op statistics
	        READ: 1 1 0 128 4224 0 2 2
`

func TestCountersOfNFS(t *testing.T) {
	m := machineOf(t, 1, map[string]string{"/proc/self/mountstats": recorded})
	n, err := m.readNFS(Mount{Type: "nfs4", Point: "/mnt/kv", Source: "nas:/export one"})
	require.NoError(t, err)
	assert.Equal(t, "nas:/export one", n.Source)
	assert.Equal(t, "4.1", n.Version)
	assert.EqualValues(t, 768<<20, n.ReadBytes)
	assert.EqualValues(t, 2<<30, n.WriteBytes)
	require.Len(t, n.Operations, 5)
	assert.Equal(t, tracing.NFSOperation{Name: "READ", Count: 768, Retransmitted: 2, Timeouts: 1,
		SentBytes: 147456, ReceivedBytes: 805404672, QueueNS: 12e6, RoundTripNS: 1536e6,
		ExecuteNS: 1550e6}, n.Operations[1])
	assert.EqualValues(t, 3, n.Operations[2].Errors)

	before := &tracing.NFS{Source: n.Source, ReadBytes: 256 << 20}
	before.Operations = []tracing.NFSOperation{
		{Name: "READ", Count: 256, RoundTripNS: 512e6, ExecuteNS: 526e6}, n.Operations[3]}
	assert.Equal(t, []string{
		"nas:/export one (NFS 4.1), of all that use the mount: 0.50 GiB from the server, " +
			"2.00 GiB to it",
		"2048 × WRITE, mean round trip 5ms, with waiting 7.03ms; 3 errors",
		"512 × READ, mean round trip 2ms, with waiting 2ms; 2 sent again, 1 timed out",
		"besides 5 OPEN, 1 NULL"}, n.Sub(before).Lines())

	v3, err := m.readNFS(Mount{Type: "nfs", Point: "/mnt/v3"})
	require.NoError(t, err)
	assert.EqualValues(t, 2e6, v3.Operations[0].RoundTripNS)
	assert.Nil(t, v3.Sub(n), "of another mount")
	assert.Nil(t, before.Sub(n), "mounted anew")
	assert.Nil(t, n.Sub(nil))

	disk, err := m.readNFS(Mount{Type: "ext4", Point: "/"})
	require.NoError(t, err)
	assert.Nil(t, disk)
	_, err = m.readNFS(Mount{Type: "nfs", Point: "/mnt/other"})
	assert.ErrorContains(t, err, "/mnt/other")
	_, err = machineOf(t, 1, nil).readNFS(Mount{Type: "nfs", Source: "a:/b"})
	assert.ErrorContains(t, err, "a:/b")
	for _, wrong := range []string{"\tbytes: 1 2 3\n", "\tbytes: 1 2 3 4 -5 6\n",
		"\tper-op statistics\n\tREAD: 1 2\n", "\tper-op statistics\n\tREAD: 1 2 3 4 5 6 7 x\n"} {
		_, err = ParseMountStats("device a:/b mounted on /c with fstype nfs4 statvers=1.1\n"+wrong,
			"/c")
		assert.Error(t, err, wrong)
	}
}

// FuzzParseMountStats asserts that no text makes the parser panic or count backwards.
func FuzzParseMountStats(f *testing.F) {
	f.Add(recorded, "/mnt/kv")
	f.Add("device a mounted on b with fstype nfs\n\tbytes:", "b")
	f.Fuzz(func(t *testing.T, text, point string) {
		n, err := ParseMountStats(text, point)
		if err != nil || n == nil {
			return
		}
		if n.ReadBytes < 0 || n.WriteBytes < 0 {
			t.Fatalf("negative counter in %+v", n)
		}
		for _, o := range n.Operations {
			if min(o.Count, o.Retransmitted, o.SentBytes, o.RoundTripNS, o.ExecuteNS) < 0 {
				t.Fatalf("negative counter in %+v", o)
			}
		}
		if same := n.Sub(n); same != nil && same.ReadBytes != 0 {
			t.Fatalf("a reading minus itself is %+v", same)
		}
	})
}
