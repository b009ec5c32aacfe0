#!/bin/sh
# Makes .venv and installs exactly what requirements/*.txt pin, then this checkout (editable). `make setup` calls it.
#
# What was installed is remembered by content, so a second call installs nothing; an edited lock, pyproject.toml or a
# moved folder is noticed. Needs a POSIX shell, Python 3.11-3.13 with venv and headers, and a C compiler (reasoning-gym
# depends on pycosat, which comes as source). Variables:
#   PYTHON=...           the interpreter to use
#   ACCELERATOR=cpu|cuda which build of torch and vLLM; without it cuda where an NVIDIA GPU answers, else cpu
#   TORCH_INDEX=URL      a package index that has torch's CPU build, for where the usual one lacks it
set -eu
cd "$(dirname "$0")/.."
VENV=.venv
LOG=$VENV/setup.log
TORCH=2.13.0

die() {
    echo "setup: $*" >&2
    exit 1
}

# Prints what an interpreter lacks, in words of the messages below; nothing when it will do.
PROBE='
import os, shlex, shutil, sys, sysconfig
lacks = [] if (3, 11) <= sys.version_info[:2] <= (3, 13) else ["version"]
try:
    import ensurepip, venv
except ImportError:
    lacks.append("venv")
if not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")):
    lacks.append("headers")
compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
if not shutil.which(shlex.split(compiler)[0]):
    lacks.append("compiler")
print(" ".join(lacks))
'

# The one command that brings what is missing: $1 is a version such as 3.12.
install_line() {
    if command -v apt-get >/dev/null; then
        echo "sudo apt-get install python$1 python$1-venv python$1-dev gcc make"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install python$1 python$1-devel gcc make"
    elif command -v brew >/dev/null; then
        echo "xcode-select --install; brew install python@$1"
    else
        echo "Python $1 from https://www.python.org/downloads/ and a C compiler"
    fi
}

# Prints the first interpreter that will do, or ends with one line on what is missing.
find_python() {
    almost='' lacking=''
    for name in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        command -v "$name" >/dev/null || continue
        lacks=$("$name" -c "$PROBE" 2>/dev/null) || continue # a pyenv shim without its version
        case $lacks in
        '') echo "$name" && return ;;
        *version*) ;;
        *) [ -n "$almost" ] || almost=$name lacking=$lacks ;;
        esac
    done
    if [ -n "$almost" ]; then
        version=$("$almost" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        die "$almost lacks: $lacking; install: $(install_line "$version")"
    fi
    die "no ${PYTHON:-Python 3.11, 3.12 or 3.13} found; install: $(install_line 3.12)"
}

make_environment() {
    python=$(find_python)
    echo "setup: making $VENV with $("$python" --version)"
    "$python" -m venv --clear "$VENV"
}

find_accelerator() {
    if [ "$(uname -sm)" = "Linux x86_64" ] && nvidia-smi -L 2>/dev/null | grep -q GPU; then echo cuda; else echo cpu; fi
}

pip() {
    "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --no-compile "$@" >>"$LOG" 2>&1
}

pip_install() {
    pip --no-deps "$@" || {
        tail -n 15 "$LOG" >&2
        die "pip failed (above; all of it in $LOG). Is a package index reachable?"
    }
}

# Before all that depends on it, and without a hash: which file it is depends on the index that has one. What the CPU
# build imports is in the lock; the plain build brings its own CUDA libraries on Linux.
install_torch() {
    if [ "$(uname -s)" = Linux ]; then
        # shellcheck disable=SC2086
        pip --no-deps ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "torch==$TORCH+cpu" && return
        echo "setup: no CPU build of torch $TORCH here (TORCH_INDEX=URL names an index); taking the plain one" >&2
    fi
    pip "torch==$TORCH" || {
        tail -n 15 "$LOG" >&2
        die "pip could not install torch $TORCH (above; all of it in $LOG)"
    }
}

install_pins() {
    if [ "$(uname -sm)" = "Darwin x86_64" ]; then
        echo "setup: numba has no ready builds for an Intel Mac; installing needs LLVM there and may fail" >&2
    fi
    echo "setup: installing $(grep -c '==' "$lock") pinned packages for $accelerator (some minutes the first time)"
    pip_install --require-hashes -r requirements/build.txt
    [ "$accelerator" = cuda ] || install_torch
    # Without build isolation, source packages are built by the pinned setuptools and fetch nothing that is not pinned.
    pip_install --require-hashes --no-build-isolation -r "$lock"
    # Compiled here on all cores: pip would do it on one, and takes longer over it than over all the rest. Some
    # packages ship templates that are no valid Python, so the exit status says nothing.
    "$VENV/bin/python" -m compileall -q -j 0 "$VENV/lib" >>"$LOG" 2>&1 || true
}

# Installed from what: compared by content, as times say nothing after a checkout.
digest_of() {
    cat "$@" | cksum
}

began=$(date +%s)
if [ ! -x "$VENV/bin/python" ]; then
    make_environment
elif ! grep -qF "$(pwd -P)/$VENV" "$VENV/pyvenv.cfg"; then
    echo "setup: $VENV was made in another folder; making it anew"
    make_environment
fi

accelerator=${ACCELERATOR:-$(find_accelerator)}
case $accelerator in
cpu) lock=requirements/lock.txt ;;
cuda) lock=requirements/lock-cuda.txt ;;
*) die "ACCELERATOR must be cpu or cuda, not $accelerator" ;;
esac
pins=$(digest_of requirements/build.txt "$lock" requirements/setup.sh)
if [ "$pins" != "$(cat "$VENV/pins.cksum" 2>/dev/null)" ]; then
    install_pins
    echo "$pins" >"$VENV/pins.cksum"
fi

project=$(digest_of pyproject.toml)
if [ "$project" != "$(cat "$VENV/project.cksum" 2>/dev/null)" ]; then
    pip_install --no-build-isolation --editable .
    echo "$project" >"$VENV/project.cksum"
    echo "setup: collabsim is ready in $VENV, after $(($(date +%s) - began)) s"
fi
