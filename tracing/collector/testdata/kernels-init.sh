#!/bin/busybox sh
# The first process of a machine that kernels.sh boots: makes devices of each kind, runs the tests, and switches off.
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t tracefs trace /sys/kernel/tracing
export PATH=/sbin:/usr/sbin:/bin:/usr/bin TMPDIR=/tmp HOME=/tmp KVTEST_REQUIRE_PRIVILEGED=1
for word in $(cat /proc/cmdline); do
	case $word in
	run=*) run=${word#run=} ;;
	accel=tcg) export KVTEST_EMULATED=1 ;;
	esac
done
for m in virtio_pci virtio_blk nvme loop crc32c_generic crc32c_intel ext4 dm_mod dm_crypt xts aesni_intel md_mod raid1; do
	modprobe $m 2>/dev/null
done
ip link set lo up 2>/dev/null
sleep 1
echo "KERNEL $(uname -r)"

# sectors NODE is the size of a device.
sectors() { cat /sys/class/block/${1##*/}/size; }

# The numbers of NVMe drives are given in the order in which they answer.
one=$(grep -l '^one ' /sys/class/nvme/*/serial) three=$(grep -l '^three ' /sys/class/nvme/*/serial)
one=${one%/serial} three=${three%/serial}
one=${one##*/}n1 three=${three##*/}n1
paths=$(cd /sys/block && echo nvme*c*n*)
head=$(echo "${paths%% *}" | sed 's/c[0-9]*n/n/')

printf 'n\np\n1\n\n+100M\nn\np\n2\n\n\nw\n' | fdisk /dev/vdb >/dev/null
sleep 1
half=$(sectors vdb2)
dmsetup create linear --noudevsync <<END
0 $half linear /dev/vdb2 0
$half $(sectors $three) linear /dev/$three 0
END
dmsetup create crypt --noudevsync --table "0 $(sectors vdc) crypt aes-xts-plain64 $(printf %064d 7) 0 /dev/vdc 0"
dmsetup mknodes
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --metadata=1.2 --bitmap=none /dev/vdd /dev/vde 2>&1 | grep -v '^mdadm: array'
echo 0 >/sys/block/md0/md/safe_mode_delay # no superblock of its own in the middle of a test

devices="virtio=/dev/vda=vda=1 partition=/dev/vdb1=vdb=1 nvme=/dev/$one=$one=1"
devices="$devices multipath=/dev/$head=$(echo $paths | tr ' ' ,)=1"
devices="$devices linear=/dev/mapper/linear=$three,vdb=1 crypt=/dev/mapper/crypt=vdc=1 raid1=/dev/md0=vdd,vde=2"
export KVTEST_TRACE_DEVICES="$devices"
# Tests want a disk below the temporary directory. A journal writes data with a flush, whose last step
# kernels before 6.5 do not tell from an fsync.
mkfs.ext4 -q -F -O ^has_journal /dev/vdf && mount -t ext4 /dev/vdf /mnt && export TMPDIR=/mnt
echo "DEVICES $devices"
cd /
/tracing.test -test.v -test.run "$run" 2>&1
echo "TESTS-ENDED $?"
dmesg | grep -A 30 -E 'BUG:|Oops:|WARNING:|lockup -' | head -60
poweroff -f
