"""What a command would do, told by its program and its options: read, write, reach out, or start another training.

One table: programs that only read, those that read unless one of some options asks for more, and those that write unless one
of some options keeps them from it. What the table does not know may do anything.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

READS, UNKNOWN, WRITES, FETCHES, TRAINS = "reads", "unknown", "writes", "fetches", "trains"
_WORSE = (READS, UNKNOWN, WRITES, FETCHES, TRAINS)

_READING = set("""
    [ [[ : arch awkward base32 base64 basename break cal cat cd cksum cmp column comm continue cut dirname declare df diff dir
    dircolors du echo egrep env expand export expr false fgrep file fmt fold free getconf getent grep groups head hexdump hostid id
    in join jq ldd less local locale logname ls lsb_release lsblk lscpu lshw lsmem lsmod lsof lspci lsusb md5sum more
    netstat nl nm nproc numfmt numstat objdump od paste pathchk pgrep pidof pinky pr printenv printf ps pwd read
    readelf readlink realpath rev rg rocm-smi-info set seq sha1sum sha224sum sha256sum sha384sum sha512sum shift sleep stat
    strings stty sum tac tail test top tput tr true tty type ulimit umask uname unexpand unset uptime users vmstat w wait wc
    whereis which who whoami xxhsum xzcat yes zcat zgrep zipinfo zstdcat bzcat ffprobe iostat mpstat sar wdiff diff3""".split())
_WRITING = set("""
    rm mv cp touch ln rsync tee dd chmod chown chgrp mkdir rmdir truncate install patch shred unlink mkfifo mknod mktemp split
    csplit mount umount mkfs crontab fallocate setfacl""".split())
_FETCHING = set("""
    wget curl aria2c axel scp ssh sftp ftp telnet nc gsutil gcloud aws s3cmd s5cmd azcopy az rclone kaggle huggingface-cli hf gdown
    conda mamba micromamba uv poetry apt apt-get dnf yum apk brew snap npm make cmake ninja sbatch srun salloc scancel kubectl
    docker podman singularity apptainer mail sendmail sudo su kill pkill killall reboot shutdown systemctl service modprobe
    tmux screen at ray wandb dvc tensorboard mlflow visdom jupyter jupyter-lab aim streamlit ngrok""".split())

# Program -> (letters of short options that write, long options that write, letters that take a value).
_WRITES_WITH = {"sed": ("i", ("--in-place",), "efl"), "sort": ("o", ("--output",), "kStT"), "shuf": ("o", ("--output",), "ein"),
                "date": ("s", ("--set",), "dfr"), "tree": ("o", (), "LPI"), "iconv": ("o", ("--output",), "ft"),
                "yq": ("i", ("--inplace",), ""),
                "perl": ("i", (), "eEIM"), "dmesg": ("cC", ("--clear", "--read-clear"), "ln"), "sysctl": ("w", ("--write",), ""),
                "hostname": ("Fb", (), ""), "uniq": ("", (), "fsw"), "xxd": ("r", ("-r",), "clos")}
_MOST_OPERANDS = {"uniq": 1, "xxd": 1, "hostname": 0}  # the next one would be written to
# Program -> (letters that keep it from writing, long options that do), letters that take a value.
_READS_WITH = {"ldconfig": ("pNXV", ("--print-cache", "--version"), "Cfr"), "unzip": ("lvZtpcz", (), "dxP"),
               "zip": ("T", ("--show-files", "-sf"), ""), "7z": ("", ("l", "t", "-so"), ""),
               "7za": ("", ("l", "t", "-so"), ""), "rar": ("", ("l", "t", "v"), ""), "unrar": ("", ("l", "t", "v", "p"), "")}
_PACKERS = {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4", "unlz4", "pigz", "unpigz", "pbzip2", "lzma"}
_TO_PIPES = {"ffmpeg", "sox", "convert", "magick"}  # write to a file unless they are told to write to a pipe

# Words before a command -> (options that take a value, words of its own before the command).
_WRAPPERS = {"env": ({"-u", "-C", "--unset", "--chdir"}, 0), "nohup": (set(), 0), "time": ({"-f", "-o"}, 0), "nice": ({"-n"}, 0),
             "exec": ({"-a"}, 0), "command": (set(), 0), "builtin": (set(), 0), "ionice": ({"-c", "-n"}, 0), "setsid": (set(), 0),
             "timeout": ({"-s", "-k", "--signal", "--kill-after"}, 1), "stdbuf": ({"-i", "-o", "-e"}, 0), "taskset": (set(), 1),
             "numactl": ({"-N", "-C", "-m", "-i", "-p"}, 0), "unbuffer": (set(), 0), "chrt": (set(), 1), "prlimit": (set(), 0),
             "xargs": ({"-n", "-P", "-I", "-d", "-L", "-a", "-E", "-s"}, 0)}
_SHELL_WORDS = {"do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "(", ")", "done", "fi", "esac"}

_GIT_READS = {"rev-parse", "status", "log", "describe", "diff", "show", "ls-files", "ls-tree", "symbolic-ref", "rev-list", "version",
              "cat-file", "shortlog", "blame", "grep", "merge-base", "name-rev", "for-each-ref", "show-ref", "show-branch", "count-objects",
              "var", "check-ignore", "check-attr", "diff-tree", "diff-index", "diff-files", "whatchanged", "help", "cherry",
              "verify-commit", "verify-tag"}
# git's verbs that read as long as their operands are among these (None: there may be any with such an option).
_GIT_LISTS = {"branch": {"--list", "-l", "--contains", "--show-current", "-a", "-r", "-v", "-vv"},
              "tag": {"--list", "-l", "--contains", "--points-at", "-n"}}
_PIP_READS = {"list", "freeze", "show", "check", "inspect", "debug", "help"}
_SHELLS = re.compile(r"^(ba|z|da|k|a)?sh$")
_PYTHON = re.compile(r"^(python|pypy)[0-9.]*$")
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "composer", "colossalai", "fabric", "lightning"}
_MODULES_READ = {"site", "sysconfig", "platform", "this", "timeit", "calendar", "pydoc", "tokenize", "ast", "dis", "locale",
                 "torch.utils.collect_env", "torch.utils.bottleneck", "inspect", "pyclbr", "http.client", "cpuinfo", "torch_env"}
_MODULES_FETCH = {"venv", "ensurepip", "compileall", "build", "spacy", "nltk.downloader", "conda", "virtualenv", "pytest", "http.server",
                  "tensorboard.main", "tensorboard", "visdom.server", "jupyter", "notebook", "wandb"}
_CODE_WRITES = re.compile(r"open\(|write|remove|unlink|rmtree|rename|mkdir|makedirs|shutil|subprocess|os\.system|savez?\(|dump\(")
_AWK_WRITES = re.compile(r"print[^;}\n]*>>?\s*[\"($\w]|system\s*\(|print[^;}\n]*\|\s*\"")
_ONLY_TELLS = {"--version", "-version", "--help"}

QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
_BETWEEN = re.compile(rf"(?P<quoted>{QUOTED})|\|\||&&|[;|\n]|(?<!>)&(?!>)", re.DOTALL)
_SUBSTITUTED = re.compile(r"[$<>]\(([^()]*)\)|`([^`]*)`")


def of(words: list) -> str:
    """What the command would do: one of READS, UNKNOWN, WRITES, FETCHES and TRAINS."""
    words = bare(words)
    if not words:
        return READS
    name, rest = program(words), words[1:]
    if rest and all(word in _ONLY_TELLS or name in ("python", "python3") and word in ("-V", "-VV") for word in rest):
        return READS
    for known, answer in _ASKED:
        if known(words[0], name):
            return answer(name, rest)
    if words[0].endswith((".py", ".sh")):
        return TRAINS
    if name in _WRITING:
        return WRITES
    if name in _FETCHING:
        return FETCHES
    return READS if name in _READING else UNKNOWN


def program(words: list) -> str:
    return os.path.basename(words[0]) if words else ""


def bare(words: list) -> list:
    """The command without what stands before it: variables, nice, timeout, the shell's own words."""
    words = list(words)
    while words:
        first = words[0].lstrip("({") if len(words[0]) > 1 else words[0]
        if not first or first in _SHELL_WORDS or re.match(r"^\w+=", first):
            words = words[1:]
            continue
        if first in ("for", "select", "function"):
            return []  # a list of words; what is done with them comes behind
        words[0] = first
        if os.path.basename(first) not in _WRAPPERS:
            return words
        valued, own = _WRAPPERS[os.path.basename(first)]
        words = _behind(words[1:], valued, own)
    return words


def _behind(words: list, valued: set, own: int) -> list:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in valued else words[1:]
    return words[own:]


def parts(text: str) -> list:
    """The commands of a line for the shell, each as words, those that stand in another's words among them."""
    found = []
    for part in _split(text):
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        for inner in _substituted(part):
            found += parts(inner)
        words = bare(words)
        if words:
            found.append(words)
    return found


def _substituted(text: str) -> list:
    """The commands that stand within a command's words, the innermost first."""
    found = []
    while inner := _SUBSTITUTED.search(text):
        found.append(inner[1] or inner[2] or "")
        text = f"{text[:inner.start()]}_{text[inner.end():]}"
    return found


def _split(text: str) -> list:
    """The pieces of a line between the shell's signs, where they do not stand in quotes."""
    pieces, begin = [], 0
    for sign in _BETWEEN.finditer(text):
        if not sign["quoted"]:
            pieces.append(text[begin:sign.start()])
            begin = sign.end()
    return [*pieces, text[begin:]]


def _worst(answers) -> str:
    return max(answers, key=_WORSE.index, default=READS)


# -- programs with rules of their own ---------------------------------------------------------------------------------


def _has(rest: list, letters: str, long: tuple, valued: str) -> bool:
    """Whether one of these options is given; letters may be put together (-ni), and one that takes a value ends its word."""
    for word in rest:
        if word == "--":
            return False
        if word.startswith("--") or word in long:
            if word.split("=", 1)[0] in long:
                return True
        elif word.startswith("-"):
            for letter in word[1:]:
                if letter in letters:
                    return True
                if letter in valued:
                    break
    return False


def _operands(rest: list, valued: str = "") -> list:
    found, skip = [], False
    for word in rest:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = word[-1] in valued and not word.startswith("--")
        else:
            found.append(word)
    return found


def _writes_with(name: str, rest: list) -> str:
    letters, long, valued = _WRITES_WITH[name]
    if _has(rest, letters, long, valued):
        return WRITES
    return WRITES if len(_operands(rest, valued)) > _MOST_OPERANDS.get(name, len(rest)) else READS


def _reads_with(name: str, rest: list) -> str:
    letters, long, valued = _READS_WITH[name]
    return READS if _has(rest, letters, long, valued) or rest[:1] and rest[0] in long else WRITES


def _packer(name: str, rest: list) -> str:
    """Without a file they go from pipe to pipe."""
    told = _has(rest, "clt", ("--stdout", "--to-stdout", "--list", "--test"), "S")
    return READS if told or not [word for word in _operands(rest, "S") if word != "-"] else WRITES


def _tar(name: str, rest: list) -> str:
    first = rest[0] if rest else ""
    bundle = first if first and not first.startswith("-") else "".join(word[1:] for word in rest if re.match(r"^-\w", word))
    if "t" in bundle.partition("f")[0] or "O" in bundle or {"--list", "--diff", "--compare", "--to-stdout"} & set(rest):
        return READS
    return READS if "d" in bundle.partition("f")[0] and "x" not in bundle and "c" not in bundle else WRITES


def _find(name: str, rest: list) -> str:
    if any(word in ("-delete", "-fls") or word.startswith("-fprint") for word in rest):
        return WRITES
    found = []
    for at, word in enumerate(rest):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at, len(rest)) if rest[i] in (";", "+", "\\;")), len(rest))
            found.append(of(rest[at + 1:end]))
    return _worst(found)


def _awk(name: str, rest: list) -> str:
    if "inplace" in rest:
        return WRITES
    return WRITES if any(_AWK_WRITES.search(word) for word in rest if not word.startswith("-")) else READS


def _git(name: str, rest: list) -> str:
    rest = _behind(rest, {"-C", "-c", "--git-dir", "--work-tree"}, 0)
    verb, more = (rest[0], rest[1:]) if rest else ("version", [])
    if verb in _GIT_READS:
        return READS
    if verb in _GIT_LISTS:
        writes = {"-d", "-D", "-m", "-M", "-c", "-C", "-f", "--delete", "--force", "--edit-description", "-a" if verb == "tag" else "-u"}
        if writes & set(more):
            return WRITES
        return WRITES if _operands(more) and not _GIT_LISTS[verb] & {word.split("=")[0] for word in more} else READS
    if verb == "config":
        told = any(word.startswith("--get") or word in ("--list", "-l") for word in more) or more[:1] in (["get"], ["list"])
        return READS if told or len(_operands(more)) == 1 else WRITES
    if verb in ("remote", "stash", "submodule", "worktree", "notes", "bisect", "reflog"):
        wanted = _operands(more)[:1] or ([] if verb in ("remote", "reflog") else ["push"])
        return READS if not wanted or wanted[0] in ("show", "get-url", "list", "status", "summary", "log", "view") else WRITES
    return FETCHES if verb in ("clone", "fetch", "pull", "push", "ls-remote", "lfs") else WRITES


def _pip(name: str, rest: list) -> str:
    verb = next((word for word in rest if not word.startswith("-")), "")
    return READS if verb in _PIP_READS or not verb else FETCHES


def _python(name: str, rest: list) -> str:
    for at, word in enumerate(rest):
        if word == "-c":
            return UNKNOWN if _CODE_WRITES.search(" ".join(rest[at + 1:at + 2])) or not rest[at + 1:] else READS
        if word == "-m" or word.startswith("-m") and not word.startswith("--"):
            module, more = (rest[at + 1] if rest[at + 1:] else "", rest[at + 2:]) if word == "-m" else (word[2:], rest[at + 1:])
            return _module(module, more)
        if not word.startswith("-"):
            return TRAINS if word.endswith((".py", ".sh")) or any(w.endswith(".py") for w in rest) else UNKNOWN
    return UNKNOWN


def _module(module: str, more: list) -> str:
    if module in ("pip", "pip3"):
        return _pip("pip", more)
    if module == "json.tool":
        return READS if len(_operands(more)) < 2 else WRITES
    if module in ("zipfile", "tarfile"):
        return READS if _has(more, "lt", ("--list", "--test"), "") else WRITES
    if module in _MODULES_READ:
        return READS
    return FETCHES if module.partition(" ")[0] in _MODULES_FETCH else TRAINS


def _shell(name: str, rest: list) -> str:
    for at, word in enumerate(rest):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return _worst(of(words) for text in rest[at + 1:at + 2] for words in parts(text))
        if not word.startswith("-"):
            return TRAINS if word.endswith(".sh") else UNKNOWN
    return UNKNOWN


def _launcher(name: str, rest: list) -> str:
    if any(word.endswith((".py", ".sh")) or word in ("-m", "launch") for word in rest):
        return TRAINS
    after = next((at for at, word in enumerate(rest) if _PYTHON.match(os.path.basename(word))), None)
    if after is not None:
        return TRAINS
    return READS if rest[:1] == ["env"] else UNKNOWN


def _pipes(name: str, rest: list) -> str:
    return READS if any(word in ("-", "pipe:", "pipe:1", "null") for word in rest[-2:]) else WRITES


_ASKED = [(lambda path, name: bool(_PYTHON.match(name)) or path == sys.executable, _python),
          (lambda path, name: bool(_SHELLS.match(name)), _shell),
          (lambda path, name: name in _LAUNCHERS, _launcher),
          (lambda path, name: name == "git", _git),
          (lambda path, name: name in ("pip", "pip3"), _pip),
          (lambda path, name: name in ("tar", "bsdtar", "gtar"), _tar),
          (lambda path, name: name == "find", _find),
          (lambda path, name: name in ("awk", "gawk", "mawk", "nawk"), _awk),
          (lambda path, name: name in _WRITES_WITH, _writes_with),
          (lambda path, name: name in _READS_WITH, _reads_with),
          (lambda path, name: name in _PACKERS, _packer),
          (lambda path, name: name in _TO_PIPES, _pipes)]
