#!/usr/bin/env bash
# Installs the missing packages for building and testing Quern.
#
#   scripts/setup.sh         everything
#   scripts/setup.sh build   packages for building the program only
#   scripts/setup.sh packages, scripts/setup.sh python   everything, in two parts
#
# Debian's packages are installed by apt-get, as root or with sudo without a password. Otherwise the
# command is printed, and the script continues with the installed packages. The Python packages of
# tests/requirements.txt are installed in .venv only.
set -u
cd "$(dirname "$0")/.." || exit
what=${1:-all}

# program or file that proves the installation | Debian package | purpose
needed='
cc              | gcc                   | compiles
make            | make                  | the commands of the README
cmake           | cmake                 | builds
ninja           | ninja-build           | builds
@zlib.h         | zlib1g-dev            | reads .gz (optional)
'
[ "$what" = build ] || needed+='
@cmocka.h       | libcmocka-dev         | the C tests
@simde/x86/avx512.h | libsimde-dev          | runs the AVX-512 kernels where there is no AVX-512
@mpfr.h         | libmpfr-dev           | the reference for the elementary functions
g++             | g++                   | public headers are tried from C++ too
clang           | clang                 | the second compiler of the matrix
@libFuzzer      | libclang-rt-14-dev    | make fuzz
clang-format    | clang-format          | lint
clang-tidy      | clang-tidy            | lint
cppcheck        | cppcheck              | lint
shellcheck      | shellcheck            | lint
ctags           | universal-ctags       | make tags
aarch64-linux-gnu-gcc | gcc-aarch64-linux-gnu | the Arm build of the matrix
@/usr/aarch64-linux-gnu/include/stdio.h | libc6-dev-arm64-cross | the Arm build of the matrix
arm-linux-gnueabihf-gcc | gcc-arm-linux-gnueabihf | the build for 32-bit Arm
@/usr/arm-linux-gnueabihf/include/stdio.h | libc6-dev-armhf-cross | the build for 32-bit Arm
i686-linux-gnu-gcc | gcc-i686-linux-gnu   | the build for 32-bit x86
@/usr/i686-linux-gnu/include/stdio.h | libc6-dev-i386-cross | the build for 32-bit x86
riscv64-linux-gnu-gcc | gcc-riscv64-linux-gnu | the build for RISC-V
@/usr/riscv64-linux-gnu/include/stdio.h | libc6-dev-riscv64-cross | the build for RISC-V
s390x-linux-gnu-gcc | gcc-s390x-linux-gnu | the build for IBM Z
@/usr/s390x-linux-gnu/include/stdio.h | libc6-dev-s390x-cross | the build for IBM Z
musl-gcc        | musl-tools            | the build with musl
qemu-aarch64    | qemu-user             | runs the builds for other processors
=libturbojpeg.so.0 | libturbojpeg0      | reads JPEG images
=libpng16.so.16 | libpng16-16           | reads PNG images
=libwebp.so.7   | libwebp7              | reads WebP images
=libgif.so.7    | libgif7               | reads GIF images
=libtiff.so.6   | libtiff6              | reads TIFF images
=libzstd.so.1   | libzstd1              | reads data compressed with zstd
=libbz2.so.1.0  | libbz2-1.0            | reads data compressed with bzip2
=liblzma.so.5   | liblzma5              | reads data compressed with xz
=libsqlite3.so.0 | libsqlite3-0         | reads SQLite files
=libcurl.so.4   | libcurl4              | reads addresses of stores
=libpq.so.5     | libpq5                | asks PostgreSQL servers
=libmicrohttpd.so.12 | libmicrohttpd12  | answers requests over HTTP
=libOpenCL.so.1 | ocl-icd-libopencl1    | opens OpenCL devices
@/etc/OpenCL/vendors/pocl.icd | pocl-opencl-icd | an OpenCL device that every processor can be
oclgrind        | oclgrind              | a simulator that sees races of OpenCL kernels
pkg-config      | pkg-config            | finds the installed library as users do
setarch         | util-linux            | runs the thread sanitizer with addresses in place
man             | man-db                | shows the manual pages
mandoc          | mandoc                | a second reader of the manual pages
groff           | groff                 | reads the manual pages
zsh             | zsh                   | its completion
fish            | fish                  | its completion
mpirun.openmpi  | openmpi-bin           | ranks started by Open MPI 4.1
mpiexec.mpich   | mpich                 | ranks started by MPICH
ip              | iproute2              | hosts of the tests: network namespaces
sshd            | openssh-server        | the ssh of the tests
munged          | munge                 | the Slurm of the tests
slurmctld       | slurmctld             | the Slurm of the tests
slurmd          | slurmd                | the Slurm of the tests
srun            | slurm-client          | the Slurm of the tests
buildah         | buildah               | builds deploy/Containerfile
debootstrap     | debootstrap           | the Debian that it begins with there
python3         | python3               | the tests of the command
@venv           | python3-venv          | their environment
'

is_there() {
    case $1 in
    @venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    @libFuzzer) echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null ;;
    @/*) [ -e "${1#@}" ] ;;
    =*) PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -q "[[:space:]]${1#=} " ;;
    @*) echo "#include <${1#@}>" | cc -E -x c - >/dev/null 2>&1 ;;
    *) PATH=$PATH:/usr/sbin command -v "$1" >/dev/null 2>&1 ;;
    esac
}

[ "$what" != python ] || needed=
missing=()
reasons=()
while IFS='|' read -r sign package reason; do
    sign=${sign%% *} package=${package// /}
    [ -n "$sign" ] || continue
    if ! is_there "$sign"; then
        missing+=("$package")
        reasons+=("  $package:$reason")
    fi
done <<<"$needed"

status=0
if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: missing packages:"
    printf '%s\n' "${reasons[@]}"
    if [ "$(id -u)" = 0 ]; then as_root=(env); else as_root=(sudo -n env); fi
    install=("${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y
        --no-install-recommends "${missing[@]}")
    if ! command -v apt-get >/dev/null; then
        echo "setup: there is no apt-get here; install the above in this system's own way." >&2
        status=1
    elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        echo "setup: not root, and no sudo that asks for no password. To install them, as root:" >&2
        echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
        status=1
    else
        echo "setup: installing ${missing[*]}"
        log=$(mktemp)
        # Debian starts the daemons that it installs unless this file says no; the tests start
        # their own.
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
            trap '"${as_root[@]}" rm -f $policy' EXIT
            printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
            "${as_root[@]}" chmod 755 $policy
        fi
        if ! { "${as_root[@]}" apt-get update -q && "${install[@]}"; } >"$log" 2>&1 </dev/null; then
            tail -n 15 "$log" >&2
            echo "setup: apt-get failed (no network, or another apt-get at work?). By hand:" >&2
            echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
            status=1
        fi
        rm -f "$log"
    fi
fi

if [ "$what" = all ] || [ "$what" = python ]; then
    if [ ! -x .venv/bin/python ] || ! cmp -s tests/requirements.txt .venv/installed.txt; then
        echo "setup: making .venv with the packages of tests/requirements.txt"
        log=$(mktemp)
        # Python compiles what it imports. pip would compile all of it, for half of its time.
        if { python3 -m venv .venv && .venv/bin/python -m pip install --disable-pip-version-check \
            --no-compile -r tests/requirements.txt; } >"$log" 2>&1 </dev/null; then
            cp tests/requirements.txt .venv/installed.txt
        else
            tail -n 15 "$log" >&2
            echo "setup: the Python packages could not be installed (no network?). By hand:" >&2
            echo "  python3 -m venv .venv && .venv/bin/pip install -r tests/requirements.txt" >&2
            status=1
        fi
        rm -f "$log"
    fi
fi
exit $status
