package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseMounts(t *testing.T) {
	mounts, err := ParseMounts(`
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resuid=65534

90 27 0:45 /kv /mnt/with\040space\134slash ro,noatime shared:7 master:1 - nfs4 x:/kv rw,rsize=4096
95 27 0:50 / /merged rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/var/u\054pper,workdir=/w
96 27 0:51 / /optional rw shared:3 propagate_from:2 - tmpfs none rw
97 27 0:51 / /nameless rw - tmpfs  rw,size=1k
`)
	require.NoError(t, err)
	require.Len(t, mounts, 5)
	assert.Equal(t, []string{"rw", "size=1k"}, mounts[4].SuperOptions,
		"an empty source is a field all the same")
	assert.Empty(t, mounts[4].Source)
	assert.Equal(t, Mount{
		ID: 27, Major: 254, Root: "/", Point: "/", Options: []string{"rw", "relatime"},
		Type: "ext4", Source: "/dev/vda",
		SuperOptions: []string{"rw", "discard", "resuid=65534"},
	}, mounts[0])
	assert.Equal(t, `/mnt/with space\slash`, mounts[1].Point)
	rsize, ok := mounts[1].SuperOption("rsize")
	assert.True(t, ok)
	assert.Equal(t, "4096", rsize)
	upper, _ := mounts[2].SuperOption("upperdir")
	assert.Equal(t, "/var/u,pper", upper)
	_, ok = mounts[2].SuperOption("upper")
	assert.False(t, ok)
}

// The lines have the options that Linux shows for mounts of these kinds.
func TestTransferSizes(t *testing.T) {
	for _, c := range []struct {
		name, line  string
		read, write int64
		ok          bool
	}{
		{"NFS 4.2", "612 29 0:52 / /mnt/kv rw,relatime shared:327 - nfs4 filer:/export/kv " +
			"rw,vers=4.2,rsize=1048576,wsize=524288,namlen=255,hard,proto=tcp," +
			"nconnect=8,timeo=600,retrans=2,sec=sys,clientaddr=" +
			"10.0.0.5,local_lock=none,addr=10.0.0.9",
			1 << 20, 512 << 10, true},
		{"NFS 3", "40 29 0:36 / /nfs rw,noatime - nfs 10.0.0.9:/vol1 " +
			"rw,vers=3,rsize=65536,wsize=65536,namlen=255,hard,nolock,proto=tcp,timeo=600," +
			"retrans=2,sec=sys,mountaddr=10.0.0.9,mountvers=3,mountport=635," +
			"mountproto=udp,local_lock=all,addr=10.0.0.9", 64 << 10, 64 << 10, true},
		{"EFS", "55 1 0:48 / /efs rw,relatime shared:30 - nfs4 127.0.0.1:/ " +
			"rw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,noresvport,proto=tcp," +
			"port=20049,timeo=600,retrans=2,sec=sys,clientaddr=" +
			"127.0.0.1,local_lock=none,addr=127.0.0.1", 1 << 20, 1 << 20, true},
		{"SMB", "70 1 0:60 / /smb rw,relatime - cifs //files/share " +
			"rw,vers=3.1.1,cache=strict,username=u,uid=0,rsize=4194304,wsize=4194304," +
			"bsize=1048576,retrans=1,echo_interval=60,actimeo=1", 4 << 20, 4 << 20, true},
		{"9p", "80 1 0:61 / /host rw,relatime - 9p share " +
			"rw,sync,dirsync,access=client,msize=512000,trans=virtio", 512000, 512000, true},
		{"a local disk", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,rsize=4096,wsize=4096", 0,
			0, false},
		{"sizes that are no numbers", "40 29 0:36 / /nfs rw - nfs h:/v rw,rsize=big,wsize=65536", 0,
			0, false},
		{"only one of them", "40 29 0:36 / /nfs rw - nfs h:/v rw,rsize=65536", 0, 0, false},
		{"negative", "40 29 0:36 / /nfs rw - nfs h:/v rw,rsize=-1,wsize=65536", 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mounts, err := ParseMounts(c.line + "\n")
			require.NoError(t, err)
			read, write, ok := mounts[0].TransferSizes()
			assert.Equal(t, c.ok, ok)
			assert.Equal(t, c.read, read)
			assert.Equal(t, c.write, write)
		})
	}
}

func TestParseMountsRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"a line without a dash", "27 1 254:0 / / rw,relatime ext4 /dev/vda rw",
			"line 1: not a mount"},
		{"a mount id that is no number", "x 1 254:0 / / rw - ext4 /dev/vda rw", "mount id"},
		{"a bad device number", "27 1 254 / / rw - ext4 /dev/vda rw", "device number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseMounts(c.text)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestFindMount(t *testing.T) {
	mounts := []Mount{
		{ID: 1, Point: "/"}, {ID: 2, Point: "/mnt"}, {ID: 3, Point: "/mnt/kv"},
		{ID: 4, Point: "/mnt/kv", Type: "hides 3"},
	}
	for _, c := range []struct {
		name string
		at   identity
		want int
	}{
		{"the mount id decides", identity{path: "/mnt/kv/x", mountID: 2}, 2},
		{"else the longest point, the later of two", identity{path: "/mnt/kv/x"}, 4},
		{"the point itself", identity{path: "/mnt"}, 2},
		{"a name that merely starts alike is elsewhere", identity{path: "/mnt/kv2"}, 2},
		{"everything lies in the root", identity{path: "/home"}, 1},
		{"an unknown mount id falls back", identity{path: "/mnt/a", mountID: 99}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, findMount(mounts, c.at).ID)
		})
	}
	assert.Zero(t, findMount(nil, identity{path: "/x"}))
}

// FuzzParseMounts asserts that no mount table makes the parser panic.
func FuzzParseMounts(f *testing.F) {
	f.Add("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n")
	f.Add("40 29 0:36 / /mnt rw - nfs4 h:/v rw,rsize=65536,wsize=65536\n")
	f.Add(`1 2 3:4 \040 \9 rw - - - -`)
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := ParseMounts(text)
		if err == nil {
			m := findMount(mounts, identity{path: "/mnt/x"})
			if read, write, ok := m.TransferSizes(); ok && (read <= 0 || write <= 0) {
				t.Errorf("sizes %d and %d of %+v", read, write, m)
			}
		}
	})
}
