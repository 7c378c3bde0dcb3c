#!/usr/bin/env bash
# Runs the tests of package collector on other kernels than this machine's: each is booted in qemu with the test binary, on
# virtio and NVMe disks, partitions, device mapper, md and NVMe multipath.
#
#	tracing/collector/testdata/kernels.sh [-run REGEXP] [KERNEL…]
#
# Kernels are the names in the table below; none means all of them. The processors are emulated (TCG) where KVM cannot run
# an ordinary kernel, which is some ten times slower.
#
# It needs root, Debian's apt and the network, and installs qemu-system-x86, busybox-static, fio, e2fsprogs, dmsetup, zstd and
# xz-utils if they are missing. Kernels and mdadm are downloaded by apt-get from the distributions' archives, with lists
# and a cache of their own under $WORK (default /tmp/kvbench-kernels, 2 GiB when all are there), and are unpacked, never
# installed. Run again, it downloads nothing. A boot takes some minutes when emulated, 1 GiB of memory and at most LIMIT
# seconds (900). The console's text stays in $WORK/logs; here is one line for each kernel, and exit status 1 unless all
# tests passed in all of them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=${WORK:-/tmp/kvbench-kernels}

# name, suite, packages (kernel and modules)
kernels='
5.10    bullseye           linux-image-5.10.0-32-amd64
5.15    jammy              linux-image-unsigned-5.15.0-25-generic linux-modules-5.15.0-25-generic
6.1     bookworm           linux-image-6.1.0-[0-9]+-amd64
6.8     noble              linux-image-unsigned-6.8.0-31-generic linux-modules-6.8.0-31-generic
6.12    bookworm-backports linux-image-6.12.[0-9.]+[+]deb12-amd64
7.2     trixie-backports   linux-binary-7.2.[0-9.]+[+]deb13-amd64 linux-modules-7.2.[0-9.]+[+]deb13-amd64
'
modules='virtio_pci virtio_blk nvme loop ext4 crc32c_generic crc32c_intel dm_mod dm_crypt xts aes_generic aesni_intel md_mod raid1'

run=.
while [ $# -gt 0 ]; do
	case $1 in
	-run) run=$2; shift 2 ;;
	-*) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2 ;;
	*) break ;;
	esac
done
# Where /dev/kvm is a paravirtual one (kvm_pvm), ordinary kernels hang in it.
# Emulated processors that run on threads of their own hang where another patches the code (QEMU 7.2): one thread for both.
accel=tcg,thread=single
if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accel=kvm; fi
[ $# -gt 0 ] || set -- $(awk 'NF { print $1 }' <<<"$kernels")

fail() {
	printf 'kernels.sh: %s\n' "$*" >&2
	exit 1
}

# need COMMAND PACKAGE installs what is missing.
need() {
	command -v "$1" >/dev/null && return
	apt-get -q update
	DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$2"
}

[ "$(id -u)" = 0 ] || fail "needs root: it makes an initramfs with device nodes and installs packages"
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need fio fio
need mkfs.ext4 e2fsprogs
need dmsetup dmsetup
need zstd zstd
need xz xz-utils
mkdir -p "$work"/{lists/partial,archives/partial,etc/apt.conf.d,etc/preferences.d,debs,kernels,logs,images}

# apt with lists, cache and sources of its own: the machine's stay as they are.
export APT_CONFIG=$work/apt.conf
touch "$work/status"
cat >"$work/apt.conf" <<END
Dir::State::lists "$work/lists"; Dir::State::status "$work/status"; Dir::Cache::archives "$work/archives";
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
Dir::Etc "$work/etc"; Acquire::Languages "none"; APT::Sandbox::User "root"; APT::Architecture "amd64";
END
debian=/usr/share/keyrings/debian-archive-keyring.gpg
ubuntu=$work/ubuntu/usr/share/keyrings/ubuntu-archive-keyring.gpg

sources() {
	local suite
	for suite in bullseye bookworm bookworm-backports trixie trixie-backports; do
		echo "deb [signed-by=$debian] http://deb.debian.org/debian $suite main"
	done
	[ ! -e "$ubuntu" ] || for suite in focal jammy noble; do
		echo "deb [signed-by=$ubuntu] http://archive.ubuntu.com/ubuntu $suite main"
	done
}

# lists fetches what the archives have, once. Debian's package brings Ubuntu's keys.
lists() {
	[ ! -e "$work/lists/complete" ] || return 0
	sources >"$work/etc/sources.list"
	apt-get -q update
	fetch bookworm-backports ubuntu-keyring "$work/ubuntu"
	sources >"$work/etc/sources.list"
	apt-get -q update
	touch "$work/lists/complete"
}

# fetch SUITE REGEXP DIRECTORY unpacks the newest package of that name.
fetch() {
	local name
	name=$(apt-cache pkgnames | grep -Ex "$2" | sort -V | tail -n 1)
	[ -n "$name" ] || fail "the archives have no package $2"
	rm -f "$work/debs"/*
	(cd "$work/debs" && apt-get -q download "$name/$1" >/dev/null)
	dpkg -x "$work/debs"/*.deb "$3"
	rm -f "$work/debs"/*
}

# unpack KERNEL makes $work/kernels/KERNEL with boot/vmlinuz-* and lib/modules/*.
unpack() {
	local to=$work/kernels/$1 suite packages p
	[ ! -e "$to/complete" ] || return 0
	read -r _ suite packages < <(awk -v k="$1" '$1 == k' <<<"$kernels") || fail "no kernel $1 in the table"
	lists
	for p in $packages; do fetch "$suite" "$p" "$to"; done
	[ -e "$to/lib" ] || ln -s usr/lib "$to/lib"
	find "$to/" -name '*.ko.zst' -exec zstd -qd --rm {} + # busybox's depmod reads no others
	touch "$to/complete"
}

# program FILE… copies programs into /bin, and the libraries that they load to where they are.
program() {
	local f lib
	for f in "$@"; do
		install -D "$f" "$root/bin/${f##*/}"
		for lib in $(ldd "$f" 2>/dev/null | grep -o '/[^ ]*'); do
			[ -e "$root$lib" ] || install -D "$lib" "$root$lib"
		done
	done
}

# module NAME copies a module and what it depends on, unpacked. Built-in ones are not there.
module() {
	local name=$1 line f
	line=$(grep -E "(^|/)${name//_/[-_]}\.ko[^:/]*:" "$tree/modules.dep" | head -n 1) || return 0
	for f in ${line/:/ }; do
		local to=$root/lib/modules/$release/${f%.[xz]*}
		[ ! -e "$to" ] || continue
		mkdir -p "${to%/*}"
		case $f in
		*.xz) xz -dc "$tree/$f" >"$to" ;;
		*) cp "$tree/$f" "$to" ;;
		esac
	done
}

# initramfs KERNEL packs the test binary and all that it calls.
initramfs() {
	root=$work/root.$1
	rm -rf "$root"
	mkdir -p "$root"/{bin,sbin,proc,sys,dev,tmp,mnt,usr/bin,usr/sbin,etc,run}
	tree=$(echo "$work/kernels/$1"/lib/modules/*)
	release=${tree##*/}
	[ -e "$tree/modules.dep" ] || busybox depmod -b "$work/kernels/$1" "$release"
	local m
	for m in $modules; do module "$m"; done
	cp "$tree"/modules.{builtin,order} "$root/lib/modules/$release/" 2>/dev/null || true
	busybox depmod -b "$root" "$release"
	cp "$(command -v busybox)" "$root/bin/busybox"
	program "$(command -v fio)" "$(command -v mkfs.ext4)" "$(command -v losetup)" "$(command -v dmsetup)" "$work/mdadm/sbin/mdadm"
	cp "$work/tracing.test" "$root/"
	cp tracing/collector/testdata/kernels-init.sh "$root/init"
	cp -r tracing/testdata "$root/testdata"
	(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initramfs.$1"
	rm -rf "$root"
}

# disk NAME [SIZE] is an empty image of 256 MiB that takes no room until it is written.
disk() {
	rm -f "$work/images/$1"
	truncate -s "${2:-256M}" "$work/images/$1"
	echo "file=$work/images/$1,format=raw,if=none,id=$1,cache=unsafe,discard=unmap"
}

qemu=
trap '[ -z "$qemu" ] || kill $qemu' EXIT

# boot KERNEL runs the tests in it; which may take LIMIT seconds. The second NVMe subsystem has two controllers
# for one namespace: a multipath head.
boot() {
	local log=$work/logs/$1.txt d disks=()
	for d in vda vdb vdc vdd vde; do
		disks+=(-drive "$(disk $d)" -device "virtio-blk-pci,drive=$d")
	done
	disks+=(-drive "$(disk vdf 1G)" -device virtio-blk-pci,drive=vdf) # the temporary directory
	timeout "${LIMIT:-900}" qemu-system-x86_64 -machine q35 -accel $accel -cpu max -smp 2 -m 1024 -nodefaults -display none -no-reboot \
		-serial file:"$log" -monitor "unix:$work/monitor,server,nowait" -kernel "$(find "$work/kernels/$1/" -name "vmlinuz*" | head -n 1)" -initrd "$work/initramfs.$1" \
		-append "console=ttyS0 panic=-1 softlockup_panic=1 oops=panic quiet loglevel=1 accel=${accel%%,*} run=$run" "${disks[@]}" \
		-drive "$(disk one)" -device nvme,serial=one,drive=one \
		-device nvme-subsys,id=both -device nvme,serial=two,subsys=both -device nvme,serial=two,subsys=both \
		-drive "$(disk two)" -device nvme-ns,drive=two,shared=on,nsid=1 \
		-drive "$(disk three)" -device nvme,serial=three,drive=three &
	qemu=$!
	wait $qemu || true
	qemu=
	rm -f "$work/images"/*
	tr -d '\r' <"$log" >"$log.new" && mv "$log.new" "$log"
}

# verdict KERNEL is one line; it fails unless the guest said that all tests passed.
verdict() {
	local log=$work/logs/$1.txt
	printf '%-6s %-28s %3d passed %3d skipped %3d failed   %s\n' "$1" "$(sed -n 's/^KERNEL //p' "$log")" \
		"$(grep -c '^ *--- PASS' "$log")" "$(grep -c '^ *--- SKIP' "$log")" "$(grep -c '^ *--- FAIL' "$log")" "$log"
	grep -q '^TESTS-ENDED 0$' "$log"
}

for k in "$@"; do unpack "$k"; done
[ -e "$work/mdadm" ] || { lists; fetch bookworm mdadm "$work/mdadm"; }
CGO_ENABLED=0 go test -c -o "$work/tracing.test" ./tracing/collector
bad=0
for k in "$@"; do
	initramfs "$k"
	boot "$k"
	rm -f "$work/initramfs.$k"
	verdict "$k" || bad=1
done
exit $bad
